"""GIMC on observed cells: learned maps, their solver, and what the paper claims of them."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import unseen
from unseen import (
    GIMC,
    IMC,
    Background,
    Fourier,
    Given,
    Identity,
    Logistic,
    LowRank,
    Nystrom,
    Observations,
    Ridge,
    Squared,
    Tanh,
    Term,
)
from unseen.datasets import make_fourier
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.maps import FeatureMap, Standardized
from unseen.problem import Problem
from unseen.solvers import AlternatingCG, GoalDirected, Monitor
from unseen.state import map_params

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

MAPS: dict[str, tuple[FeatureMap, FeatureMap]] = {
    "fourier": (Fourier(4, learnable=True), Fourier(3, learnable=True)),
    "nystrom": (Nystrom(4, learnable=True), Nystrom(3, learnable=True, whiten=False)),
    "one-side": (Fourier(4, learnable=True), Fourier(3)),
    "other-side": (Identity(), Nystrom(4, learnable=True)),
    "tanh": (Tanh(4), Standardized(Tanh(3))),
}


def make_problem(maps: str | tuple[FeatureMap, FeatureMap], seed: int = 0, **options: Any) -> Problem:
    data = make_fourier(30, 25, 4, n_waves=2, rank=3, density=0.3, random_state=seed)
    row_map, col_map = MAPS[maps] if isinstance(maps, str) else maps
    return Problem(
        data.observations,
        [Term(row_map, col_map, LowRank(3), Ridge(0.1))],
        Squared(),
        row_features=data.row_features,
        col_features=sparse.csr_array(data.col_features),
        **options,
    )


@pytest.mark.parametrize("step", ["armijo", "lbfgs"])
@pytest.mark.parametrize("maps", MAPS)
def test_solver_only_goes_down_from_the_fixed_maps_model(maps: str, step: str) -> None:
    problem = make_problem(maps)
    state = problem.start(np.random.default_rng(0))
    solver = GoalDirected(step=step, start_sweeps=4)
    monitor = Monitor(8, 0.0)
    solved = solver.solve(problem, state, np.random.default_rng(1), monitor)
    objectives = [entry["objective"] for entry in monitor.history]

    # The start is the model with the same maps held fixed.
    fixed = [clone(a_map) for a_map in MAPS[maps]]
    for a_map in fixed:
        for name in a_map.get_params():
            if name.endswith("learnable"):
                a_map.set_params(**{name: False})
    held = make_problem((fixed[0], fixed[1]))
    held_monitor = Monitor(4, 0.0)
    AlternatingCG().solve(held, held.start(np.random.default_rng(0)), np.random.default_rng(1), held_monitor)
    start = held_monitor.history[-1]["objective"]
    prepared = solver.prepare(problem, state, np.random.default_rng(1))
    np.testing.assert_allclose(problem.value(prepared), start, rtol=1e-12)

    assert all(after <= before * (1 + 1e-12) for before, after in itertools.pairwise([start, *objectives]))
    np.testing.assert_allclose(problem.oracle(solved), objectives[-1], rtol=1e-9)
    # Control: something was learned beyond the coefficients.
    learned = [key for key in problem.blocks(state) if "_map." in key]
    assert all(not np.array_equal(solved[key], state[key]) for key in learned)


@pytest.mark.parametrize("step", ["armijo", "lbfgs"])
def test_tied_maps_stay_the_same_and_still_go_down(step: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    target = np.where(rng.random((30, 30)) < 0.4, np.cos(X @ rng.standard_normal((4, 30))), np.nan)
    a_map = Fourier(4, learnable=True)
    problem = Problem(
        Observations.from_dense(target),
        [Term(a_map, a_map, LowRank(3), Ridge(0.1))],
        Squared(),
        row_features=X,
        col_features=X,
    )
    monitor = Monitor(8, 0.0)
    state = problem.start(rng)
    solved = GoalDirected(step=step, tied=True).solve(problem, state, rng, monitor)
    np.testing.assert_array_equal(solved["0.row_map.projections"], solved["0.col_map.projections"])
    assert not np.array_equal(solved["0.row_map.projections"], state["0.row_map.projections"])
    objectives = [entry["objective"] for entry in monitor.history]
    assert all(after <= before * (1 + 1e-12) for before, after in itertools.pairwise(objectives))
    different = make_problem((Fourier(4, learnable=True), Fourier(3, learnable=True)))
    assert "differ" in str(GoalDirected(tied=True).refuses(different))


def test_learned_designs_are_computed_anew_only_when_params_change() -> None:
    calls = []

    class Counting(Fourier):
        def apply(self, *args: Any, **kwargs: Any) -> Any:
            calls.append(1)
            return super().apply(*args, **kwargs)

    problem = make_problem((Counting(4, learnable=True), Identity()))
    state = problem.start(np.random.default_rng(0))
    problem.value(state)
    problem.grad(state)
    assert len(calls) == 1
    before = problem.value(state)
    state = {**state, "0.row_map.projections": state["0.row_map.projections"] + 0.1}
    assert problem.value(state) != before
    assert len(calls) == 2


def error_of(model: Any, data: Any) -> float:
    model.fit(data.observations, row_features=data.row_features, col_features=data.col_features)
    truth = data.row_factors @ data.col_factors.T
    seen = np.zeros(truth.shape, dtype=bool)
    seen[data.observations.rows, data.observations.indices] = True
    off = (model.row_factors_ @ model.col_factors_.T - truth)[~seen]
    return float(np.linalg.norm(off) / np.linalg.norm(truth[~seen]))


def test_hidden_waves_are_found_where_fixed_features_see_nothing() -> None:
    data = make_fourier(random_state=2)
    shared: dict[str, Any] = {
        "reg": 0.01,
        "random_state": 0,
        "tol": 1e-3,
        "standardize": False,
        "center": "none",
    }
    learned, fixed = (Fourier(20, gamma=0.2, learnable=flag) for flag in (True, False))
    assert error_of(GIMC(5, row_map=learned, col_map=learned, **shared), data) < 0.12
    # Controls: the same features held fixed, and linear ones.
    assert error_of(GIMC(5, row_map=fixed, col_map=fixed, **shared), data) > 0.8
    assert error_of(IMC(5, reg=0.1, random_state=0, center="none"), data) > 0.8


def small() -> Any:
    return make_fourier(40, 30, 3, n_waves=2, rank=2, density=0.4, noise=0.0, random_state=0)


def small_model(**options: Any) -> GIMC:
    chosen = {
        "row_map": Fourier(6, learnable=True),
        "col_map": Nystrom(6, learnable=True),
        "reg": 0.01,
        "center": "none",
    }
    return GIMC(2, **{**chosen, "random_state": 0, "max_iter": 10, "tol": 0.0, **options})


def fitted(data: Any, **options: Any) -> GIMC:
    return small_model(**options).fit(
        data.observations, row_features=data.row_features, col_features=data.col_features
    )


STEADY: dict[str, Any] = {"solver": "armijo", "max_iter": 2, "start_sweeps": 2, "cg_steps": 4, "reg": 1.0}
"""Few steps of a well-posed fit, so that rounding is not amplified."""


def test_cold_rows_and_columns_by_features() -> None:
    data = small()
    model = fitted(data)
    block = model.predict_new(row_features=data.row_features[:5], col_features=data.col_features[:4])
    np.testing.assert_allclose(block, (model.row_factors_ @ model.col_factors_.T)[:5, :4], atol=1e-10)


def test_save_and_load(tmp_path: Any) -> None:
    data = small()
    model = fitted(data)
    model.save(tmp_path / "model")
    again = unseen.load(tmp_path / "model")
    new = np.random.default_rng(1).standard_normal((3, 3))
    np.testing.assert_array_equal(again.predict_new(row_features=new), model.predict_new(row_features=new))
    assert again.row_map.learnable


def test_same_bits_at_any_number_of_threads() -> None:
    one, two = (fitted(small(), n_jobs=jobs, max_iter=3) for jobs in (1, 2))
    np.testing.assert_array_equal(one.row_factors_, two.row_factors_)


def test_float32_stays() -> None:
    data = small()
    model = small_model(max_iter=4).fit(
        data.observations.with_values(data.observations.values.astype(np.float32)),
        row_features=data.row_features.astype(np.float32),
        col_features=data.col_features.astype(np.float32),
    )
    objectives = [entry["objective"] for entry in model.history_]
    assert model.row_factors_.dtype == np.float32
    assert all(
        value.dtype == np.float32 for key, value in model.state_.items() if key.endswith("projections")
    )
    assert all(after <= before * (1 + 1e-5) for before, after in itertools.pairwise(objectives))


def test_restarts_keep_the_lowest_objective() -> None:
    data = small()
    best = fitted(data, n_restarts=3, max_iter=4)
    rng = np.random.default_rng(0)
    seeds = [int(rng.integers(2**31)) for _ in range(3)]
    fits = [fitted(data, random_state=seed, max_iter=4) for seed in seeds]
    reached = [fit.history_[-1]["objective"] for fit in fits]
    np.testing.assert_allclose(best.history_[-1]["objective"], min(reached), rtol=1e-12)
    assert max(reached) > min(reached) * 1.001


def test_warm_start_goes_on_from_learned_maps() -> None:
    data = small()
    model = fitted(data, warm_start=True)
    before = model.history_[-1]["objective"]
    model.fit(data.observations, row_features=data.row_features, col_features=data.col_features)
    assert model.history_[0]["objective"] <= before
    assert fitted(data).history_[0]["objective"] > before


def test_order_of_rows_does_not_matter() -> None:
    """With landmarks carried along, a permutation of the rows permutes the answer."""
    data = small()
    turn = np.random.default_rng(3).permutation(40)
    options = {"row_map": Fourier(6, gamma=0.5, learnable=True), **STEADY}
    model = fitted(data, **options)
    dense = np.full((40, 30), np.nan)
    dense[data.observations.rows, data.observations.indices] = data.observations.values
    turned = small_model(**options).fit(
        dense[turn], row_features=data.row_features[turn], col_features=data.col_features
    )
    np.testing.assert_allclose(turned.row_factors_, model.row_factors_[turn], atol=1e-6)


def test_standardize_makes_units_irrelevant() -> None:
    data = small()
    scaled = (data.row_features * [1e4, 1.0, 1e-3]) + [5.0, 0.0, 0.0]
    options = {"row_map": Fourier(6, learnable=True), **STEADY}
    plain = fitted(data, **options)
    other = small_model(**options).fit(data.observations, row_features=scaled, col_features=data.col_features)
    np.testing.assert_allclose(other.row_factors_, plain.row_factors_, atol=1e-6)


def test_standardized_is_given_standardize_around_given() -> None:
    X = np.random.default_rng(0).normal(3.0, 2.0, (20, 3))
    rng = np.random.default_rng(0)
    for features in (X, sparse.csr_array(X)):
        wrapped, plain = Standardized(), Given(standardize=True)
        designs = [m.apply(features, 20, m.init(features, 20, rng)).toarray() for m in (wrapped, plain)]
        np.testing.assert_allclose(*designs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "sgd"}, "solver"),
        ({"rank": 0}, "rank"),
        ({"reg": -1.0}, "reg"),
        ({"n_restarts": 0}, "n_restarts"),
        ({"row_map": "fourier"}, "row_map must be a feature map"),
        ({"start_sweeps": -1}, "start_sweeps"),
    ],
)
def test_bad_settings_are_named(options: dict[str, Any], message: str) -> None:
    data = small()
    with pytest.raises(ParameterError, match=message):
        small_model().set_params(**options).fit(
            data.observations, row_features=data.row_features, col_features=data.col_features
        )


def test_missing_features_and_single_row() -> None:
    with pytest.raises(InvalidDataError, match="row_features"):
        small_model().fit(small().observations, col_features=np.ones((30, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = small_model().fit(
            np.array([[1.0, 2.0, np.nan]]), row_features=np.ones((1, 2)), col_features=np.eye(3)
        )
    assert np.isfinite(one.row_factors_).all()


def test_all_zero_rows_of_features() -> None:
    data = small()
    X = data.row_features.copy()
    X[:5] = 0.0
    model = small_model(max_iter=3).fit(
        data.observations, row_features=sparse.csr_array(X), col_features=data.col_features
    )
    assert np.isfinite(model.row_factors_).all()
    assert map_params(model.state_, 0, "row")["projections"].shape == (3, 6)


def test_any_loss_and_its_maps_go_down_together(tmp_path: Any) -> None:
    data = small()
    classes = data.observations.with_values((data.observations.values > 0).astype(float))
    sides = {"row_features": data.row_features, "col_features": data.col_features}
    a_map = Fourier(8, gamma=0.2, learnable=True)
    settings: dict[str, Any] = {"reg": 0.1, "loss": Logistic(), "center": "none", "random_state": 0}
    model = GIMC(3, row_map=a_map, col_map=a_map, max_iter=300, **settings).fit(classes, **sides)
    fixed = Fourier(8, gamma=0.2)
    held = GIMC(3, row_map=fixed, col_map=fixed, max_iter=300, **settings).fit(classes, **sides)
    assert model.history_[-1]["objective"] < 0.8 * held.history_[-1]["objective"]
    scores = np.einsum("ij,ij->i", model.row_factors_[classes.rows], model.col_factors_[classes.indices])
    signs = np.where(classes.values > 0, 1.0, -1.0)
    penalty = sum(0.05 * np.square(model.state_[f"0.{side}"]).sum() for side in ("row", "col"))
    oracle = np.logaddexp(0.0, -signs * scores).sum() + penalty
    assert model.history_[-1]["objective"] == pytest.approx(oracle)
    truth = (data.row_factors @ data.col_factors.T > 0)[:5]
    rows, cols = np.repeat(np.arange(5), truth.shape[1]), np.tile(np.arange(truth.shape[1]), 5)
    chances = model.predict_proba(rows, cols)[:, 1].reshape(truth.shape)
    assert np.mean((chances > 0.5) == truth) > 0.75
    np.testing.assert_allclose(model.predict_new(row_features=data.row_features[:5]), chances)
    model.save(tmp_path / "model")
    np.testing.assert_allclose(unseen.load(tmp_path / "model").predict_entries(rows, cols), chances.ravel())


def test_a_loss_with_a_background_alternates_as_the_squares_do() -> None:
    data = small()
    sides = {"row_features": data.row_features, "col_features": data.col_features}
    a_map = Fourier(6, gamma=0.2, learnable=True)
    blank = Squared(background=Background(0.2))
    settings: dict[str, Any] = {
        "row_map": a_map,
        "col_map": a_map,
        "reg": 0.1,
        "center": "none",
        "random_state": 0,
    }
    model = GIMC(3, loss=blank, **settings).fit(data.observations, **sides)
    assert isinstance(model.solver_, GoalDirected)
    off = np.zeros(data.observations.shape, dtype=bool)
    off[data.observations.rows, data.observations.indices] = True
    size = [np.square((m.row_factors_ @ m.col_factors_.T)[~off]).mean()
            for m in (model, GIMC(3, **settings).fit(data.observations, **sides))]  # fmt: skip
    assert size[0] < 0.8 * size[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "squares", "reg": 0.1}, "loss must be a Loss"),
        ({"loss": Logistic()}, "judges penalties by squares"),
        ({"loss": Squared(background=Background(1.0))}, "judges penalties by squares"),
        ({"loss": Logistic(), "reg": 0.1}, "center="),
        ({"loss": Logistic(), "reg": 0.1, "center": "none", "solver": "armijo"}, "quadratic loss"),
    ],
)
def test_losses_that_do_not_go_with_a_setting_are_refused(options: dict[str, Any], message: str) -> None:
    data = small()
    with pytest.raises(ParameterError, match=message):
        GIMC(3, **options).fit(data.observations, row_features=data.row_features)
