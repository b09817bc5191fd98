"""PDSparse and PPDSparse: their optima, their duals, and what their active sets leave out."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from unseen import PDSparse, PPDSparse, kernels, load
from unseen.exceptions import ConvergenceWarning, ParameterError, TooLargeError
from unseen.kernels import MarginDual
from unseen.metrics import precision_at_k
from unseen.multilabel import pdsparse
from unseen.multilabel.scaling import scaled_rows, with_ones


def data(n: int = 40, d: int = 9, n_labels: int = 6, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    scores = X @ rng.standard_normal((d, n_labels)) + 0.5 * rng.standard_normal((n, n_labels))
    Y = (scores > np.sort(scores, axis=1)[:, [-3]]) * 1.0
    Y[0] = 0.0  # no label
    Y[1] = 1.0  # all of them
    return sparse.csr_array(X), sparse.csr_array(Y)


def weights_of(model: Any) -> np.ndarray:
    return np.hstack([model.coef_.toarray(), model.intercept_[:, None]])


def margin_objective(W: np.ndarray, X: Any, Y: Any, C: float, l1: float, costs: Any = 1.0) -> float:
    """The primal of PDSparse, term by term."""
    rows, labels = with_ones(scaled_rows(X)).toarray(), Y.toarray() > 0
    loss = np.zeros(len(rows))
    for i, z in enumerate(rows @ W.T):
        if 0 < labels[i].sum() < len(z):
            loss[i] = max(0.0, 1.0 + z[~labels[i]].max() - z[labels[i]].min())
    return float(0.5 * (W**2).sum() + l1 * np.abs(W).sum() + C * (costs * loss).sum())


@pytest.mark.parametrize("C", [0.3, 5.0])
@pytest.mark.parametrize("l1", [0.0, 0.2])
def test_primal_meets_the_dual(C, l1) -> None:
    X, Y = data()
    model = PDSparse(average=False, C=C, l1=l1, tol=1e-6, max_iter=20_000, random_state=0).fit(X, Y)
    assert model.converged_
    primal, dual = margin_objective(weights_of(model), X, Y, C, l1), model.history_[-1]["dual"]
    assert primal == pytest.approx(dual, rel=1e-4)
    # A loss that compares with the best label of a row, not the worst, has another value there.
    labels = Y.toarray() > 0
    kinder = margin_objective(weights_of(model), X, Y, C, l1) - sum(
        C * max(0.0, 1.0 + z[~own].max() - z[own].min()) - C * max(0.0, 1.0 + z[~own].max() - z[own].max())
        for z, own in zip(with_ones(scaled_rows(X)).toarray() @ weights_of(model).T, labels, strict=True)
        if 0 < own.sum() < len(own)
    )
    assert abs(kinder - dual) > 1e-2 * abs(dual)


def test_the_dual_never_falls_and_the_gap_bounds_it() -> None:
    X, Y = data(80)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = PDSparse(average=False, l1=0.05, tol=1e-9, max_iter=60, random_state=0).fit(X, Y)
    duals = [step["dual"] for step in model.history_]
    assert all(np.diff(duals) >= -1e-9)
    best = (
        PDSparse(average=False, l1=0.05, tol=1e-7, max_iter=50_000, random_state=0)
        .fit(X, Y)
        .history_[-1]["dual"]
    )
    assert duals[-1] <= best + 1e-6
    assert margin_objective(weights_of(model), X, Y, 1.0, 0.05) >= best - 1e-6


def test_no_step_in_any_direction_lowers_the_objective() -> None:
    X, Y = data(20, 4, 4)
    C, l1 = 0.7, 0.05
    settings: dict[str, Any] = {"tol": 1e-7, "max_iter": 50_000, "random_state": 0}
    found = weights_of(PDSparse(average=False, C=C, l1=l1, **settings).fit(X, Y))
    other = weights_of(PDSparse(average=False, C=C, l1=4 * l1, **settings).fit(X, Y))
    ours = margin_objective(found, X, Y, C, l1)
    rng = np.random.default_rng(0)
    steps = [size * rng.standard_normal(found.shape) for size in (1e-3, 1e-2, 0.1) for _ in range(100)]
    steps += [share * (other - found) for share in (0.01, 0.1, 1.0)] + [-0.1 * found, 0.1 * found]
    assert min(margin_objective(found + step, X, Y, C, l1) for step in steps) > ours - 1e-6
    # From another penalty's optimum, the way to ours goes down.
    assert margin_objective(other + 0.1 * (found - other), X, Y, C, l1) < margin_objective(other, X, Y, C, l1)


def test_weights_of_rows_are_their_costs() -> None:
    X, Y = data()
    weights = np.random.default_rng(1).integers(0, 4, X.shape[0]).astype(float)
    weights[:2] = 1.0
    settings = {"tol": 1e-7, "max_iter": 50_000, "random_state": 0}
    weighted = PDSparse(average=False, **settings).fit(X, Y, sample_weight=weights)
    repeated = np.repeat(np.arange(X.shape[0]), weights.astype(int))
    twice = PDSparse(average=False, **settings).fit(X[repeated], Y[repeated])
    np.testing.assert_allclose(weights_of(weighted), weights_of(twice), atol=5e-3)
    assert abs(weights_of(weighted) - weights_of(PDSparse(average=False, **settings).fit(X, Y))).max() > 0.05


def test_the_average_is_of_the_weights_after_each_eighth_of_a_pass() -> None:
    X, Y = data(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = weights_of(PDSparse(l1=0.1, tol=1e-12, max_iter=3, random_state=0).fit(X, Y))
    rows, rng = sparse.csr_array(with_ones(scaled_rows(X))), np.random.default_rng(0)
    rows.sort_indices()
    state, seen = MarginDual.start(rows, Y, Y.shape[1]), []
    for _ in range(3):
        visits, seed = rng.permutation(60), int(rng.integers(1 << 31))
        for part, some in enumerate(np.array_split(visits, 8)):
            kernels.margin_sweep(rows, Y, some, state, np.ones(60), l1=0.1, n_candidates=20, seed=seed + part)
            seen.append(np.sign(state.sums) * np.maximum(np.abs(state.sums) - 0.1, 0.0))
    np.testing.assert_allclose(found, np.mean(seen, axis=0).T, atol=1e-12)
    assert abs(found - seen[-1].T).max() > 0.05


def test_the_average_ranks_better_where_rows_have_many_labels() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 20))
    noisy = X @ rng.standard_normal((20, 40)) + 4.0 * rng.standard_normal((600, 40))
    Y = sparse.csr_array((noisy > np.sort(noisy, axis=1)[:, [-12]]) * 1.0)
    share = {}
    for average in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = PDSparse(average=average, max_iter=10, random_state=0).fit(X[:300], Y[:300])
        share[average] = precision_at_k(Y[300:], model.predict_topk(X[300:], 5)[0], 5)
    assert share[True] > share[False] + 0.05


@pytest.mark.parametrize("setting", [{"feature_share": 0.5}, {"label_share": 0.4}, {"n_candidates": 1}])
def test_searches_that_draw_reach_nearly_the_same_objective(setting) -> None:
    X, Y = data(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        settings = {"tol": 1e-12, "max_iter": 800, "random_state": 0}
        best = margin_objective(weights_of(PDSparse(average=False, **settings).fit(X, Y)), X, Y, 1.0, 0.01)
        drawn = margin_objective(
            weights_of(PDSparse(average=False, **settings, **setting).fit(X, Y)), X, Y, 1.0, 0.01
        )
    assert best - 1e-3 <= drawn <= 1.02 * best


def test_dual_variables_stay_where_they_may_be() -> None:
    X, Y = data(50)
    rows = with_ones(scaled_rows(X))
    state = MarginDual.start(rows, Y, 2)
    costs = np.full(50, 0.8)
    for seed in range(5):
        kernels.margin_sweep(rows, Y, np.arange(50), state, costs, l1=0.1, seed=seed)
    sums = np.zeros_like(state.sums)
    for i in range(50):
        slot = slice(state.slots[i], state.slots[i + 1])
        own = np.diff(Y.indptr)[i]
        mass, labels = state.alpha[slot], state.active[slot]
        assert (mass >= 0).all()
        assert mass[:own].sum() == pytest.approx(mass[own:].sum())
        assert mass[:own].sum() <= 0.8 + 1e-9
        assert len(set(labels[labels >= 0])) == (labels >= 0).sum() <= own + 2
        for place, label in enumerate(labels[labels >= 0]):
            sums[:, label] += (1 if place < own else -1) * mass[place] * rows.toarray()[i]
    np.testing.assert_allclose(state.sums, sums, atol=1e-9)


def test_ppdsparse_finds_the_optimum_of_each_label() -> None:
    X, Y = data(150)
    C, l1 = 0.5, 0.1
    model = PPDSparse(C=C, l1=l1, tol=1e-6, inner_iter=5000, random_state=0).fit(X, Y)
    assert model.converged_
    rows = with_ones(scaled_rows(X)).toarray()
    for label in range(Y.shape[1]):
        t = np.where(Y.toarray()[:, label] > 0, 1.0, -1.0)

        def objective(w: np.ndarray, t: np.ndarray = t) -> float:
            return float(
                0.5 * w @ w + l1 * np.abs(w).sum() + C * (np.maximum(1.0 - t * (rows @ w), 0.0) ** 2).sum()
            )

        width = rows.shape[1]
        split = minimize(
            lambda z, objective=objective, width=width: objective(z[:width] - z[width:])
            + 2 * (z[:width] * z[width:]).sum(),  # both parts of a weight are not used at a time
            np.full(2 * width, 0.1), bounds=[(0, None)] * (2 * width),
            options={"maxiter": 5000, "maxfun": 10**6},
        )  # fmt: skip
        ours = objective(weights_of(model)[label])
        assert ours <= split.fun * (1 + 1e-4)
        assert objective(weights_of(model)[label] * 1.05) > ours


def test_active_sets_leave_out_no_row_that_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = data(300)
    model = PPDSparse(C=2.0, tol=1e-4, inner_iter=2000, random_state=0).fit(X, Y)
    monkeypatch.setattr(pdsparse, "FEWEST_NEW", 1000)  # all rows come in at once
    whole = PPDSparse(C=2.0, tol=1e-4, inner_iter=2000, random_state=0).fit(X, Y)
    np.testing.assert_allclose(weights_of(model), weights_of(whole), atol=2e-3)


@pytest.mark.parametrize("cls", [PDSparse, PPDSparse])
def test_threads_and_blocks_change_nothing(cls, monkeypatch: pytest.MonkeyPatch) -> None:
    from unseen.kernels import _arguments

    X, Y = data(100)
    one = cls(random_state=0, n_jobs=1, tol=0.5).fit(X, Y)
    monkeypatch.setattr(_arguments, "WORK_A_THREAD", 1)
    other = cls(random_state=0, n_jobs=3, tol=0.5).fit(X, Y)
    assert one.coef_.data.tobytes() == other.coef_.data.tobytes()
    np.testing.assert_array_equal(one.predict_topk(X)[0], other.predict_topk(X)[0])


@pytest.mark.parametrize("cls", [PDSparse, PPDSparse])
def test_they_learn_and_l1_makes_them_sparse(cls) -> None:
    X, Y = data(600, 30, 12)
    train, test = slice(0, 400), slice(400, 600)
    model = cls(C=1.0, random_state=0).fit(X[train], Y[train])
    assert precision_at_k(Y[test], model.predict_topk(X[test])[0], 1) > 0.75
    sparser = cls(C=1.0, l1=10.0 if cls is PPDSparse else 2.0, random_state=0).fit(X[train], Y[train])
    assert sparser.coef_.nnz < 0.8 * model.coef_.nnz


@pytest.mark.parametrize("cls", [PDSparse, PPDSparse])
def test_saved_models_come_back(cls, tmp_path) -> None:
    X, Y = data(60)
    model = cls(random_state=0).fit(X, Y)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").decision_function(X), model.decision_function(X))


def test_what_does_not_end_says_so() -> None:
    X, Y = data()
    with pytest.warns(ConvergenceWarning, match="max_iter=2 passes"):
        model = PDSparse(tol=1e-9, max_iter=2, random_state=0).fit(X, Y)
    assert not model.converged_
    with pytest.warns(ConvergenceWarning, match="of 6 labels took max_iter=1"):
        PPDSparse(C=10.0, tol=1e-9, inner_iter=1, max_iter=1, random_state=0).fit(X, Y)


def test_sums_that_would_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdsparse, "MOST_WEIGHTS", 50)
    X, Y = data()
    with pytest.raises(TooLargeError, match="10 features x 6 labels = 60"):
        PDSparse().fit(X, Y)


@pytest.mark.parametrize(
    "setting",
    [{"C": 0.0}, {"l1": -1.0}, {"max_active": 0}, {"label_share": 0.0}, {"feature_share": 1.5}, {"tol": 0.0}],
)
def test_settings_out_of_range_are_refused(setting) -> None:
    X, Y = data()
    with pytest.raises(ParameterError, match=next(iter(setting))):
        PDSparse(**setting).fit(X, Y)
