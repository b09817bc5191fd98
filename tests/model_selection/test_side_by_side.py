"""Folds in processes: the answers of threads, and one copy of the data for all."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.parallel import delayed

from unseen import MatrixFactorization, Observations
from unseen.datasets import make_ratings
from unseen.exceptions import ParameterError
from unseen.model_selection import (
    GridSearch,
    HalvingSearch,
    KFoldEntries,
    KFoldRows,
    Split,
    cross_validate,
    make_scorer,
    split_entries,
)
from unseen.model_selection._side_by_side import MappedSplit, opened, run_side_by_side, sent


@pytest.fixture(scope="module")
def cells() -> Observations:
    return make_ratings(100, 60, density=0.2, random_state=0).observations


def same(a: Observations, b: Observations) -> bool:
    return np.array_equal(a.values, b.values) and np.array_equal(a.indices, b.indices) and a.shape == b.shape


def test_a_split_arrives_as_it_was_in_a_bit_for_each_cell(cells: Observations) -> None:
    for folds in (KFoldEntries(3, random_state=0), KFoldRows(3, random_state=0)):
        for split in folds.split(cells):
            given = sent(split, cells, "processes")
            assert isinstance(given, MappedSplit)
            assert given.train.nbytes + given.test.nbytes <= cells.nnz // 4 + 2
            found = opened(given)
            assert same(found.train, split.train)
            assert same(found.test, split.test)
            assert found.rows is split.rows
            assert sent(split, cells, "threads") is split


def test_a_split_of_other_cells_or_values_goes_as_it_is(cells: Observations) -> None:
    train, test = split_entries(cells, random_state=0)
    doubled = Split(train.with_values(2 * train.values), test)
    weighted = Split(train.with_weights(np.full(train.nnz, 2.0)), test)
    elsewhere = Observations.from_sparse(sparse.csr_array(cells.csr[::-1]))
    foreign = Split(*split_entries(elsewhere, random_state=0))
    for split in (doubled, weighted, foreign):
        assert sent(split, cells, "processes") is split


def test_wrong_places_are_named(cells: Observations) -> None:
    with pytest.raises(ParameterError, match="prefer"):
        cross_validate(MatrixFactorization(2, reg=1.0), cells, cv=2, prefer="clouds")


def process_of(model: Any, split: Split) -> float:
    return float(os.getpid())


@pytest.mark.slow
def test_processes_find_what_threads_find(cells: Observations) -> None:
    model = MatrixFactorization(2, center="biases", max_iter=9, random_state=0)
    grid = {"reg": [1.0, 5.0, 30.0]}
    options: list[dict[str, Any]] = [{"n_jobs": 1}, {"n_jobs": 2, "prefer": "processes"}]
    scoring = ["rmse", make_scorer(process_of)]
    tables = [cross_validate(model, cells, cv=2, scoring=scoring, **given) for given in options]
    assert tables[0].column("rmse") == tables[1].column("rmse")
    pids = [table.column("process_of") for table in tables]
    assert pids[0] == [os.getpid()] * 2
    assert os.getpid() not in pids[1]
    for search in (GridSearch, HalvingSearch):
        found = [search(model, grid, cv=2, **given).fit(cells) for given in options]
        assert found[0].results_.column("fold_scores") == found[1].results_.column("fold_scores")
        assert found[0].best_params_ == found[1].best_params_


def mapped(array: Any) -> bool:
    while array is not None and not isinstance(array, np.memmap):
        array = array.base
    return array is not None


def seen_from_inside(given: MappedSplit) -> tuple[bool, int]:
    """Whether the cells are a map of a file, and the bytes that this process has for itself alone."""
    given.cells.values.sum(), given.cells.indices.sum()
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    own = next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))
    return mapped(given.cells.values) and mapped(given.cells.indices), 1024 * own


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory by process is of Linux")
def test_the_cells_are_in_memory_once() -> None:
    n = 2000
    full = sparse.csr_array(np.tri(n, n, -1) + 2.0)  # not symmetric
    found = []
    for cells in (Observations.from_sparse(full[:10]), Observations.from_sparse(full)):
        split = split_entries(cells, random_state=0)
        jobs = (delayed(seen_from_inside)(sent(split, cells, "processes")) for _ in range(2))
        found.append(list(run_side_by_side(jobs, 2, "processes")))
    assert all(is_map for is_map, _ in found[1])
    grown = max(own for _, own in found[1]) - min(own for _, own in found[0])
    data = n * n * (8 + 4)
    assert grown < data / 4  # the marks, a quarter of a byte a cell, and what else a process holds
    # A copy would be noticed: pickled as they are, the cells are as long as they are in memory.
    assert len(pickle.dumps(cells)) >= data
