"""Weights of cells: every public completer counts them in its objective or refuses them, none ignores them."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import unseen
from unseen import Observations, baselines, links
from unseen.estimators.base import Completer
from unseen.exceptions import ConvergenceWarning, DataWarning, InvalidDataError

SHORT = {"max_iter": 5, "random_state": 0, "n_jobs": 1}
VALUES = {
    "BiasModel": unseen.BiasModel(max_iter=5),
    "MatrixFactorization": unseen.MatrixFactorization(2, **SHORT),
    "MatrixFactorization-ccd": unseen.MatrixFactorization(2, solver="ccd", **SHORT),
    "MatrixFactorization-joint": unseen.MatrixFactorization(2, center="joint", **SHORT),
    "SoftImpute": unseen.SoftImpute(2.0, **SHORT),
    "Completion": unseen.Completion(**SHORT),
    "IMC": unseen.IMC(2, **SHORT),
    "GIMC": unseen.GIMC(2, **SHORT),
    "Maxide": unseen.Maxide(0.5, max_iter=5),
    "DirtyIMC": unseen.DirtyIMC(max_iter=5, n_jobs=1),
    "SparseBilinear": unseen.SparseBilinear(0.1, max_iter=5),
    "MixedLinear": unseen.MixedLinear(constraint="soft", max_iter=5),
    "AugmentedMF": unseen.AugmentedMF(2, **SHORT),
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
    "ShiftMC": unseen.ShiftMC(2, rho=0.5, **SHORT),
    "ShiftMC-box": unseen.ShiftMC(2, rho=0.5, bounds=(0.0, 1.0), **SHORT)
    if "bounds" in inspect.signature(unseen.ShiftMC).parameters
    else unseen.ShiftMC(2, rho=0.5, **SHORT),
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
    assert public_completers() <= covered, public_completers() - covered


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
    np.testing.assert_allclose(ones, plain, rtol=1e-9, atol=1e-9)
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
