"""Embeddings from shared labels: factorisation of mutual information."""

from __future__ import annotations

import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import subspace_angles
from scipy.optimize import minimize_scalar

import unseen
from unseen import SPPMIEmbedding
from unseen.embeddings import sppmi
from unseen.embeddings.graph import neighbor_counts, with_diagonal
from unseen.embeddings.spectral import Symmetric, positive_eigenpairs
from unseen.embeddings.sppmi import sppmi_matrix
from unseen.exceptions import DataWarning, InvalidDataError, ParameterError, TooLargeError


def make_labels(n: int = 120, n_labels: int = 15, seed: int = 0, dtype: Any = np.float64) -> Any:
    """Groups of labels that occur together; every row has one at least."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    likely = np.where(np.arange(n_labels) // 5 == group[:, None], 0.4, 0.05)
    dense = rng.random((n, n_labels)) < likely
    dense[np.arange(n), rng.integers(0, n_labels, n)] = True
    return sparse.csr_array(dense.astype(dtype))


def seeded() -> np.random.Generator:
    return np.random.default_rng(0)


def naive_sppmi(A: np.ndarray[Any, Any], shift: float = 1.0) -> np.ndarray[Any, Any]:
    total, sums = A.sum(), A.sum(axis=1)
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(A * total / np.outer(sums, sums)) - np.log(shift), 0.0)


@pytest.mark.parametrize("shift", [0.5, 1.0, 3.0])
def test_all_pairs_match_the_formula(shift):
    Y = make_labels()
    M = (Y @ Y.T).toarray()
    before = Y.copy()
    found = sppmi_matrix(Y, rng=seeded(), n_neighbors=None, shift=shift).toarray()
    assert (before != Y).nnz == 0
    np.testing.assert_allclose(found, naive_sppmi(M, shift), atol=1e-12)
    assert not np.allclose(found, naive_sppmi(M, 2 * shift))
    # More neighbours than rows are all of them.
    np.testing.assert_allclose(
        sppmi_matrix(Y, rng=seeded(), n_neighbors=10_000, shift=shift).toarray(), found, atol=1e-12
    )


def naive_graph(Y: Any, k: int) -> np.ndarray[Any, Any]:
    M = (Y @ Y.T).toarray()
    size = np.diag(M)
    key = M**2 / size
    near = np.zeros(M.shape, dtype=bool)
    for i in range(len(M)):
        others = np.array([j for j in range(len(M)) if j != i and M[i, j] > 0], dtype=int)
        near[i, others[np.lexsort((others, -key[i, others]))[:k]]] = True
    return np.where(near | near.T | np.eye(len(M), dtype=bool), M, 0.0)


@pytest.mark.parametrize("k", [1, 4, 30])
def test_graph_and_both_kinds_of_sums(k):
    Y = make_labels()
    G = naive_graph(Y, k)
    found = with_diagonal(neighbor_counts(Y, k, rng=seeded()), np.diff(Y.indptr))
    np.testing.assert_array_equal(found.toarray(), G)
    graph = sppmi_matrix(Y, rng=seeded(), n_neighbors=k).toarray()
    np.testing.assert_allclose(graph, naive_sppmi(G), atol=1e-12)
    full = sppmi_matrix(Y, rng=seeded(), n_neighbors=k, counts="full").toarray()
    np.testing.assert_allclose(full, np.where(G > 0, naive_sppmi((Y @ Y.T).toarray()), 0.0), atol=1e-12)
    assert not np.allclose(full, graph)


def test_joint_matrix_in_both_weightings():
    Y, mu = make_labels(), (2.0, 0.5, 7.0)
    C = sparse.csr_array(Y.T @ Y)
    M, D = (Y @ Y.T).toarray(), Y.toarray()
    A = np.block([[mu[1] * M, mu[2] * D], [mu[2] * D.T, mu[0] * C.toarray()]])
    for n_neighbors in (None, 1000):
        for counts in ("graph", "full"):
            options: Any = {"n_neighbors": n_neighbors, "counts": counts}
            found = sppmi_matrix(Y, rng=seeded(), label_correlations=C, mu=mu, **options)
            np.testing.assert_allclose(found.toarray(), naive_sppmi(A), atol=1e-12)
    blocks = sppmi_matrix(
        Y, rng=seeded(), n_neighbors=None, label_correlations=C, mu=mu, weighting="blocks"
    ).toarray()
    np.testing.assert_allclose(blocks[:120, :120], mu[1] * naive_sppmi(M), atol=1e-12)
    np.testing.assert_allclose(blocks[120:, 120:], mu[0] * naive_sppmi(C.toarray()), atol=1e-12)
    with np.errstate(divide="ignore"):
        cross = np.maximum(np.log(D * D.sum() / np.outer(D.sum(axis=1), D.sum(axis=0))), 0.0)
    np.testing.assert_allclose(blocks[:120, 120:], mu[2] * cross, atol=1e-12)
    assert not np.allclose(blocks, naive_sppmi(A))


def test_weight_of_labels_inflates_relations_of_instances():
    """Inside the logarithm the weights of counts are no weights of an objective."""
    Y = make_labels()
    C = sparse.csr_array(Y.T @ Y)
    first, last = (
        sppmi_matrix(Y, rng=seeded(), n_neighbors=None, label_correlations=C, mu=(mu1, 1, 1)).toarray()
        for mu1 in (1e4, 1e6)
    )
    np.testing.assert_allclose(last[120:, 120:], first[120:, 120:], atol=1e-2)
    stored = first[:120, :120] > 0
    np.testing.assert_allclose((last - first)[:120, :120][stored], np.log(100), atol=1e-2)


def test_mutual_information_is_the_optimum_of_skip_gram():
    """#(i,j) log s(x) + shift #(i) #(j) / |D| log s(-x) is largest at PMI - log shift."""
    Y, shift = make_labels(20, 15), 2.0
    M = (Y @ Y.T).toarray()
    sums, total = M.sum(axis=1), M.sum()
    matrix = sppmi_matrix(Y, rng=seeded(), n_neighbors=None, shift=shift).toarray()
    i, j = np.argwhere(matrix > 0.1)[3]

    def loss(x: float) -> float:
        negatives = shift * sums[i] * sums[j] / total
        return float(M[i, j] * np.logaddexp(0, -x) + negatives * np.logaddexp(0, x))

    assert minimize_scalar(loss, tol=1e-12).x == pytest.approx(matrix[i, j], abs=1e-6)
    assert minimize_scalar(loss, tol=1e-12).x != pytest.approx(matrix[i, j] + np.log(shift), abs=1e-2)


