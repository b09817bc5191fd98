"""Gibbs sampling: a composition averaged over all that fits, instead of the one that fits best."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, NamedTuple
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
from unseen.regularisers import Separable
from unseen.solvers.base import Monitor, Solver, Sweep, by_column
from unseen.solvers.certificates import Certificate
from unseen.solvers.gibbs_prior import SidePrior
from unseen.solvers.mixing import Trace
from unseen.solvers.posterior import Coordinates, Draws, Posterior, SideSamples
from unseen.state import State
from unseen.terms import BoundTerm
from unseen.typing import Array, FloatArray, IndexArray
from unseen.validation import check_choice, check_count

__all__ = ["Gibbs"]

MAX_SAMPLE_BYTES = 4 << 30
START, FEATURES = 8, 16
"""Blocks of random numbers; the rows have 0 and the columns 1."""
START_SIZE, START_FALL = 0.3, 0.8
"""Size of the first factor at the start, and of each next one beside the one before.

Large ones find a direction that is weak in the data; those that are not needed take hundreds of sweeps to
fall.
"""
SETTLING = 10
"""Sweeps after which a chain that goes on with more cells is taken to have settled."""
NOISE_SHAPE, NOISE_RATE = 1.0, 1.0
"""Of the Gamma distribution of the precision of a cell, whose values have variance one."""


class _Parts(NamedTuple):
    """The terms by their roles."""

    factors: BoundTerm
    row_bias: BoundTerm | None
    col_bias: BoundTerm | None

    @property
    def coordinates(self) -> Coordinates:
        rank = self.factors.core.rank if isinstance(self.factors.core, LowRank) else 0
        return Coordinates(rank, self.row_bias is not None, self.col_bias is not None)


class Gibbs(Solver):
    """Gibbs sampling of one low-rank term and biases, with penalties that are learned.

    Values are ``a_ij ~ N(s_ij, 1 / (alpha w_ij))`` with w the weight of the cell, and a row with its bias is
    ``u_i ~ N(m + B'x_i, L^-1)``, columns likewise. In place of one solution that minimises the
    objective, solutions are drawn in proportion to how well they fit, and predictions are means over them.
    Penalties (L, one matrix a side), noise (alpha), means and coefficients are drawn along, so ``reg`` of the
    terms has no influence. Sides with features take :class:`~unseen.maps.Joined`, in which each row has
    coefficients of its own around what its features say.

    Parameters
    ----------
    n_samples : int, default=50
        Solutions that are kept. Factors of the mean are that many times wider than those of one solution.
    burn_in : int, default=50
        Sweeps before the first that is kept.
    thin : int, default=2
        Sweeps from one kept sample to the next.
    precision : {"full", "diagonal"}, default="full"
        Penalty of a side: a full matrix, or one number for each coordinate.

    Attributes
    ----------
    posterior_ : Posterior
        What was kept, once it has solved something.
    """

    judges_start = False
    on_device = True
    averages: ClassVar[bool] = True

    def __init__(
        self,
        n_samples: int = 50,
        burn_in: int = 50,
        thin: int = 2,
        precision: Literal["full", "diagonal"] = "full",
    ) -> None:
        self.n_samples = n_samples
        self.burn_in = burn_in
        self.thin = thin
        self.precision = precision

    tol = 0.0

    @property
    def max_iter(self) -> int:  # type: ignore[override]
        """Sweeps of a whole chain."""
        kept, thin = check_count("n_samples", self.n_samples), check_count("thin", self.thin)
        return check_count("burn_in", self.burn_in, minimum=0) + kept * thin

    def refuses(self, problem: Problem) -> str | None:
        found = _parts(problem)
        if isinstance(found, str):
            return found
        if not problem.cell_loss.quadratic:
            return "the loss is not quadratic"
        if problem.blank:
            return "blank cells are pulled to a target, which is no model of how they came about; use ALS"
        if any(not isinstance(rule, Separable) or not rule.quadratic for rule in problem.rules()):
            return "a Gaussian prior is a ridge; use Ridge on all terms"
        if any(isinstance(rule, Separable) and rule.degree_power for rule in problem.rules()):
            return "penalties are learned, one for all rows; use Ridge without degree_scaling"
        return None

    def certificate(self, problem: Problem, state: State, rng: np.random.Generator) -> Certificate | None:
        """None: a mean is no minimum."""
        return None

    def solve(self, problem: Problem, state: State, rng: np.random.Generator, monitor: Monitor) -> State:
        """Run the chain; the state is as it was, what was kept is in ``posterior_``."""
        self.check(problem)
        check_choice("precision", self.precision, ("full", "diagonal"))
        for sweep in self.sweeps(problem, state, rng):
            state = sweep.state
            if monitor.record(sweep):
                break
        monitor.close()
        return state

    def resume(self, draws: Draws) -> None:
        """Begin the next chain where another one ended, with few sweeps before the first that is kept."""
        self._draws = draws
        self.burn_in = min(self.burn_in, SETTLING)

    def take_factors(self) -> tuple[FloatArray, FloatArray]:
        """Factors of the mean score, which belong to whoever takes them."""
        return self.__dict__.pop("_factors")  # type: ignore[no-any-return]

    def sweeps(self, problem: Problem, state: State, rng: np.random.Generator) -> Iterator[Sweep]:
        chain = _Chain(problem, state, rng, diagonal=self.precision == "diagonal")
        if "_draws" in self.__dict__:
            chain.resume(self.__dict__.pop("_draws"))
        last, thin, burn_in = self.max_iter, self.thin, self.burn_in
        kept, trace = _Kept(chain, self.n_samples), Trace(problem.observations.shape, rng)
        for number in range(1, last + 1):
            objective = chain.sweep()
            facts: dict[str, Any] = {"phase": "burn-in" if number <= burn_in else "sampling"}
            facts["noise_std"] = chain.scale / float(np.sqrt(chain.alpha))
            if number > burn_in:
                trace.add(chain.scores_at(trace.rows, trace.cols))
                if (number - burn_in) % thin == 0:
                    kept.add()
            if number == last:
                facts |= trace.facts()
                self.posterior_, *self._factors = kept.posterior()
            yield Sweep(state, objective, facts, settled=number == last)


class _Side:
    """One side of a chain: its draws, its prior, its cells, and the number of its random numbers."""

    def __init__(self, place: int, start: FloatArray, designs: list[Design], cells: Cells, *, diagonal: bool):
        self.place = place
        self.drawn = start
        self.means = module_of(start).empty_like(start)
        self.cells = cells
        self.prior = SidePrior(start.shape[1], designs, diagonal=diagonal)
        self.forgotten = [False] * len(designs)
        """Coefficients of which groups are not kept."""


class _Chain:
    """State of a chain, and one sweep of it. Values are in units of their standard deviation."""

    def __init__(self, problem: Problem, state: State, rng: np.random.Generator, *, diagonal: bool) -> None:
        parts = _parts(problem)
        assert isinstance(parts, _Parts)
        cells = problem.observations
        self.cells, self.rng, self.place = cells, rng, problem.provider
        self.layout = parts.coordinates
        self.seed = int(rng.integers(2**63))
        self.number = 0
        self.alpha = 1.0
        self.error = 0.0
        weights, linear = problem.cell_loss.normal_terms()
        counts = np.broadcast_to(np.asarray(weights, dtype=np.float64), cells.nnz)
        target = np.divide(linear, counts, out=np.zeros(cells.nnz), where=counts > 0)
        self.count = float(np.count_nonzero(counts))
        mean = np.sum(counts * target) / counts.sum()
        spread = float(np.sqrt(np.sum(counts * (target - mean) ** 2) / counts.sum()))
        self.scale = spread if spread > 0 else 1.0
        even = np.ndim(weights) == 0
        self.target = np.asarray(target / self.scale, dtype=cells.dtype)
        weights = float(weights) if even else np.asarray(weights, dtype=cells.dtype)
        linear = self.target if even and weights == 1.0 else (weights * self.target).astype(cells.dtype)
        self.by_row = self.place.pattern(
            cells.indptr,
            cells.indices,
            weights,
            linear,
            n_cols=cells.shape[1],
            by_column=lambda: by_column(cells, weights, linear),
        )
        self.target = self.place.asarray(self.target)
        self.weights = float(counts[0]) if even and cells.nnz else self.place.asarray(counts)
        in_order = self.by_row, self.by_row.transposed
        self.sides: dict[str, _Side] = {}
        for place, (name, length, own) in enumerate(zip(("row", "col"), cells.shape, in_order, strict=True)):
            sizes = START_SIZE * START_FALL ** np.arange(self.layout.own(name))
            sizes[self.layout.rank :] = START_SIZE
            start = self.place.asarray(sizes, cells.dtype) * self.normals((length, len(sizes)), START + place)
            designs = _feature_designs(problem, parts.factors, name, state)
            a_map = parts.factors.row_map if name == "row" else parts.factors.col_map
            self.sides[name] = _Side(place, start, designs, own, diagonal=diagonal)
            if isinstance(a_map, Joined) and name == "col":
                features = [part for part in a_map.maps if not isinstance(part, Identity)]
                self.sides[name].forgotten = [isinstance(part, History) for part in features]

    def resume(self, draws: Draws) -> None:
        """Stand where another chain ended, with random numbers of its own."""
        self.alpha = draws.alpha
        self.seed ^= crc32(np.ascontiguousarray(draws.rows).tobytes())
        for (name, side), length in zip(self.sides.items(), self.cells.shape, strict=True):
            side.drawn[...] = self.place.asarray(draws.of(name, length), side.drawn.dtype)

    def normals(self, shape: tuple[int, int], block: int) -> FloatArray:
        """Normal numbers of this sweep for one block of what is drawn."""
        found: FloatArray = self.place.normals(shape, self.seed, self.number, block, self.cells.dtype.type)
        return found

    def sweep(self) -> float:
        """Draw everything once; half the weighted squared error afterwards, in the units of the data."""
        self.number += 1
        if self.number > 1:  # before the rest, so that what is kept was drawn with the noise that is kept
            scale = 1.0 / (NOISE_RATE + 0.5 * self.error)
            self.alpha = float(self.rng.gamma(NOISE_SHAPE + 0.5 * self.count, scale))
        for name, other in (("col", "row"), ("row", "col")):
            self._draw_side(name, self.sides[other].drawn)
        gap = (self.target - self._cell_scores()).astype(np.float64)
        self.error = float((self.weights * gap * gap).sum())
        return 0.5 * self.error * self.scale**2

    def _draw_side(self, name: str, other: FloatArray) -> None:
        side = self.sides[name]

        def noise(group: int, rows: int) -> FloatArray:
            return self._home(self.normals((rows, side.prior.width), FEATURES + 2 * group + side.place))

        # What features say is learned on the CPU.
        side.prior.draw(self._home(side.drawn) if side.prior.groups else side.drawn, noise, self.rng)
        table, shift = self.layout.against(name, other)
        precision = side.prior.precision
        self.place.als_draw(
            side.cells,
            table,
            precision,
            self.normals(side.drawn.shape, side.place),
            side.drawn,
            scale=self.alpha,
            offset=side.prior.location() @ precision,
            shift=shift,
            means=side.means,
        )

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


class _Kept:
    """Samples on the way."""

    def __init__(self, chain: _Chain, n_samples: int) -> None:
        self.chain = chain
        width, itemsize = chain.layout.width, chain.cells.dtype.itemsize
        needed = n_samples * width * (sum(chain.cells.shape) * itemsize + 2 * chain.cells.shape[0])
        if needed > MAX_SAMPLE_BYTES:
            raise TooLargeError(
                f"{n_samples} samples of {width} coordinates for {sum(chain.cells.shape)} rows and columns "
                f"take {needed / 2**30:.1f} GiB; at most {MAX_SAMPLE_BYTES / 2**30:.0f} are accepted: take "
                "fewer n_samples, a smaller rank, or float32 values"
            )
        self.draws: dict[str, list[FloatArray]] = {"row": [], "col": []}
        self.priors: dict[str, list[tuple[Array, Array, list[FloatArray]]]] = {"row": [], "col": []}
        self.deviations: list[Array] = []
        self.noise: list[float] = []

    def add(self) -> None:
        """Keep where the chain is."""
        rows, home = self.chain.sides["row"], self.chain.place.to_host
        self.noise.append(self.chain.alpha / self.chain.scale**2)
        self.deviations.append(home(((rows.drawn - rows.means) * self.chain.scale).astype(np.float16)))
        for name, side in self.chain.sides.items():
            prior = side.prior
            # Rows were drawn last, so their means belong to the columns as they are: means of products of
            # these vary less than those of two draws.
            self.draws[name].append(home((side.means if name == "row" else side.drawn).copy()))
            coefficients = [
                # In single precision, they may be many; nobody asks new columns for their history.
                group.coefficients.astype(np.float32)[: 0 if forgotten else None]
                for group, forgotten in zip(prior.groups, side.forgotten, strict=True)
            ]
            self.priors[name].append((prior.mean, prior.precision, coefficients))

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
        )
        rows, cols = (posterior.stacked(name, np.stack(found)) for name, found in self.draws.items())
        return posterior, rows, cols


def _parts(problem: Problem) -> _Parts | str:
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
    return _Parts(factors[0], biases.get("row"), biases.get("col"))


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
