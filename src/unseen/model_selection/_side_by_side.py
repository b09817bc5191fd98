"""Fits side by side: in threads, or in processes that share the data by a memory map."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.parallel import Parallel

from unseen.data import Observations
from unseen.metrics._lists import contains
from unseen.model_selection._splits import Split
from unseen.typing import BoolArray, IndexArray
from unseen.validation import check_choice, check_n_jobs

__all__ = ["MappedSplit", "opened", "run_side_by_side", "sent"]

MAPPED_FROM = 1 << 16
"""Bytes from which on an array goes to other processes as a map of a file instead of a copy."""


@dataclass(frozen=True)
class MappedSplit:
    """A split as marks on all cells, a bit each; the cells are one memory map for all processes."""

    cells: Observations
    train: npt.NDArray[np.uint8]
    test: npt.NDArray[np.uint8]
    rows: IndexArray | None
    cols: IndexArray | None

    def open(self) -> Split:
        """The split, with training and test cells of its own."""
        train, test = (
            self.cells.select(np.unpackbits(marks, count=self.cells.nnz).astype(np.bool_))
            for marks in (self.train, self.test)
        )
        return Split(train, test, self.rows, self.cols)


def sent(split: Split, cells: Observations, prefer: str) -> Split | MappedSplit:
    """What is handed to whoever works on a split of ``cells``.

    A split that has other cells or values goes as it is.
    """
    if prefer == "threads":
        return split
    marks = [_marks(part, cells) for part in split]
    if marks[0] is None or marks[1] is None:
        return split
    return MappedSplit(cells, np.packbits(marks[0]), np.packbits(marks[1]), split.rows, split.cols)


def opened(split: Split | MappedSplit) -> Split:
    """The split that was sent."""
    return split.open() if isinstance(split, MappedSplit) else split


def run_side_by_side(jobs: Iterable[Any], n_jobs: int | None, prefer: str = "threads") -> Iterator[Any]:
    """Run delayed calls a few at a time and yield results in order; jobs are drawn as they start."""
    parallel = Parallel(
        check_n_jobs(n_jobs),
        prefer=check_choice("prefer", prefer, ("threads", "processes")),
        pre_dispatch="n_jobs",
        max_nbytes=MAPPED_FROM,
        mmap_mode="r",
        return_as="generator",
    )
    yield from parallel(jobs)


def _marks(part: Observations, cells: Observations) -> BoolArray | None:
    """Which of the cells a part has; None if it is not made of them."""
    marks = contains(part.csr, cells.rows, cells.indices)
    if int(marks.sum()) != part.nnz or part.row_ids is not cells.row_ids or part.col_ids is not cells.col_ids:
        return None
    for own, all_ in ((part.values, cells.values), (part.weights, cells.weights), (part.times, cells.times)):
        if (own is None) != (all_ is None) or (own is not None and not np.array_equal(own, all_[marks])):  # type: ignore[index]
            return None
    return marks
