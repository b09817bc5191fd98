"""Matrix factorisation averaged over its posterior."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from unseen.cores import Full, LowRank
from unseen.data import Observations
from unseen.estimators.composed import ComposedCompleter, Composition
from unseen.exceptions import ParameterError
from unseen.levels import Ordinal, Probit
from unseen.losses import Loss, Squared
from unseen.maps import Constant, FeatureMap, Given, History, Identity, Joined
from unseen.solvers import Gibbs
from unseen.terms import Term
from unseen.typing import Features, FloatArray
from unseen.validation import check_choice, check_count

__all__ = ["BayesianMF"]


class BayesianMF(ComposedCompleter):
    """Matrix factorisation with biases, averaged over its posterior by Gibbs sampling.

    a_ij ~ N(mu + b_i + c_j + u_i . v_j, 1 / (alpha f_i g_j w_ij)),   (u_i, b_i) ~ N(m, L^-1),   v, c likewise

    with mu the mean of the observed cells, w the weights of cells, and f and g precisions of rows and
    columns: some raters are steadier than others. With features x_i of the rows the prior is
    ``N(m + B'x_i, L^-1)``, with coefficients B and a weight of their size that are learned; those of
    columns and histories likewise. Rows and columns without cells are predicted by their features. The
    precision L of each side, its mean m and the noise are drawn along with the factors, so there is no
    penalty to choose. The prediction
    is the mean over ``n_samples`` draws; their spread and the noise give intervals.

    Parameters
    ----------
    rank : int, default=20
        Columns of the factors; more does not overfit, it takes longer.
    history : {False, "rows", "cols", True}, default=False
        Take which cells a row, a column, or each of both has as features of it (SVD++ and its mirror image),
        from the training cells of the fit.
    likelihood : {"gaussian", "ordinal", "probit"}, default="gaussian"
        What values are: measured numbers, levels of which only the order counts (stars), or likes and
        dislikes (non-zero and stored zero). A cell has the level in which its score plus normal noise falls;
        the thresholds between levels are drawn along. Predictions are mean levels then, and
        ``predict_proba`` gives the probability of each.
    n_samples : int, default=50
        Draws that are kept; the factors of the mean have ``n_samples * (rank + 2)`` columns.
    burn_in : int, default=50
        Sweeps before the first draw that is kept.
    thin : int, default=2
        Sweeps from one kept draw to the next.
    precision : {"full", "diagonal"}, default="full"
        L is a full matrix, or has one number for each coordinate.
    noise : {"varying", "constant"}, default="varying"
        Whether rows and columns differ in their noise, or all cells have the same, as likes and dislikes
        always have.
    clip : (float, float) or "observed", optional
        Bounds of predictions and intervals, or the smallest and largest observed value. Means are clipped,
        not draws; ``raw=True`` gives them unclipped.
    standardize : bool, default=True
        Centre features and scale them to unit variance; sparse ones stay sparse.

    Attributes
    ----------
    row_factors_, col_factors_ : ndarray
        Factors of all kept draws side by side, whose products are the mean scores before clipping, and mu as
        an extra coordinate.
    history_ : list of dict
        ``objective`` (half the squared error of the draw), ``time_s``, ``phase`` and ``noise_std`` of each
        sweep. The last entry has ``rhat``, the split R-hat of some predictions over the sweeps after
        ``burn_in``, and ``effective_samples``, the median of what these sweeps are worth.
    clip_ : tuple or None
        Bounds of predictions.

    Examples
    --------
    >>> from unseen import BayesianMF
    >>> from unseen.datasets import make_low_rank
    >>> data = make_low_rank(100, 60, rank=3, density=0.5, noise=0.1, random_state=0)
    >>> model = BayesianMF(rank=5, n_samples=20, burn_in=20, random_state=0).fit(data.observations)
    >>> prediction, std = model.predict_entries([0, 1], [2, 3], return_std=True)
    >>> low, high = model.predict_interval([0, 1], [2, 3], level=0.9).T
    >>> bool((low < prediction).all() and (prediction < high).all())
    True
    """

    def __init__(
        self,
        rank: int = 20,
        *,
        history: bool | Literal["rows", "cols"] = False,
        likelihood: Literal["gaussian", "ordinal", "probit"] = "gaussian",
        n_samples: int = 50,
        burn_in: int = 50,
        thin: int = 2,
        precision: Literal["full", "diagonal"] = "full",
        noise: Literal["varying", "constant"] = "varying",
        clip: tuple[float, float] | Literal["observed"] | None = None,
        standardize: bool = True,
        random_state: Any = None,
        device: str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.history = history
        self.likelihood = likelihood
        self.n_samples = n_samples
        self.burn_in = burn_in
        self.thin = thin
        self.precision = precision
        self.noise = noise
        self.clip = clip
        self.standardize = standardize
        self.random_state = random_state
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def center(self) -> str:  # type: ignore[override]
        """What is subtracted before the fit: the mean of measured values, nothing of levels."""
        return "mean" if self.likelihood == "gaussian" else "none"

    def _compose(self, has_row_features: bool, has_col_features: bool) -> Composition:
        history = check_choice("history", self.history, (False, "rows", "cols", True))
        rows = self._side_map(has_row_features, history in ("rows", True))
        cols = self._side_map(has_col_features, history in ("cols", True))
        terms = [
            Term(rows, cols, LowRank(check_count("rank", self.rank))),
            Term(rows, Constant(), Full()),
            Term(Constant(), cols, Full()),
        ]
        solver = Gibbs(self.n_samples, self.burn_in, self.thin, self.precision, self.noise)
        losses: dict[str, Loss] = {"gaussian": Squared(), "ordinal": Ordinal(), "probit": Probit()}
        return Composition(terms, losses[check_choice("likelihood", self.likelihood, tuple(losses))], solver)

    def _side_map(self, has_features: bool, has_history: bool) -> FeatureMap:
        parts: list[FeatureMap] = [Identity()]
        parts += [Given(self.standardize)] if has_features else []
        parts += [History()] if has_history else []
        return Joined(parts) if len(parts) > 1 else parts[0]

    def _fit_validated(self, cells: Observations, features: dict[str, Features | None]) -> None:
        self.clip_ = _bounds(self.clip, cells)
        super()._fit_validated(cells, features)

    def _to_data(self, scores: FloatArray) -> FloatArray:
        found = super()._to_data(scores)
        return found if self.clip_ is None else np.clip(found, *self.clip_)


def _bounds(clip: Any, cells: Observations) -> tuple[float, float] | None:
    if clip is None:
        return None
    if isinstance(clip, str):
        if clip != "observed":
            raise ParameterError(f'clip must be (low, high), "observed" or None, found {clip!r}')
        return float(cells.values.min()), float(cells.values.max())
    try:
        low, high = (float(bound) for bound in clip)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not low < high:
        raise ParameterError(f'clip must be (low, high) with low < high, "observed" or None, found {clip!r}')
    return low, high
