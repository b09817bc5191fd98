import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from unseen.data import Observations, Vocabulary
from unseen.exceptions import DataWarning, InvalidDataError

holey = hnp.arrays(
    st.sampled_from([np.float32, np.float64]),
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.one_of(st.just(np.nan), st.integers(-3, 3).map(float)),
)


def densify(seen):
    """The dense array with NaN that observations stand for."""
    dense = np.full(seen.shape, np.nan, dtype=seen.dtype)
    dense[seen.rows, seen.indices] = seen.values
    return dense


@given(holey)
def test_dense_and_back(array):
    seen = Observations.from_dense(array)
    assert seen.dtype == array.dtype
    np.testing.assert_array_equal(densify(seen), array)


@given(holey, st.sampled_from(["csr", "csc", "coo", "lil", "dok"]), st.booleans())
def test_sparse_agrees_with_dense(array, layout, as_matrix):
    rows, cols = np.nonzero(~np.isnan(array))
    coo = sparse.coo_array((array[rows, cols], (rows, cols)), shape=array.shape)
    coo = sparse.coo_matrix(coo) if as_matrix else coo
    seen = Observations.from_any(
        coo if layout == "coo" else coo.tocsr() if layout == "csr" else coo.asformat(layout)
    )
    # lil and dok drop stored zeros themselves; all that reaches us must be kept.
    wanted = array.copy()
    if layout in ("lil", "dok"):
        stored = coo.asformat(layout).tocsr()
        stored.data[:] = 1
        wanted[(stored.toarray() == 0)] = np.nan
    np.testing.assert_array_equal(densify(seen), wanted)


@given(holey)
def test_transposing(array):
    seen = Observations.from_dense(array)
    np.testing.assert_array_equal(densify(seen.transpose()), array.T)
    twice = seen.transpose().transpose()
    for name in ("values", "indptr", "indices", "rows"):
        np.testing.assert_array_equal(getattr(twice, name), getattr(seen, name))


@given(holey)
def test_column_order_points_into_row_order(array):
    seen = Observations.from_dense(array)
    csc = seen.csc
    reference = seen.csr.tocsc()
    np.testing.assert_array_equal(csc.indptr, reference.indptr)
    np.testing.assert_array_equal(csc.indices, reference.indices)
    np.testing.assert_array_equal(seen.values[csc.order], reference.data)
    np.testing.assert_array_equal(seen.rows[csc.order], csc.indices)
    assert seen.csc is csc


@given(holey, st.data())
def test_selecting_cells(array, data):
    seen = Observations.from_dense(array)
    mask = data.draw(hnp.arrays(bool, seen.nnz))
    kept = seen.select(mask)
    wanted = np.full_like(array, np.nan)
    wanted[seen.rows[mask], seen.indices[mask]] = seen.values[mask]
    assert kept.shape == seen.shape
    np.testing.assert_array_equal(densify(kept), wanted)


