"""Weights of cells: every public completer counts them in its objective or refuses them."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from sklearn.base import clone

import unseen
from unseen import Observations, baselines, links, metrics, model_selection
from unseen.comparison import compare
from unseen.diagnostics import diagnose, find_blocks, identifiability
from unseen.diagnostics.identify import spread_of
from unseen.estimators.base import Completer
from unseen.exceptions import ConvergenceWarning, DataWarning, InvalidDataError, UnsupportedComposition
from unseen.model_selection._evaluate import iterate_splits

SHORT = {"max_iter": 5, "random_state": 0, "n_jobs": 1}
VALUES = {
    "BiasModel": unseen.BiasModel(max_iter=5),
    "MatrixFactorization": unseen.MatrixFactorization(2, reg=1.0, center="none", **SHORT),
    "MatrixFactorization-ccd": unseen.MatrixFactorization(2, reg=1.0, center="none", solver="ccd", **SHORT),
    "MatrixFactorization-joint": unseen.MatrixFactorization(2, reg=1.0, center="joint", **SHORT),
    "MatrixFactorization-svd": unseen.MatrixFactorization(2, reg=1.0, center="joint", init="svd", **SHORT),
    "MatrixFactorization-svd-plain": unseen.MatrixFactorization(
        2, reg=1.0, center="biases", init="svd", **SHORT
    ),
    "MatrixFactorization-stopped": unseen.MatrixFactorization(
        2, reg=1.0, center="none", validation_fraction=0.3, **SHORT
    ),
    "SoftImpute": unseen.SoftImpute(2.0, center="none", **SHORT),
    "Completion": unseen.Completion(**SHORT),
    "IMC": unseen.IMC(2, reg=1.0, center="none", **SHORT),
    "GIMC": unseen.GIMC(2, reg=0.1, center="none", **SHORT),
    "Maxide": unseen.Maxide(0.5, max_iter=5),
    "DirtyIMC": unseen.DirtyIMC(max_iter=5, n_jobs=1),
    "SparseBilinear": unseen.SparseBilinear(0.1, max_iter=5),
    "MixedLinear": unseen.MixedLinear(
        constraint="soft", rho=10.0, max_iter=5, max_rank=None, center="none", reg_e="spectral"
    ),
    "AugmentedMF": unseen.AugmentedMF(2, reg=0.02, center="none", **SHORT),
    "NMF": baselines.NMF(2, **SHORT),
    "PMF": baselines.PMF(2, **SHORT),
    "PMF-factor": baselines.PMF(2, per="factor", **SHORT),
    "PMF-als": baselines.PMF(2, solver="als", reg=(0.1, 0.2), **SHORT),
    "MMMF": baselines.MMMF(2, **SHORT),
    "Popularity": baselines.Popularity(),
}
POSITIVES = {
    "BiasMC": unseen.BiasMC(2, alpha=0.9, **SHORT),
    "BiasMC-auto": unseen.BiasMC(2, **SHORT),
    "BiasMC-values": unseen.BiasMC(2, alpha=0.9, weights=True, **SHORT),
    # Without weights its sweeps take a shorter way, to the same minimum.
    "ShiftMC": unseen.ShiftMC(2, rho=0.5, max_iter=500, tol=1e-15, random_state=0),
    "ShiftMC-box": unseen.ShiftMC(None, rho=0.5, bound="box", max_iter=20, random_state=0),
    "ShiftMC-none": unseen.ShiftMC(None, rho=0.5, bound="none", max_iter=20, random_state=0),
    "BiasMC-prox": unseen.BiasMC(None, alpha=0.9, solver="prox", **SHORT),
    "BiasIMC": unseen.BiasIMC(2, alpha=0.9, **SHORT),
    "ShiftIMC": unseen.ShiftIMC(2, rho=0.5, **SHORT),
    "OneBitMC": baselines.OneBitMC(2, **SHORT),
}
REFUSED = {
    "LowDensityNMF": baselines.LowDensityNMF(2),
    "CommonNeighbors": links.CommonNeighbors(),
    "Katz": links.Katz(),
    "SVDKatz": links.SVDKatz(2),
    "TruncatedSVDLinks": links.TruncatedSVDLinks(2),
    "BlendedLinks": links.BlendedLinks(),
}
ELSEWHERE = {"BayesianMF", "ItemNeighbors", "SpectralFilter"}
"""Draws with weights follow their law, not their bits, and filters have no factors: tests of their own."""
FEATURES = ("IMC", "GIMC", "Maxide", "DirtyIMC", "SparseBilinear", "MixedLinear", "BiasIMC", "ShiftIMC")


def public_completers() -> set[str]:
    found = set()
    for module in (unseen, baselines, links):
        for name in module.__all__:
            kind = getattr(module, name)
            if inspect.isclass(kind) and issubclass(kind, Completer) and not inspect.isabstract(kind):
                found.add(name)
    return found


def test_every_public_completer_is_here() -> None:
    covered = {name.split("-")[0] for name in (*VALUES, *POSITIVES, *REFUSED)}
    assert public_completers() <= covered | ELSEWHERE, public_completers() - covered


def cells_of(name: str) -> Observations:
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((14, 11)) < 0.6, rng.integers(1, 6, (14, 11)), np.nan)
    if name in POSITIVES:
        dense = np.where(np.isnan(dense), np.nan, 1.0)
    return Observations.from_dense(dense)


def features_of(name: str) -> dict[str, Any]:
    if name.split("-")[0] not in FEATURES:
        return {}
    rng = np.random.default_rng(1)
    return {"row_features": rng.standard_normal((14, 3)), "col_features": rng.standard_normal((11, 3))}


def scores_of(model: Any, cells: Observations, name: str) -> Any:
    """Scores of all cells after a fit, and of some rows that are folded in by their cells."""
    rows, cols = np.indices(cells.shape).reshape(2, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(cells, **features_of(name))
        own = {"row_features": features_of(name)["row_features"]} if features_of(name) else {}
        folded = model.fold_in(cells, **own) @ model.col_factors_.T
    return np.concatenate([model.predict_entries(rows, cols), folded.ravel()])


COUNTING = [pytest.param(name, model, id=name) for name, model in (VALUES | POSITIVES).items()]


@pytest.mark.parametrize(("name", "model"), COUNTING)
def test_weights_count(name: str, model: Any) -> None:
    cells = cells_of(name)
    plain = scores_of(model, cells, name)
    ones = scores_of(model, cells.with_weights(np.ones(cells.nnz)), name)
    if name == "ShiftMC":
        np.testing.assert_allclose(ones, plain, atol=1e-5)
    else:
        np.testing.assert_array_equal(ones, plain)
    # A cell of weight zero says nothing, whatever its value.
    rng = np.random.default_rng(2)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], cells.nnz)
    values = cells.values.copy()
    wild = np.where(weights == 0, 5.0 if name in POSITIVES else rng.choice([2.0, 700.0], cells.nnz), values)
    before = scores_of(model, cells.with_weights(weights), name)
    after = scores_of(model, cells.with_values(wild).with_weights(weights), name)
    np.testing.assert_array_equal(after, before)
    # A weight above zero counts.
    heavy = weights.copy()
    heavy[np.argmax(weights > 0)] *= 50.0
    assert np.abs(scores_of(model, cells.with_weights(heavy), name) - before).max() > 1e-4
    assert np.abs(before - plain).max() > 1e-4


@pytest.mark.parametrize(("name", "model"), COUNTING)
def test_nothing_is_learned_from_cells_that_say_nothing(name: str, model: Any) -> None:
    cells = cells_of(name)
    silent = cells.with_weights(np.zeros(cells.nnz))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if name.split("-")[0] in ("BiasMC", "ShiftMC", "BiasIMC", "ShiftIMC"):
            with pytest.warns(DataWarning, match="no positive"):
                model.fit(silent, **features_of(name))
        else:
            with pytest.raises(InvalidDataError, match="no observed cell"):
                model.fit(silent, **features_of(name))


CHOOSING = {
    "MatrixFactorization-auto": unseen.MatrixFactorization(2, **SHORT),
    "IMC-auto": unseen.IMC(2, **SHORT),
    "Completion-Logistic": unseen.Completion(loss=unseen.Logistic(), **SHORT),
    "Completion-Ordinal": unseen.Completion(loss=unseen.Ordinal(), **SHORT),
    "Completion-Ordinal-stopped": unseen.Completion(loss=unseen.Ordinal(), validation_fraction=0.2, **SHORT),
}


@pytest.mark.parametrize("name", sorted({*VALUES, *CHOOSING} - {"AugmentedMF", "Popularity"}))
def test_a_cell_of_weight_zero_is_no_cell(name: str) -> None:
    """Where blanks are missing; where they count, it is not even blank."""
    model, cells = (VALUES | CHOOSING)[name], cells_of(name)
    weights = np.random.default_rng(2).choice([0.0, 0.5, 1.0, 3.0], cells.nnz)
    values = np.where(weights == 0.0, 2.5, cells.values)  # on no level
    given = cells.with_values(values).with_weights(weights)
    there = given.select(weights > 0.0)
    rows, cols = np.indices(cells.shape).reshape(2, -1)
    own = {"row_features": features_of(name)["row_features"]} if features_of(name) else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [clone(model).fit(one, **features_of(name)) for one in (given, there)]
        np.testing.assert_array_equal(*(fit.predict_entries(rows, cols) for fit in found))
        folded = [found[0].fold_in(one, **own) for one in (given, there)]
        np.testing.assert_allclose(*folded, rtol=1e-11, atol=1e-13)


def test_thresholds_of_levels_count_by_weight() -> None:
    values, weights = np.array([1.0, 2.0, 2.0, 3.0, 3.0]), np.array([2.0, 1.0, 3.0, 0.0, 2.0])
    repeated = unseen.Ordinal().fitted(np.repeat(values, weights.astype(int)))
    # Weights are relative: four cells that count, of together eight.
    thresholds = np.array(unseen.Ordinal().fitted(values, weights).thresholds)
    counts = np.array([2.0, 4.0, 2.0]) * 4 / 8 + 0.5
    np.testing.assert_allclose(thresholds, ndtri(np.cumsum(counts)[:-1] / counts.sum()), rtol=1e-12)
    assert repeated.levels == unseen.Ordinal().fitted(values, weights).levels


def weighted_cells() -> Observations:
    cells = cells_of("values")
    return cells.with_weights(np.random.default_rng(3).choice([0.0, 0.5, 1.0, 3.0], cells.nnz))


def penalty_of(model: Any, cells: Observations) -> float:
    """What a model adds to its sum over cells, by its definition."""
    left, right = (np.sum(f[:, :-3] ** 2, axis=1) for f in (model.row_factors_, model.col_factors_))
    if isinstance(model, baselines.PMF):
        degrees = [cells.degrees(side) if model.per == "cell" else 1.0 for side in ("row", "col")]
        regs = np.broadcast_to(model.reg, 2)
        return float(regs[0] * np.sum(degrees[0] * left) + regs[1] * np.sum(degrees[1] * right))
    return model.reg * float(left.sum() + right.sum())


@pytest.mark.parametrize(
    "model",
    [
        baselines.NMF(2, reg=0.3, **SHORT),
        baselines.PMF(2, reg=(0.1, 0.2), **SHORT),
        baselines.PMF(2, reg=(0.1, 0.2), per="factor", **SHORT),
        baselines.PMF(2, reg=(0.1, 0.2), solver="als", **SHORT),
        baselines.PMF(2, reg=(0.1, 0.2), solver="als", per="factor", **SHORT),
        baselines.PMF(2, reg=0.3, solver="als", per="factor", **SHORT),
    ],
    ids=str,
)
def test_objective_is_the_weighted_sum(model: Any) -> None:
    cells = weighted_cells()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(cells)
    rest = model.predict_entries(cells.rows, cells.indices) - cells.values
    wanted = float(np.sum(cells.weights * rest**2)) + penalty_of(model, cells)
    assert model.history_[-1]["objective"] == pytest.approx(wanted, rel=1e-9)
    unweighted = float(np.sum(rest**2)) + penalty_of(model, cells.with_weights(None))
    assert unweighted != pytest.approx(wanted, rel=1e-3)


def test_bias_model_solves_the_weighted_normal_equations() -> None:
    cells = weighted_cells()
    model = unseen.BiasModel(reg=(2.0, 3.0), tol=1e-14, max_iter=2000).fit(cells)
    rest = cells.weights * (cells.values - model.predict_entries(cells.rows, cells.indices))
    assert model.mean_ == pytest.approx(np.average(cells.values, weights=cells.weights))
    np.testing.assert_allclose(np.bincount(cells.rows, rest), 2.0 * model.row_bias_, atol=1e-6)
    np.testing.assert_allclose(np.bincount(cells.indices, rest), 3.0 * model.col_bias_, atol=1e-6)


@pytest.mark.parametrize(
    ("light", "heavy"),
    [
        (unseen.BiasModel(reg=1.0), unseen.BiasModel(reg=2.0)),
        (baselines.NMF(2, reg=0.5, **SHORT), baselines.NMF(2, reg=1.0, **SHORT)),
        (baselines.MMMF(2, C=2.0, **SHORT), baselines.MMMF(2, C=1.0, **SHORT)),
        (
            baselines.PMF(2, per="factor", reg=0.5, learning_rate=0.004, **SHORT),
            baselines.PMF(2, per="factor", reg=1.0, learning_rate=0.002, **SHORT),
        ),
        (
            baselines.PMF(2, solver="als", per="factor", reg=0.5, **SHORT),
            baselines.PMF(2, solver="als", per="factor", reg=1.0, **SHORT),
        ),
        (baselines.PMF(2, solver="als", reg=0.5, **SHORT), baselines.PMF(2, solver="als", reg=0.5, **SHORT)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_twice_the_weights_and_twice_the_penalty_change_nothing(light: Any, heavy: Any) -> None:
    cells = weighted_cells()
    twice = cells.with_weights(2.0 * cells.weights)
    np.testing.assert_allclose(
        scores_of(heavy, twice, "values"), scores_of(light, cells, "values"), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("options", [{"solver": "linesearch"}, {"augmentation": "rank_one"}])
def test_solvers_that_need_one_weight_say_so(options: dict[str, str]) -> None:
    with pytest.raises(UnsupportedComposition, match="one weight of all stored"):
        unseen.AugmentedMF(2, **options).fit(weighted_cells())


def test_popularity_is_the_weighted_share() -> None:
    cells = Observations.from_triples([0, 1, 2, 0], [0, 0, 1, 1], [1, 1, 1, 0], weights=[3.0, 1.0, 0.0, 2.0])
    # Column 0: (3 + 1) / (3 + 1 + one blank); column 1: nothing / (0 + 2 + one blank).
    np.testing.assert_allclose(baselines.Popularity().fit(cells).col_factors_[:, 0], [0.8, 0.0])


def test_stored_zeros_of_positives_are_blank_or_silent() -> None:
    model = unseen.BiasMC(2, alpha=0.9, max_iter=200, tol=1e-12, random_state=0, cg_steps=None)
    cells = cells_of("BiasMC")
    rows, cols = (
        np.append(cells.rows, 0),
        np.append(cells.indices, int(np.setdiff1d(range(11), cells.indices[:5])[0])),
    )
    stored = np.append(cells.values, 0.0)

    def fitted(weight: float) -> Any:
        weights = np.append(np.ones(cells.nnz), weight)
        seen = Observations.from_triples(rows, cols, stored, cells.shape, weights=weights)
        return model.fit(seen).predict_new()

    np.testing.assert_allclose(fitted(1.0), model.fit(cells).predict_new(), atol=1e-9)
    assert np.abs(fitted(0.0) - model.fit(cells).predict_new()).max() > 1e-4
    with pytest.raises(InvalidDataError, match="stored zero is a blank cell"):
        fitted(0.5)


@pytest.mark.parametrize(
    ("name", "model"), [pytest.param(name, model, id=name) for name, model in REFUSED.items()]
)
def test_what_cannot_count_is_refused(name: str, model: Any) -> None:
    graph = np.random.default_rng(0).random((12, 12)) < 0.4
    cells = Observations.from_dense(np.where(graph | graph.T, 1.0, np.nan))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        weighted = cells.with_weights(np.ones(cells.nnz))
        with pytest.raises(InvalidDataError, match=f"{name} takes no weights of cells"):
            model.fit(weighted)
        model.fit(cells)
    with pytest.raises(InvalidDataError, match="takes no weights of cells"):
        model.fold_in(weighted)


# -- metrics, splits, search -------------------------------------------------------------------------------


def repeated(weights: Any, *arrays: Any) -> Any:
    return [np.repeat(array, np.asarray(weights, dtype=int)) for array in arrays]


@pytest.mark.parametrize("measure", ["rmse", "mae", "relative_error", "auc"])
def test_a_weight_counts_as_so_many_cells(measure: str) -> None:
    metric = getattr(metrics, measure)
    rng = np.random.default_rng(0)
    truth, predicted = rng.integers(0, 2, 40).astype(float), rng.integers(0, 6, 40) / 5.0
    weights = rng.integers(0, 4, 40)
    wanted = metric(*repeated(weights, truth, predicted))
    assert metric(truth, predicted, sample_weight=weights) == pytest.approx(wanted, rel=1e-12)
    assert metric(truth, predicted) != pytest.approx(wanted, rel=1e-3)
    assert metric(truth, predicted, sample_weight=np.ones(40)) == pytest.approx(metric(truth, predicted))
    for bad in (weights[:-1], -weights, np.zeros(40), np.where(weights == 2, np.nan, weights)):
        with pytest.raises(InvalidDataError, match="sample_weight"):
            metric(truth, predicted, sample_weight=bad)


@pytest.mark.parametrize("measure", ["rmse", "mae", "relative_error"])
def test_errors_take_the_weights_of_observations(measure: str) -> None:
    metric, cells = getattr(metrics, measure), weighted_cells()
    predicted = np.full(cells.nnz, 2.5)
    own = metric(cells, predicted)
    assert own == metric(cells.values, predicted, sample_weight=cells.weights)
    assert own != metric(cells.values, predicted)
    assert metric(cells, predicted, sample_weight=np.ones(cells.nnz)) == pytest.approx(
        metric(cells.values, predicted)
    )


@pytest.mark.parametrize("measure", ["propensity_scored_precision_at_k", "propensity_scored_ndcg_at_k"])
def test_rows_of_propensity_scored_lists_have_weights(measure: str) -> None:
    metric = getattr(metrics, measure)
    rng = np.random.default_rng(0)
    truth, scores, chances = (rng.random((12, 9)) < 0.3).astype(float), rng.random((12, 9)), rng.random(9)
    weights = rng.integers(0, 4, 12)
    order = np.repeat(np.arange(12), weights)
    wanted = metric(truth[order], scores[order], chances, 3)
    assert metric(truth, scores, chances, 3, sample_weight=weights) == pytest.approx(wanted)
    assert metric(truth, scores, chances, 3) != pytest.approx(wanted, rel=1e-4)
    truth[weights > 0] = 0.0
    with pytest.raises(InvalidDataError, match="no row that counts"):
        metric(truth, scores, chances, 3, sample_weight=weights)


@pytest.mark.parametrize("measure", ["precision_at_k", "recall_at_k", "ndcg_at_k"])
def test_rows_of_lists_have_weights(measure: str) -> None:
    metric = getattr(metrics, measure)
    rng = np.random.default_rng(0)
    truth, scores = (rng.random((12, 9)) < 0.2).astype(float), rng.random((12, 9))
    truth[3] = 0.0
    weights = rng.integers(0, 4, 12)
    order = np.repeat(np.arange(12), weights)
    for empty in ("zero", "skip"):
        wanted = metric(truth[order], scores[order], 3, empty_rows=empty)
        assert metric(truth, scores, 3, empty_rows=empty, sample_weight=weights) == pytest.approx(wanted)
    cells = Observations.from_dense(truth)
    silent = cells.with_weights(np.where(cells.indices == 0, 0.0, 2.0))
    truth[:, 0] = 0.0
    assert metric(silent, scores, 3) == metric(truth, scores, 3)


def test_splits_and_cross_validation_keep_weights() -> None:
    cells = weighted_cells()
    at = {(int(i), int(j)): w for i, j, w in zip(cells.rows, cells.indices, cells.weights, strict=True)}
    splits = [
        *model_selection.KFoldEntries(3, random_state=0).split(cells),
        model_selection.split_entries(cells, random_state=0),
        model_selection.split_rows(cells, random_state=0),
        model_selection.split_cols(cells, random_state=0),
        model_selection.split_time(cells.with_times(np.arange(cells.nnz))),
    ]
    for part in (part for split in splits for part in split):
        assert part.weights.tolist() == [at[i, j] for i, j in zip(part.rows, part.indices, strict=True)]
    model = unseen.BiasModel()
    found = model_selection.cross_validate(model, cells, cv=3, scoring=["rmse", "mae"])
    for entry, (train, test) in zip(found, iterate_splits(3, cells), strict=True):
        model.fit(train)
        predicted = model.predict_entries(test.rows, test.indices)
        assert entry["mae"] == pytest.approx(
            np.average(np.abs(predicted - test.values), weights=test.weights)
        )
    plain = model_selection.cross_validate(model, cells.with_weights(None), cv=3)
    assert plain.mean("rmse") != pytest.approx(found.mean("rmse"), rel=1e-3)


def test_search_chooses_by_the_cells_that_count() -> None:
    # Of two halves that contradict each other only the one that counts decides.
    rng = np.random.default_rng(0)
    X = np.add.outer(rng.standard_normal(20), rng.standard_normal(16))
    X[:, 8:] = 20.0 * rng.standard_normal((20, 8))
    cells = Observations.from_dense(X)
    grid = {"reg": [0.01, 1000.0]}
    first = cells.with_weights(np.where(cells.indices < 8, 1.0, 0.0))
    search = model_selection.GridSearch(unseen.BiasModel(), grid, cv=3).fit(first)
    assert search.best_params_ == {"reg": 0.01}
    second = cells.with_weights(np.where(cells.indices < 8, 0.0, 1.0))
    assert model_selection.GridSearch(unseen.BiasModel(), grid, cv=3).fit(second).best_params_ == {
        "reg": 1000.0
    }
    wanted = unseen.BiasModel(reg=0.01).fit(first)
    np.testing.assert_array_equal(search.best_estimator_.row_bias_, wanted.row_bias_)


@pytest.mark.parametrize("scoring", ["auc", "precision@2", "recall@3"])
def test_scorers_of_lists_leave_out_cells_of_weight_zero(scoring: str) -> None:
    cells = cells_of("values")
    cells = cells.with_values((cells.values > 2).astype(float))
    train, test = model_selection.split_entries(cells, test_fraction=0.4, random_state=0)
    model = baselines.Popularity().fit(train)
    silent = np.random.default_rng(1).random(test.nnz) < 0.4
    part = test.with_weights(np.where(silent, 0.0, 1.0))
    scorer = model_selection.get_scorer(scoring)
    found = scorer(model, model_selection.Split(train, part))
    assert found != scorer(model, model_selection.Split(train, test))
    flipped = part.with_values(np.where(silent, 1.0 - test.values, test.values)).with_weights(part.weights)
    assert scorer(model, model_selection.Split(train, flipped)) == found
    with pytest.raises(InvalidDataError, match="no cells that count"):
        scorer(model, model_selection.Split(train, test.with_weights(np.zeros(test.nnz))))


# -- diagnostics --------------------------------------------------------------------------------------------

MODELS = [
    unseen.BiasModel(reg=2.0),
    unseen.MatrixFactorization(2, reg=1.0, random_state=0, max_iter=300, tol=1e-9, center="none"),
    unseen.MatrixFactorization(2, reg=1.0, center="joint", random_state=0, max_iter=300, tol=1e-9),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("method", ["auto", "resample"])
def test_spread_of_cells_of_weight_zero(model: Any, method: str) -> None:
    cells = weighted_cells()
    wild = cells.with_values(np.where(cells.weights == 0, 1e3, cells.values))
    found = [identifiability(model.fit(some), [0, 3], [1, 2], method=method) for some in (cells, wild)]
    np.testing.assert_array_equal(found[0].std, found[1].std)
    np.testing.assert_array_equal(found[0].noise, found[1].noise)
    plain = identifiability(model.fit(cells.with_weights(None)), [0, 3], [1, 2], method=method)
    assert np.all(plain.noise != found[0].noise)
    assert np.all(plain.std != found[0].std)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_noise_is_that_of_cells_of_weight_one(model: Any) -> None:
    rng = np.random.default_rng(0)
    weights = rng.choice([0.04, 1.0, 25.0], (120, 80))
    mean = np.add.outer(rng.standard_normal(120), rng.standard_normal(80))
    cells = Observations.from_dense(
        mean + 0.7 * rng.standard_normal((120, 80)) / np.sqrt(weights), weights=weights
    )
    noise = identifiability(model.fit(cells), [0] * 80, np.arange(80)).noise
    assert np.sqrt(np.mean(noise**2)) == pytest.approx(0.7, rel=0.15)
    plain = identifiability(model.fit(cells.with_weights(None)), [0] * 80, np.arange(80)).noise
    assert np.sqrt(np.mean(plain**2)) > 1.2  # the noisiest third decides


def test_curvature_counts_weights() -> None:
    cells = cells_of("values")
    model = unseen.BiasModel(reg=(2.0, 3.0)).fit(cells.with_weights(np.full(cells.nnz, 4.0)))
    found = spread_of(model).curvature.leverage(np.array([0]), np.array([1]))
    row, col = 4.0 * np.diff(cells.indptr)[0] + 2.0, 4.0 * np.diff(cells.csc.indptr)[1] + 3.0
    np.testing.assert_allclose(found, 1.0 / row + 1.0 / col)


def test_cells_of_weight_zero_connect_nothing() -> None:
    cells = Observations.from_triples([0, 0, 1, 1], [0, 1, 1, 2], [1.0, 2.0, 3.0, 4.0], weights=[1, 1, 0, 2])
    blocks = find_blocks(cells)
    assert (blocks.row_block.tolist(), blocks.col_block.tolist()) == ([0, 1], [0, 0, 1])
    assert diagnose(cells, rank=1).whole.n_cells == 3


def test_links_are_compared_without_weights() -> None:
    graph = np.triu(np.random.default_rng(0).random((20, 20)) < 0.3, 1)
    cells = Observations.from_dense(np.where(graph | graph.T, 1.0, np.nan))
    with pytest.raises(InvalidDataError, match="links have no weights"):
        compare(cells.with_weights(np.ones(cells.nnz)), task="links", methods=["katz"], repeats=1)


@pytest.mark.parametrize(
    "model",
    [
        unseen.BayesianMF(2, n_samples=6, burn_in=4, random_state=0),
        unseen.ItemNeighbors(5),
        unseen.SpectralFilter(3, random_state=0),
    ],
    ids=sorted(ELSEWHERE),
)
def test_a_weight_of_zero_is_a_cell_that_is_not_there(model: Any) -> None:
    positive = not isinstance(model, unseen.BayesianMF)
    cells = cells_of("BiasMC" if positive else "BiasModel")
    gone = np.random.default_rng(3).random(cells.nnz) < 0.2
    rows, cols = np.indices(cells.shape).reshape(2, -1)
    weighted = clone(model).fit(cells.with_weights(np.where(gone, 0.0, 1.0))).predict_entries(rows, cols)
    without = clone(model).fit(cells.select(~gone)).predict_entries(rows, cols)
    np.testing.assert_allclose(weighted, without, rtol=1e-6, atol=1e-8)
    everything = clone(model).fit(cells).predict_entries(rows, cols)
    assert np.abs(everything - without).max() > 1e-3
