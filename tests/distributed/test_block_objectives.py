"""Whatever changes the objective in memory changes it by blocks in the same way; all else is in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

pytest.importorskip("pyarrow", reason="files of cells are read by pyarrow")
pytest.importorskip("fsspec", reason="files are found by fsspec")

from block_data import N_COLS, N_ROWS, NAMES, PAIRS, disk, frame, in_memory, side_features

import unseen
from unseen import (
    GIMC,
    IMC,
    AugmentedMF,
    BiasIMC,
    BiasMC,
    Completion,
    Fourier,
    Given,
    Identity,
    LowRank,
    MatrixFactorization,
    Observations,
    Ridge,
    Term,
)
from unseen.distributed.blocks import Triples, build_block
from unseen.distributed.refusals import REFUSED
from unseen.exceptions import (
    DataWarning,
    InvalidDataError,
    ModelFileError,
    ParameterError,
    UnsupportedComposition,
)
from unseen.losses import Background, Biased, Logistic, Squared
from unseen.regularisers import L1
from unseen.solvers import ALS, AlternatingCG

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

FEW: dict[str, Any] = {"max_iter": 4, "tol": 0.0, "random_state": 1}


def composed(solver: Any, reg: Any = None, loss: Any = None, row_map: Any = None, **options: Any) -> Any:
    term = Term(row_map or Identity(), Identity(), LowRank(3), reg or Ridge(0.7))
    return Completion([term], loss=loss or Squared(), solver=solver, **{**FEW, **options})


def weighted_frame() -> pd.DataFrame:
    data = frame()
    weights = np.random.default_rng(5).uniform(0.0, 3.0, len(data))
    weights[::50] = 0.0
    return data.assign(trust=weights)


def popular(count: int, seed: int) -> Any:
    return np.random.default_rng(seed).uniform(0.2, 2.0, count)


BACKGROUND = Squared(2.0, Background(0.3, row_weights=popular(N_ROWS, 0), col_weights=popular(N_COLS, 1)))
OBJECTIVES = {
    "mf": (MatrixFactorization(4, reg=1.0, center="none", **FEW), NAMES, ()),
    "mf-mean": (MatrixFactorization(4, reg=1.0, center="mean", **FEW), NAMES, ()),
    "mf-biases": (MatrixFactorization(4, reg=1.0, center="biases", bias_reg=(2.0, 7.0), **FEW), NAMES, ()),
    "amf-biases": (AugmentedMF(4, reg=0.02, cross_component="model", solver="als", **FEW), NAMES, ()),
    "amf": (AugmentedMF(4, reg=0.02, center="none", cross_component="model", solver="als", **FEW), NAMES, ()),
    "bias-mc": (BiasMC(4, alpha=0.9, reg=0.5, cg_steps=None, **FEW), PAIRS, ()),
    "bias-mc-prior": (BiasMC(4, class_prior=0.5, reg=0.5, cg_steps=2, **FEW), PAIRS, ()),
    "imc-biases": (IMC(3, reg=0.3, center="biases", **FEW), NAMES, ("row", "col")),
    "bias-imc": (BiasIMC(3, alpha=0.9, reg=0.3, cg_steps=6, **FEW), PAIRS, ("col",)),
    "degrees": (composed(ALS(), Ridge(0.1, degree_scaling=1.0)), NAMES, ()),
    "degrees-cg": (composed(ALS(method="cg"), Ridge(0.1, degree_scaling=0.5)), NAMES, ()),
    "degrees-together": (composed(AlternatingCG(), Ridge(0.1, degree_scaling=1.0)), NAMES, ()),
    "degrees-features": (
        composed(AlternatingCG(), Ridge(0.1, degree_scaling=1.0), row_map=Given(standardize=True)),
        NAMES,
        ("row",),
    ),
    "popularity": (composed(ALS(), loss=BACKGROUND), NAMES, ()),
    "popularity-together": (composed(AlternatingCG(), loss=BACKGROUND, center="mean"), NAMES, ()),
    "popularity-features": (
        composed(AlternatingCG(), loss=BACKGROUND, row_map=Given(standardize=True)),
        NAMES,
        ("row",),
    ),
    "both": (composed(ALS(), Ridge(0.1, degree_scaling=1.0), loss=BACKGROUND), NAMES, ()),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_objective_and_the_predictions_are_those_of_a_fit_in_memory(name: str, weighted: bool) -> None:
    model, names, sides = OBJECTIVES[name]
    data = weighted_frame()
    features = {key: table for key, table in side_features(data).items() if key[:3] in sides}
    names = {**names, "weight": "trust"} if weighted else names
    reference = in_memory(model, data, names, features)
    fit = disk(model).fit(data, **names, **features)
    ours, theirs = ([entry["objective"] for entry in found.history_] for found in (fit, reference))
    np.testing.assert_allclose(ours, theirs, rtol=1e-8)
    local = fit.to_local()
    fit.close()
    rows, cols = np.arange(N_ROWS), np.arange(N_ROWS) % N_COLS
    expected = reference.predict_entries(rows, cols, positions=True)
    np.testing.assert_allclose(local.predict_entries(rows, cols, positions=True), expected, atol=1e-6)
    assert np.abs(expected - expected.mean()).max() > 0.01  # there is something to get wrong
    if not sides and name not in ("popularity", "popularity-together", "both"):  # rows have weights there
        cells = Observations.from_frame(data, **names)
        folded = [found.fold_in(cells, positions=True) @ found.col_factors_.T for found in (local, reference)]
        np.testing.assert_allclose(*folded, atol=1e-6)  # factors may be turned


@pytest.mark.parametrize("name", ["mf", "mf-biases", "bias-imc", "degrees", "popularity"])
def test_weights_and_options_are_not_forgotten(name: str) -> None:
    """Negative controls: without weights, degrees, background or biases the objective is another one."""
    model, names, sides = OBJECTIVES[name]
    data = weighted_frame()
    features = {key: table for key, table in side_features(data).items() if key[:3] in sides}
    found = disk(model).fit(data, **names, weight="trust", **features)
    others = [in_memory(model, data, names, features)]
    if name in ("degrees", "popularity"):
        others.append(in_memory(composed(ALS()), data, {**names, "weight": "trust"}))
    for other in others:
        share = other.history_[-1]["objective"] / found.history_[-1]["objective"]
        assert abs(share - 1.0) > 1e-3
    found.close()


def test_repeated_cells_add_their_weights_and_average_their_values_by_them() -> None:
    numbers = np.array([1.0, 4.0, 7.0]), np.array([3.0, 1.0, 2.0])
    cells = Triples(np.array([0, 0, 1]), np.array([2, 2, 0]), *numbers)
    block = build_block(cells, 0, 2, 3, "mean", np.float32)
    assert block.values is not None
    assert block.weights is not None
    assert block.values.tolist() == [1.75, 7.0]
    assert block.weights.tolist() == [4.0, 2.0]
    assert block.degrees.tolist() == [4.0, 2.0]
    zero = build_block(cells._replace(weights=np.zeros(3)), 0, 2, 3, "mean", np.float32)
    assert zero.values is not None
    assert zero.values.tolist() == [2.5, 7.0]
    data = pd.concat([weighted_frame(), weighted_frame().iloc[:9].assign(stars=1.0, trust=0.5)])
    model = OBJECTIVES["mf-mean"][0]
    with pytest.warns(DataWarning, match="9 of 4009 cells repeat"):
        fit = disk(model).fit(data, **NAMES, weight="trust")
    with pytest.warns(DataWarning):
        expected = in_memory(model, data, {**NAMES, "weight": "trust"})
    assert fit.history_[-1]["objective"] == pytest.approx(expected.history_[-1]["objective"], rel=1e-9)
    fit.close()


def test_bad_weights_are_named() -> None:
    data, model = weighted_frame(), OBJECTIVES["mf"][0]
    for value, message in (
        (-1.0, r"'trust' is -1\.0 in line 7; .* a weight is 0 or larger"),
        (np.inf, "is inf"),
    ):
        wrong = data.assign(trust=np.where(np.arange(len(data)) == 7, value, data.trust))
        with pytest.raises(InvalidDataError, match=message):
            disk(model).fit(wrong, **NAMES, weight="trust")
    with pytest.raises(InvalidDataError, match="weight='faith' is not a column"):
        disk(model).fit(data, **NAMES, weight="faith")
    with pytest.raises(ParameterError, match="different columns"):
        disk(model).fit(data, **NAMES, weight="stars")
    short = Squared(background=Background(0.3, col_weights=np.ones(7)))
    with pytest.raises(InvalidDataError, match="7 col_weights; the target has 80 cols"):
        disk(composed(ALS(), loss=short)).fit(data, **NAMES)


@pytest.mark.parametrize("name", ["both", "mf-biases"])
def test_checkpoints_know_weights_and_go_on(name: str, tmp_path: Path) -> None:
    model, data, place = OBJECTIVES[name][0], weighted_frame(), str(tmp_path / "states")
    names = {**NAMES, "weight": "trust"}
    whole = disk(model).fit(data, **names)
    short = type(model)(**{**model.get_params(deep=False), "max_iter": 2})
    disk(short, checkpoint=place).fit(data, **names).close()
    rest = disk(model, checkpoint=place, resume=True).fit(data, **names)
    np.testing.assert_array_equal(rest.to_local().row_factors_, whole.to_local().row_factors_)
    with pytest.raises(ModelFileError, match=r"its (weights|mean) is"):
        disk(model, checkpoint=place, resume=True).fit(data.assign(trust=data.trust**2), **names)
    with pytest.raises(ModelFileError, match="of another fit: its "):
        disk(model, checkpoint=place, resume=True).fit(data, **NAMES)
    for fit in (whole, rest):
        fit.close()


def test_lists_and_factors_know_the_biases(tmp_path: Path) -> None:
    data = frame()
    fit = disk(OBJECTIVES["mf-biases"][0]).fit(data, **NAMES)
    local = fit.to_local()
    for side, expected in (("row", local.row_factors_), ("col", local.col_factors_)):
        fit.write_factors(str(tmp_path / side), side)
        written = np.stack(pd.read_parquet(tmp_path / side).factor.to_list())
        np.testing.assert_array_equal(written, expected)
    fit.recommend_all(str(tmp_path / "lists"), 4)
    lists = pd.read_parquet(tmp_path / "lists")
    ids, scores = local.recommend(
        np.arange(N_ROWS), 4, exclude=Observations.from_frame(data, **NAMES), positions=True
    )
    assert lists.item.tolist() == local.col_ids_[ids].ravel().tolist()
    np.testing.assert_allclose(lists.score, scores.ravel(), rtol=1e-9)
    fit.close()


def by_index(data: pd.DataFrame) -> pd.DataFrame:
    return data.assign(user=(data.user - 3) // 7, item=data["item"] // 11)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_sparse_features_stay_sparse(intercept: bool, standardize: bool) -> None:
    data = by_index(frame(text=False))
    features = sparse.random_array((N_ROWS, 40), density=0.1, rng=np.random.default_rng(0), format="csr")
    model = IMC(3, reg=0.3, center="none", standardize=standardize, intercept=intercept, **FEW)
    reference = unseen.IMC(**model.get_params()).fit(
        Observations.from_triples(data.user, data["item"], data.stars, (N_ROWS, N_COLS)),
        row_features=features,
    )
    options = {**NAMES, "shape": (N_ROWS, N_COLS)}
    fit = disk(model).fit(data, **options, row_features=features)
    held = fit._engine.held("row", 0, "design")
    assert sparse.issparse(held.base.matrix if standardize else held.matrix)
    np.testing.assert_allclose(
        [entry["objective"] for entry in fit.history_],
        [entry["objective"] for entry in reference.history_],
        rtol=1e-6,
    )
    dense = disk(model).fit(data, **options, row_features=features.toarray())
    assert dense.history_[-1]["objective"] == pytest.approx(fit.history_[-1]["objective"], rel=1e-6)
    for found in (fit, dense):
        found.close()


ROWS = "row_features"
EXAMPLES: dict[str, tuple[Any, bool]] = {
    "a model that is no composition (`BiasModel`, classifiers)": (unseen.BiasModel(), False),
    "`validation_fraction`": (MatrixFactorization(3, validation_fraction=0.1, reg=1.0, center="none"), False),
    "`warm_start=True`": (MatrixFactorization(3, warm_start=True, reg=1.0, center="none"), False),
    '`init` other than `"random"`': (BiasMC(3, alpha=0.9, init="svd", cg_steps=None), False),
    '`center="joint"` or `"informed"`': (MatrixFactorization(3, center="joint", reg=1.0), False),
    '`reg="auto"`': (MatrixFactorization(3, center="none"), False),
    "`ShiftMC`, `ShiftIMC`": (unseen.ShiftMC(3, rho=0.1), False),
    '`alpha="auto"` without `rho` or `class_prior`': (BiasMC(3, cg_steps=None), False),
    '`reg` as a share (`"0.1max"`)': (BiasMC(3, alpha=0.9, reg="0.1max", cg_steps=None), False),
    "`AugmentedMF` with an `augmentation` that is drawn": (
        AugmentedMF(3, reg=0.02, augmentation="hashed"),
        False,
    ),
    '`AugmentedMF(cross_component="baseline")`': (AugmentedMF(3, reg=0.02), False),
    "`AugmentedMF(eps_abs=)`": (AugmentedMF(3, reg=0.02, cross_component="model", eps_abs=0.1), False),
    "a solver that the data choose": (composed("auto"), False),
    "other solvers than ALS and AlternatingCG, and so learned maps, L1, bounds and full cores": (
        GIMC(3, reg=0.1, center="none"),
        True,
    ),
    "several terms, or a core that is not `LowRank`": (
        Completion([Term(core=LowRank(2)), Term(core=LowRank(3))], solver=ALS()),
        False,
    ),
    "a loss that is not quadratic, or blank cells that are pulled to another target than zero": (
        composed(ALS(), loss=Logistic()),
        False,
    ),
    "`center` with a loss that depends on the values themselves": (
        composed(ALS(), loss=Biased(0.9), center="mean"),
        False,
    ),
    "a penalty that is no ridge": (composed(ALS(), L1(0.1)), False),
    "`whiten=True`": (BiasIMC(3, alpha=0.9, reg=1.0, whiten=True), True),
    "other maps (`Fourier`, `Nystrom`, `Tanh`, `Standardized`, ...)": (
        composed(AlternatingCG(), row_map=Fourier(4)),
        True,
    ),
    "a map without the features that it needs": (composed(AlternatingCG(), row_map=Given()), False),
    "features for a side that takes none": (composed(AlternatingCG()), True),
}


@pytest.mark.parametrize("what", [*REFUSED, *(set(EXAMPLES) - set(REFUSED))])
def test_everything_in_the_table_is_refused_with_its_reason(what: str) -> None:
    model, wants_features = EXAMPLES[what]
    data = by_index(frame(text=False))
    given = {ROWS: np.eye(N_ROWS, 4)} if wants_features else {}
    with pytest.raises((ParameterError, UnsupportedComposition)) as refused:
        disk(model).fit(data, **NAMES, shape=(N_ROWS, N_COLS), **given)
    assert REFUSED[what].why in str(refused.value)
    assert type(refused.value) is REFUSED[what].error


def test_the_guide_shows_the_table() -> None:
    guide = Path(__file__).parents[2] / "docs" / "guide" / "distributed.md"
    lines = ["| asked for | why not |", "| --- | --- |"]
    lines += [f"| {what} | {refusal.why} |" for what, refusal in REFUSED.items()]
    assert "\n".join(lines) in guide.read_text()
