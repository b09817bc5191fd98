"""Blocks: what they hold, what they touch, and the random numbers they draw."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from unseen.distributed import cluster_memory, local_memory
from unseen.distributed.blocks import (
    Triples,
    build_block,
    choose_bounds,
    group_by_block,
    histogram,
    outgoing,
    sources,
)
from unseen.distributed.results import merge_lists, top_of
from unseen.distributed.sizing import blocks_for, parse_bytes
from unseen.distributed.steps import Start
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.kernels import topk
from unseen.linalg import draws
from unseen.linalg.draws import standard_normal


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(1, 40), st.integers(1, 7))
def test_blocks_hold_every_cell_once(seed: int, n: int, m: int, n_blocks: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, n * m + 1))
    keys = rng.choice(n * m, count, replace=False)
    cells = Triples(keys // m, keys % m, rng.standard_normal(count))
    bounds = choose_bounds(histogram(cells.rows, n), n, n_blocks)
    assert bounds[0] == 0
    assert bounds[-1] == n
    assert (np.diff(bounds) > 0).all()
    ordered, cuts = group_by_block(cells, bounds)
    whole = np.zeros((n, m))
    for b in range(len(bounds) - 1):
        part = Triples(*(column[cuts[b] : cuts[b + 1]] for column in ordered if column is not None))
        block = build_block(part, int(bounds[b]), int(bounds[b + 1]), m, "mean", np.float64)
        assert (np.diff(block.touched) > 0).all()
        shape = (block.stop - block.start, max(len(block.touched), 1))
        local = sparse.csr_array((block.values, block.indices, block.indptr), shape=shape).tocoo()
        if block.n_cells:
            whole[local.coords[0] + block.start, block.touched[local.coords[1]]] += local.data
    expected = np.zeros((n, m))
    expected[cells.rows, cells.cols] = cells.values
    np.testing.assert_array_equal(whole, expected)


def test_blocks_hold_about_as_many_cells_as_each_other() -> None:
    rng = np.random.default_rng(0)
    rows = (1000 * rng.random(50_000) ** 3).astype(np.int64)
    bounds = choose_bounds(histogram(rows, 1000), 1000, 6)
    counts = np.histogram(rows, bounds)[0]
    assert counts.max() < 1.3 * counts.mean()
    # Negative control: blocks of equal length are not balanced.
    assert np.histogram(rows, 6, (0, 1000))[0].max() > 2 * counts.mean()


@pytest.mark.parametrize("n_other", [10, 10_000])
def test_outgoing_rows_put_together_are_the_touched_ones(n_other: int) -> None:
    rng = np.random.default_rng(1)
    cells = Triples(rng.integers(0, 5, 40), rng.integers(0, n_other, 40), None)
    block = build_block(cells, 0, 5, n_other, "mean", np.float32)
    bounds = np.array([0, n_other // 3, n_other // 2, n_other])
    factors = rng.standard_normal((n_other, 2))
    pieces = [factors[bounds[s] : bounds[s + 1]][outgoing(block.touched, bounds, s)] for s in range(3)]
    np.testing.assert_array_equal(np.concatenate(pieces), factors[block.touched])
    assert [len(piece) for piece in pieces] == np.diff(sources(block.touched, bounds)).tolist()


def test_repeated_cells_are_merged_as_in_memory() -> None:
    cells = Triples(np.array([0, 0, 1]), np.array([2, 2, 0]), np.array([1.0, 4.0, 7.0], dtype=np.float32))
    mean = build_block(cells, 0, 2, 3, "mean", np.float32)
    total = build_block(cells, 0, 2, 3, "sum", np.float32)
    assert mean.n_merged == total.n_merged == 1
    assert mean.values is not None
    assert total.values is not None
    assert mean.values.tolist() == [2.5, 7.0]
    assert total.values.tolist() == [5.0, 7.0]
    pairs = Triples(cells.rows, cells.cols, None)
    assert build_block(pairs, 0, 2, 3, "mean", np.float32).values is None
    counts = build_block(pairs, 0, 2, 3, "sum", np.float32).values
    assert counts is not None
    assert counts.tolist() == [2.0, 1.0]
    huge = Triples(cells.rows, cells.cols, np.full(3, 3e38, dtype=np.float32))
    with pytest.raises(InvalidDataError, match="overflowed"):
        build_block(huge, 0, 2, 3, "sum", np.float32)


@pytest.mark.parametrize("limit", [10, 10**6], ids=["many streams", "one stream"])
def test_blocks_draw_the_rows_of_the_start_in_memory(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(draws, "ONE_STREAM_ROWS", limit)
    monkeypatch.setattr("unseen.distributed.steps.ONE_STREAM_ROWS", limit)
    shape = (20_000, 3)
    one, other = np.random.default_rng(4), np.random.default_rng(4)
    whole = standard_normal(shape, np.float32, one)
    start = Start.taken_from(other, shape)
    for first, last in ((0, 8192), (5000, 17_000), (16_384, 20_000), (7, 8)):
        np.testing.assert_array_equal(start.rows(first, last, np.float32), whole[first:last])
    # Both generators have moved on by as much, so that the next factor is the same too.
    assert one.random() == other.random()
    assert not np.array_equal(start.rows(0, 5, np.float32), whole[1:6])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 12))
def test_lists_made_block_by_block_are_those_of_all_columns(seed: int, n_parts: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = rng.integers(-2, 3, (7, 2)).astype(float), rng.integers(-2, 3, (20, 2)).astype(float)
    seen = Triples(rng.integers(0, 7, 60), rng.integers(0, 20, 60), None)
    cells = build_block(seen, 0, 7, 20, "mean", np.float64)
    best = None
    bounds = np.linspace(0, 20, n_parts + 1).astype(int)
    for first, last in pairwise(bounds):
        best = top_of(left, right[first:last], int(first), cells, k, best)
    assert best is not None
    expected = topk(left, right, k, exclude=(cells.indptr.astype(np.int64), cells.touched[cells.indices]))
    np.testing.assert_array_equal(best[0], expected[0])
    np.testing.assert_array_equal(best[1], expected[1])


def test_ties_go_to_the_smaller_number() -> None:
    one = np.array([[5, -1]]), np.array([[1.0, np.nan]])
    other = np.array([[2, 9]]), np.array([[1.0, 0.5]])
    ids, scores = merge_lists(one, other)
    assert ids.tolist() == [[2, 5]]
    assert scores.tolist() == [[1.0, 1.0]]


def test_more_blocks_need_less_memory_until_factors_are_left() -> None:
    shape = (2_000_000, 1_000_000)
    peaks = [local_memory(200_000_000, shape, 32, b).peak for b in (1, 4, 16, 64)]
    assert peaks == sorted(peaks, reverse=True)
    n_blocks, need = blocks_for(4 << 30, 200_000_000, shape, 32)
    assert need.peak <= 4 << 30
    assert local_memory(200_000_000, shape, 32, n_blocks - 1).peak > 4 << 30
    with pytest.raises(ParameterError, match="too little"):
        blocks_for(1 << 30, 200_000_000, (20_000_000, 1_000_000), 64)
    assert cluster_memory(10**9, shape, 32, 64, 8).peak > cluster_memory(10**9, shape, 32, 64, 16).peak


@pytest.mark.parametrize(
    ("text", "size"), [("4GiB", 4 << 30), ("500 MB", 500_000_000), ("1.5k", 1500), (10, 10)]
)
def test_sizes_are_understood(text: str | int, size: int) -> None:
    assert parse_bytes("memory", text) == size


@pytest.mark.parametrize("text", ["much", "-3GB", "4 apples", 0, True])
def test_nonsense_is_no_size(text: object) -> None:
    with pytest.raises(ParameterError, match="memory must be a number of bytes"):
        parse_bytes("memory", text)