def test_factors_reproduce_the_positive_part():
    Y = make_labels()
    matrix = sppmi_matrix(Y, rng=seeded(), n_neighbors=20).toarray()
    values, vectors = np.linalg.eigh(matrix)
    found = sppmi(Y, 5, rng=seeded(), n_neighbors=20)
    expected = (vectors[:, -5:] * values[-5:]) @ vectors[:, -5:].T
    np.testing.assert_allclose(found.instances @ found.instances.T, expected, atol=1e-8)
    np.testing.assert_allclose(found.eigenvalues, values[:-6:-1], rtol=1e-8)
    largest = np.argmax(np.abs(found.instances), axis=0)
    assert (found.instances[largest, np.arange(5)] > 0).all()


def random_symmetric(n: int, seed: int = 0) -> Any:
    """Sparse, with eigenvalues of both signs and gaps between the leading ones."""
    rng = np.random.default_rng(seed)
    noise = sparse.random_array((n, n), density=0.01, rng=rng, format="csr")
    low = sparse.random_array((n, 6), density=0.2, rng=rng, format="csr")
    strength = sparse.diags_array(np.array([9.0, 7.0, 5.5, 4.2, 3.3, -12.0]) ** 2 / 10)
    return sparse.csr_array(low @ strength @ low.T + (noise + noise.T) * 0.1)


@pytest.mark.parametrize("solver", ["lanczos", "block"])
def test_solvers_agree_with_lapack(solver):
    S = random_symmetric(450)
    operator = Symmetric(S)
    exact = positive_eigenpairs(operator, 5, rng=seeded(), solver="dense")
    found = positive_eigenpairs(operator, 5, rng=seeded(), solver=solver)
    np.testing.assert_allclose(found.values, exact.values, rtol=1e-7)
    assert np.rad2deg(subspace_angles(found.vectors, exact.vectors)).max() < 1e-3
    wrong = positive_eigenpairs(Symmetric(random_symmetric(450, seed=1)), 5, rng=seeded(), solver=solver)
    assert np.rad2deg(subspace_angles(wrong.vectors, exact.vectors)).max() > 1