@given(holey, st.randoms(use_true_random=False))
def test_order_of_triples_does_not_matter(array, random):
    seen = Observations.from_dense(array)
    shuffled = list(range(seen.nnz))
    random.shuffle(shuffled)
    again = Observations.from_triples(
        seen.rows[shuffled], seen.indices[shuffled], seen.values[shuffled], seen.shape
    )
    np.testing.assert_array_equal(densify(again), array)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(-5, 5)), min_size=1, max_size=30),
    st.sampled_from(["mean", "sum"]),
)
def test_duplicates_are_merged_as_a_plain_loop_would(triples, how):
    groups = {}
    for row, col, value in triples:
        groups.setdefault((row, col), []).append(value)
    rows, cols, values = zip(*triples, strict=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seen = Observations.from_triples(rows, cols, values, (4, 3), duplicates=how)
    repeated = len(triples) - len(groups)
    assert [str(w.message).split()[0] for w in caught] == ([str(repeated)] if repeated else [])
    for (row, col), found in groups.items():
        merged = sum(found) / (len(found) if how == "mean" else 1)
        assert densify(seen)[row, col] == pytest.approx(merged)


def test_duplicates_in_sparse_matrices_are_found_in_every_format():
    coo = sparse.coo_array(([1.0, 3.0, 5.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    csr = sparse.csr_array(([1.0, 3.0, 5.0], [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    csc = sparse.csc_array(([5.0, 1.0, 3.0], [1, 0, 0], [0, 1, 3]), shape=(2, 2))
    for matrix in (coo, csr, csc):
        with pytest.warns(DataWarning, match="1 of 3 cells repeat another one; duplicates were averaged"):
            assert Observations.from_any(matrix).values.tolist() == [2, 5]
        with pytest.warns(DataWarning, match="summed"):
            assert Observations.from_any(matrix, duplicates="sum").values.tolist() == [4, 5]
        assert matrix.nnz == 3


def test_pairs_without_values_are_counted():
    with pytest.warns(DataWarning, match="summed"):
        assert Observations.from_triples([0, 0, 1], [1, 1, 0]).csr.toarray().tolist() == [[0, 2], [1, 0]]


def test_stored_zeros_are_observations():
    matrix = sparse.csr_array(([0.0, 1.0], [0, 1], [0, 2]), shape=(1, 2))
    assert Observations.from_any(matrix).nnz == 2
    assert Observations.from_any([[0.0, 1.0]]).nnz == 2


def test_a_canonical_matrix_is_not_copied_nor_frozen():
    matrix = sparse.random_array((50, 40), density=0.2, format="csr", rng=0)
    seen = Observations.from_any(matrix)
    for own, theirs in (
        (seen.values, matrix.data),
        (seen.indices, matrix.indices),
        (seen.csr.data, matrix.data),
    ):
        assert np.shares_memory(own, theirs)
        assert theirs.flags.writeable != own.flags.writeable or own is seen.csr.data
    assert matrix.data.flags.writeable


def test_unsorted_input_is_sorted_in_a_copy():
    matrix = sparse.csr_array(([1.0, 2.0], [1, 0], [0, 2]), shape=(1, 2))
    assert Observations.from_any(matrix).values.tolist() == [2, 1]
    assert matrix.data.tolist() == [1, 2]


def test_nothing_can_be_written_to():
    seen = Observations.from_any([[1.0, np.nan], [2.0, 3.0]])
    for array in (seen.values, seen.indices, seen.indptr, seen.rows, seen.csc.order, seen.csr.data):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize("given_type", [np.int8, np.uint64, np.bool_, np.float16, np.float64])
def test_other_types_become_float64(given_type):
    assert Observations.from_any(np.ones((2, 2), dtype=given_type)).dtype == np.float64
    assert Observations.from_any(sparse.csr_array(np.ones((2, 2), dtype=np.int8))).dtype == np.float64
    assert Observations.from_any(np.ones((2, 2), dtype=np.float32)).dtype == np.float32


def test_indices_are_narrow():
    matrix = sparse.random_array((5, 4), density=0.5, format="csr", rng=0)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    seen = Observations.from_any(matrix)
    kinds = {a.dtype for a in (seen.indices, seen.indptr, seen.rows, seen.csc.order, seen.csc.indptr)}
    assert kinds == {np.dtype(np.int32)}
    wide = Observations.from_triples([0], [2**31], [1.0])
    assert {wide.indices.dtype, wide.indptr.dtype, wide.rows.dtype} == {np.dtype(np.int64)}


def test_surplus_storage_is_ignored():
    matrix = sparse.csr_array((2, 2))
    matrix.data, matrix.indices, matrix.indptr = np.array([1.0, 9.0]), np.array([0, 1]), np.array([0, 1, 1])
    assert Observations.from_any(matrix).values.tolist() == [1]


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array, sparse.coo_array, sparse.csc_array])
def test_infinity_is_located(bad, wrap):
    array = np.ones((3, 4))
    assert Observations.from_any(wrap(array)).nnz == 12
    array[2, 1] = bad
    with pytest.raises(InvalidDataError, match=rf"X holds {bad} in row 2, column 1"):
        Observations.from_any(wrap(array))


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array, sparse.coo_array])
def test_nan_is_missing_or_refused(wrap):
    array = np.ones((3, 4))
    array[1, 2] = np.nan
    assert Observations.from_any(wrap(array)).nnz == 11
    with pytest.raises(InvalidDataError, match="X holds nan in row 1, column 2; finite values"):
        Observations.from_any(wrap(array), accept_nan=False)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), "Reshape your data"),
        (3.0, "Reshape your data"),
        (
            np.zeros((0, 3)),
            r"Found array with 0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required.",
        ),
        (np.zeros((3, 0)), r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required."),
        (sparse.csr_array((0, 3)), r"0 sample\(s\)"),
        (sparse.coo_array((3, 0)), r"0 feature\(s\)"),
        (np.ones((2, 2)) * 1j, "Complex data not supported"),
        (sparse.csr_array([[1j]]), "Complex data not supported"),
        (sparse.coo_array([1.0, 2.0]), "Reshape your data"),
        ([["a"]], "numeric"),
    ],
)
def test_unusable_matrices_are_refused(X, message):
    with pytest.raises(InvalidDataError, match=message):
        Observations.from_any(X)


