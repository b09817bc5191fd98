"""Experiments of the mixed model and of AMF run whole, on small stand-ins for the real matrices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from papers import (
    amf_best,
    amf_methods,
    amf_parameters,
    mixed_choice,
    mixed_cold,
    mixed_drugs,
    mixed_generated,
    mixed_support,
    mixed_synthetic,
    spread,
)
from papers.amf_methods import Mean, error
from papers.catalogue import EXPERIMENTS
from papers.experiment import Verdict
from papers.mixed_choice import split
from papers.mixed_cold import Side
from papers.mixed_generated import interactions, support
from papers.runner import read, run
from unseen import Observations
from unseen.data import Vocabulary
from unseen.datasets import MatrixData

NAMES = [name for name, experiment in EXPERIMENTS.items() if experiment.paper in ("mixed", "amf")]
SHAPE = (60, 50)


def stand_in() -> MatrixData:
    """Ratings with a little structure, and all that the loaders of real matrices give."""
    rng = np.random.default_rng(0)
    n, m = SHAPE
    users, movies = rng.standard_normal((n, 3)), rng.standard_normal((m, 4))
    score = 3 + users[:, :1] + movies[:, 0] + users @ rng.standard_normal((3, 4)) @ movies.T / 3
    rows, cols = np.nonzero(rng.random(SHAPE) < 0.4)
    values = np.clip(np.round(score[rows, cols] + rng.standard_normal(rows.size)), 1, 5)
    cells = Observations.from_triples(rows, cols, values, shape=SHAPE)
    zones = {"user_zone": rows % 2, "item_zone": cols % 2, "fold": rng.integers(1, 6, rows.size)}
    flags = (rng.random((m, 6)) < 0.4).astype(float)
    features = sparse.csr_array(np.hstack([movies[:, :2], flags]))
    return MatrixData(cells, row_features=users, col_features=features.toarray(), cells=zones)


def one_candidate(few: bool = False) -> dict[str, Any]:
    """One setting of each method, and few sweeps."""
    return {
        name: [models[0].set_params(max_iter=5)] for name, models in mixed_generated.candidates(few).items()
    }


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every loader gives the stand-in."""
    data = stand_in()
    lines = MatrixData(
        data.observations.with_ids(
            Vocabulary(np.arange(SHAPE[0])), Vocabulary(np.array([f"Drug{j}" for j in range(SHAPE[1])]))
        ),
        row_features=np.random.default_rng(1).random((SHAPE[0], 20)),
    )
    mixed_choice.ratings.cache_clear()
    amf_best.data.cache_clear()
    monkeypatch.setattr(mixed_choice, "SMALL", (50, 40))
    monkeypatch.setattr(mixed_generated, "SHAPE", (25, 30))
    for module in (mixed_generated, mixed_synthetic):
        monkeypatch.setattr(module, "SIZES", {"sim 1": (3, 4, 0), "sim 3": (4, 5, 1)})
    monkeypatch.setattr(mixed_support, "N_FEW", 200)
    monkeypatch.setattr(mixed_choice, "WALKS", {name: walk[:2] for name, walk in mixed_choice.WALKS.items()})
    for module in (mixed_synthetic, mixed_support, mixed_drugs):
        monkeypatch.setattr(module, "candidates", one_candidate)
    monkeypatch.setattr(amf_parameters, "BLOCK", (20, 15))
    monkeypatch.setattr(amf_parameters, "N_TRAIN", 60)
    monkeypatch.setattr(mixed_drugs, "load_nci_dream", lambda: lines)
    for module in (mixed_choice, amf_parameters, spread):
        monkeypatch.setattr(module, "load_ml100k", lambda: data)
    monkeypatch.setattr(spread, "load_yelp_3zones", lambda: data)
    monkeypatch.setattr(amf_best, "load_yelp2013", lambda: data)
    for name in list(amf_methods.LOADERS):
        monkeypatch.setitem(amf_methods.LOADERS, name, lambda: data)
    yield
    mixed_choice.ratings.cache_clear()
    amf_best.data.cache_clear()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", NAMES)