def test_operator_with_low_rank_part():
    S, low = random_symmetric(450), np.random.default_rng(1).standard_normal((450, 3))
    operator = Symmetric(S, scale=0.5, low=low)
    exact = positive_eigenpairs(operator, 4, rng=seeded(), solver="dense")
    found = positive_eigenpairs(operator, 4, rng=seeded(), start=exact.vectors + 0.01)
    np.testing.assert_allclose(found.values, exact.values, rtol=1e-7)
    np.testing.assert_allclose(exact.values, np.linalg.eigvalsh(0.5 * S.toarray() + low @ low.T)[:-5:-1])


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([None, 1000]))
def test_order_of_rows_and_labels_does_not_matter(seed, n_neighbors):
    rng = np.random.default_rng(seed)
    Y = make_labels(40, 10, seed)
    rows, cols = rng.permutation(40), rng.permutation(10)
    one = sppmi(Y, 3, rng=seeded(), n_neighbors=n_neighbors)
    two = sppmi(sparse.csr_array(Y[rows][:, cols]), 3, rng=seeded(), n_neighbors=n_neighbors)
    np.testing.assert_allclose(one.eigenvalues, two.eigenvalues, atol=1e-8)
    # A gap is needed for the space to be well defined.
    if (
        np.linalg.eigvalsh(sppmi_matrix(Y, rng=seeded(), n_neighbors=n_neighbors).toarray())[-4]
        < 0.9 * (one.eigenvalues[-1])
    ):
        np.testing.assert_allclose(
            (one.instances @ one.instances.T)[np.ix_(rows, rows)], two.instances @ two.instances.T, atol=1e-6
        )


def test_duplicates_empty_rows_and_missing_dimensions():
    Y = sparse.csr_array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 1, 1]], dtype=float)
    with pytest.warns(DataWarning, match="only 3 positive eigenvalues"):
        model = SPPMIEmbedding(4, random_state=0).fit(Y)
    Z = model.embedding_
    np.testing.assert_allclose(Z[0], Z[1], atol=1e-12)
    assert not Z[3].any()
    assert not Z[:, 3].any()
    assert model.eigenvalues_[3] == 0.0
    assert model.label_embedding_ is None


def test_label_of_every_row_and_labels_seen_once():
    Y = np.zeros((30, 12))
    Y[:, 0] = 1
    Y[np.arange(11), np.arange(1, 12)] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        model = SPPMIEmbedding(40, n_neighbors=50, random_state=0).fit(Y)
    assert np.isfinite(model.embedding_).all()
    # A label that every row has says nothing: no vector for rows with nothing else.
    only = SPPMIEmbedding(2, n_neighbors=None, random_state=0)
    with pytest.warns(DataWarning, match="only 0 positive"):
        assert not only.fit(np.ones((6, 1))).embedding_.any()


def test_joint_embedding_places_labels_near_their_instances():
    Y = make_labels()
    model = SPPMIEmbedding(3, label_correlations="cooccurrence", random_state=0).fit(Y)
    assert model.label_embedding_ is not None
    assert model.label_embedding_.shape == (15, 3)
    scores = model.embedding_ @ model.label_embedding_.T
    has = Y.toarray() > 0
    assert scores[has].mean() > 2 * scores[~has].mean()
    given_matrix = SPPMIEmbedding(3, label_correlations=Y.T @ Y, random_state=0).fit(Y)
    np.testing.assert_allclose(given_matrix.label_embedding_, model.label_embedding_, atol=1e-8)
    blocks = SPPMIEmbedding(3, label_correlations=Y.T @ Y, weighting="blocks", random_state=0).fit(Y)
    assert not np.allclose(blocks.label_embedding_, model.label_embedding_)


def test_same_bits_for_any_number_of_threads_and_float32(tmp_path):
    Y = make_labels(3000, 15, dtype=np.float32)
    one, two = (SPPMIEmbedding(4, n_neighbors=50, random_state=0, n_jobs=n).fit(Y) for n in (1, 2))
    assert one.embedding_.tobytes() == two.embedding_.tobytes()
    assert one.embedding_.dtype == np.float32
    one.save(tmp_path / "model")
    loaded = unseen.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.embedding_, one.embedding_)
    assert loaded.get_params() == one.get_params()


def head_label(n: int) -> Any:
    """One label on a fifth of the rows, and two of 2,000 others on each."""
    rng = np.random.default_rng(0)
    dense_rows = np.arange(0, n, 5)
    rows = np.concatenate([dense_rows, np.repeat(np.arange(n), 2)])
    cols = np.concatenate([np.zeros(len(dense_rows), int), rng.integers(1, 2000, 2 * n)])
    Y = sparse.csr_array((np.ones(len(rows)), (rows, cols)), shape=(n, 2000))
    Y.data[:] = 1
    return Y


def peak_of(task: Any) -> int:
    tracemalloc.start()
    try:
        task()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_frequent_label_costs_no_memory():
    n = 50_000
    Y = head_label(n)
    pairs = 12 * int((Y.sum(axis=0) ** 2).sum())  # a sparse matrix of all pairs: 1.2 GB
    limit = pairs // 10
    # Sampled down to a hundredth of the steps, to be quick.
    task = lambda: sppmi_matrix(Y, rng=seeded(), n_neighbors=10, max_cost=3e6)  # noqa: E731
    assert peak_of(task) < limit
    assert peak_of(lambda: np.zeros(2 * limit, np.int8)) > limit