def test_a_broken_sparse_matrix_is_refused_before_any_kernel_sees_it():
    matrix = sparse.csr_array(([1.0], [0], [0, 1]), shape=(1, 2))
    matrix.indices[0] = 7
    with pytest.raises(InvalidDataError, match="not a valid sparse matrix"):
        Observations.from_any(matrix)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [0], [1.0, 2.0]), "same length, got 2, 1 and 2"),
        (([0, -1], [0, 0]), r"rows\[1\] is -1"),
        (([0, 1], [0, 5], None, (2, 3)), r"cols\[1\] is 5, outside of 0\.\.2"),
        (([0.5], [0]), "rows must be a one-dimensional array of integers"),
        (([], []), "while a minimum of 1 is required"),
        (([0], [0], [np.inf]), "row 0, column 0"),
        (([0], [0], [1j]), "Complex"),
    ],
)
def test_unusable_triples_are_refused(arguments, message):
    with pytest.raises(InvalidDataError, match=message):
        Observations.from_triples(*arguments)


def test_overflow_while_merging_is_refused():
    with pytest.warns(DataWarning), pytest.raises(InvalidDataError, match="overflowed"):
        Observations.from_triples([0, 0], [0, 0], [1e308, 1e308], duplicates="sum")


def test_no_cells_at_all_is_legal():
    for X in (np.full((2, 3), np.nan), sparse.csr_array((2, 3))):
        seen = Observations.from_any(X)
        assert (seen.nnz, seen.shape) == (0, (2, 3))
        assert seen.transpose().shape == (3, 2)
        assert repr(seen) == "Observations(2 x 3, 0 cells = 0%, float64)"


def test_with_values_shares_the_pattern():
    seen = Observations.from_any([[1.0, np.nan], [2.0, 3.0]])
    other = seen.with_values(np.array([4, 5, 6], dtype=np.float32))
    assert other.csc is seen.csc
    assert other.dtype == np.float32
    with pytest.raises(InvalidDataError, match="row 1, column 0"):
        seen.with_values([1.0, np.nan, 2.0])
    with pytest.raises(InvalidDataError, match="shape"):
        seen.with_values([1.0])
    with pytest.raises(InvalidDataError, match="mask must be boolean"):
        seen.select([0, 1, 2])


def test_ids_travel_along():
    rows, cols = Vocabulary(["a", "b"]), Vocabulary([7, 8, 9])
    seen = Observations.from_triples([0], [2], [1.0], row_ids=rows, col_ids=cols)
    assert seen.shape == (2, 3)
    assert seen.transpose().row_ids is cols
    assert seen.select([False]).col_ids is cols
    assert repr(seen).endswith("row ids ['a', 'b'], col ids [7, 8, 9])")
    with pytest.raises(InvalidDataError, match="row_ids holds 2 ids, but the matrix has 3"):
        Observations.from_triples([2], [0], shape=(3, 3), row_ids=rows)


def test_pickling():
    seen = Observations.from_any([[1.0, np.nan], [2.0, 3.0]])
    np.testing.assert_array_equal(densify(pickle.loads(pickle.dumps(seen))), densify(seen))


def test_memory_stays_with_the_cells():
    """A matrix that would fill 8 TB dense is built and turned around in a few multiples of its cells."""
    rng = np.random.default_rng(0)
    n = 100_000
    rows, cols = rng.integers(0, 1_000_000, (2, n))
    cells = n * (8 + 4) + 2 * 1_000_000 * 4
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        seen = Observations.from_triples(rows, cols, rng.normal(size=n), (1_000_000, 1_000_000))
    seen.transpose().select(np.ones(seen.nnz, dtype=bool))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 * cells


@pytest.mark.parametrize("kept", [False, True])
def test_columns_with_and_without_a_kept_order(kept: bool) -> None:
    rng = np.random.default_rng(0)
    cells = Observations.from_sparse(sparse.random_array((7, 5), density=0.4, rng=rng, format="csr"))
    carried = np.arange(cells.nnz)
    if kept:
        assert cells.csc.order.size == cells.nnz
    indptr, indices, moved = cells.to_columns(carried)
    np.testing.assert_array_equal(indptr, cells.csc.indptr)
    np.testing.assert_array_equal(indices, cells.csc.indices)
    np.testing.assert_array_equal(moved, cells.csc.order)
    assert indptr.dtype == indices.dtype == cells.indices.dtype
