"""A chain of a low-rank term and biases whose rows and columns are drawn one by one."""

from __future__ import annotations

from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from unseen.cores import Full, LowRank
from unseen.exceptions import TooLargeError
from unseen.kernels.devices import module_of
from unseen.kernels.providers import Cells
from unseen.linalg.designs import Design
from unseen.maps import Constant, FeatureMap, History, Identity, Joined
from unseen.maps.joined import JoinedDesign
from unseen.problem import Problem
from unseen.solvers.gibbs_cells import cells_of
from unseen.solvers.gibbs_noise import NoiseKept
from unseen.solvers.gibbs_prior import SidePrior
from unseen.solvers.posterior import Coordinates, Draws, Posterior, SideSamples
from unseen.state import State
from unseen.terms import BoundTerm
from unseen.typing import Array, FloatArray, IndexArray

__all__ = ["CELLS", "START_FALL", "Chain", "Kept", "Roles", "check_size", "roles_of"]

MAX_SAMPLE_BYTES = 4 << 30
CELLS, START, FEATURES = 4, 8, 16
"""Blocks of random numbers; the rows have 0 and the columns 1."""
START_SIZE, START_FALL = 0.3, 0.8
"""Size of the first factor at the start, and of each next one beside the one before.

Large ones find a direction that is weak in the data; those that are not needed take hundreds of sweeps to
fall.
"""


class Roles(NamedTuple):
    """The terms by their roles."""

    factors: BoundTerm
    row_bias: BoundTerm | None
    col_bias: BoundTerm | None

    @property
    def coordinates(self) -> Coordinates:
        rank = self.factors.core.rank if isinstance(self.factors.core, LowRank) else 0
        return Coordinates(rank, self.row_bias is not None, self.col_bias is not None)


class Side:
    """One side of a chain: its draws, its prior, its cells, and the number of its random numbers."""

    def __init__(self, place: int, start: FloatArray, designs: list[Design], cells: Cells, *, diagonal: bool):
        self.place = place
        self.drawn = start
        self.means = module_of(start).empty_like(start)
        self.cells = cells
        self.prior = SidePrior(start.shape[1], designs, diagonal=diagonal)
        self.seen: Array | None = None
        """What the cells say of the sizes of what was drawn last."""
        self.forgotten = [False] * len(designs)
        """Coefficients of which groups are not kept."""


