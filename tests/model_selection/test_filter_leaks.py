"""Filters of positives are built from training cells alone, wherever they are fitted for a user."""

from __future__ import annotations

from typing import Any

import pytest

from unseen import Blend, ItemNeighbors, Observations, SpectralFilter
from unseen.comparison import compare
from unseen.comparison.tasks import CellTask
from unseen.datasets import make_positives
from unseen.exceptions import InvalidDataError
from unseen.model_selection import (
    GridSearch,
    HalvingSearch,
    Split,
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
    model, grid = MODELS[name]
    assert cross_validate(model, cells, cv=3, scoring=LEAKING).column("leaking_cells") == [0.0] * 3
    for search in (GridSearch, HalvingSearch):
        found = search(model, grid, cv=2, scoring=LEAKING, refit=False).fit(cells)
        assert found.results_.column("score") == [0.0] * len(found.results_)
    # The planted leak: a filter of all cells is noticed, and a split that would make one is refused.
    split = split_entries(cells, random_state=0)
    assert leaking_cells(model.fit(cells), split) >= split.test.nnz
    with pytest.raises(InvalidDataError, match="leaks"):
        cross_validate(model, cells, cv=Split(cells, split.test), scoring=LEAKING)


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
