"""Embeddings by projection, by skip-gram steps and by a regressor learned in one go."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import check_grad
from scipy.special import expit

from unseen import kernels
from unseen.embeddings import joint_regression, sgns, svp
from unseen.embeddings.graph import neighbor_counts
from unseen.embeddings.sgns import Urn
from unseen.embeddings.svp import cosine_graph
from unseen.exceptions import DataWarning, DivergedError, ParameterError


def make_labels(n: int = 120, n_labels: int = 15, seed: int = 0, dtype: Any = np.float64) -> Any:
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 3
    likely = np.where(np.arange(n_labels) // 5 == group[:, None], 0.4, 0.05)
    dense = rng.random((n, n_labels)) < likely
    dense[np.arange(n), 5 * group] = True
    return sparse.csr_array(dense.astype(dtype))


def seeded(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# -- projection ------------------------------------------------------------------------


def error_of(Z: Any, graph: Any) -> float:
    fitted = kernels.sddmm(graph.indptr, graph.indices, Z, Z)
    return float(np.sqrt(np.mean((fitted - graph.data) ** 2)))


def test_cosines_of_near_rows():
    Y = make_labels()
    D = Y.toarray()
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    graph = cosine_graph(Y, 7, rng=seeded())
    rows = np.repeat(np.arange(120), np.diff(graph.indptr))
    np.testing.assert_allclose(graph.data, (D @ D.T)[rows, graph.indices])
    assert (graph.diagonal() > 0.999).all()


@pytest.mark.parametrize("n", [120, 450])  # LAPACK, and a block that starts where the last step ended
def test_projection_never_gets_worse_and_reaches_the_cosines(n):
    Y = make_labels(n)
    graph = cosine_graph(Y, 30, rng=seeded())
    errors = [
        error_of(svp(Y, 10, 30, rng=seeded(), max_iter=steps, tol=1e-6).instances, graph)
        for steps in (1, 2, 4, 8, 16)
    ]
    assert all(later <= earlier + 1e-9 for earlier, later in itertools.pairwise(errors))
    assert errors[-1] < 0.6 * errors[0]


def test_a_step_far_too_long_is_halved():
    Y = make_labels()
    graph = cosine_graph(Y, 30, rng=seeded())
    found = svp(Y, 10, 30, rng=seeded(), step=1e3)
    assert error_of(found.instances, graph) < 0.2
    assert found.n_iter > 8


def test_projection_with_enough_dimensions_is_exact():
    Y = sparse.csr_array(np.eye(4)[[0, 0, 1, 1, 2, 3]])
    with pytest.warns(DataWarning, match="1 of n_components=5 dimensions are zero"):
        found = svp(Y, 5, 10, rng=seeded(), tol=1e-12)
    np.testing.assert_allclose(found.instances @ found.instances.T, (Y @ Y.T).toarray(), atol=1e-6)


def test_projection_same_bits_for_any_number_of_threads():
    Y = make_labels(900, dtype=np.float32)
    one, two = (svp(Y, 4, 20, rng=seeded(), max_iter=3, n_threads=n) for n in (1, 2))
    assert one.instances.tobytes() == two.instances.tobytes()
    assert one.instances.dtype == np.float32


# -- skip-gram -------------------------------------------------------------------------


def test_urn_draws_in_proportion():
    weights = np.array([1.0, 0.0, 3.0, 6.0])
    drawn = np.bincount(Urn(weights).draw(200_000, seeded()), minlength=4) / 200_000
    np.testing.assert_allclose(drawn, weights / 10, atol=5e-3)
    assert drawn[1] == 0


def graph_of(Y: Any, k: int) -> Any:
    near = neighbor_counts(Y, k, rng=seeded())
    return near.maximum(near.T.tocsr())


def skip_gram_objective(words: Any, contexts: Any, graph: Any, noise: Any, n_negatives: int) -> float:
    """Expectation of the objective of an epoch over all pairs of rows, divided by the sum of the counts."""
    share = noise / noise.sum()
    weights = np.asarray(graph.sum(axis=1), dtype=float)
    scores = words @ contexts.T
    total = -graph.multiply(np.logaddexp(0.0, -scores)).sum()
    total -= n_negatives * weights @ (np.logaddexp(0.0, scores) @ share)
    return float(total / graph.sum())


@pytest.mark.parametrize("shared", [False, True])
def test_likelihood_rises(shared):
    Y = make_labels()
    graph = graph_of(Y, 20)
    noise = np.asarray(graph.sum(axis=0), dtype=float)
    values = []
    for n_epochs in (0, 2, 10, 40):
        Z = sgns(
            Y, 8, rng=seeded(), n_neighbors=20, n_negatives=2, n_epochs=n_epochs, shared=shared, rate=0.1
        ).instances
        # The words' best contexts are not handed out; a shared table is its own.
        values.append(skip_gram_objective(Z, Z, graph, noise, 2))
    if shared:
        assert values == sorted(values)
    Z = sgns(
        Y, 8, rng=seeded(), n_neighbors=20, n_negatives=2, n_epochs=40, shared=shared, rate=0.1
    ).instances
    same = np.arange(120)[:, None] % 3 == np.arange(120) % 3
    scores = Z @ Z.T
    assert scores[same].mean() > scores[~same].mean() + 0.5


def test_step_follows_the_gradient():
    """One tiny step moves the tables along the gradient of the pair's likelihood."""
    rng = seeded()
    words, contexts = rng.standard_normal((3, 4)), rng.standard_normal((3, 4))
    center, positive, negatives = np.array([0]), np.array([1]), np.array([[2, 2]])

    def likelihood(flat: Any) -> float:
        w, v = flat.reshape(2, 3, 4)
        return float(np.log(expit(w[0] @ v[1])) + 2 * np.log(expit(-w[0] @ v[2])))

    before = np.concatenate([words.ravel(), contexts.ravel()])
    kernels.sgns_sweep(words, contexts, center, positive, negatives, first_rate=1e-6, last_rate=1e-6)
    step = (np.concatenate([words.ravel(), contexts.ravel()]) - before) / 1e-6
    assert check_grad(likelihood, lambda _: step, before) < 1e-4
    assert check_grad(likelihood, lambda _: 1.1 * step, before) > 1e-2


