"""Kernels behind trees of labels and linear classifiers, against their NumPy twins and known optima."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from unseen import kernels
from unseen.exceptions import ParameterError
from unseen.kernels import MarginDual, RowGroups, _arguments, reference_labels

native_only = pytest.mark.skipif(kernels.provider() != "native", reason="the native module is not built")


def case(dtype: Any = np.float64, index: Any = np.int32, seed: int = 0) -> tuple[Any, Any, RowGroups, Any]:
    rng = np.random.default_rng(seed)
    X = sparse.csr_array(rng.standard_normal((40, 9)) * (rng.random((40, 9)) < 0.6)).astype(dtype)
    # Few different gains: ties everywhere.
    gains = sparse.csr_array((rng.random((40, 7)) < 0.35) * rng.choice([0.5, 1.0], (40, 7))).astype(dtype)
    for part in (X, gains):
        part.indptr, part.indices = part.indptr.astype(index), part.indices.astype(index)
    rows = np.concatenate([np.sort(rng.choice(40, size, replace=False)) for size in (40, 12, 1, 25)])
    groups = RowGroups(np.array([0, 40, 52, 53, 78]), rows)
    return X, gains, groups, np.where(rng.random(len(rows)) < 0.5, 1, -1).astype(np.int8)


def by_twin(monkeypatch: Any, run: Any) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(kernels.labels, "_kernels", reference_labels)
        return run()


@native_only
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_splits_agree_with_twin_for_any_number_of_threads(dtype, index, monkeypatch):
    monkeypatch.setattr(_arguments, "WORK_A_THREAD", 1)
    X, gains, groups, sides = case(dtype, index)

    def run(n_threads: int = 1) -> Any:
        own = sides.copy()
        weights = kernels.label_splits(X, gains, groups, own, C=3.0, max_passes=30, n_threads=n_threads)
        return weights, own

    weights, found = run()
    expected, other = by_twin(monkeypatch, run)
    np.testing.assert_allclose(weights, expected, atol=1e-9 if dtype == np.float64 else 1e-3)
    np.testing.assert_array_equal(found, other)
    assert np.count_nonzero(weights[0])
    assert not weights[2].any()
    again, sides_again = run(3)
    assert weights.tobytes() == again.tobytes()
    assert found.tobytes() == sides_again.tobytes()


def test_weights_of_a_split_are_the_optimum():
    X, gains, groups, sides = case()
    C = 2.0
    w = kernels.label_splits(
        X, gains, groups, sides, C=C, tol=1e-9, max_passes=5000, max_rounds=1
    )[0]  # fmt: skip
    # The sides that w was learned from are those of the twin's first ranking round.
    start = case()[3][:40].astype(np.int64)
    s = reference_labels._rank_sides(gains.toarray(), start, 1)
    weight = C * len(s) / np.where(s > 0, (s > 0).sum(), (s < 0).sum())

    def objective(v: Any) -> float:
        return float(np.abs(v).sum() + weight @ np.logaddexp(0.0, -s * (X @ v)))

    def split(z: Any) -> float:  # positive and negative parts make it smooth
        return float(z.sum() + weight @ np.logaddexp(0.0, -s * (X @ (z[:9] - z[9:]))))

    best = minimize(split, np.ones(18), bounds=[(0, None)] * 18, options={"maxiter": 2000, "maxfun": 10**6})
    assert objective(w) == pytest.approx(best.fun, rel=1e-5)
    np.testing.assert_array_equal(sides[:40], np.where(X @ w > 1e-6, 1, -1))


def test_ranking_rounds_never_lower_the_ndcg():
    _, gains, _, sides = case()
    dense = gains.toarray()

    def total(s: Any) -> float:
        out = 0.0
        for sign in (1, -1):
            own = dense[s == sign]
            order = np.argsort(-own.sum(axis=0), kind="stable")
            out += float((own[:, order] / np.log2(np.arange(dense.shape[1]) + 2.0)).sum())
        return out

    reached = [
        total(reference_labels._rank_sides(dense, sides[:40].astype(np.int64), r)) for r in (1, 2, 3, 50)
    ]
    assert all(np.diff([total(sides[:40]), *reached]) >= -1e-12)


@native_only
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("l1", [0.0, 0.3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_duals_agree_with_twin_for_any_number_of_threads(dtype, l1, squared, monkeypatch):
    monkeypatch.setattr(_arguments, "WORK_A_THREAD", 1)
    X, _, groups, signs = case(dtype)

    def run(n_threads: int = 1) -> Any:
        alpha = np.full(len(groups.rows), 0.1)
        weights = kernels.linear_duals(
            X, groups, signs, alpha=alpha, C=(0.7, 0.4), margins=(1.0, 0.2), l1=l1, squared=squared,
            tol=1e-3, max_passes=30, seed=5, n_threads=n_threads,
        )  # fmt: skip
        return weights, alpha

    weights, alpha = run()
    expected, other = by_twin(monkeypatch, run)
    accuracy = 1e-9 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(weights, expected, atol=accuracy)
    np.testing.assert_allclose(alpha, other, atol=10 * accuracy)
    again = run(3)
    assert weights.tobytes() == again[0].tobytes()
    assert alpha.tobytes() == again[1].tobytes()


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("l1", [0.0, 0.5])
def test_duals_close_the_gap(l1, squared):
    X, _, groups, signs = case()
    alpha = np.zeros(len(groups.rows))
    C, margins = (0.7, 0.4), (1.0, 0.2)
    weights = kernels.linear_duals(
        X, groups, signs, alpha=alpha, C=C, margins=margins, l1=l1, squared=squared, tol=1e-10,
        max_passes=20_000,
    )  # fmt: skip
    for group, w in enumerate(weights):
        span = slice(groups.starts[group], groups.starts[group + 1])
        positive, a = signs[span] > 0, alpha[span]
        cost, margin = np.where(positive, *C), np.where(positive, *margins)
        loss = np.maximum(margin - np.where(positive, 1, -1) * (X[groups.rows[span]] @ w), 0.0)
        primal = 0.5 * w @ w + l1 * np.abs(w).sum() + cost @ (loss**2 if squared else loss)
        dual = margin @ a - 0.5 * w @ w - ((a**2 / (4 * cost)).sum() if squared else 0.0)
        assert primal == pytest.approx(dual, rel=1e-6, abs=1e-8)
        assert (a >= 0).all()
        assert squared or (a <= cost).all()


def test_what_does_not_fit_is_refused():
    X, gains, groups, sides = case()
    with pytest.raises(ParameterError, match="sides is written in place"):
        kernels.label_splits(X, gains, groups, sides[:5])
    with pytest.raises(ParameterError, match="gains 3"):
        kernels.label_splits(X, gains[:3], groups, sides)
    with pytest.raises(ParameterError, match=r"indices must be in 0\.\.39"):
        kernels.linear_duals(X, RowGroups(np.array([0, 1]), np.array([40])), sides[:1])


@native_only
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("shares", [(1.0, 1.0), (0.4, 1.0), (1.0, 0.5), (0.4, 0.5)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_margin_sweeps_agree_with_twin(dtype, shares, index, monkeypatch):
    X, Y, _, _ = case(dtype, index)
    Y.data[:] = 1

    def run() -> Any:
        state = MarginDual.start(X, Y, 3)
        gaps = [
            kernels.margin_sweep(
                X, Y, np.random.default_rng(seed).permutation(40), state, np.linspace(0.0, 2.0, 40), l1=0.1,
                n_candidates=2, feature_share=shares[0], label_share=shares[1], seed=seed,
            )
            for seed in range(3)
        ]  # fmt: skip
        return state, np.array(gaps)

    state, gaps = run()
    expected, other = by_twin(monkeypatch, run)
    accuracy = 1e-9 if dtype == np.float64 else 1e-4
    np.testing.assert_array_equal(state.active, expected.active)
    np.testing.assert_allclose(state.alpha, expected.alpha, atol=accuracy)
    np.testing.assert_allclose(state.sums, expected.sums, atol=accuracy)
    np.testing.assert_allclose(gaps, other, atol=20 * accuracy)
    assert state.alpha.any()


def test_margin_sweeps_refuse_what_belongs_to_other_labels():
    X, Y, _, _ = case()
    state = MarginDual.start(X, Y, 3)
    costs = np.ones(40)
    state.active[np.flatnonzero(state.active >= 0)[0]] += 1
    with pytest.raises(ParameterError, match="not started with this Y"):
        kernels.margin_sweep(X, Y, np.arange(40), state, costs)
    with pytest.raises(ParameterError, match=r"visits must be in 0\.\.39"):
        kernels.margin_sweep(X, Y, np.array([40]), MarginDual.start(X, Y, 3), costs)
