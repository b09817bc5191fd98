"""Filters of positives are built from training cells alone, wherever they are fitted for a user."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from unseen import Blend, ItemNeighbors, Observations, SpectralFilter
from unseen.blends import CellBlend
from unseen.blends.weights import Measure
from unseen.comparison import compare
from unseen.comparison.tasks import CellTask
from unseen.datasets import make_positives
from unseen.exceptions import InvalidDataError
from unseen.model_selection import (
    GridSearch,
    HalvingSearch,
    OptunaSearch,
    Split,
    _halving,
    cross_validate,
    get_scorer,
    make_scorer,
    split_entries,
)

Pairs = set[tuple[int, int]]


def pairs(cells: Any) -> Pairs:
    rows, cols = cells.nonzero()
    return set(zip(rows.tolist(), cols.tolist(), strict=True))


def leaking_cells(model: Any, split: Split) -> float:
    """How many held-out cells the scored filter is built from."""
    models = getattr(model, "models_", [model])
    return float(sum(len(pairs(one.positives_) & pairs(split.test.csr)) for one in models))


@pytest.fixture(scope="module")
def cells() -> Observations:
    return make_positives(80, 50, n_groups=3, inside=0.8, rho=0.4, random_state=0).observations


MODELS = {
    "filter": (SpectralFilter(4, random_state=0), {"low_pass": [0.0, 0.1, 0.3]}),
    "neighbours": (ItemNeighbors(5), {"n_neighbors": [3, 5, 9]}),
    "blend": (
        Blend([SpectralFilter(4, random_state=0), ItemNeighbors(5)], random_state=0),
        {"scoring": ["ndcg@5"]},
    ),
}
LEAKING = make_scorer(leaking_cells, greater_is_better=False)


@pytest.mark.parametrize("name", MODELS)
def test_no_held_out_cell_is_in_a_filter(cells: Observations, name: str) -> None:
    model, _ = MODELS[name]
    assert cross_validate(model, cells, cv=3, scoring=LEAKING).column("leaking_cells") == [0.0] * 3
    # The planted leak: a filter of all cells is noticed, and a split that would make one is refused.
    split = split_entries(cells, random_state=0)
    assert leaking_cells(model.fit(cells), split) >= split.test.nnz
    with pytest.raises(InvalidDataError, match="leaks"):
        cross_validate(model, cells, cv=Split(cells, split.test), scoring=LEAKING)


def searches(model: Any, grid: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Every way to choose settings, by the module that fits candidates for it."""
    options = {"cv": 2, "scoring": LEAKING, "refit": False} | options
    return {
        "_search": GridSearch(model, grid, **options),
        "_halving": HalvingSearch(model, grid, **options),
        "_optuna": OptunaSearch(model, grid, n_trials=2, **options),
    }


@pytest.mark.parametrize("by", ["_search", "_halving", "_optuna"])
@pytest.mark.parametrize("name", MODELS)
def test_no_search_builds_a_filter_from_held_out_cells(
    cells: Observations, name: str, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by == "_optuna":
        pytest.importorskip("optuna")
    monkeypatch.setattr(_halving, "LEAST_ROWS", 10)
    model, grid = MODELS[name]
    found = searches(model, grid)[by].fit(cells)
    assert set(found.results_.column("score")) == {0.0}
    split = split_entries(cells, random_state=0)
    with pytest.raises(InvalidDataError, match="leaks"):
        searches(model, grid, cv=Split(cells, split.test))[by].fit(cells)
    # The planted leak: a search that fits candidates to all cells is noticed.
    module = importlib.import_module(f"unseen.model_selection.{by}")
    honest = module.fit_on
    monkeypatch.setattr(module, "fit_on", lambda fitted, _, features: honest(fitted, cells, features))
    leaking = searches(model, grid)[by].fit(cells)
    assert min(leaking.results_.column("score")) > 0


def test_the_weights_of_a_blend_come_from_cells_that_its_filters_have_not_seen(
    cells: Observations, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[float] = []
    inner = CellBlend._for_lists

    def watched(self: CellBlend, models: list[Any], split: Split, *rest: Any) -> Any:
        judged.extend(leaking_cells(one, split) for one in models)
        return inner(self, models, split, *rest)

    monkeypatch.setattr(CellBlend, "_for_lists", watched)
    blend = Blend([SpectralFilter(4, random_state=0), ItemNeighbors(5)], random_state=0)
    for train in (cells, split_entries(cells, random_state=1).train):
        blend.fit(train)
    assert judged == [0.0] * 4
    # The planted leak: filters of all cells, judged on some of them.
    split = split_entries(cells, random_state=0)
    watched(blend, blend.models_, split, *(Measure.of("ndcg@5"), np.random.default_rng(0)))
    assert min(judged[4:]) > 0


def test_what_is_compared_is_built_from_training_cells(
    cells: Observations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CellTask.MEASURES, "positive", [LEAKING, get_scorer("ndcg@5")])
    found = compare(
        cells, task="positive", methods=["spectral-filter", "item-neighbors"], repeats=2, n_jobs=1
    )
    filters = [entry for entry in found.entries if entry.method in ("spectral-filter", "item-neighbors")]
    assert len(filters) == 2
    for entry in filters:
        assert entry.error is None
        assert entry.scores["leaking_cells"] == [0.0, 0.0]
