"""Searches that give up early: the answer of the whole grid in fewer sweeps, and no leaks."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import unseen
from unseen import BiasModel, MatrixFactorization, Observations
from unseen.baselines import Popularity
from unseen.datasets import make_ratings
from unseen.exceptions import ParameterError
from unseen.model_selection import (
    GridSearch,
    HalvingSearch,
    KFoldEntries,
    OptunaSearch,
    Scorer,
    Split,
    _halving,
    get_scorer,
    split_entries,
)

GRID = {"rank": [2, 5], "reg": [0.5, 2.0, 8.0, 32.0, 500.0]}


@pytest.fixture(scope="module")
def cells() -> Observations:
    return make_ratings(200, 120, density=0.2, random_state=0).observations


def model(**options: Any) -> MatrixFactorization:
    return MatrixFactorization(center="biases", max_iter=27, tol=0.0, random_state=0, **options)


def test_halving_finds_what_the_grid_finds_in_fewer_sweeps(cells: Observations) -> None:
    split = split_entries(cells, random_state=0)
    grid = GridSearch(model(), GRID, cv=split).fit(cells)
    halving = HalvingSearch(model(), GRID, cv=split).fit(cells)
    assert halving.n_rungs_ == 3
    assert [sum(row["rung"] >= rung for row in halving.results_) for rung in range(3)] == [10, 3, 2]
    assert halving.best_score_ <= grid.best_score_ * 1.01
    # Of each rank one starts from nothing; the others start from the next larger penalty.
    assert halving.n_sweeps_ == (2 * 3 + 8 * 2) + 3 * 6 + 2 * 18 < 27 * 10 / 3
    # The refitted model is what its parameters give without any search.
    again = model(**halving.best_params_).fit(cells)
    assert np.array_equal(halving.best_estimator_.row_factors_, again.row_factors_)
    places = [row["place"] for row in halving.results_]
    assert sorted(places) == list(range(1, 11))


def test_models_without_sweeps_get_shares_of_the_cells(cells: Observations) -> None:
    seen: list[int] = []

    class Counting(BiasModel):
        def fit(self, X: Any, y: None = None, **features: Any) -> Counting:
            seen.append(Observations.from_any(X).nnz)
            return super().fit(X)

    grid = {"reg": [1e-3, 1.0, 1e6]}
    split = split_entries(cells, random_state=0)
    search = HalvingSearch(Counting(), grid, cv=split, refit=False).fit(cells)
    assert seen == [round(split.train.nnz / 3)] * 3 + [split.train.nnz] * 2
    assert search.best_params_ == {"reg": 1.0}


def test_results_are_the_same_at_any_number_of_threads(cells: Observations) -> None:
    grid = {"reg": [1.0, 10.0, 100.0]}
    found = [HalvingSearch(model(), grid, cv=2, n_jobs=n_jobs).fit(cells) for n_jobs in (1, 2)]
    assert found[0].best_params_ == found[1].best_params_
    assert found[0].results_.column("score") == found[1].results_.column("score")


def test_time_ends_a_search_with_what_was_reached(cells: Observations) -> None:
    search = HalvingSearch(model(), GRID, cv=2, timeout=1e-6).fit(cells)
    reached = [row for row in search.results_ if np.isfinite(row["score"])]
    assert len(reached) == 1
    assert search.best_params_ == reached[0]["params"]
    assert search.n_rungs_ == 3
    late = [row["error"] for row in search.results_ if row is not reached[0]]
    assert all(error.startswith("TimeoutError") for error in late)
    unhurried = HalvingSearch(model(), GRID, cv=2, timeout=600).fit(cells)
    assert unhurried.best_params_ == HalvingSearch(model(), GRID, cv=2).fit(cells).best_params_


def what_is_used(search: HalvingSearch, cells: Observations, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Training and held-out cells of each fit of a search."""
    used: list[Any] = []
    inner = get_scorer(search.scoring)

    def look(fitted: Any, split: Split) -> float:
        used.append((fitted.trained, split))
        return inner(fitted, split)

    class Watched(MatrixFactorization):
        def fit(self, X: Any, y: None = None, **features: Any) -> Watched:
            self.trained = X
            return super().fit(X, **features)

    search.set_params(
        estimator=Watched(**search.estimator.get_params()),
        scoring=Scorer("seen", look, inner.greater_is_better, inner.compares_values),
    ).fit(cells)
    return used


def test_lists_are_judged_by_some_rows_until_the_last_rung(
    cells: Observations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_halving, "LEAST_ROWS", 10)
    split = split_entries(cells, random_state=0)
    options: dict[str, Any] = {"cv": split, "refit": False}
    used = what_is_used(HalvingSearch(model(), GRID, scoring="ndcg@5", **options), cells, monkeypatch)
    rows = [set(part.test.rows.tolist()) for _, part in used]
    all_rows = set(split.test.rows.tolist())
    assert [len(judged) for judged in rows] == [
        *[ceil(len(all_rows) / 9)] * 10, *[ceil(len(all_rows) / 3)] * 3, *[len(all_rows)] * 2
    ]  # fmt: skip
    assert rows[0] < rows[10] < rows[13] == all_rows
    for (
        trained,
        part,
    ) in used:  # few cells: all of them are trained on, and rows have all their held-out cells
        assert trained.nnz == split.train.nnz
        judged = np.isin(split.test.rows, part.test.rows)
        assert part.test.nnz == judged.sum()
    # Errors of values cost little, so all held-out cells are looked at.
    used = what_is_used(HalvingSearch(model(), GRID, scoring="rmse", **options), cells, monkeypatch)
    assert {part.test.nnz for _, part in used} == {split.test.nnz}