class Chain:
    """State of a chain, and one sweep of it. Values are in units of their standard deviation."""

    def __init__(
        self,
        problem: Problem,
        state: State,
        rng: np.random.Generator,
        *,
        diagonal: bool,
        varying: bool = True,
    ) -> None:
        parts = roles_of(problem)
        assert isinstance(parts, Roles)
        cells = problem.observations
        self.cells, self.rng, self.place = cells, rng, problem.provider
        self.layout = parts.coordinates
        self.seed = int(rng.integers(2**63))
        self.number = 0
        self.model = cells_of(problem, varying=varying)
        self.by_row, self.scale = self.model.by_row, self.model.scale
        self.scores: FloatArray | None = None
        in_order = self.by_row, self.by_row.transposed
        self.sides: dict[str, Side] = {}
        for place, (name, length, own) in enumerate(zip(("row", "col"), cells.shape, in_order, strict=True)):
            sizes = START_SIZE * START_FALL ** np.arange(self.layout.own(name))
            sizes[self.layout.rank :] = START_SIZE
            start = self.place.asarray(sizes, cells.dtype) * self.normals((length, len(sizes)), START + place)
            designs = _feature_designs(problem, parts.factors, name, state)
            a_map = parts.factors.row_map if name == "row" else parts.factors.col_map
            self.sides[name] = Side(place, start, designs, own, diagonal=diagonal)
            if isinstance(a_map, Joined) and name == "col":
                features = [part for part in a_map.maps if not isinstance(part, Identity)]
                self.sides[name].forgotten = [isinstance(part, History) for part in features]

    def resume(self, draws: Draws) -> None:
        """Stand where another chain ended, with random numbers of its own."""
        self.model.alpha = draws.alpha
        self.seed ^= crc32(np.ascontiguousarray(draws.rows).tobytes())
        for (name, side), length in zip(self.sides.items(), self.cells.shape, strict=True):
            side.drawn[...] = self.place.asarray(draws.of(name, length), side.drawn.dtype)
        own = self.model.thresholds
        if own is not None and draws.thresholds is not None and own.shape == draws.thresholds.shape:
            self.model.thresholds = draws.thresholds.copy()
            self.scores = self._cell_scores()

    def facts(self) -> dict[str, Any]:
        """What a line of the history says of the cells."""
        return self.model.facts()

    def normals(self, shape: tuple[int, int], block: int) -> FloatArray:
        """Normal numbers of this sweep for one block of what is drawn."""
        found: FloatArray = self.place.normals(shape, self.seed, self.number, block, self.cells.dtype.type)
        return found

    def sweep(self) -> float:
        """Draw everything once; the objective afterwards, in the units of the data."""
        self.number += 1
        if self.sides["row"].seen is not None:
            # Only now, so that what was kept were the rows' means; the noise is drawn for what they are.
            self._resize("row")
            self.scores = self._cell_scores()
        # Before the rest, so that what is kept was drawn with the noise that is kept.
        self.model.draw(self.scores, lambda shape: self._home(self.normals(shape, CELLS)), self.rng)
        self._draw_side("col", self.sides["row"].drawn)
        self._resize("col")
        self._draw_side("row", self.sides["col"].drawn)
        self.scores = self._cell_scores()
        return self.model.objective(self.scores)

    def _resize(self, name: str) -> None:
        """Draw the sizes of one side, whose rows were drawn last."""
        side = self.sides[name]
        assert side.seen is not None
        factors = side.prior.resize(side.seen, self.rng)
        side.drawn *= self.place.asarray(factors, side.drawn.dtype)
        side.seen = None

    def _draw_side(self, name: str, other: FloatArray) -> None:
        side = self.sides[name]

        def noise(group: int, rows: int) -> FloatArray:
            return self._home(self.normals((rows, side.prior.width), FEATURES + 2 * group + side.place))

        prior, dtype = side.prior, side.drawn.dtype
        sizes = self.place.asarray(prior.sizes, dtype)
        side.drawn /= sizes
        # What features say is learned on the CPU.
        prior.draw(self._home(side.drawn) if prior.groups else side.drawn, noise, self.rng)
        table, shift = self.layout.against(name, other)
        side.seen = np.empty((prior.width, prior.width + 1))
        self.place.als_draw(
            side.cells,
            table * sizes,
            prior.precision,
            self.normals(side.drawn.shape, side.place),
            side.drawn,
            scale=self.model.alpha,
            offset=prior.location() @ prior.precision,
            shift=shift,
            means=side.means,
            sizes=side.seen,
        )
        side.drawn *= sizes
        side.means *= sizes

    def _home(self, array: FloatArray) -> FloatArray:
        return self.place.to_host(array)

    def _wide(self, name: str) -> FloatArray:
        return self.layout.widened(name, self.sides[name].drawn)

    def _cell_scores(self) -> FloatArray:
        found: FloatArray = self.place.sddmm(self.by_row, self._wide("row"), self._wide("col"))
        return found

    def scores_at(self, rows: IndexArray, cols: IndexArray) -> Array:
        """Scores of single cells."""
        rows, cols = (self.place.asarray(picked) for picked in (rows, cols))
        found: Array = (self._wide("row")[rows] * self._wide("col")[cols]).sum(axis=1)
        return self._home(found) * self.scale


def check_size(n_samples: int, bytes_of_one: int, width: int, total: int) -> None:
    """Refuse samples that do not fit, before any is drawn."""
    needed = n_samples * bytes_of_one
    if needed > MAX_SAMPLE_BYTES:
        raise TooLargeError(
            f"{n_samples} samples of {width} coordinates for {total} rows and columns take "
            f"{needed / 2**30:.1f} GiB; at most {MAX_SAMPLE_BYTES / 2**30:.0f} are accepted: take fewer "
            "n_samples, a smaller rank, or float32 values"
        )