def test_the_mirror_image_of_the_graph_is_never_there_as_a_whole():
    Y = make_labels(3000, 60)
    near, labels = neighbor_counts(Y, 200, rng=seeded()), np.diff(Y.indptr)

    def at_once():
        both = near.maximum(near.T.tocsr())
        return both + sparse.diags_array(labels, format="csr", dtype=both.dtype)

    np.testing.assert_array_equal(with_diagonal(near, labels).toarray(), at_once().toarray())
    limit = 1.2 * (8 * near.nnz + at_once().nnz * 8)
    assert peak_of(lambda: with_diagonal(near, labels)) < limit < peak_of(at_once)


def test_single_precision_rounds_the_same_matrix():
    Y = make_labels(900, 30)
    double = sppmi_matrix(Y, rng=seeded(), n_neighbors=20)
    single = sppmi_matrix(Y, rng=seeded(), n_neighbors=20, dtype=np.float32)
    assert (double.dtype, single.dtype) == (np.float64, np.float32)
    np.testing.assert_array_equal(single.toarray(), double.toarray().astype(np.float32))


def test_frequent_labels_are_sampled_and_counts_stay_exact():
    Y = head_label(2000)
    exact = neighbor_counts(Y, 5, rng=seeded())
    sampled = neighbor_counts(Y, 5, rng=seeded(), max_cost=20_000)
    again = neighbor_counts(Y, 5, rng=seeded(), max_cost=20_000)
    other = neighbor_counts(Y, 5, rng=np.random.default_rng(1), max_cost=20_000)
    np.testing.assert_array_equal(sampled.indices, again.indices)
    assert sampled.nnz != other.nnz or (sampled.indices != other.indices).any()
    assert sampled.nnz != exact.nnz or (sampled.indices != exact.indices).any()
    true = (Y @ Y.T).tocsr()
    rows = np.repeat(np.arange(2000), np.diff(sampled.indptr))
    np.testing.assert_array_equal(sampled.data, np.asarray(true[rows, sampled.indices]).ravel())


def test_all_pairs_are_refused_where_there_are_too_many():
    Y = sparse.csr_array(np.ones((20_000, 1)))
    with pytest.raises(TooLargeError, match="Give n_neighbors"):
        SPPMIEmbedding(2, n_neighbors=None).fit(Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components must be"),
        ({"shift": 0.0}, "shift must be"),
        ({"n_neighbors": 0}, "n_neighbors must be"),
        ({"counts": "some"}, "counts must be one of 'graph', 'full'"),
        ({"weighting": "none"}, "weighting must be one of"),
        ({"mu": (1, 2)}, "mu must be.* three numbers"),
        ({"mu": (1, -2, 1)}, "mu must be three numbers"),
        ({"max_cost": -1}, "max_cost must be"),
        ({"label_correlations": "all"}, "label_correlations must be one of 'cooccurrence'"),
    ],
)
def test_wrong_parameters_are_named(options, message):
    with pytest.raises(ParameterError, match=message):
        SPPMIEmbedding(**options).fit(make_labels())


@pytest.mark.parametrize(
    ("correlations", "message"),
    [
        (np.ones((3, 3)), "label_correlations has 3 rows"),
        (np.ones((15, 4)), "must be square"),
        (-np.eye(15), "row 0, column 0; counts of at least 0"),
        (np.triu(np.ones((15, 15))), "must be symmetric, but row"),
    ],
)
def test_wrong_correlations_are_named(correlations, message):
    with pytest.raises(InvalidDataError, match=message):
        SPPMIEmbedding(3, label_correlations=correlations).fit(make_labels())


def test_wrong_labels_are_named():
    with pytest.raises(InvalidDataError, match=r"Y holds -1\.0 in row 1, column 0"):
        SPPMIEmbedding(2).fit([[1.0, 0.0], [-1.0, 1.0]])
    with pytest.warns(DataWarning, match="such as 3"):
        counted = SPPMIEmbedding(1, random_state=0).fit_transform([[3.0, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(counted, SPPMIEmbedding(1, random_state=0).fit_transform(np.eye(2)))


def test_a_block_that_is_ended_early_says_so() -> None:
    operator = Symmetric(random_symmetric(450, seed=0))
    settled = positive_eigenpairs(operator, 5, rng=seeded(), solver="block")
    ended = positive_eigenpairs(operator, 5, rng=seeded(), solver="block", tol=1e-12, max_iter=1)
    assert settled.converged
    assert not ended.converged