def test_many_cells_are_trained_on_by_rows(cells: Observations, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_halving, "LEAST_ROWS", 5)
    monkeypatch.setattr(_halving, "LEAST_CELLS", 100)
    split = split_entries(cells, random_state=0)
    for scoring in ("ndcg@5", "rmse"):
        search = HalvingSearch(model(), GRID, scoring=scoring, cv=split, refit=False)
        used = what_is_used(search, cells, monkeypatch)
        rows = [set(trained.rows.tolist()) for trained, _ in used]
        assert [len(trained) for trained in rows] == [23] * 10 + [67] * 3 + [200] * 2
        assert rows[0] < rows[10] < rows[13]
        for trained, part in used:
            # Rows are whole, and none is judged whose cells were left out.
            assert trained.nnz == np.isin(split.train.rows, trained.rows).sum()
            assert set(part.test.rows.tolist()) <= set(trained.rows.tolist())
            assert trained.shape == cells.shape
    graph = Observations.from_any(sparse.csr_array(sparse.random_array((60, 60), density=0.2, rng=0)))
    both = Observations.from_any(graph.csr + graph.csr.T)
    parts = split_entries(both, symmetric=True, random_state=0)
    used = what_is_used(HalvingSearch(model(), GRID, cv=parts, refit=False), both, monkeypatch)
    assert {trained.nnz for trained, _ in used} == {parts.train.nnz}  # half of a graph is no graph


class Memoriser(Popularity):
    """Tells when it is fitted to a cell that it will be judged on."""

    forbidden: set[tuple[int, int]] = set()
    leaks = 0

    def fit(self, X: Any, y: None = None, **features: Any) -> Memoriser:
        cells = Observations.from_any(X)
        got = set(zip(cells.rows.tolist(), cells.indices.tolist(), strict=True))
        type(self).leaks += bool(got & self.forbidden)
        return super().fit(X)


@pytest.mark.parametrize("search", ["halving", "optuna"])
def test_held_out_cells_are_in_no_fit_of_the_search(cells: Observations, search: str) -> None:
    split = split_entries(cells, random_state=0)
    Memoriser.forbidden = set(zip(split.test.rows.tolist(), split.test.indices.tolist(), strict=True))
    Memoriser.leaks = 0

    class Tunable(Memoriser):
        def __init__(self, level: float = 1.0) -> None:
            self.level = level

    if search == "halving":
        made: Any = HalvingSearch(Tunable(), {"level": [1.0, 2.0, 3.0]}, cv=split, refit=False)
    else:
        pytest.importorskip("optuna")
        made = OptunaSearch(Tunable(), {"level": (1.0, 3.0)}, n_trials=3, cv=split, refit=False)
    made.fit(cells)
    assert Tunable.leaks == 0
    Tunable().fit(cells)  # the planted leak is noticed
    assert Tunable.leaks == 1


def test_leaking_splits_are_refused(cells: Observations) -> None:
    train, _ = split_entries(cells, random_state=0)
    for made in (
        HalvingSearch(model(), GRID, cv=[(cells, train)]),
        OptunaSearch(model(), {"reg": (0.1, 10.0)}, n_trials=2, cv=[(cells, train)]),
    ):
        with pytest.raises(ValueError, match="leaks"):
            made.fit(cells)


def test_optuna(cells: Observations, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    split = split_entries(cells, random_state=0)
    space = {"rank": (1, 8), "reg": (0.1, 1000.0), "center": ["biases", "mean"]}
    search = OptunaSearch(model(reg=5.0), space, n_trials=12, cv=split).fit(cells)
    again = OptunaSearch(model(reg=5.0), space, n_trials=12, cv=split).fit(cells)
    assert search.best_params_ == again.best_params_
    # Its own settings are the first trial, so nothing worse can be chosen.
    assert search.results_[0]["params"]["reg"] == 5.0
    assert search.best_score_ <= search.results_[0]["score"]
    assert any(row["pruned"] for row in search.results_)
    assert search.n_sweeps_ < 12 * 27
    assert not search.results_[search.best_index_]["pruned"]
    search.save(tmp_path / "model")
    assert unseen.load(tmp_path / "model").reg == search.best_params_["reg"]


def test_a_timeout_ends_the_trials(cells: Observations) -> None:
    pytest.importorskip("optuna")
    search = OptunaSearch(model(), {"reg": (0.1, 10.0)}, timeout=1e-3, cv=2).fit(cells)
    assert len(search.results_) == 1


def test_wrong_arguments_are_named(cells: Observations) -> None:
    for made, word in (
        (HalvingSearch(model(), GRID, factor=1), "factor"),
        (HalvingSearch(BiasModel(), {"reg": [1.0, 2.0]}, resource="cells", cv=KFoldEntries(2)), None),
        (HalvingSearch(Popularity(), [{}], resource="sweeps"), "resource"),
        (HalvingSearch(model(), {"size": [1]}), "size"),
        (HalvingSearch(model(), GRID, resource="time"), "resource"),
        (OptunaSearch(model(), {"size": (1, 2)}), "size"),
        (OptunaSearch(model(), {"reg": (3.0, 1.0)}), "reg"),
        (OptunaSearch(model(), {}), "space"),
        (OptunaSearch(model(), {"reg": (0.1, 1.0)}, n_trials=0), "n_trials"),
    ):
        if word is None:
            made.fit(cells)
            continue
        with pytest.raises(ParameterError, match=word):
            made.fit(cells)
