"""Gibbs sampling: a composition averaged over all that fits, instead of the one that fits best."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np

from unseen.problem import Problem
from unseen.regularisers import Separable
from unseen.solvers.base import Monitor, Solver, Sweep
from unseen.solvers.certificates import Certificate
from unseen.solvers.gibbs_cells import why_no_cells
from unseen.solvers.gibbs_chain import Chain, Kept, roles_of
from unseen.solvers.gibbs_terms import KeptTerms, TermChain, why_not_terms
from unseen.solvers.mixing import Trace
from unseen.solvers.posterior import Draws, Posterior
from unseen.solvers.term_posterior import TermPosterior
from unseen.state import State
from unseen.typing import FloatArray
from unseen.validation import check_choice, check_count

__all__ = ["Gibbs"]

SETTLING = 10
"""Sweeps after which a chain that goes on with more cells is taken to have settled."""


class Gibbs(Solver):
    """Gibbs sampling of sums of terms over fixed maps, with penalties that are learned.

    Values are ``a_ij ~ N(s_ij, 1 / (alpha r_i c_j w_ij))`` with w the weight of the cell, r and c those
    of its row and column, or levels in which a score plus normal noise falls (:class:`~unseen.Ordinal`,
    :class:`~unseen.Probit`). In place of one solution that minimises the objective, solutions are drawn in
    proportion to how well they fit, and predictions are means over them. Penalties (a matrix for each factor,
    a number for each full core), noise and thresholds are drawn along, so ``reg`` of the terms has no
    influence.

    For one low-rank term and biases beside it a row with its bias is ``u_i ~ N(m + B'x_i, L^-1)``, columns
    likewise; sides with features take :class:`~unseen.maps.Joined`, in which each row has coefficients of its
    own around what its features say. Any other sum of terms is drawn factor by factor: rows without features
    one by one, coefficients of features as the solution of a system with perturbed data, by conjugate
    gradients.

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
    noise : {"varying", "constant"}, default="varying"
        Noise of the cells: rows and columns differ in it, which is learned, or all cells have the same, as
        likes and dislikes always have.

    Attributes
    ----------
    posterior_ : Posterior or TermPosterior
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
        noise: Literal["varying", "constant"] = "varying",
    ) -> None:
        self.n_samples = n_samples
        self.burn_in = burn_in
        self.thin = thin
        self.precision = precision
        self.noise = noise

    tol = 0.0

    @property
    def max_iter(self) -> int:  # type: ignore[override]
        """Sweeps of a whole chain."""
        kept, thin = check_count("n_samples", self.n_samples), check_count("thin", self.thin)
        return check_count("burn_in", self.burn_in, minimum=0) + kept * thin

    def refuses(self, problem: Problem) -> str | None:
        reason = why_no_cells(problem)
        if reason is None and isinstance(roles_of(problem), str):
            reason = why_not_terms(problem)
        if reason is not None:
            return reason
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
        check_choice("noise", self.noise, ("varying", "constant"))
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
        last, thin, burn_in = self.max_iter, self.thin, self.burn_in
        options = {"diagonal": self.precision == "diagonal", "varying": self.noise == "varying"}
        chain: Chain | TermChain
        kept: Kept | KeptTerms
        if isinstance(roles_of(problem), str):
            chain = TermChain(problem, state, rng, **options)
            kept = KeptTerms(chain, self.n_samples)
        else:
            chain = Chain(problem, state, rng, **options)
            if "_draws" in self.__dict__:
                chain.resume(self.__dict__.pop("_draws"))
            kept = Kept(chain, self.n_samples)
        trace = Trace(problem.observations.shape, rng)
        for number in range(1, last + 1):
            objective = chain.sweep()
            facts: dict[str, Any] = {"phase": "burn-in" if number <= burn_in else "sampling"}
            facts |= chain.facts()
            if number > burn_in:
                trace.add(chain.scores_at(trace.rows, trace.cols))
                if (number - burn_in) % thin == 0:
                    kept.add()
            if number == last:
                facts |= trace.facts()
                found = kept.posterior()
                self.posterior_: Posterior | TermPosterior = found[0]
                self._factors = found[1:]
            yield Sweep(state, objective, facts, settled=number == last)
