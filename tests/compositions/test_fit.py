"""The one ``fit`` and what is asked of a fitted model, for losses, weights, features and several terms."""

from __future__ import annotations

import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone

import unseen
from tests.compositions.parts import LOSSES, Huber, Poisson, RowLasso, make_cells, make_features, popular
from unseen import (
    GIMC,
    IMC,
    L1,
    Background,
    Biased,
    BiasIMC,
    Completion,
    Constant,
    DirtyIMC,
    Fourier,
    Full,
    Given,
    Identity,
    Logistic,
    LowRank,
    MatrixFactorization,
    Maxide,
    MixedLinear,
    NonNegative,
    Nystrom,
    Observations,
    Ridge,
    Shifted,
    ShiftIMC,
    SparseBilinear,
    Squared,
    Term,
    WithOnes,
)
from unseen.exceptions import InvalidDataError, NotInductiveError, ParameterError, UnsupportedComposition
from unseen.losses import CellLoss, Quadratic
from unseen.problem import Problem
from unseen.solvers import ALS, LBFGS

N, M = 40, 30
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def cells_of(loss: str, cells: str = "plain", seed: int = 0) -> Observations:
    return make_cells(loss, cells, np.random.default_rng(seed), (N, M))


# -- what may be subtracted ------------------------------------------------------------------------


@pytest.mark.parametrize("center", ["mean", "biases"])
@pytest.mark.parametrize("loss", [Logistic(), Biased(0.8), Shifted(0.3), Poisson()])
def test_nothing_is_subtracted_where_the_values_themselves_count(loss: Any, center: str) -> None:
    name = {"Logistic": "logistic", "Poisson": "poisson"}.get(type(loss).__name__, "biased")
    with pytest.raises(ParameterError, match=f"{type(loss).__name__} depends on the values themselves"):
        Completion(loss=loss, center=center).fit(cells_of(name))


@pytest.mark.parametrize("loss", [Squared(), Squared(background=Background(0.1)), Huber()])
@pytest.mark.parametrize("center", ["mean", "biases"])
def test_what_is_subtracted_comes_back(loss: Any, center: str) -> None:
    """A constant added to all values is added to all predictions."""
    cells = cells_of("squared", "weighted")
    model = Completion([Term(core=LowRank(2))], loss=loss, center=center, random_state=0, max_iter=30)
    low = clone(model).fit(cells).predict_entries(cells.rows, cells.indices)
    high = clone(model).fit(cells.with_values(cells.values + 7.0)).predict_entries(cells.rows, cells.indices)
    np.testing.assert_allclose(high, low + 7.0, atol=1e-6)


# -- early stopping ---------------------------------------------------------------------------------


def test_early_stopping_of_a_logistic_model_looks_at_the_log_loss() -> None:
    rng = np.random.default_rng(0)
    truth = 2.0 * rng.standard_normal((150, 2)) @ rng.standard_normal((2, 120))
    seen = rng.random(truth.shape) < 0.3
    X = np.where(seen, rng.random(truth.shape) < expit(truth), np.nan)
    model = Completion(
        [Term(core=LowRank(2), reg=Ridge(0.01))],
        loss=Logistic(),
        solver=LBFGS(),
        validation_fraction=0.2,
        patience=30,
        max_iter=200,
        random_state=0,
    ).fit(X)
    errors = [entry["validation"] for entry in model.history_]
    best = int(np.argmin(errors))
    assert 0 < best < len(errors) - 1
    assert errors[best] < np.log(2.0) < errors[-1]
    # The best sweep is the one that was kept: better than chance on cells that were never shown.
    hidden = ~seen
    chance = model.predict_entries(*np.nonzero(hidden))
    assert -np.mean(np.log(np.where(truth[hidden] > 0, chance, 1 - chance))) < np.log(2.0)


def test_held_out_positives_are_not_blanks() -> None:
    """They count as nothing in training: the same fit as with weight zero."""
    cells = cells_of("biased")
    model = Completion([Term(core=LowRank(2))], loss=Biased(0.8), solver=ALS(), random_state=0, max_iter=5)
    held = clone(model).set_params(validation_fraction=0.25, patience=100).fit(cells)
    rng = np.random.default_rng(0)
    mask = np.zeros(cells.nnz, dtype=bool)
    mask[rng.permutation(cells.nnz)[: round(0.25 * cells.nnz)]] = True
    problem = Problem(cells.with_weights(np.where(mask, 0.0, 1.0)), held.terms_, held.loss_)
    last = held.history_[int(np.argmin([entry["validation"] for entry in held.history_]))]
    state = {"0.row": held.row_factors_, "0.col": held.col_factors_}
    np.testing.assert_allclose(problem.oracle(state), last["objective"], rtol=1e-9)
    blank = Problem(cells.select(~mask), held.terms_, held.loss_)
    assert abs(blank.oracle(state) - last["objective"]) > 1e-3 * last["objective"]


