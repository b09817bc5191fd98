"""Free composition: what no paper has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unseen.estimators.clipping import Clip
from unseen.estimators.composed import ComposedCompleter, Composition
from unseen.exceptions import ParameterError
from unseen.losses import Loss, Squared
from unseen.solvers import Solver
from unseen.terms import Term
from unseen.validation import check_several

__all__ = ["Completion"]


class Completion(ComposedCompleter):
    """A completer put together from terms, a loss and a solver.

    min   sum_stored l(s, a) + background on blank cells + penalties,    S = sum_t A_t Z_t B_t'

    Losses carry 1/2: ``w/2 (s - t)^2``; penalties are ``reg/2`` on squared norms and ``reg`` on
    norms.

    Parameters
    ----------
    terms : sequence of Term, optional
        Summands of the score matrix; one low-rank term without features by default.
    loss : Loss, optional
        Meaning of stored and blank cells; ``Squared()`` by default.
    solver : Solver or "auto", default="auto"
        A solver, or the first that takes the composition. It refuses, with a reason, what it
        cannot solve.
    center : {"none", "mean", "biases"}, default="none"
        Subtract nothing, the mean, or a :class:`BiasModel` first.
    random_state : int or Generator, optional
        Seed.

    Attributes
    ----------
    row_factors_, col_factors_ : ndarray
        Stacked factors of all terms, offsets as extra coordinates.
    solver_ : Solver
        The solver that was used.

    Examples
    --------
    Features on the rows and, beside them, a low-rank part of its own:

    >>> from unseen import Completion, Given, Identity, LowRank, Ridge, Term
    >>> from unseen.datasets import make_imc
    >>> data = make_imc(100, 80, 5, 4, rank=2, density=0.2, noise=0.1, random_state=0)
    >>> model = Completion(terms=[
    ...     Term(Given(), Identity(), LowRank(2), Ridge(0.1)),
    ...     Term(Identity(), Identity(), LowRank(2), Ridge(1.0)),
    ... ], random_state=0)
    >>> model = model.fit(data.observations, row_features=data.row_features)
    >>> type(model.solver_).__name__
    'AlternatingCG'
    """

    def __init__(
        self,
        terms: Sequence[Term] | None = None,
        *,
        loss: Loss | None = None,
        solver: Solver | str = "auto",
        center: str = "none",
        bias_reg: float = 5.0,
        max_iter: int = 100,
        tol: float = 1e-5,
        validation_fraction: float | None = None,
        patience: int = 5,
        warm_start: bool = False,
        random_state: Any = None,
        clip: Clip = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.terms = terms
        self.loss = loss
        self.solver = solver
        self.center = center
        self.bias_reg = bias_reg
        self.max_iter = max_iter
        self.tol = tol
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.warm_start = warm_start
        self.random_state = random_state
        self.clip = clip
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _compose(self, has_row_features: bool, has_col_features: bool) -> Composition:
        terms = [Term()] if self.terms is None else check_several("terms", self.terms, "terms")
        if not terms or not all(isinstance(term, Term) for term in terms):
            raise ParameterError(f"terms must be a non-empty sequence of Term, found {self.terms!r}")
        loss = Squared() if self.loss is None else self.loss
        if not isinstance(loss, Loss):
            raise ParameterError(f"loss must be a Loss such as Squared(), found {self.loss!r}")
        if isinstance(self.solver, Solver):
            return Composition(terms, loss, self.solver)
        if self.solver != "auto":
            raise ParameterError(f'solver must be a Solver such as ALS() or "auto", found {self.solver!r}')
        return Composition(terms, loss, None)