class Kept:
    """Samples on the way."""

    def __init__(self, chain: Chain, n_samples: int) -> None:
        self.chain = chain
        width, itemsize = chain.layout.width, chain.cells.dtype.itemsize
        rows, total = chain.cells.shape[0], sum(chain.cells.shape)
        check_size(n_samples, width * (total * itemsize + 2 * rows), width, total)
        self.draws: dict[str, list[FloatArray]] = {"row": [], "col": []}
        self.priors: dict[str, list[tuple[Array, Array, list[FloatArray]]]] = {"row": [], "col": []}
        self.deviations: list[Array] = []
        self.noise: list[float] = []
        self.thresholds: list[Array] = []
        self.varying = NoiseKept(chain.model.varying)

    def add(self) -> None:
        """Keep where the chain is."""
        rows, home = self.chain.sides["row"], self.chain.place.to_host
        self.noise.append(self.chain.model.alpha / self.chain.scale**2)
        if self.chain.model.thresholds is not None:
            self.thresholds.append(self.chain.model.thresholds)
        self.varying.add()
        self.deviations.append(home(((rows.drawn - rows.means) * self.chain.scale).astype(np.float16)))
        for name, side in self.chain.sides.items():
            prior = side.prior
            # Rows were drawn last, so their means belong to the columns as they are: means of products of
            # these vary less than those of two draws.
            self.draws[name].append(home((side.means if name == "row" else side.drawn).copy()))
            coefficients = [
                # In single precision, they may be many; nobody asks new columns for their history.
                (group.coefficients * prior.sizes).astype(np.float32)[: 0 if forgotten else None]
                for group, forgotten in zip(prior.groups, side.forgotten, strict=True)
            ]
            self.priors[name].append((*prior.moments(), coefficients))

    def posterior(self) -> tuple[Posterior, FloatArray, FloatArray]:
        """All of it, and the factors of the mean."""
        priors = [
            SideSamples(
                np.stack([mean for mean, _, _ in found]),
                np.stack([precision for _, precision, _ in found]),
                [np.stack(group) for group in zip(*(groups for _, _, groups in found), strict=True)],
            )
            for found in self.priors.values()
        ]
        posterior = Posterior(
            self.chain.layout,
            np.array(self.noise),
            priors[0],
            priors[1],
            np.stack(self.deviations, axis=1),
            self.chain.scale,
            np.stack(self.thresholds) if self.thresholds else None,
            self.varying.samples(),
        )
        rows, cols = (posterior.stacked(name, np.stack(found)) for name, found in self.draws.items())
        return posterior, rows, cols


def roles_of(problem: Problem) -> Roles | str:
    """The terms by their roles, or why they have none."""
    factors: list[BoundTerm] = []
    biases: dict[str, BoundTerm] = {}
    for term in problem.terms:
        side = _bias_side(term)
        if isinstance(term.core, LowRank):
            factors.append(term)
        elif side is None or side in biases:
            return "beside a low-rank term it takes a bias of the rows and one of the columns, no other terms"
        else:
            biases[side] = term
    if len(factors) != 1:
        return f"it takes one low-rank term, and there are {len(factors)}"
    if problem.known is not None:
        return "a part of the scores is given"
    for side, a_map in (("row", factors[0].row_map), ("col", factors[0].col_map)):
        if not _free(a_map):
            return (
                f"the {side}s have no coefficients of their own beside their features; use "
                f"Joined([Identity(), {type(a_map).__name__}(...)])"
            )
        own = biases.get(side)
        if own is not None and repr(own.row_map if side == "row" else own.col_map) != repr(a_map):
            return f"biases and factors of the {side}s have different maps"
    return Roles(factors[0], biases.get("row"), biases.get("col"))


def _bias_side(term: BoundTerm) -> str | None:
    if not isinstance(term.core, Full):
        return None
    if isinstance(term.col_map, Constant) and _free(term.row_map):
        return "row"
    return "col" if isinstance(term.row_map, Constant) and _free(term.col_map) else None


def _free(a_map: FeatureMap) -> bool:
    """Whether each entity has coefficients of its own."""
    return isinstance(a_map, Identity) or (isinstance(a_map, Joined) and a_map.has_own)


def _feature_designs(problem: Problem, term: BoundTerm, side: str, state: State) -> list[Design]:
    """Designs of the features of one side, by groups."""
    row, col = problem.designs(term, state)
    design = row if side == "row" else col
    return design.feature_parts if isinstance(design, JoinedDesign) else []