@pytest.mark.parametrize("loss", LOSSES)
def test_deviance_is_a_mean_over_weights(loss: str) -> None:
    rng = np.random.default_rng(1)
    cells = cells_of(loss, "weighted")
    scores = rng.standard_normal(cells.nnz)
    counts = np.repeat(np.arange(cells.nnz), 3)
    weights = np.full(cells.nnz, 3.0)
    weighted = LOSSES[loss].deviance(scores, cells.values, weights)
    repeated = LOSSES[loss].deviance(scores[counts], cells.values[counts])
    np.testing.assert_allclose(weighted, repeated, rtol=1e-12)
    assert LOSSES[loss].deviance(scores, cells.values, cells.weights) != weighted


# -- rows from their cells --------------------------------------------------------------------------

PENALTIES = {
    "ridge": Ridge(0.4),
    "degrees": Ridge(0.3, degree_scaling=1.0),
    "nonnegative": NonNegative(0.2),
    "l1": L1(0.2),
    "rows": RowLasso(0.3),
}


@pytest.mark.parametrize("cells", ["plain", "weighted"])
@pytest.mark.parametrize("reg", PENALTIES)
@pytest.mark.parametrize("loss", [name for name in LOSSES if not name.startswith("popular")] + ["columns"])
def test_folded_rows_are_what_the_objective_asks_for(loss: str, reg: str, cells: str) -> None:
    """With the columns fixed no other row of factors has a smaller objective."""
    the_loss = LOSSES.get(loss)
    if the_loss is None:  # popularity of columns alone: rows are not known beforehand
        weights = np.random.default_rng(3).uniform(0.0, 2.0, M)
        the_loss = Squared(background=Background(0.5, 0.2, col_weights=weights))
    name = loss if loss in LOSSES else "squared"
    seen = make_cells(name, cells, np.random.default_rng(0), (12, M))
    model = Completion(
        [Term(core=LowRank(2), reg=PENALTIES[reg])], loss=the_loss, random_state=0, max_iter=15
    ).fit(seen)
    new = make_cells(name, cells, np.random.default_rng(5), (4, M))
    rows = model.fold_in(new)
    problem = Problem(new, model.terms_, model.loss_)

    def value(rows: Any) -> float:
        state = {"0.row": rows, "0.col": model.col_factors_}
        return problem.data_value(state) + problem.rule("0.row").value(rows)

    best, rng = value(rows), np.random.default_rng(1)
    assert np.isfinite(best)
    for size in (1e-3, 1e-2, 0.3):
        for _ in range(20):
            other = rows + size * rng.standard_normal(rows.shape)
            other = np.maximum(other, 0.0) if reg == "nonnegative" else other
            assert value(other) >= best - 1e-7 * abs(best)
    # A row's result does not depend on which others are asked for.
    np.testing.assert_allclose(model.fold_in(_row(new, 2)), rows[[2]], rtol=1e-6, atol=1e-9)


def _row(cells: Observations, row: int) -> Observations:
    part = slice(int(cells.indptr[row]), int(cells.indptr[row + 1]))
    weights = None if cells.weights is None else cells.weights[part]
    return Observations.from_sparse(cells.csr[[row]], weights=weights)


def test_rows_of_a_weighted_background_cannot_be_folded_in() -> None:
    cells = make_cells("squared", "plain", np.random.default_rng(0))
    model = Completion([Term(core=LowRank(2))], loss=Squared(background=popular()), random_state=0).fit(cells)
    with pytest.raises(NotInductiveError, match="row_weights"):
        model.fold_in(cells)


TERMS = {
    "free": [Term(core=LowRank(2), reg=Ridge(0.5))],
    "features": [Term(WithOnes(standardize=True), WithOnes(), LowRank(2), Ridge(0.5))],
    "both": [
        Term(Given(standardize=True), Identity(), LowRank(2), Ridge(0.5)),
        Term(core=LowRank(2), reg=Ridge(1.0)),
    ],
    "features and a bias": [
        Term(WithOnes(), Identity(), LowRank(2), Ridge(0.5)),
        Term(Identity(), Constant(), Full(), Ridge(2.0)),
    ],
}


