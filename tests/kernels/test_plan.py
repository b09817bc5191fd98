"""How rows are dealt out on a device: every cell once, whatever the lengths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unseen import kernels
from unseen.kernels.plan import BIN_CELLS

LENGTHS = st.lists(st.one_of(st.integers(0, 12), st.sampled_from([511, 512, 513, 5000])), max_size=60)


def counted(plan, n_cells):
    """How often each cell is in the plan."""
    seen = np.zeros(n_cells, dtype=int)
    for one in plan.bins:
        for _, start, stop in one:
            seen[start:stop] += 1
    for _, start, stop in plan.chunks:
        seen[start:stop] += 1
    return seen


@given(LENGTHS, st.sampled_from([8, 64, 512]), st.sampled_from([7, 512]))
def test_every_cell_and_every_row_once(lengths, limit, chunk):
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    plan = kernels.plan(indptr, limit=limit, chunk=chunk)
    assert np.array_equal(counted(plan, indptr[-1]), np.ones(indptr[-1], dtype=int))
    rows = [row for one in plan.bins for row, _, _ in one] + plan.long_rows.tolist()
    assert sorted(rows) == list(range(len(lengths)))  # empty rows too: they are solved as well
    for one in plan.bins:
        assert all(stop - start <= one.most for _, start, stop in one)
    assert all(stop - start <= chunk for _, start, stop in plan.chunks)


@given(LENGTHS)
def test_chunks_of_a_row_follow_each_other(lengths):
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    plan = kernels.plan(indptr, limit=8, chunk=7)
    for place, row in enumerate(plan.long_rows):
        own = plan.chunks[plan.chunk_ptr[place] : plan.chunk_ptr[place + 1]]
        assert set(own[:, 0]) == {row}
        assert [own[0, 1], *own[:, 2]] == [*own[:, 1], own[-1, 2]]
        assert (own[0, 1], own[-1, 2]) == (indptr[row], indptr[row + 1])


def test_one_huge_row_is_cut_and_no_rows_are_nothing():
    plan = kernels.plan(np.array([0, 58_846]))
    assert not plan.bins
    assert len(plan.chunks) == -(-58_846 // 512)
    empty = kernels.plan(np.array([0]))
    assert (empty.bins, len(empty.chunks)) == ((), 0)


def test_small_bins_share_a_launch():
    lengths = np.r_[np.full(100_000, 30), 3, 12, 300]
    plan = kernels.plan(np.concatenate([[0], np.cumsum(lengths)]))
    assert [one.most for one in plan.bins] == [384, 32]
    assert set(BIN_CELLS) >= {one.most for one in plan.bins}


def test_a_plan_that_loses_a_chunk_is_caught():
    indptr = np.array([0, 2000])
    plan = kernels.plan(indptr)
    broken = type(plan)(plan.bins, plan.chunks[1:])
    assert not counted(broken, 2000).all()


def test_memory_is_refused_with_both_figures():
    kernels.check_memory(1e9, 2e9, "cuda:0")
    with pytest.raises(kernels.devices.TooLargeError, match=r"18\.3 GB on cuda:1, and 14\.9 GB are free"):
        kernels.check_memory(18.3e9, 14.9e9, "cuda:1")