@pytest.mark.parametrize("negative", ["context", "uniform", "power"])
@pytest.mark.parametrize("positives", ["counts", "once"])
def test_one_thread_gives_the_same_bits(negative, positives):
    Y = make_labels(dtype=np.float32)
    options: Any = {"n_neighbors": 5, "n_epochs": 2, "negative": negative, "positives": positives}
    one, two = (sgns(Y, 4, rng=seeded(), n_threads=n, **options).instances for n in (1, 2))
    assert one.tobytes() == two.tobytes()
    assert one.dtype == np.float32
    assert not np.array_equal(one, sgns(Y, 4, rng=seeded(1), **options).instances)
    fast = sgns(Y, 4, rng=seeded(), hogwild=True, n_threads=2, **options).instances
    assert np.isfinite(fast).all()


def test_wrong_starts_are_refused():
    Y = make_labels()
    with pytest.raises(ParameterError, match=r"init must have shape \(120, 4\)"):
        sgns(Y, 4, rng=seeded(), init=np.ones((3, 4)))
    with pytest.raises(ParameterError, match="must not be zero with shared=True"):
        sgns(Y, 4, rng=seeded(), shared=True, init=np.zeros((120, 4)))
    with pytest.raises(DivergedError, match="too large"), np.errstate(all="ignore"):
        sgns(Y.astype(np.float32), 4, rng=seeded(), rate=1e30)
    alone = sgns(sparse.csr_array(np.eye(5)), 2, rng=seeded())
    assert alone.n_iter == 0


# -- regressor -------------------------------------------------------------------------