def test_a_quick_run_gives_tables_verdicts_and_figures(name: str, tmp_path: Path) -> None:
    outcome = run(EXPERIMENTS[name], tmp_path, quick=True)
    assert outcome.rows
    assert {claim.verdict for claim in outcome.claims()} <= set(Verdict)
    for table in outcome.tables().values():
        assert table.lines
        assert all(len(line) == len(table.head) for line in table.lines)
    for figure, caption in outcome.figures():
        assert caption
        assert all(axes.has_data() for axes in figure.axes if axes.axison)
    stored = read(EXPERIMENTS[name], tmp_path)
    assert stored.tables() == outcome.tables()  # nothing is lost in the file


def test_removed_cells_play_no_part_in_a_choice() -> None:
    """Other values of removed cells change neither settings nor model."""
    data = stand_in()
    ratings = mixed_choice.Ratings(
        data.observations, np.asarray(data.row_features), np.asarray(data.col_features), data.cells["fold"]
    )
    remain, removed = split(ratings.observations, 0.2, 0)
    assert remain.nnz + removed.nnz == ratings.observations.nnz
    assert not set(zip(remain.rows, remain.indices, strict=True)) & set(
        zip(removed.rows, removed.indices, strict=True)
    )

    def chosen(values: Any) -> Any:
        other = ratings._replace(observations=ratings.observations.with_values(values))
        run = mixed_choice.Run(split(other.observations, 0.2, 0)[0], other)
        return run.settle({"family": "maxide", "center": "mean", "intercept": True})

    values = ratings.observations.values
    held = np.ones(values.size, dtype=bool)
    order = np.random.default_rng(0).permutation(values.size)
    held[order[round(0.2 * values.size) :]] = False
    assert chosen(np.where(held, 1.0, values)) == chosen(values)
    assert chosen(np.where(held, values, np.roll(values, 1))) != chosen(values)  # the check can fail


def test_cold_rows_are_not_learned_from() -> None:
    data = stand_in()
    ratings = mixed_choice.Ratings(
        data.observations, np.asarray(data.row_features), np.asarray(data.col_features), data.cells["fold"]
    )
    for side in ("row", "col"):
        cold = Side(ratings, side, 0)
        assert sorted(np.unique(cold.role)) == [0, 1, 2]
        model = mixed_cold.candidates()["Maxide"][0]
        before = cold.predict(model, [0, 1], 2)
        cold.values = np.where(cold.role[cold.rows] == 2, 5.0 - cold.values, cold.values)
        np.testing.assert_array_equal(cold.predict(model, [0, 1], 2), before)
        cold.values = np.where(cold.role[cold.rows] == 1, 5.0 - cold.values, cold.values)
        assert np.abs(cold.predict(model, [0, 1], 2) - before).max() > 1e-3


def test_interactions_are_read_from_predictions() -> None:
    data = mixed_generated.generate("sim 1", 0)
    _, cells = mixed_generated.hide(data.target, 700, 0)
    given = {"row_features": data.row_features, "col_features": data.col_features}
    model = mixed_generated.candidates()["Maxide"][0].fit(cells, **given)
    found = interactions(model, 15, 20)
    np.testing.assert_allclose(found, model.interactions_.matrix[:-1, :-1], atol=1e-6)


def test_support_counts_hits() -> None:
    found = support(np.array([[2.0, 0.0], [0.1, -1.0]]), np.array([[1.0, 1.0], [0.0, 3.0]]))
    assert found["nonzero_precision"] == pytest.approx(2 / 3)
    assert found["nonzero_recall"] == pytest.approx(2 / 3)
    assert found["precision"] == 1.0


def test_errors_are_cut_to_the_scale() -> None:
    cells = Observations.from_triples([0, 1], [0, 0], [1.0, 5.0], shape=(2, 1))
    model = Mean().fit(cells.with_values(np.array([9.0, 9.0])))
    assert error(model, cells, (1.0, 5.0)) == pytest.approx(np.sqrt(8.0))
