import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unseen.data import Vocabulary
from unseen.data.vocabulary import VocabularyBuilder, as_id_array
from unseen.exceptions import InvalidDataError, UnknownIdError

# NumPy's fixed-width text cannot tell trailing NULs from padding.
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
numbers = st.integers(-(2**62), 2**62)
id_lists = st.one_of(st.lists(texts, min_size=1, max_size=30), st.lists(numbers, min_size=1, max_size=30))


@given(id_lists)
def test_encoding_and_decoding_are_inverse(ids):
    vocabulary, codes = Vocabulary.encode(ids)
    assert vocabulary[codes].tolist() == ids
    assert vocabulary.index_of(ids).tolist() == codes.tolist()
    assert list(vocabulary) == sorted(set(ids))


@given(id_lists, st.integers(1, 7))
def test_growing_by_chunks_gives_the_same_vocabulary(ids, size):
    builder = VocabularyBuilder()
    provisional = np.concatenate([builder.add(ids[i : i + size]) for i in range(0, len(ids), size)])
    arrival = list(dict.fromkeys(ids))
    assert [arrival[code] for code in provisional] == ids
    vocabulary, final = builder.finish()
    assert vocabulary == Vocabulary.encode(ids)[0]
    assert vocabulary[final[provisional]].tolist() == ids


def test_order_is_kept():
    vocabulary = Vocabulary(["c", "a", "b"])
    assert vocabulary.index_of(["a", "b", "c"]).tolist() == [1, 2, 0]
    assert vocabulary != Vocabulary(["a", "b", "c"])


def test_unknown_ids_are_named():
    vocabulary = Vocabulary([10, 20, 30])
    assert vocabulary.find([20, 25]).tolist() == [1, -1]
    with pytest.raises(UnknownIdError, match=r"^id 25 is not in the vocabulary of 3 integers \(10, 20, 30\)"):
        vocabulary.index_of([20, 25, 26])
    with pytest.raises(KeyError):
        vocabulary.index_of(["20"])
    assert 20 in vocabulary
    assert "20" not in vocabulary
    assert vocabulary.index_of([]).size == 0


def test_padding_never_becomes_an_id():
    with pytest.raises(InvalidDataError, match="-1"):
        Vocabulary(["a", "b"])[np.array([0, -1])]
    assert Vocabulary(["a", "b"])[1] == "b"


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a", "b", "a"], "'a' occurs more than once"),
        ([1, "a"], r"all integers or all strings, got int \(1 in row 0\), str \('a' in row 1\)"),
        ([1.5], "float"),
        (np.array([1.0, 2.0]), r"such as .*1\.0.* Did nulls"),
        ([None, "a"], "null in row 0"),
        (["a", float("nan")], "null in row 1"),
        ([[1, 2]], "one-dimensional"),
        ([True, False], "got bool"),
        (["x", "x\0"], r"'x\\x00' in row 1: no id may end in NUL"),
    ],
)
def test_unusable_ids_are_refused(ids, message):
    with pytest.raises(InvalidDataError, match=message):
        Vocabulary(ids)


def test_large_unsigned_ids_survive():
    ids = np.array([2**63 + 1, 5], dtype=np.uint64)
    assert Vocabulary(ids).index_of(ids).tolist() == [0, 1]
    assert as_id_array(np.array([5], dtype=np.uint64)).dtype == np.int64


def test_values_cannot_be_changed_and_the_source_still_can():
    source = np.array([1, 2])
    vocabulary = Vocabulary(source)
    with pytest.raises(ValueError, match="read-only"):
        vocabulary.values[0] = 9
    source[0] = 1


def test_mixing_kinds_between_chunks_is_refused():
    builder = VocabularyBuilder("user")
    builder.add([1, 2])
    with pytest.raises(InvalidDataError, match="user must be all integers or all strings"):
        builder.add(["a"])