def make_features(n: int = 120, dtype: Any = np.float64) -> Any:
    """Words of three topics; the topic of row i is i modulo 3."""
    rng = np.random.default_rng(5)
    likely = np.where(np.arange(30) // 10 == (np.arange(n) % 3)[:, None], 0.3, 0.05)
    X = (rng.random((n, 30)) < likely).astype(float)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    return sparse.csr_array(X.astype(dtype))


@pytest.mark.parametrize("cosine", [True, False])
def test_regressor_steps_follow_the_gradient(cosine):
    """With huge sums of squares AdaGrad is a tiny plain gradient step, here for one visit."""
    rng = seeded()
    X = make_features()
    V = rng.standard_normal((30, 3))
    visit, positives, negatives = np.array([0]), np.array([[3, 6]]), np.array([[1, 2, 4]])

    def likelihood(flat: Any) -> float:
        Z = X @ flat.reshape(30, 3)
        if cosine:
            Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
        K = Z @ Z[0]
        return float(
            np.log(expit(2.0 * K[positives[0]])).sum() + 0.7 * np.log(expit(-2.0 * K[negatives[0]])).sum()
        )

    before = V.copy()
    large = 1e16
    kernels.joint_sweep(
        X.indptr, X.indices, X.data, V, np.full_like(V, large), visit, positives, negatives,
        gamma=2.0, negative_weight=0.7, rate=1.0, cosine=cosine,
    )  # fmt: skip
    step = ((V - before) * np.sqrt(large)).ravel()
    assert check_grad(likelihood, lambda _: step, before.ravel()) < 1e-4 * np.linalg.norm(step)
    assert check_grad(likelihood, lambda _: 1.1 * step, before.ravel()) > 1e-2 * np.linalg.norm(step)


@pytest.mark.parametrize("kernel", ["cosine", "dot"])
@pytest.mark.parametrize("pool", [None, 40])
def test_regressor_brings_rows_of_a_topic_together(kernel, pool):
    X, Y = make_features(), make_labels()
    V = joint_regression(X, Y, 5, rng=seeded(), kernel=kernel, gamma=3.0, pool=pool, max_iter=5)
    Z = X @ V
    Z /= np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-12)
    same = np.arange(120)[:, None] % 3 == np.arange(120) % 3
    assert (Z @ Z.T)[same].mean() > (Z @ Z.T)[~same].mean() + 0.3


def test_regressor_is_reproducible_stops_and_keeps_float32():
    X, Y = make_features(dtype=np.float32), make_labels()
    one, two = (joint_regression(X, Y, 4, rng=seeded(), max_iter=2, n_threads=n) for n in (1, 2))
    assert one.tobytes() == two.tobytes()
    assert one.dtype == np.float32
    seen: list[int] = []

    def stop(number: int, V: Any) -> bool:
        seen.append(number)
        return number == 1

    joint_regression(X, Y, 4, rng=seeded(), max_iter=50, monitor=stop)
    assert seen == [0, 1]
    start = seeded().standard_normal((30, 4))
    np.testing.assert_array_equal(
        joint_regression(X, Y, 4, rng=seeded(), max_iter=0, init=start), start.astype("f4")
    )
    with pytest.raises(ParameterError, match=r"init must have shape \(30, 4\)"):
        joint_regression(X, Y, 4, rng=seeded(), init=start[:5])


def test_ridge_holds_back_features_that_are_seldom_seen():
    """A word of one row: without a penalty it moves as far as the words of all rows."""
    X = make_features()
    rare = sparse.csr_array(([1.0], ([0], [0])), shape=(120, 1))
    X, Y = sparse.csr_array(sparse.hstack([X, rare])), make_labels()
    free, held = (
        joint_regression(
            X, Y, 5, rng=seeded(), kernel="dot", gamma=1.0, ridge=ridge, init_scale=0.01, max_iter=10
        )
        for ridge in (0.0, 3.0)
    )
    share = [np.linalg.norm(V[30]) / np.linalg.norm(V[:30], axis=1).mean() for V in (free, held)]
    assert share[1] < 0.7 * share[0]


def test_rows_without_features_or_neighbours_are_not_visited():
    X, Y = make_features().tolil(), make_labels().tolil()
    X[3] = 0
    Y[4] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        V = joint_regression(sparse.csr_array(X), sparse.csr_array(Y), 4, rng=seeded(), max_iter=2)
    assert np.isfinite(V).all()
