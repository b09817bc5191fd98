"""Goal-directed classification: gradients, fast against naive, monotone, honest about bad input."""

from __future__ import annotations

import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import unseen
from unseen import (
    Background,
    Biased,
    Constant,
    Fourier,
    Full,
    GIMCClassifier,
    Identity,
    LowRank,
    Nystrom,
    Ridge,
    Squared,
    Tanh,
    Term,
)
from unseen.data import Observations
from unseen.exceptions import (
    ConvergenceWarning,
    DataWarning,
    InvalidDataError,
    ParameterError,
    UnsupportedComposition,
)
from unseen.maps.base import moved
from unseen.maps.rows import BLOCK_ROWS, MovingRows
from unseen.multilabel.calibration import chances, fit_sigmoid, fit_temperature
from unseen.problem import Problem
from unseen.solvers import Monitor, Sweep
from unseen.solvers.projection import NormalEquations, VariableProjection

MAPS = [
    Fourier(5, gamma=0.2, learnable=True),
    Nystrom(5, gamma=0.2, learnable=True),
    Nystrom(5, gamma=0.2, learnable=True, whiten=False),
    Tanh(5, learnable=True),
]


def map_name(a_map: Any) -> str:
    return f"{type(a_map).__name__}-{getattr(a_map, 'whiten', '')}"


