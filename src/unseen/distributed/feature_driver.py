"""Alternating conjugate gradients over blocks, for factors that are features times coefficients.

The sweeps are those of :class:`unseen.solvers.AlternatingCG`. Coefficients of a side with features
are small and stay here; every product with the system is a sum over the blocks, added in their
order. The coefficients of a side without features are its factors and stay with the blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from unseen.distributed.checkpoints import Checkpoints
from unseen.distributed.driver import StartSize, add_grams, keep_sweeps, resume
from unseen.distributed.steps import Part, Settings, Start
from unseen.linalg.balance import balancing
from unseen.linalg.blocked import gram, inner, matmul
from unseen.linalg.draws import standard_normal
from unseen.parallel import one_blas_thread
from unseen.solvers.base import Monitor, Sweep
from unseen.typing import FloatArray

__all__ = ["FeatureEngine", "run_with_features"]

SIDES = ("row", "col")


class FeatureEngine(Protocol):
    """Somebody who holds blocks of cells, designs and factors and works on them.

    Sums over blocks are made in the order of the blocks.
    """

    shape: tuple[int, int]
    widths: dict[str, int | None]
    """Columns of the design of each side; None for a side without features."""

    def draw(self, side: str, start: Start, settings: Settings) -> list[float]:
        """Draw a factor of a side without features; the sum of squares of each block."""
        ...

    def scale(self, side: str, factor: float) -> list[Part]:
        """Bring a drawn factor to its size."""
        ...

    def turn(self, side: str, turn: FloatArray, settings: Settings) -> None:
        """Multiply all blocks of a factor with a small matrix."""
        ...

    def embed(self, side: str, coefficients: FloatArray, settings: Settings) -> list[Part]:
        """Factors of a side with features from new coefficients."""
        ...

    def slope(self, side: str, other_gram: FloatArray, settings: Settings) -> FloatArray:
        """Derivative of the data part by the coefficients of a side."""
        ...

    def product(
        self, side: str, direction: FloatArray, other_gram: FloatArray, settings: Settings
    ) -> FloatArray:
        """Second derivative of the data part by the coefficients of a side, times a direction."""
        ...

    def begin(self, side: str, other_gram: FloatArray, settings: Settings) -> float:
        """Start conjugate gradients on a side without features; the squared residual."""
        ...

    def follow(self, side: str, share: float | None, other_gram: FloatArray, settings: Settings) -> float:
        """Take the next direction; its product with what the system makes of it."""
        ...

    def advance(self, side: str, length: float) -> float:
        """Go along the direction; the squared residual."""
        ...

    def finish(self, side: str, settings: Settings) -> list[Part]:
        """Take over the steps into the factors."""
        ...

    def judge(self, settings: Settings) -> tuple[float, float]:
        """Loss of all cells, and the sum of their squared scores."""
        ...

    def write_factors(self, checkpoints: Checkpoints, folder: str) -> None:
        """Write all blocks of both factors into a folder of a checkpoint."""
        ...

    def read_factors(self, checkpoints: Checkpoints, folder: str) -> None:
        """Take all blocks of both factors from a folder of a checkpoint."""
        ...


class _Fit:
    """Coefficients and Gram matrices of both sides, from sweep to sweep."""

    def __init__(self, engine: FeatureEngine, settings: Settings) -> None:
        self.engine = engine
        self.settings = settings
        self.coefficients: dict[str, FloatArray] = {}
        """Of sides with features."""
        self.grams: dict[str, FloatArray] = {}
        """Of the factors."""

    # -- start -----------------------------------------------------------------------

    def draw(self, size: StartSize, rng: np.random.Generator) -> None:
        """Random factors on the scale of the targets, as a fit in memory starts."""
        for side, length in zip(SIDES, self.engine.shape, strict=True):
            width, rank = self.engine.widths[side], self.settings.rank
            if width is None:
                squares = sum(self.engine.draw(side, Start.taken_from(rng, (length, rank)), self.settings))
                spread = np.sqrt(squares / (length * rank))
                self.grams[side] = add_grams(self.engine.scale(side, size.spread / max(spread, 1e-12)))
                continue
            drawn = standard_normal((width, rank), self.settings.dtype, rng)
            squares = float(np.trace(add_grams(self.engine.embed(side, drawn, self.settings))))
            reach = np.sqrt(squares / length)
            drawn *= drawn.dtype.type(size.spread * np.sqrt(rank) / max(reach, 1e-12))
            self._take(side, drawn)

    def _take(self, side: str, coefficients: FloatArray) -> None:
        self.coefficients[side] = coefficients
        self.grams[side] = add_grams(self.engine.embed(side, coefficients, self.settings))

    def read(self, checkpoints: Checkpoints, folder: str) -> None:
        """Coefficients of a checkpoint."""
        for side in SIDES:
            if self.engine.widths[side] is not None:
                self.coefficients[side] = checkpoints.read(folder, f"{side}_coefficients")

    def write(self, checkpoints: Checkpoints, folder: str) -> None:
        """Coefficients into a checkpoint."""
        for side, coefficients in self.coefficients.items():
            checkpoints.write(folder, f"{side}_coefficients", coefficients)

    # -- sweeps ----------------------------------------------------------------------

    def sweeps(self) -> Iterator[Sweep]:
        """Columns, then rows, then the objective, for ever."""
        while True:
            if self.settings.ridge:
                self._balance()
            # Columns before rows, as in a fit in memory.
            steps = sum(self._solve(side) for side in ("col", "row"))
            state: dict[str, Any] = {f"{side}_gram": self.grams[side] for side in SIDES}
            yield Sweep(state, self.objective(), {"cg_steps": steps})

    def objective(self) -> float:
        """Loss, background and penalty."""
        data, squares = self.engine.judge(self.settings)
        weight, target = self.settings.loss.blank()
        assert target == 0.0, "blank cells are pulled to zero"
        with one_blas_thread():
            if weight:
                data += 0.5 * weight * (inner(self.grams["row"], self.grams["col"]) - squares)
            norms = sum(float(np.trace(self._own_gram(side))) for side in SIDES)
        return data + 0.5 * self.settings.ridge * norms

    def _own_gram(self, side: str) -> FloatArray:
        """Gram matrix of the coefficients."""
        return gram(self.coefficients[side]) if side in self.coefficients else self.grams[side]

    def _balance(self) -> None:
        """Coefficients with the same product and the smallest penalty."""
        with one_blas_thread():
            *turns, strength = balancing(self._own_gram("row"), self._own_gram("col"))
        for side, turn in zip(SIDES, turns, strict=True):
            if side in self.coefficients:
                with one_blas_thread():
                    turned = matmul(self.coefficients[side], turn.astype(self.settings.dtype))
                self._take(side, turned)
            else:
                self.engine.turn(side, turn, self.settings)
                self.grams[side] = np.diag(strength)

    def _solve(self, side: str) -> int:
        other_gram = self.grams["col" if side == "row" else "row"]
        if side in self.coefficients:
            moved, taken = self._solve_coefficients(side, other_gram)
            self._take(side, moved)
            return taken
        taken = self._solve_factors(side, other_gram)
        self.grams[side] = add_grams(self.engine.finish(side, self.settings))
        return taken

    def _solve_coefficients(self, side: str, other_gram: FloatArray) -> tuple[FloatArray, int]:
        """Conjugate gradients on vectors that are all here."""
        settings, start = self.settings, self.coefficients[side]
        dtype = start.dtype
        ridge = dtype.type(settings.ridge)
        data = self.engine.slope(side, other_gram, settings).astype(dtype)
        with one_blas_thread():
            residual = -(data + ridge * start)
            step, direction = np.zeros_like(residual), residual
            size = first = inner(residual, residual)
        taken = 0
        while taken < settings.cg_steps and size > settings.cg_tol**2 * first and size > 0.0:
            data = self.engine.product(side, direction, other_gram, settings).astype(dtype)
            with one_blas_thread():
                product = data + ridge * direction
                bend = inner(direction, product)
                if bend <= 0.0:  # flat to rounding: nothing more to gain
                    break
                length = dtype.type(size / bend)
                step = step + length * direction
                residual = residual - length * product
                last, size = size, inner(residual, residual)
                direction = residual + dtype.type(size / last) * direction
            taken += 1
        return start + step, taken

    def _solve_factors(self, side: str, other_gram: FloatArray) -> int:
        """Conjugate gradients on vectors that are spread over the blocks."""
        settings, engine = self.settings, self.engine
        size = first = engine.begin(side, other_gram, settings)
        taken, share = 0, None
        while taken < settings.cg_steps and size > settings.cg_tol**2 * first and size > 0.0:
            bend = engine.follow(side, share, other_gram, settings)
            if bend <= 0.0:
                break
            last, size = size, engine.advance(side, size / bend)
            share = size / last
            taken += 1
        return taken


def run_with_features(
    engine: FeatureEngine,
    settings: Settings,
    size: StartSize,
    rng: np.random.Generator,
    monitor: Monitor,
    checkpoints: Checkpoints | None = None,
) -> dict[str, FloatArray]:
    """Sweep until the monitor says stop; returns the coefficients of the sides with features."""
    fit = _Fit(engine, settings)
    snapshot = None if checkpoints is None else checkpoints.latest()
    if snapshot is None:
        fit.draw(size, rng)
        monitor.start(fit.objective())
    else:
        assert checkpoints is not None
        engine.read_factors(checkpoints, snapshot.folder)
        fit.read(checkpoints, snapshot.folder)
        fit.grams = {"row": snapshot.row_gram, "col": snapshot.col_gram}
        if resume(monitor, snapshot):
            return fit.coefficients
    keep_sweeps(fit.sweeps(), engine, monitor, checkpoints, fit.write)
    return fit.coefficients