@pytest.mark.parametrize("loss", ["squared", "background", "biased", "logistic"])
@pytest.mark.parametrize("terms", TERMS)
def test_transform_gives_what_fit_transform_gave(terms: str, loss: str) -> None:
    cells = cells_of(loss, "weighted")
    rows, cols = make_features(np.random.default_rng(1), N, M)
    given = {} if terms == "free" else {"row_features": rows}
    model = Completion(TERMS[terms], loss=LOSSES[loss], random_state=0, max_iter=3000, tol=1e-10)
    completed = model.fit_transform(cells, **given, **({} if terms == "free" else {"col_features": cols}))
    np.testing.assert_array_equal(model.transform(cells, **given), completed)
    trained = model.loss_.link(model.row_factors_ @ model.col_factors_.T)
    np.testing.assert_allclose(completed, trained, atol=2e-3 * np.abs(trained).max())
    folded = model.fold_in(cells, **given)
    np.testing.assert_allclose(model.loss_.link(folded @ model.col_factors_.T), completed, rtol=1e-12)
    if terms != "free":
        for call in (model.fold_in, model.transform):
            with pytest.raises(NotInductiveError, match="fitted with row_features"):
                call(cells)


@pytest.mark.parametrize("center", ["none", "mean", "biases"])
@pytest.mark.parametrize("name", ["imc", "dirty", "mixed-soft", "mixed-hard"])
def test_models_with_features_transform_as_they_were_fitted(name: str, center: str) -> None:
    models = {
        "imc": IMC(2, random_state=0, max_iter=300, tol=1e-9, reg=1.0, center="none"),
        "dirty": DirtyIMC(1.0, 3.0, random_state=0, max_iter=2000, tol=1e-12),
        "mixed-soft": MixedLinear(
            constraint="soft",
            rho=10.0,
            random_state=0,
            max_iter=2000,
            tol=1e-10,
            max_rank=None,
            center="none",
            reg_e="spectral",
        ),
        "mixed-hard": MixedLinear(
            random_state=0, max_iter=1500, tol=1e-7, constraint="hard", max_rank=None, center="none"
        ),
    }
    cells = cells_of("squared")
    rows, cols = make_features(np.random.default_rng(1), N, M)
    model = models[name].set_params(center=center)
    completed = model.fit_transform(cells, row_features=rows, col_features=cols)
    np.testing.assert_array_equal(model.transform(cells, row_features=rows), completed)
    trained = model.row_factors_ @ model.col_factors_.T
    slack = 2e-2 if name == "mixed-hard" else 2e-3
    np.testing.assert_allclose(completed, trained, atol=slack * np.abs(trained).max())


# -- the scale of the data --------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_predictions_are_on_the_scale_of_the_data(loss: str) -> None:
    cells = cells_of(loss)
    rows, _ = make_features(np.random.default_rng(1), N, M)
    model = Completion(
        [Term(WithOnes(), Identity(), LowRank(2), Ridge(0.5))], loss=LOSSES[loss], random_state=0
    ).fit(cells, row_features=rows)
    scores = model.row_factors_ @ model.col_factors_.T
    link = expit if loss == "logistic" else np.exp
    i, j = np.nonzero(np.ones((N, M)))
    np.testing.assert_allclose(model.predict_entries(i, j, raw=True), scores[i, j], rtol=1e-12)
    np.testing.assert_allclose(model.predict_entries(i, j), link(scores[i, j]), rtol=1e-12)
    np.testing.assert_allclose(model.predict_new(), link(scores), rtol=1e-12)
    np.testing.assert_allclose(model.predict_new(row_features=rows[:3]), link(scores[:3]), rtol=1e-9)
    ids, listed = model.recommend([0, 1], k=3, exclude=None)
    np.testing.assert_allclose(listed, link(scores[[[0], [1]], ids]), rtol=1e-9)
    if loss == "logistic":
        chances = model.predict_proba(i, j)
        np.testing.assert_allclose(chances.sum(axis=1), 1.0)
        np.testing.assert_allclose(chances[:, 1], model.predict_entries(i, j))
    else:
        assert not hasattr(model, "predict_proba")


# -- weights ----------------------------------------------------------------------------------------


class OwnWeights(Quadratic):
    """A squared loss that holds the weights of its cells."""

    def __init__(self, weights: Any) -> None:
        self.weights = weights

    def stored(self, values: Any) -> Any:
        return self.weights, values


