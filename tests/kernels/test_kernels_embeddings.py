"""Kernels behind label embeddings against their NumPy twins."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from unseen import kernels
from unseen.exceptions import ParameterError
from unseen.kernels import _arguments, reference_embeddings

native_only = pytest.mark.skipif(kernels.provider() != "native", reason="the native module is not built")


def labels(n: int = 60, n_labels: int = 12, seed: int = 0, index: Any = np.int32) -> Any:
    """Rows with zero to four labels, many of them the same: ties everywhere."""
    rng = np.random.default_rng(seed)
    Y = sparse.csr_array(rng.random((n, n_labels)) < 0.12)
    Y.indptr, Y.indices = Y.indptr.astype(index), Y.indices.astype(index)
    return Y


def found_and_expected(Y: Any, k: int, similarity: str, recount: bool, n_threads: int) -> tuple[Any, Any]:
    by_label = Y.tocsc()
    keep = np.ones(by_label.nnz, dtype=bool)
    if recount:
        keep[::3] = False
    ends = np.concatenate([[0], np.cumsum(keep)])[by_label.indptr].astype(by_label.indptr.dtype)
    index = ends, by_label.indices[keep]
    found = kernels.cooccurrence(
        Y.indptr, Y.indices, index, k, similarity=similarity, recount=recount, n_threads=n_threads
    )
    ids, counts, sizes = reference_embeddings.cooccurrence(
        Y.indptr, Y.indices, *index, min(k, Y.shape[0] - 1), similarity, recount, 1
    )
    filled = np.arange(ids.shape[1]) < sizes[:, None]
    return found, (np.concatenate([[0], np.cumsum(sizes)]), ids[filled], counts[filled])


@pytest.mark.parametrize("k", [0, 1, 5, 59, 1000])
@pytest.mark.parametrize("similarity", ["cosine", "share"])
@pytest.mark.parametrize("recount", [False, True])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_cooccurrence_agrees_with_twin(k, similarity, recount, index, monkeypatch):
    monkeypatch.setattr(_arguments, "WORK_A_THREAD", 1)
    for n_threads in (1, 3):
        found, expected = found_and_expected(labels(index=index), k, similarity, recount, n_threads)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_twin_comparison_can_fail():
    found, _ = found_and_expected(labels(), 5, "cosine", False, 1)
    _, other_similarity = found_and_expected(labels(), 5, "share", False, 1)
    assert len(found[1]) != len(other_similarity[1]) or (found[1] != other_similarity[1]).any()


def test_counts_are_shared_labels_and_ties_go_to_the_lower_row():
    Y = sparse.csr_array([[1, 1, 0], [1, 0, 0], [1, 0, 0], [1, 1, 1], [0, 0, 0]])
    by_label = Y.tocsc()
    indptr, indices, counts = kernels.cooccurrence(
        Y.indptr, Y.indices, (by_label.indptr, by_label.indices), 2
    )
    # Of row 0: row 3 (2 of sqrt 6), then rows 1 and 2 alike (1 of sqrt 2).
    np.testing.assert_array_equal(indices[indptr[0] : indptr[1]], [1, 3])
    np.testing.assert_array_equal(counts[indptr[0] : indptr[1]], [1, 2])
    assert indptr[5] == indptr[4]


def sgns_case(dtype: Any, rank: int, shared: bool) -> list[Any]:
    rng = np.random.default_rng(rank)
    words = rng.standard_normal((9, rank)).astype(dtype)
    contexts = words if shared else rng.standard_normal((9, rank)).astype(dtype)
    drawn = (rng.integers(0, 9, 50), rng.integers(0, 9, 50), rng.integers(0, 9, (50, 3)))
    return [words, contexts, *(a.astype(np.int32) for a in drawn)]


@pytest.mark.parametrize("rank", [1, 3, 8, 17, 50])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sgns_agrees_with_twin(rank, shared, dtype):
    one, two = sgns_case(dtype, rank, shared), sgns_case(dtype, rank, shared)
    before = one[0].copy()
    kernels.sgns_sweep(*one, first_rate=0.3, last_rate=0.1)
    reference_embeddings.sgns(*two, 0.3, 0.1, 1)
    tolerance = 1e-4 if dtype is np.float32 else 1e-10
    np.testing.assert_allclose(one[0], two[0], atol=tolerance)
    np.testing.assert_allclose(one[1], two[1], atol=tolerance)
    assert np.abs(one[0] - before).max() > 100 * tolerance


def joint_case(dtype: Any, rank: int) -> list[Any]:
    rng = np.random.default_rng(rank)
    X = sparse.csr_array(rng.random((12, 7)) * (rng.random((12, 7)) < 0.4))
    V = rng.standard_normal((7, rank)).astype(dtype)
    drawn = (rng.integers(0, 12, 8), rng.integers(0, 12, (8, 2)), rng.integers(0, 12, (8, 3)))
    return [
        X.indptr, X.indices, X.data.astype(dtype), V, np.full_like(V, 0.1),
        *(a.astype(np.int32) for a in drawn),
    ]  # fmt: skip


@pytest.mark.parametrize("rank", [1, 3, 17, 50])
@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_joint_agrees_with_twin(rank, cosine, dtype):
    one, two = joint_case(dtype, rank), joint_case(dtype, rank)
    before = one[3].copy()
    kernels.joint_sweep(*one, gamma=2.0, negative_weight=0.7, rate=0.1, reg=np.arange(7) / 100, cosine=cosine)
    reference_embeddings.joint(*two, (np.arange(7) / 100).astype(dtype), 2.0, 0.7, 0.1, cosine, 1)
    tolerance = 1e-4 if dtype is np.float32 else 1e-10
    np.testing.assert_allclose(one[3], two[3], atol=tolerance)
    np.testing.assert_allclose(one[4], two[4], rtol=100 * tolerance, atol=tolerance)
    assert np.abs(one[3] - before).max() > 100 * tolerance


@native_only
@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_every_instruction_set(isa):
    code = (
        "import test_kernels_embeddings as t, numpy as np\n"
        "t.test_sgns_agrees_with_twin(17, False, np.float32)\n"
        "t.test_joint_agrees_with_twin(17, True, np.float32)\n"
        "found, expected = t.found_and_expected(t.labels(), 5, 'cosine', False, 1)\n"
        "assert all((a == b).all() for a, b in zip(found, expected))\n"
    )
    here = os.path.dirname(__file__)
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"UNSEEN_ISA": isa, "PYTHONPATH": here},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "is not an instruction set that" in done.stderr:
        pytest.skip(f"this machine has no {isa}")
    assert done.returncode == 0, done.stderr


def test_wrong_arguments_are_named():
    Y = labels()
    with pytest.raises(ParameterError, match="similarity must be"):
        kernels.cooccurrence(Y.indptr, Y.indices, (Y.indptr, Y.indices), 3, similarity="jaccard")  # type: ignore[arg-type]
    words = np.ones((3, 2))
    some, none = np.zeros(1, np.int32), np.zeros((1, 0), np.int32)
    with pytest.raises(ParameterError, match="same number of columns"):
        kernels.sgns_sweep(words, np.ones((3, 1)), some, some, none, first_rate=1.0, last_rate=1.0)
    with pytest.raises(ParameterError, match="squares is written in place"):
        kernels.joint_sweep(
            np.array([0, 1]), np.array([0]), np.ones(1), words, np.ones((2, 2)), some, none, none
        )