def data(n: int = 70, d: int = 4, n_labels: int = 6, seed: int = 0) -> tuple[np.ndarray, sparse.csr_array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, sparse.csr_array((rng.random((n, n_labels)) < 0.3).astype(float))


EVERY_CELL = Squared(1.0, Background(1.0))


def composition(
    a_map: Any, X: Any, Y: Any, *, intercept: bool = False, loss: Any = EVERY_CELL, n_threads: int = 1
) -> Problem:
    maps = [a_map, Constant()] if intercept else [a_map]
    terms = [Term(row_map, Identity(), Full(), Ridge(0.3)) for row_map in maps]
    return Problem(Observations.from_any(Y), terms, loss, row_features=X, n_threads=n_threads)


def start_of(params: Any) -> dict[str, Any]:
    return {f"0.row_map.{name}": value for name, value in params.items()}


def problem_of(
    a_map: Any, X: Any, Y: Any, *, params: Any = None, tile: int = 2**28, **settings: Any
) -> NormalEquations:
    params = a_map.init(X, X.shape[0], np.random.default_rng(1)) if params is None else params
    return NormalEquations(composition(a_map, X, Y, **settings), start_of(params), tile)


def naive_value(a_map: Any, params: Any, X: Any, Y: Any, W: np.ndarray, reg: float = 0.3) -> float:
    phi = a_map.apply(X, X.shape[0], params).toarray()
    return 0.5 * float(np.sum((Y.toarray() - phi @ W) ** 2)) + 0.5 * reg * float(np.sum(W**2))


@pytest.mark.parametrize("a_map", MAPS, ids=map_name)
@pytest.mark.parametrize("as_sparse", [False, True])
def test_gradient_by_finite_differences(a_map: Any, as_sparse: bool) -> None:
    X, Y = data()
    X = sparse.csr_array(X) if as_sparse else X
    problem = problem_of(a_map, X, Y)
    weights = problem.best(problem.moments())
    gradient = problem.gradient(weights)
    W = weights.factors.T
    for name in a_map.learned:
        rng = np.random.default_rng(3)
        direction = {name: rng.standard_normal(problem.rows.params[name].shape)}
        h = 1e-5
        up, down = (naive_value(a_map, moved(problem.rows.params, direction, s), X, Y, W) for s in (h, -h))
        slope = float(np.vdot(gradient[name], direction[name]))
        assert slope == pytest.approx((up - down) / (2 * h), rel=1e-6)
        assert -slope != pytest.approx((up - down) / (2 * h), rel=1e-3)


@pytest.mark.parametrize("a_map", MAPS, ids=map_name)
def test_gradient_of_the_reduced_objective(a_map: Any) -> None:
    """The derivative through the best weights vanishes."""
    X, Y = data()
    problem = problem_of(a_map, X, Y)
    gradient = problem.gradient(problem.best(problem.moments()))
    name = a_map.learned[0]
    direction = {name: np.random.default_rng(3).standard_normal(gradient[name].shape)}

    def reduced(step: float) -> float:
        there = problem_of(a_map, X, Y, params=moved(problem.rows.params, direction, step))
        moments = there.moments()
        return there.reduced_value(moments, there.best(moments))

    slope = (reduced(1e-5) - reduced(-1e-5)) / 2e-5
    assert float(np.vdot(gradient[name], direction[name])) == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("a_map", MAPS, ids=map_name)
@pytest.mark.parametrize("intercept", [False, True])
def test_fast_forms_against_naive_ones(a_map: Any, intercept: bool) -> None:
    X, Y = data()
    problem = problem_of(a_map, X, Y, intercept=intercept)
    phi = a_map.apply(X, len(X), problem.rows.params).toarray()
    if intercept:
        phi = np.hstack([phi, np.ones((len(X), 1))])
    moments = problem.moments()
    weights = problem.best(moments)
    W = np.linalg.solve(phi.T @ phi + 0.3 * np.eye(phi.shape[1]), phi.T @ Y.toarray())
    np.testing.assert_allclose(weights.factors.T, W, atol=1e-9)
    value = 0.5 * np.sum((Y.toarray() - phi @ W) ** 2) + 0.15 * np.sum(W**2)
    assert problem.value(moments, weights) == pytest.approx(value, rel=1e-12)
    assert problem.reduced_value(moments, weights) == pytest.approx(value, rel=1e-12)
    moments.gram = moments.gram * 1.01  # a wrong Gram matrix is noticed
    assert problem.value(moments, weights) != pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("a_map", MAPS[:3], ids=map_name)
def test_trials_along_a_direction(a_map: Any) -> None:
    X, Y = data()
    problem = problem_of(a_map, X, Y)
    rows = problem.rows
    start = rows.params
    name = a_map.learned[0]
    direction = {name: np.random.default_rng(5).standard_normal(start[name].shape)}
    rows.aim(direction)
    trial = problem.moments(0.3)
    fresh = problem_of(a_map, X, Y, params=moved(start, direction, 0.3)).moments()
    np.testing.assert_allclose(trial.gram, fresh.gram, atol=1e-10)
    np.testing.assert_allclose(trial.cross, fresh.cross, atol=1e-10)
    rows.advance(0.3)
    np.testing.assert_allclose(problem.moments().gram, fresh.gram, atol=1e-10)


@pytest.mark.parametrize("a_map", MAPS, ids=map_name)
def test_tiles_and_threads_do_not_change_the_answer(a_map: Any) -> None:
    X, Y = data(n=3 * BLOCK_ROWS + 17)
    whole, tiled, threaded = (
        problem_of(a_map, X, Y, tile=tile, n_threads=threads)
        for tile, threads in ((2**28, 1), (1, 1), (2**28, 2))
    )
    assert whole.keeps_all
    assert not tiled.keeps_all
    results = []
    for problem in (whole, tiled, threaded):
        weights = problem.best(problem.moments())
        results.append((weights, problem.gradient(weights)))
    name = a_map.learned[0]
    np.testing.assert_allclose(results[0][1][name], results[1][1][name], rtol=1e-8, atol=1e-10)
    assert results[0][1][name].tobytes() == results[2][1][name].tobytes()
    assert results[0][0].factors.tobytes() == results[2][0].factors.tobytes()


@pytest.mark.parametrize("a_map", MAPS[:3], ids=map_name)
def test_own_form_of_a_map_equals_the_general_one(a_map: Any) -> None:
    X, Y = data()
    fast, slow = problem_of(a_map, X, Y), problem_of(a_map, X, Y)
    slow.rows = MovingRows(X, a_map, fast.rows.params, 1)
    weights = fast.best(fast.moments())
    np.testing.assert_allclose(slow.moments().gram, fast.moments().gram, atol=1e-11)
    name = a_map.learned[0]
    np.testing.assert_allclose(fast.gradient(weights)[name], slow.gradient(weights)[name], atol=1e-11)


@pytest.mark.parametrize("a_map", MAPS, ids=map_name)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weight", [1.0, 2.5])
def test_normal_equations_agree_with_the_problem(a_map: Any, intercept: bool, weight: float) -> None:
    """Value, gradient and optimality of the coefficients, by the core and by its naive form."""
    X, Y = data()
    Y = sparse.csr_array(Y * np.random.default_rng(7).uniform(0.5, 2.0, Y.shape))
    loss = Squared(weight, Background(weight))
    system = problem_of(a_map, X, Y, intercept=intercept, loss=loss)
    moments = system.moments()
    weights = system.best(moments)
    problem, state = system.problem, system.state(weights)
    assert system.value(moments, weights) == pytest.approx(problem.oracle(state), rel=1e-11)
    assert system.reduced_value(moments, weights) == pytest.approx(problem.value(state), rel=1e-11)
    gradient = problem.grad(state)
    for term in problem.terms:
        np.testing.assert_allclose(gradient[term.key("core")], 0.0, atol=1e-9)
    for name, part in system.gradient(weights).items():
        np.testing.assert_allclose(part, gradient[f"0.row_map.{name}"], atol=1e-10)
        assert np.abs(part).max() > 1e-4


@pytest.mark.parametrize(
    ("term", "loss"),
    [
        (Term(MAPS[0], Identity(), Full()), Squared()),
        (Term(MAPS[0], Identity(), Full()), Biased(0.9)),
        (Term(MAPS[0], Identity(), Full()), Squared(1.0, Background(0.5))),
        (Term(MAPS[0], Identity(), Full()), Squared(1.0, Background(1.0, 0.5))),
        (Term(MAPS[0], Identity(), LowRank(2)), EVERY_CELL),
        (Term(MAPS[0], Constant(), Full()), EVERY_CELL),
        (Term(Identity(), Identity(), Full()), EVERY_CELL),
        (Term(MAPS[0], Identity(), Full(), Ridge(0.1, degree_scaling=1.0)), EVERY_CELL),
    ],
)
def test_the_solver_refuses_what_it_would_get_wrong(term: Any, loss: Any) -> None:
    X, Y = data()
    problem = Problem(Observations.from_any(Y), [term], loss, row_features=X)
    rng = np.random.default_rng(0)
    with pytest.raises(UnsupportedComposition, match="VariableProjection cannot solve"):
        VariableProjection().solve(problem, problem.start(rng), rng, Monitor(3, 0.0))


def test_two_terms_need_one_penalty_and_one_map_that_moves() -> None:
    X, Y = data()
    for second in (
        Term(Constant(), Identity(), Full(), Ridge(9.0)), Term(MAPS[0], Identity(), Full(), Ridge(0.3))
    ):  # fmt: skip
        terms = [Term(MAPS[0], Identity(), Full(), Ridge(0.3)), second]
        assert VariableProjection().refuses(
            Problem(Observations.from_any(Y), terms, EVERY_CELL, row_features=X)
        )


SETTINGS = [
    {"map": kind, "solver": solver, "whiten": whiten}
    for kind, whiten in (("fourier", True), ("nystrom", True), ("nystrom", False))
    for solver in ("armijo", "lbfgs")
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(map(str, s.values())))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_objective_falls_from_that_of_the_fixed_map(settings: Any, dtype: Any) -> None:
    X, Y = data(n=200)
    options = {"random_state": 0, "validation_fraction": None, "reg": 0.5, "n_jobs": 1, **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GIMCClassifier(8, max_iter=8, **options).fit(X.astype(dtype), Y)
    fixed = GIMCClassifier(8, learn_map=False, **options).fit(X.astype(dtype), Y)
    objectives = [record["objective"] for record in model.history_]
    assert objectives[0] == pytest.approx(fixed.history_[0]["objective"], rel=1e-9)
    assert np.all(np.diff(objectives) <= 1e-6 * objectives[0])
    assert objectives[-1] < 0.99 * objectives[0]
    assert model.label_factors_.dtype == dtype
    phi = model._embed(X.astype(dtype)).astype(np.float64)
    W = model.label_factors_.T.astype(np.float64)
    naive = 0.5 * np.sum((Y.toarray() - phi @ W) ** 2) + 0.25 * np.sum(W**2)
    assert objectives[-1] == pytest.approx(naive, rel=1e-9 if dtype == np.float64 else 1e-4)


@pytest.mark.parametrize("reg", [1e-4, 1e-6])
def test_wide_kernels_lose_nothing_in_float32(reg: float) -> None:
    """Features that are almost alike: their Gram matrix in float32 made objectives wrong, even negative."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 4))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0).astype(int) + (X[:, 3] > 0.5)
    shared = {"whiten": False, "gamma": 0.01, "reg": reg, "validation_fraction": None, "random_state": 0}

    def reached(dtype: Any) -> tuple[float, float]:
        model = GIMCClassifier(12, map="nystrom", max_iter=40, tol=0.0, **shared)
        with pytest.warns(ConvergenceWarning):
            history = model.fit(X.astype(dtype), y).history_
        return history[0]["objective"], history[-1]["objective"]

    (first, last), (true_first, true_last) = reached(np.float32), reached(np.float64)
    assert first == pytest.approx(true_first, rel=0.02)
    assert last < 1.05 * true_last
    assert true_last < 0.9 * true_first  # there is something to learn


def test_a_search_that_rounding_ends_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0).astype(int)
    model = GIMCClassifier(8, validation_fraction=None, tol=1e-3, max_iter=200, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        assert model.fit(X, y).converged_
    true_value = NormalEquations.reduced_value
    monkeypatch.setattr(
        NormalEquations, "reduced_value", lambda *given: 20.0 * np.ceil(true_value(*given) / 20.0)
    )
    with pytest.warns(ConvergenceWarning, match="lost in rounding"):
        assert not model.fit(X, y).converged_


def test_rows_and_labels_may_be_permuted() -> None:
    X, Y = data(n=120)
    rng = np.random.default_rng(0)
    rows, labels = rng.permutation(120), rng.permutation(6)
    start = start_of(MAPS[0].init(X, 120, np.random.default_rng(1)))
    found = []
    for features, indicator in ((X, Y), (X[rows], sparse.csr_array(Y[rows][:, labels]))):
        monitor = Monitor(4, 0.0, warn=False)
        solver = VariableProjection(step="armijo")
        found.append(solver.solve(composition(MAPS[0], features, indicator), start, rng, monitor))
        assert len(monitor.history) == 4
    one, other = found
    np.testing.assert_allclose(one["0.row_map.projections"], other["0.row_map.projections"], atol=1e-8)
    np.testing.assert_allclose(one["0.core"][:, labels], other["0.core"], atol=1e-8)


def test_learning_beats_the_random_map() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 8))
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + 2 * (X[:, 2] > 0)
    settings: dict[str, Any] = {"random_state": 0, "n_jobs": 1}
    learned = GIMCClassifier(10, **settings).fit(X[:400], y[:400]).score(X[400:], y[400:])
    fixed = GIMCClassifier(10, learn_map=False, **settings).fit(X[:400], y[:400]).score(X[400:], y[400:])
    assert learned > fixed + 0.1


def test_the_kept_iterate_is_the_best_on_validation_rows() -> None:
    X, Y = data(n=300)
    model = GIMCClassifier(10, random_state=0, max_iter=30, patience=3, n_jobs=1).fit(X, Y)
    scores = [record["validation"] for record in model.history_]
    assert scores[model.best_iter_] == max(scores)
    assert model.n_iter_ <= model.best_iter_ + 3
    assert model.converged_


def test_a_monitor_that_notes_the_start_can_keep_it() -> None:
    errors = iter([(-0.5, 3.0), (-0.5, 2.0), (-0.5, 2.0), (-0.4, 0.0)])
    arrays = [np.full(1, float(number)) for number in range(4)]
    arrays[1].setflags(write=False)
    monitor = Monitor(3, -1.0, validate=lambda state: next(errors), patience=9, notes_start=True)
    monitor.start(4.0, Sweep({"a": arrays[0]}, 4.0, {}))
    stops = [monitor.record(Sweep({"a": array}, 4.0, {})) for array in arrays[1:]]
    assert stops == [False, False, True]  # the start is no sweep
    assert len(monitor.history) == 4
    assert (
        monitor.best_entry == 1
    )  # the second number decides between equal first ones, the first comes first
    assert monitor.best_state is not None
    assert monitor.best_state["a"] is arrays[1]  # nobody can write to it, so it is not copied


def test_a_map_object_rests_when_told_to() -> None:
    X, Y = data(n=150)
    a_map = Fourier(6, gamma=0.2, learnable=True)
    settings: dict[str, Any] = {"map": a_map, "reg": 0.3, "random_state": 0, "validation_fraction": None}
    still = GIMCClassifier(learn_map=False, **settings).fit(X, Y)
    assert len(still.history_) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        moved_on = GIMCClassifier(max_iter=2, **settings).fit(X, Y)
    assert len(moved_on.history_) == 3
    assert moved_on.history_[0]["objective"] == pytest.approx(still.history_[0]["objective"])


def test_same_bits_at_any_number_of_threads() -> None:
    X, Y = data(n=2 * BLOCK_ROWS + 100)
    fits = [
        GIMCClassifier(6, max_iter=3, random_state=0, n_jobs=jobs).fit(X.astype(np.float32), Y)
        for jobs in (1, 2)
    ]
    assert fits[0].label_factors_.tobytes() == fits[1].label_factors_.tobytes()
    assert fits[0].map_params_["projections"].tobytes() == fits[1].map_params_["projections"].tobytes()


@pytest.mark.parametrize("kind", ["fourier", "nystrom"])
def test_save_and_load(kind: str, tmp_path: Path) -> None:
    X, Y = data(n=200)
    model = GIMCClassifier(5, map=kind, calibrate=True, max_iter=3, random_state=0).fit(X, Y)
    model.save(tmp_path / "model")
    again = unseen.load(tmp_path / "model")
    np.testing.assert_array_equal(model.decision_function(X), again.decision_function(X))
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))


# -- probabilities -----------------------------------------------------------------------


def test_probabilities_of_classes_and_labels() -> None:
    X, Y = data(n=300)
    y = np.where(X[:, 0] > 0.5, "high", np.where(X[:, 0] < -0.5, "low", "middle"))
    model = GIMCClassifier(10, calibrate=True, random_state=0, max_iter=5).fit(X, y)
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[probability.argmax(axis=1)], model.predict(X))
    of_labels = GIMCClassifier(10, calibrate=True, random_state=0, max_iter=5).fit(X, Y).predict_proba(X)
    assert of_labels.min() >= 0
    assert of_labels.max() <= 1
    assert of_labels.mean() == pytest.approx(Y.toarray().mean(), abs=0.06)
    assert not hasattr(GIMCClassifier(), "predict_proba")


def test_calibration_finds_the_truth() -> None:
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((4000, 3))
    truth = chances(scores, (2.5,))
    codes = (rng.random(4000)[:, None] > np.cumsum(truth, axis=1)).sum(axis=1)
    assert fit_temperature(scores, codes) == pytest.approx(2.5, rel=0.1)
    labels = sparse.csr_array((rng.random(scores.shape) < chances(scores, (1.5, -1.0))).astype(float))
    slope, offset = fit_sigmoid(scores, labels)
    assert slope == pytest.approx(1.5, rel=0.1)
    assert offset == pytest.approx(-1.0, rel=0.1)


# -- bad and odd input -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"map": "cosine"}, "map must be one of 'fourier', 'nystrom'"),
        ({"map": Identity()}, "cannot be applied to new rows"),
        ({"gamma": -1.0}, "gamma"),
        ({"gamma": "wide"}, "'0.3median'"),
        ({"reg": -1.0}, "reg"),
        ({"solver": "sgd"}, "solver"),
        ({"validation_fraction": 1.5}, "validation_fraction"),
        ({"calibrate": True, "validation_fraction": None}, "calibrate=True needs validation_fraction"),
        ({"max_iter": 0}, "max_iter"),
        ({"patience": 0}, "patience"),
        ({"max_tile_bytes": 0}, "max_tile_bytes"),
    ],
)
def test_bad_parameters_are_named(settings: Any, message: str) -> None:
    X, Y = data()
    with pytest.raises(ParameterError, match=message):
        GIMCClassifier(**settings).fit(X, Y)


def test_too_few_rows_to_calibrate() -> None:
    X, Y = data(n=20)
    with pytest.raises(InvalidDataError, match=r"at least 10 validation rows.*20 rows gives 2"):
        GIMCClassifier(3, calibrate=True).fit(X, Y)


def test_underflowing_kernels_warn() -> None:
    X, Y = data()
    with pytest.warns(DataWarning, match="gamma"):
        model = GIMCClassifier(5, map="nystrom", gamma=1e9, random_state=0).fit(X, Y)
    assert np.isfinite(model.label_factors_).all()


def test_duplicate_landmarks_do_no_harm() -> None:
    X, Y = data(n=6)
    X, Y = np.repeat(X, 20, axis=0), sparse.csr_array(np.repeat(Y.toarray(), 20, axis=0))
    model = GIMCClassifier(40, map="nystrom", random_state=0, max_iter=3).fit(X, Y)
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("kind", ["fourier", "nystrom"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_row_one_class_and_more_features_than_rows(kind: str) -> None:
    X, Y = data(n=12)
    for n in (1, 12):
        model = GIMCClassifier(30, map=kind, random_state=0, max_iter=2).fit(X[:n], np.ones((n, 2)))
        assert np.isfinite(model.decision_function(X)).all()
    single = GIMCClassifier(5, map=kind, random_state=0, max_iter=2).fit(X, ["only"] * 12)
    assert set(single.predict(X)) == {"only"}
    no_penalty = GIMCClassifier(30, map=kind, reg=0.0, random_state=0, max_iter=2).fit(X, Y)
    assert np.isfinite(no_penalty.label_factors_).all()


def test_empty_rows_columns_and_labels() -> None:
    X, Y = data(n=150)
    X[3] = 0
    X[:, 1] = 7.0
    Y = sparse.lil_array(Y)
    Y[5, :] = 0
    Y[:, 2] = 0
    for features in (X, sparse.csr_array(X)):
        model = GIMCClassifier(6, random_state=0, max_iter=3).fit(features, sparse.csr_array(Y))
        assert np.isfinite(model.decision_function(features)).all()


def test_memory_of_many_labels() -> None:
    """50,000 x 200,000 labels: one dense matrix of them would have 80 GB."""
    n, n_labels, rng = 50_000, 200_000, np.random.default_rng(0)
    X = rng.standard_normal((n, 20)).astype(np.float32)
    cells = rng.integers(0, n_labels, (n, 3))
    Y = sparse.csr_array(
        (np.ones(3 * n, dtype=np.float32), cells.ravel(), np.arange(0, 3 * n + 1, 3)), shape=(n, n_labels)
    )
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = GIMCClassifier(
                16, max_iter=3, tol=0.0, random_state=0, validation_fraction=None, solver="armijo"
            )
            model.fit(X, Y)
        model.predict_topk(X[:100], 3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.n_iter_ == 3
    assert peak < 1.5 * 2**30, f"{peak / 2**20:.0f} MiB"
    assert peak < 4 * n * n_labels // 40  # what a fortieth of a dense block would take
