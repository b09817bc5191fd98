"""Alternating least squares over blocks, whoever works on them.

The sums that decide are added in the order of the blocks, so the result depends on the plan of
the blocks and not on the number of workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from unseen.distributed.checkpoints import Checkpoints, Snapshot
from unseen.distributed.steps import CellSums, Part, Settings, Start
from unseen.linalg.balance import balancing
from unseen.linalg.blocked import inner
from unseen.parallel import one_blas_thread
from unseen.solvers.base import Monitor, Sweep
from unseen.typing import FloatArray

__all__ = ["Engine", "StartSize", "Totals", "add_grams", "keep_sweeps", "resume", "run", "totals"]


class WritesFactors(Protocol):
    """Somebody who can write a checkpoint."""

    def write_factors(self, checkpoints: Checkpoints, folder: str) -> None:
        """Write all blocks of both factors into a folder of a checkpoint."""
        ...


class Engine(Protocol):
    """Somebody who holds blocks of cells and of factors and works on them."""

    shape: tuple[int, int]

    def sums(self, settings: Settings) -> list[CellSums]:
        """Sums over the cells of each block of rows."""
        ...

    def draw(self, side: str, start: Start, settings: Settings) -> list[float]:
        """Draw a factor; the sum of squares of each block."""
        ...

    def scale(self, side: str, factor: float, *, only_seen: bool = False) -> list[Part]:
        """Bring a drawn factor to its size; rows without a cell become zero if asked for."""
        ...

    def turn(self, side: str, turn: FloatArray, settings: Settings) -> None:
        """Multiply all blocks of a factor with a small matrix."""
        ...

    def solve(
        self, side: str, other_gram: FloatArray, settings: Settings, *, judge: bool = False
    ) -> list[Part]:
        """Solve for one side with the other fixed."""
        ...

    def write_factors(self, checkpoints: Checkpoints, folder: str) -> None:
        """Write all blocks of both factors into a folder of a checkpoint."""
        ...

    def read_factors(self, checkpoints: Checkpoints, folder: str) -> None:
        """Take all blocks of both factors from a folder of a checkpoint."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


@dataclass(frozen=True)
class StartSize:
    """Root mean square of the entries of a start, and whether rows without a cell start at zero."""

    spread: float
    only_seen: bool = False


@dataclass(frozen=True)
class Totals:
    """Sums over all cells."""

    n_cells: int
    n_merged: int
    total: float
    slopes: float

    @property
    def size(self) -> float:
        """Root mean square of the slope of the loss at zero scores: the scale of what is to be fitted."""
        return float(np.sqrt(self.slopes / self.n_cells)) if self.n_cells else 1.0


def totals(parts: Sequence[CellSums]) -> Totals:
    """Add up the blocks in their order."""
    return Totals(
        sum(part.n_cells for part in parts),
        sum(part.n_merged for part in parts),
        sum(part.total for part in parts),
        sum(part.slopes for part in parts),
    )


def run(
    engine: Engine,
    settings: Settings,
    size: StartSize,
    rng: np.random.Generator,
    monitor: Monitor,
    checkpoints: Checkpoints | None = None,
) -> None:
    """Sweep until the monitor says stop; the factors stay with the engine."""
    snapshot = None if checkpoints is None else checkpoints.latest()
    if snapshot is None:
        grams: tuple[FloatArray, FloatArray | None] = (_begin(engine, settings, size, rng), None)
    else:
        assert checkpoints is not None
        engine.read_factors(checkpoints, snapshot.folder)
        grams = snapshot.row_gram, snapshot.col_gram
        if resume(monitor, snapshot):
            return
    keep_sweeps(_sweeps(engine, settings, *grams), engine, monitor, checkpoints)


def keep_sweeps(
    sweeps: Iterator[Sweep],
    engine: WritesFactors,
    monitor: Monitor,
    checkpoints: Checkpoints | None,
    write_more: Callable[[Checkpoints, str], None] | None = None,
) -> None:
    """Show sweeps to a monitor until it says stop; write a checkpoint where one is due."""
    for sweep in sweeps:
        stop = monitor.record(sweep)
        if checkpoints is not None and (stop or checkpoints.due(len(monitor.history))):
            folder = checkpoints.open(len(monitor.history))
            engine.write_factors(checkpoints, folder)
            if write_more is not None:
                write_more(checkpoints, folder)
            checkpoints.close(
                Snapshot(
                    folder,
                    sweep.state["row_gram"],
                    sweep.state["col_gram"],
                    monitor.history,
                    monitor.converged,
                )
            )
        if stop:
            break
    monitor.close()


def resume(monitor: Monitor, snapshot: Snapshot) -> bool:
    """Give a monitor the sweeps that were done; True if there is nothing left to do."""
    monitor.history = list(snapshot.history)
    monitor.start(monitor.history[-1]["objective"])
    monitor.converged = snapshot.converged
    return monitor.converged or len(monitor.history) >= monitor.max_iter


def _begin(engine: Engine, settings: Settings, size: StartSize, rng: np.random.Generator) -> FloatArray:
    """Random factors on the scale of the targets, as a fit in memory starts; Gram matrix of the rows."""
    parts: list[Part] = []
    # Exact solves begin with the columns and need no start there; the rows are drawn first.
    sides = ("row", "col") if settings.method == "cg" else ("row",)
    for side, n_rows in zip(sides, engine.shape, strict=False):
        shape = (n_rows, settings.rank)
        squares = sum(engine.draw(side, Start.taken_from(rng, shape), settings))
        spread = np.sqrt(squares / (shape[0] * shape[1]))
        factor = float(size.spread / max(spread, 1e-12))
        scaled = engine.scale(side, factor, only_seen=size.only_seen)
        parts = scaled if side == "row" else parts
    return add_grams(parts)


def add_grams(parts: Sequence[Part]) -> FloatArray:
    """Gram matrix of all blocks, added in their order."""
    total: FloatArray = np.zeros_like(parts[0].gram)
    for part in parts:
        total += part.gram
    return total


def _sweeps(
    engine: Engine, settings: Settings, row_gram: FloatArray, col_gram: FloatArray | None
) -> Iterator[Sweep]:
    weight, target = settings.loss.blank()
    assert target == 0.0, "blank cells are pulled to zero"
    while True:
        if settings.ridge and col_gram is not None:
            with one_blas_thread():
                turn_rows, turn_cols, strength = balancing(row_gram, col_gram)
            engine.turn("row", turn_rows, settings)
            if settings.method == "cg":
                engine.turn("col", turn_cols, settings)
            row_gram = np.diag(strength)
        col_gram = add_grams(engine.solve("col", row_gram, settings))
        parts = engine.solve("row", col_gram, settings, judge=True)
        row_gram = add_grams(parts)
        data = sum(part.loss for part in parts)
        if weight:
            with one_blas_thread():
                data += 0.5 * weight * (inner(row_gram, col_gram) - sum(part.squares for part in parts))
        penalty = 0.5 * settings.ridge * float(np.trace(row_gram) + np.trace(col_gram))
        state: dict[str, Any] = {"row_gram": row_gram, "col_gram": col_gram}
        yield Sweep(state, data + penalty, {})


def centred(engine: Engine, settings: Settings, center: str) -> tuple[Settings, Totals]:
    """Settings with the mean that ``center`` asks for, and the sums over the cells that follow."""
    found = totals(engine.sums(settings))
    if center == "mean" and found.n_cells:
        settings = replace(settings, mean=found.total / found.n_cells)
        found = totals(engine.sums(settings))
    return settings, found