def test_a_loss_that_holds_weights_of_all_cells_is_asked_once() -> None:
    """Also where cells are more than one part; and where cells are left out it says what to do."""
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((200, 2)) @ rng.standard_normal((2, 250))
    cells = Observations.from_dense(truth + 0.5 * rng.standard_normal(truth.shape))
    weights = rng.uniform(0.5, 2.0, cells.nnz)
    kind: dict[str, Any] = {"solver": ALS(), "random_state": 0, "max_iter": 60, "tol": 0.0}
    term = [Term(core=LowRank(2))]
    own = Completion(term, loss=OwnWeights(weights), **kind).fit(cells)
    given = Completion(term, **kind).fit(cells.with_weights(weights))
    np.testing.assert_allclose(own.predict_new(), given.predict_new(), atol=1e-8)
    # Control: without the weights the minimum is another one.
    assert np.abs(Completion(term, **kind).fit(cells).predict_new() - given.predict_new()).max() > 1e-3
    with pytest.raises(InvalidDataError, match=r"Observations\.from_\.\.\.\(weights=\)"):
        Completion(term, loss=OwnWeights(weights), validation_fraction=0.1, **kind).fit(cells)
    with pytest.raises(InvalidDataError, match="weights"):
        own.fold_in(cells.csr[:3])


def test_a_loss_without_single_values_refuses_weights() -> None:
    class Sum(Huber):
        def pointwise(self, scores: Any, values: Any) -> Any:
            return unseen.losses.Loss.pointwise(self, scores, values)

        def value(self, scores: Any, values: Any) -> float:
            return float(np.sum(Huber.pointwise(self, scores, values)))

    term = [Term(core=LowRank(2))]
    Completion(term, loss=Sum(), random_state=0).fit(cells_of("squared"))
    with pytest.raises(UnsupportedComposition, match="pointwise"):
        Completion(term, loss=Sum(), random_state=0).fit(cells_of("squared", "weighted"))


@pytest.mark.parametrize("center", ["none", "mean", "biases", "joint"])
@pytest.mark.parametrize("solver", ["als", "ccd"])
def test_whole_weights_are_cells_that_were_repeated(solver: str, center: str) -> None:
    """Offsets, factors and fold-in: rows of the matrix stacked twice weigh two."""
    if (solver, center) == ("ccd", "joint"):
        pytest.skip("joint biases are learned by ALS")
    cells = cells_of("squared")
    twice = Observations.from_any(sparse.vstack([cells.csr, cells.csr]))
    # Penalties so large that there is one minimum: with smaller ones rounding decides which is reached.
    model = MatrixFactorization(
        2, solver=solver, center=center, reg=12.0, max_iter=400, tol=1e-13, random_state=0
    )
    weighted = clone(model).fit(cells.with_weights(np.full(cells.nnz, 2.0)))
    # Columns of the stacked matrix see every cell twice; its rows see it once, with half the penalty.
    assert np.abs(weighted.row_factors_ @ weighted.col_factors_.T).max() > 0.1
    offsets = weighted.offsets_
    if center in ("mean", "joint"):
        np.testing.assert_allclose(offsets.mean, twice.values.mean(), rtol=1e-12)
    if center == "biases":
        same = unseen.offsets.fit_offsets(cells, "biases", (2.5, 2.5))
        np.testing.assert_allclose(offsets.row, same.row, rtol=1e-9)
    problem = Problem(
        cells.with_values(offsets.removed(cells)).with_weights(np.full(cells.nnz, 2.0)),
        weighted.terms_,
        weighted.loss_,
    )
    halved = MatrixFactorization(
        2, solver=solver, center=center, reg=6.0, bias_reg=2.5, max_iter=400, tol=1e-13, random_state=0
    ).fit(cells)
    objective = halved.history_[-1]["objective"]
    np.testing.assert_allclose(weighted.history_[-1]["objective"], 2.0 * objective, rtol=1e-6)
    assert problem.observations.weights is not None
    np.testing.assert_allclose(
        weighted.fold_in(cells.with_weights(np.full(cells.nnz, 2.0))) @ weighted.col_factors_.T,
        weighted.row_factors_ @ weighted.col_factors_.T,
        atol=1e-5 if solver == "als" else 1e-2,
    )


def test_weights_survive_splits_and_frames() -> None:
    cells = cells_of("squared", "weighted")
    train, test = unseen.model_selection.split_entries(cells, test_fraction=0.3, random_state=0)
    joined = np.concatenate([train.weights, test.weights])
    np.testing.assert_allclose(np.sort(joined), np.sort(cells.weights))
    frame = cells.to_frame()
    again = Observations.from_frame(frame, row="row", col="col", value="value", weight="weight")
    np.testing.assert_array_equal(again.weights, cells.weights)
    np.testing.assert_array_equal(cells.transpose().transpose().weights, cells.weights)
    with pytest.raises(InvalidDataError, match="weights holds -1"):
        cells.with_weights(np.full(cells.nnz, -1.0))


