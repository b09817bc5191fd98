"""Alternating minimisation over blocks, whoever works on them.

The design of a side without features is the identity: its coefficients are its factors, and stay with
the blocks. Where both designs are and rows are solved for one by one this is alternating least squares, the
sweeps of :class:`unseen.solvers.ALS`. Otherwise the coefficients of a side are solved for together, the
sweeps of :class:`unseen.solvers.AlternatingCG`; those of features are small and stay here, and every
product with the system is a sum over the blocks.

The sums that decide are added in the order of the blocks, so the result depends on the plan of the blocks and
not on the number of workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unseen.distributed import steps
from unseen.distributed.checkpoints import Checkpoints, Snapshot
from unseen.distributed.conjugate import solve_coefficients, solve_factors
from unseen.distributed.engine import CELLS, DESIGN, FACTORS, SIDES, Engine, Touched, other_side
from unseen.distributed.steps import BlockSums, Settings, Start
from unseen.linalg.balance import balancing
from unseen.linalg.blocked import gram, inner, matmul
from unseen.linalg.draws import standard_normal
from unseen.parallel import one_blas_thread
from unseen.solvers.base import Monitor, Sweep
from unseen.typing import FloatArray

__all__ = ["StartSize", "run"]


@dataclass(frozen=True)
class StartSize:
    """Root mean square of the entries of a start, and whether rows without a cell start at zero."""

    spread: float
    only_seen: bool = False


def run(
    engine: Engine,
    widths: dict[str, int | None],
    settings: Settings,
    size: StartSize,
    rng: np.random.Generator,
    monitor: Monitor,
    checkpoints: Checkpoints | None = None,
) -> dict[str, FloatArray]:
    """Sweep until the monitor says stop; the factors stay with the engine.

    ``widths`` are the columns of the designs, None for sides without features. Returns the coefficients of
    the sides with features.
    """
    fit = _Fit(engine, widths, settings)
    snapshot = None if checkpoints is None else checkpoints.latest()
    if snapshot is None:
        fit.draw(size, rng)
        if not settings.by_rows:
            monitor.start(fit.objective())
    else:
        assert checkpoints is not None
        fit.read(checkpoints, snapshot)
        monitor.history = list(snapshot.history)
        monitor.start(monitor.history[-1]["objective"])
        monitor.converged = snapshot.converged
        if monitor.converged or len(monitor.history) >= monitor.max_iter:
            return fit.coefficients
    for sweep in fit.sweeps():
        stop = monitor.record(sweep)
        if checkpoints is not None and (stop or checkpoints.due(len(monitor.history))):
            fit.write(checkpoints, monitor)
        if stop:
            break
    monitor.close()
    return fit.coefficients


class _Fit:
    """Coefficients of features and Gram matrices of both sides, from sweep to sweep."""

    def __init__(self, engine: Engine, widths: dict[str, int | None], settings: Settings) -> None:
        self.engine = engine
        self.widths = widths
        self.settings = settings
        self.coefficients: dict[str, FloatArray] = {}
        """Of sides with features."""
        self.grams: dict[str, FloatArray] = {}
        """Of the factors, as the background wants them."""
        self.penalties: dict[str, FloatArray] = {}
        """Of the coefficients, as the ridge wants them, where these are others."""

    # -- start -----------------------------------------------------------------------

    def draw(self, size: StartSize, rng: np.random.Generator) -> None:
        """Random factors on the scale of the targets, as a fit in memory starts."""
        # Exact solves begin with the columns and need no start there; the rows are drawn first.
        exact = self.settings.by_rows and self.settings.method == "cholesky"
        for side in SIDES[:1] if exact else SIDES:
            if self.widths[side] is None:
                self._draw_factors(side, size, rng)
            else:
                self._draw_coefficients(side, size, rng)
        if self.settings.by_rows:
            self.grams.pop("col", None)  # what the columns start from is no solution yet: nothing to balance

    def _draw_factors(self, side: str, size: StartSize, rng: np.random.Generator) -> None:
        engine, settings, bounds = self.engine, self.settings, self.engine.bounds[side]
        shape = (int(bounds[-1]), settings.rank)
        start, limits = Start.taken_from(rng, shape), (bounds[:-1].tolist(), bounds[1:].tolist())
        squares = sum(engine.each(side, steps.draw_block, start, *limits, settings.dtype, keep="factors"))
        spread = np.sqrt(squares / (shape[0] * shape[1]))
        factor = float(size.spread / max(spread, 1e-12))
        scaled = engine.each(
            side, steps.scale_block, FACTORS, CELLS, factor, size.only_seen, settings, keep="factors"
        )
        self._add(side, scaled)

    def _draw_coefficients(self, side: str, size: StartSize, rng: np.random.Generator) -> None:
        settings, width = self.settings, self.widths[side]
        assert width is not None
        drawn = standard_normal((width, settings.rank), settings.dtype, rng)
        reach = np.sqrt(self._embed(side, drawn) / int(self.engine.bounds[side][-1]))
        drawn *= drawn.dtype.type(size.spread * np.sqrt(settings.rank) / max(reach, 1e-12))
        self._embed(side, drawn)

    def _embed(self, side: str, coefficients: FloatArray) -> float:
        """Factors of a side with features from new coefficients; their sum of squares."""
        self.coefficients[side] = coefficients
        args = (DESIGN, CELLS, coefficients, self.settings)
        self._add(side, self.engine.each(side, steps.embed_block, *args, keep="factors"))
        squares = float(np.trace(self.penalties[side]))
        with one_blas_thread():
            self.penalties[side] = gram(coefficients)
        return squares

    def _add(self, side: str, parts: Sequence[BlockSums]) -> None:
        """Gram matrices of all blocks, added in their order."""
        self.grams[side] = _added([part.gram for part in parts])
        found = [part.penalty for part in parts if part.penalty is not None]
        self.penalties[side] = _added(found) if found else self.grams[side]

    # -- sweeps ----------------------------------------------------------------------

    def sweeps(self) -> Iterator[Sweep]:
        """Columns, then rows, as in memory, then the objective, for ever."""
        while True:
            if self.settings.ridge and set(self.grams) == set(SIDES):
                self._balance()
            state: dict[str, Any] = {}
            if self.settings.by_rows:
                self._solve_rows("col")
                parts = self._solve_rows("row", judge=True)
                yield Sweep(state, self._objective([(part.loss, part.squares) for part in parts]), {})
                continue
            taken = sum(self._solve_together(side) for side in ("col", "row"))
            yield Sweep(state, self.objective(), {"cg_steps": taken})

    def objective(self) -> float:
        """Loss, background and penalty."""
        args = (CELLS, Touched(again=True), FACTORS, self.settings)
        return self._objective(self.engine.each("row", steps.judge_block, *args))

    def _objective(self, parts: Sequence[tuple[float, float]]) -> float:
        weight, target = self.settings.loss.blank()
        assert target == 0.0, "blank cells are pulled to zero"
        data = sum(part[0] for part in parts)
        if weight:
            with one_blas_thread():
                everywhere = inner(self.grams["row"], self.grams["col"])
            data += 0.5 * weight * (everywhere - sum(part[1] for part in parts))
        norms = float(np.trace(self.penalties["row"]) + np.trace(self.penalties["col"]))
        return data + 0.5 * self.settings.ridge * norms

    def _balance(self) -> None:
        """Coefficients with the same product and the smallest penalty."""
        with one_blas_thread():
            *rotations, strength = balancing(self.penalties["row"], self.penalties["col"])
        exact = self.settings.by_rows and self.settings.method == "cholesky"
        for side, rotation in zip(SIDES, rotations, strict=True):
            if side in self.coefficients:
                with one_blas_thread():
                    turned = matmul(self.coefficients[side], rotation.astype(self.settings.dtype))
                self._embed(side, turned)
                continue
            if side == "row" or not exact:  # exact solves for columns start from nothing
                args = (FACTORS, rotation, self.settings.n_threads)
                self.engine.each(side, steps.turn_block, *args, keep="factors", wait=False)
            apart = self.penalties[side] is not self.grams[side]
            self.penalties[side] = np.diag(strength)
            self.grams[side] = rotation.T @ self.grams[side] @ rotation if apart else self.penalties[side]

    def _solve_rows(self, side: str, *, judge: bool = False) -> list[BlockSums]:
        """Solve for each row of one side with the other fixed."""
        settings, other_gram = self.settings, self.grams[other_side(side)]
        own = FACTORS if settings.method == "cg" else None
        args = (CELLS, Touched(), own, other_gram, settings, judge)
        parts: list[BlockSums] = self.engine.each(side, steps.solve_block, *args, keep="factors")
        self._add(side, parts)
        return parts

    def _solve_together(self, side: str) -> int:
        """Solve for all coefficients of one side with the other fixed; steps of conjugate gradients."""
        engine, settings, other_gram = self.engine, self.settings, self.grams[other_side(side)]
        if side in self.coefficients:
            moved, taken = solve_coefficients(engine, side, self.coefficients[side], other_gram, settings)
            self._embed(side, moved)
        else:
            parts, taken = solve_factors(engine, side, other_gram, settings)
            self._add(side, parts)
        return taken

    # -- checkpoints -----------------------------------------------------------------

    def write(self, checkpoints: Checkpoints, monitor: Monitor) -> None:
        """Factors, coefficients and Gram matrices of the last sweep."""
        folder = checkpoints.open(len(monitor.history))
        digests: dict[str, str | None] = {}
        small = {f"{side}_gram": self.grams[side] for side in SIDES}
        for side in SIDES:
            names = self._names(side)
            written = self.engine.each(side, steps.write_block, FACTORS, checkpoints, folder, names)
            digests |= dict(zip(names, written, strict=True))
            if side in self.coefficients:
                small[f"{side}_coefficients"] = self.coefficients[side]
            elif self.penalties[side] is not self.grams[side]:
                small[f"{side}_penalty"] = self.penalties[side]
        digests |= {name: checkpoints.write(folder, name, array) for name, array in small.items()}
        snapshot = Snapshot(folder, monitor.history, monitor.converged, digests)
        if self.engine.recomputes:
            self._read_factors(checkpoints, snapshot)
        checkpoints.close(snapshot)

    def read(self, checkpoints: Checkpoints, snapshot: Snapshot) -> None:
        """Take over what :meth:`write` has left."""
        rank = self.settings.rank

        def array(name: str, n_rows: int) -> FloatArray:
            return checkpoints.read(snapshot.folder, name, snapshot.digests.get(name), (n_rows, rank))

        self._read_factors(checkpoints, snapshot)
        for side in SIDES:
            self.grams[side] = array(f"{side}_gram", rank)
            if (width := self.widths[side]) is not None:
                self.coefficients[side] = array(f"{side}_coefficients", width)
                with one_blas_thread():
                    self.penalties[side] = gram(self.coefficients[side])
            elif checkpoints.holds(snapshot, f"{side}_penalty"):
                self.penalties[side] = array(f"{side}_penalty", rank)
            else:
                self.penalties[side] = self.grams[side]

    def _read_factors(self, checkpoints: Checkpoints, snapshot: Snapshot) -> None:
        # Now, since the files may be removed when the next checkpoint is there.
        for side in SIDES:
            names = self._names(side)
            digests = [snapshot.digests.get(name) for name in names]
            lengths = np.diff(self.engine.bounds[side]).tolist()
            args = (checkpoints, snapshot.folder, names, digests, lengths, self.settings.rank)
            self.engine.each(side, steps.read_block, *args, keep="factors")

    def _names(self, side: str) -> list[str]:
        return [f"{side}-{number}" for number in range(len(self.engine.bounds[side]) - 1)]


def _added(parts: Sequence[FloatArray]) -> FloatArray:
    total: FloatArray = np.zeros_like(parts[0])
    for part in parts:
        total += part
    return total