# -- dense and sparse features ----------------------------------------------------------------------

WITH_FEATURES = {
    "IMC": IMC(2, random_state=0, max_iter=300, tol=1e-12, reg=1.0, center="none"),
    "IMC without intercept": IMC(
        2, intercept=False, random_state=0, max_iter=300, tol=1e-12, reg=1.0, center="none"
    ),
    "Maxide": Maxide(2.0, random_state=0),
    "DirtyIMC": DirtyIMC(2.0, 10.0, random_state=0),
    "SparseBilinear": SparseBilinear(1.0, random_state=0),
    "MixedLinear": MixedLinear(
        constraint="soft", rho=10.0, random_state=0, max_rank=None, center="none", reg_e="spectral"
    ),
    "GIMC Fourier": GIMC(
        2,
        row_map=Fourier(4),
        col_map=Nystrom(4),
        reg=5.0,
        random_state=0,
        max_iter=200,
        tol=1e-13,
        center="none",
    ),
    "BiasIMC": BiasIMC(2, alpha=0.8, random_state=0, max_iter=300, tol=1e-12),
    "ShiftIMC whitened": ShiftIMC(2, rho=0.5, whiten=True, random_state=0, max_iter=300, tol=1e-12),
}


@pytest.mark.parametrize("density", [0.6, 0.15])
@pytest.mark.parametrize("name", WITH_FEATURES)
def test_dense_and_sparse_features_mean_the_same(name: str, density: float) -> None:
    rng = np.random.default_rng(2)
    cells = cells_of("biased" if "ias" in name or "hift" in name else "squared")
    rows, cols = (
        (rng.random((size, 12)) < density) * (3.0 + rng.standard_normal((size, 12))) for size in (N, M)
    )
    dense = clone(WITH_FEATURES[name]).fit(cells, row_features=rows, col_features=cols)
    from_sparse = clone(WITH_FEATURES[name]).fit(
        cells, row_features=sparse.csr_array(rows), col_features=sparse.csc_array(cols)
    )
    wanted = dense.predict_new(rows[:9], cols[:7])
    size = np.abs(wanted).max()
    later = dense.predict_new(sparse.csr_array(rows[:9]), sparse.csr_array(cols[:7]))
    np.testing.assert_allclose(later, wanted, atol=1e-10 * size)
    np.testing.assert_allclose(from_sparse.predict_new(rows[:9], cols[:7]), wanted, atol=1e-8 * size)
    mixed = from_sparse.predict_new(sparse.csr_array(rows[:9]), cols[:7])
    np.testing.assert_allclose(mixed, wanted, atol=1e-8 * size)


@pytest.mark.parametrize("name", ["IMC", "BiasIMC", "two terms", "logistic"])
def test_wide_sparse_features_stay_sparse(name: str) -> None:
    rng = np.random.default_rng(0)
    n, width = 300, 200_000
    features = sparse.random_array((n, width), density=3e-5, rng=rng, format="csr")
    X = sparse.random_array((n, 40), density=0.2, rng=rng, format="csr")
    X.data[:] = 1.0
    model: Any = {
        "IMC": IMC(2, random_state=0, max_iter=2, n_jobs=1, reg=1.0, center="none"),
        "BiasIMC": BiasIMC(2, alpha=0.8, random_state=0, max_iter=2, n_jobs=1),
        "two terms": Completion(
            [Term(Given(True), Identity(), LowRank(2)), Term(core=LowRank(2))], random_state=0, max_iter=2
        ),
        "logistic": Completion(
            [Term(Given(True), Identity(), LowRank(2))], loss=Logistic(), random_state=0, max_iter=2
        ),
    }[name]
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, row_features=features)
        model.predict_new(row_features=features[:5])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.3 * n * width * 8  # all features as a dense array would be 480 MB


# -- saving -----------------------------------------------------------------------------------------


def test_new_parts_are_saved(tmp_path: Path) -> None:
    cells = cells_of("squared", "weighted")
    background = Background(0.3, 0.1, col_weights=np.linspace(0.1, 1.0, M))
    model = Completion(
        [Term(core=LowRank(2), reg=Ridge(0.3, degree_scaling=0.5))],
        loss=Squared(background=background),
        solver=ALS(),
        random_state=0,
    ).fit(cells)
    model.save(tmp_path / "model")
    again = unseen.load(tmp_path / "model")
    np.testing.assert_array_equal(again.fold_in(cells), model.fold_in(cells))
    np.testing.assert_array_equal(CellLoss(again.loss_, cells).blank.col_weights, background.col_weights)
