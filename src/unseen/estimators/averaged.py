"""Completers whose solver averages: predictions, their spread and new rows from kept samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self, cast

import numpy as np
from scipy import sparse
from scipy.special import ndtr, ndtri
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from unseen.cores import LowRank
from unseen.data import Observations
from unseen.estimators.compressing import compress
from unseen.estimators.factored import FactoredCompleter
from unseen.estimators.ids import Places
from unseen.exceptions import InvalidDataError, NotInductiveError
from unseen.levels import Cuts, LevelLoss, chances, mean_level
from unseen.linalg.blocked import matmul
from unseen.linalg.designs import Design
from unseen.losses import cells_that_count
from unseen.maps import FeatureMap, History, Identity, Joined
from unseen.maps.joined import Seen, history_of
from unseen.solvers import Gibbs, Posterior, TermPosterior
from unseen.state import map_params
from unseen.typing import Array, Features, FloatArray
from unseen.validation import check_count, check_fraction

__all__ = ["AveragedCompleter"]

PAIRS_AT_A_TIME = 1 << 22
"""Numbers of samples that are made at a time."""
CELLS_OF_WIDTH = 1 << 14
"""About how many cells say how much scores spread over the samples."""
NEWTON_STEPS = 30


def _averages(model: Any) -> bool:
    """Whether a model was fitted by sampling, or would be."""
    return getattr(model, "_posterior", None) is not None


class AveragedCompleter(FactoredCompleter):
    """Factors of the mean over samples, side by side; where nothing was sampled, those of one solution."""

    @property
    def _posterior(self) -> Posterior | TermPosterior | None:
        return getattr(getattr(self, "solver_", None), "posterior_", None)

    def _keep_mean(self, solver: Gibbs) -> None:
        """Store factors of the mean score, and offsets as extra coordinates."""
        offsets = self.offsets_
        rows, cols = solver.take_factors()
        n, m = len(rows), len(cols)
        self.widths_ = [rows.shape[1]]
        self.row_factors_ = np.ascontiguousarray(
            np.hstack([rows, offsets.row_coordinates(n, offsets.row)]), dtype=rows.dtype
        )
        self.col_factors_ = np.ascontiguousarray(
            np.hstack([cols, offsets.col_coordinates(m, offsets.col)]), dtype=rows.dtype
        )

    def _keep_levels(self, cells: Observations) -> None:
        """Thresholds and noise of the mean score; the spread of scores is noise beside their own."""
        posterior, loss = self._posterior, self.loss_
        if posterior is None or posterior.thresholds is None:
            return
        assert isinstance(loss, LevelLoss)
        some = slice(None, None, max(1, cells.nnz // CELLS_OF_WIDTH))
        widths = self._widths(*(found[some].astype(np.int64) for found in (cells.rows, cells.indices)))
        width = float(np.sqrt(np.mean(widths**2)))
        self.loss_ = loss.averaged(posterior.thresholds.mean(axis=0), width)

    def _has_levels(self) -> bool:
        """Whether values are levels of averaged scores."""
        return self._posterior is not None and self._posterior.thresholds is not None

    def _cuts(self) -> Cuts:
        assert isinstance(self.loss_, LevelLoss)
        return self.loss_.cuts()

    def _widths(self, i: Places, j: Places) -> Array:
        """Standard deviation of new observations of cells, around their mean scores."""
        return np.concatenate([_deviation(*sampled) for sampled in self._noisy_samples(i, j)])

    compression_: dict[str, float]

    @available_if(_averages)  # type: ignore[untyped-decorator]
    def compressed(self, rank: int) -> Self:
        """A copy that holds the mean score in so many factors, and no samples.

        Factors of the mean are as wide as all samples side by side; most of that is noise. The copy has the
        leading singular vectors of their product, which is never formed. It predicts, lists, is saved and
        served like the model; intervals, deviations and new rows need the samples and are refused.

        Parameters
        ----------
        rank : int
            Factors that are kept, offsets beside them.

        Returns
        -------
        model
            With ``compression_``: ``rank``, ``rms_change`` (root mean square of what changed over all scores)
            and ``share_kept`` (of their squares).
        """
        check_is_fitted(self)
        return cast(Self, compress(self, check_count("rank", rank)))

    def _refuse_without_samples(self) -> None:
        solver = getattr(self, "solver_", None)
        if self._posterior is None and getattr(solver, "averages", False):
            raise NotInductiveError("a compressed mean holds no samples, and these are needed here")

    # -- levels ----------------------------------------------------------------------

    def _predictions_at(self, i: Places, j: Places, scores: FloatArray) -> FloatArray:
        if not self._has_levels():
            return super()._predictions_at(i, j, scores)
        found = self._predictions(scores)
        known = (i >= 0) & (j >= 0)
        found[known] = mean_level(self._cuts(), scores[known], self._widths(i[known], j[known]))
        return found

    def _probabilities_at(self, i: Places, j: Places) -> FloatArray:
        if not self._has_levels():
            return super()._probabilities_at(i, j)
        return chances(self._cuts(), self._predict_entries(i, j), self._widths(i, j))

    def _block(self, row_features: Features | None, col_features: Features | None) -> FloatArray:
        if not self._has_levels():
            return super()._block(row_features, col_features)
        left = self.row_factors_ if row_features is None else self._embed_rows(row_features)
        right = self.col_factors_ if col_features is None else self._embed_cols(col_features)
        return self._mean_levels(left, right, old_rows=row_features is None, old_cols=col_features is None)

    def _complete(self, cells: Observations, factors: FloatArray) -> FloatArray:
        if not self._has_levels():
            return super()._complete(cells, factors)
        return self._mean_levels(factors, self.col_factors_, old_rows=False, old_cols=True)

    def _mean_levels(
        self, left: FloatArray, right: FloatArray, *, old_rows: bool, old_cols: bool
    ) -> FloatArray:
        posterior, n_threads = self._posterior, self._n_threads()
        assert posterior is not None
        scores = matmul(left, right.T, n_threads=n_threads)
        spread = posterior.spread(left, right, of_training=old_rows, n_threads=n_threads)
        varying = posterior.varying
        noise = 1.0 if varying is None else varying.variances(rows=old_rows, cols=old_cols)
        return mean_level(self._cuts(), scores, np.sqrt(noise + spread))

    # -- new rows and columns --------------------------------------------------------

    def _term_embeddings(self, side: str, features: Features | None, count: int) -> list[FloatArray]:
        self._refuse_without_samples()
        posterior = self._posterior
        if posterior is None:
            return super()._term_embeddings(side, features, count)
        if isinstance(posterior, TermPosterior):
            return [posterior.stacked(side, self._embedded_terms(posterior, side, features, count))]
        a_map = self._factor_map(side)
        if not (isinstance(a_map, Joined) and a_map.needs_features):
            raise NotInductiveError(self._why_not_inductive(side))
        designs = self._feature_designs(side, features, count, None)
        return [posterior.embed(side, designs, count)]

    def _embedded_terms(
        self, posterior: TermPosterior, side: str, features: Features | None, count: int
    ) -> Array:
        """Coordinates of new entities in each sample, (S, count, width); zero where features are mute."""
        found = np.zeros((posterior.n_samples, count, posterior.width))
        spoken, start = False, 0
        for index, (term, width) in enumerate(zip(self.terms_, posterior.widths, strict=True)):
            a_map = term.parts()[0 if side == "row" else 1]
            part, start = slice(start, start + width), start + width
            if isinstance(a_map, Joined | History):
                raise NotInductiveError(f"a sum of terms with {type(a_map).__name__} knows no new {side}s")
            if not a_map.inductive or (a_map.needs_features and features is None):
                continue
            spoken = True
            params = map_params(self.state_, index, side)
            design = a_map.apply(features, count, params, self._n_threads())
            for s in range(posterior.n_samples):
                state = {**self.state_, **posterior.state(s)}
                found[s][:, part] = self._term_coordinates(index, side, design, state)
        if not spoken and features is not None:
            raise NotInductiveError(self._why_not_inductive(side))
        return found

    def _factor_map(self, side: str) -> FeatureMap:
        term = next(term for term in self.terms_ if isinstance(term.parts()[2], LowRank))
        return term.parts()[0 if side == "row" else 1]

    def _feature_designs(
        self, side: str, features: Features | None, count: int, cells: Observations | None
    ) -> list[Design | None]:
        """Designs of new rows or columns by groups of features; None for unknown histories."""
        a_map = self._factor_map(side)
        if not isinstance(a_map, Joined):
            return []
        groups = [part for part in a_map.maps if not isinstance(part, Identity)]
        place = next(i for i, term in enumerate(self.terms_) if isinstance(term.parts()[2], LowRank))
        params = map_params(self.state_, place, side)
        if cells is None:
            history = sparse.csr_array((count, 0), dtype=self.row_factors_.dtype)
        else:
            history = history_of(cells, cells.weights, side, self.row_factors_.dtype)
        source = Seen(features, history)
        found = a_map.feature_designs(source, count, params, self._n_threads())
        return [
            None if cells is None and isinstance(part, History) else design
            for part, design in zip(groups, found, strict=True)
        ]

    def _solve_rows(self, cells: Observations, row_features: Features | None) -> FloatArray:
        self._refuse_without_samples()
        posterior = self._posterior
        if posterior is None:
            return super()._solve_rows(cells, row_features)
        cells = cells_that_count(cells)
        codes = None
        if isinstance(self.loss_, LevelLoss):
            codes = self.loss_.codes(cells.values)
            if cells.weights is not None and not np.all(cells.weights == 1):
                raise InvalidDataError("cells with levels count once or not at all; use weights of 0 and 1")
        options: dict[str, Any] = {"codes": codes, "n_threads": self._n_threads()}
        if isinstance(posterior, TermPosterior):
            known = self._embedded_terms(posterior, "row", row_features, cells.shape[0])
            inductive = [term.parts()[0].inductive for term in self.terms_]
            free = ~np.repeat(inductive, posterior.widths)
            if np.count_nonzero(free) != posterior.row_prior.mean.shape[1]:
                raise NotInductiveError("a Full core has a row for each training row and none for others")
            return posterior.fold_in(cells, self.col_factors_, known, free, **options)
        designs = self._feature_designs("row", row_features, cells.shape[0], cells)
        return posterior.fold_in(cells, self.col_factors_, designs, **options)

    # -- spread ----------------------------------------------------------------------

    def _with_std(self, rows: Places, cols: Places) -> tuple[FloatArray, FloatArray]:
        self._refuse_without_samples()
        posterior = self._posterior
        if posterior is None:
            return super()._with_std(rows, cols)
        if self._has_levels():
            found, levels = self._probabilities_at(rows, cols), self.levels_
            mean = found @ levels
            std = np.sqrt(np.maximum(found @ levels**2 - mean * mean, 0.0))
            return mean.astype(self.row_factors_.dtype), std.astype(self.row_factors_.dtype)
        std = np.concatenate([_deviation(*sampled) for sampled in self._noisy_samples(rows, cols)])
        return self._predictions(self._predict_entries(rows, cols)), std.astype(self.row_factors_.dtype)

    def _parts(self, i: Places, j: Places) -> Iterator[tuple[Places, Places]]:
        """Some cells at a time."""
        step = max(1, PAIRS_AT_A_TIME // self.row_factors_.shape[1])
        for start in range(0, max(len(i), 1), step):
            yield i[start : start + step], j[start : start + step]

    def _samples(self, i: Places, j: Places) -> list[Array]:
        """Scores of cells in each sample, some cells at a time."""
        return [self._sampled(*part) for part in self._parts(i, j)]

    def _noisy_samples(self, i: Places, j: Places) -> Iterator[tuple[Array, Array]]:
        """The same, with the precision of each cell in each sample beside them."""
        posterior = self._posterior
        assert posterior is not None
        for part in self._parts(i, j):
            yield self._sampled(*part), posterior.noise_at(*part)

    def _sampled(self, i: Places, j: Places) -> Array:
        posterior = self._posterior
        assert posterior is not None
        left, right = self.row_factors_[i], self.col_factors_[j]
        width = self.widths_[0]
        beside = np.einsum("pk,pk->p", left[:, width:], right[:, width:], dtype=np.float64)
        found: Array = posterior.scores(left, right, i) + beside[:, None]
        return found

    @available_if(_averages)  # type: ignore[untyped-decorator]
    def predict_interval(
        self, rows: Any, cols: Any, level: float = 0.9, *, positions: bool = False
    ) -> FloatArray:
        """Intervals that hold a new observation of each cell, of weight one, with this probability.

        Noise is included: the interval is that of the mixture of all samples, each with its own noise, and
        leaves out as much below as above. Levels come in lumps, so hardly any interval of one cell holds
        just 90 %: there it is the run of levels around the likeliest whose probability is closest to that.
        It may hold more or less than it promises for one cell, and comes close over many.

        Parameters
        ----------
        rows, cols : array-like of ids, of equal length
            Rows and columns; positions where the model was fitted without ids.
        level : float, default=0.9
            Probability, between 0 and 1.
        positions : bool, default=False
            Take positions, whatever the ids.

        Returns
        -------
        ndarray of shape (len(rows), 2)
            Lower and upper ends.
        """
        check_is_fitted(self)
        level = check_fraction("level", level)
        tails = (0.5 - 0.5 * level, 0.5 + 0.5 * level)
        if self._has_levels():
            found = self._probabilities_at(*self._pairs(rows, cols, positions))
            of_levels: FloatArray = self.levels_[_run_of_levels(found, level)].astype(self.row_factors_.dtype)
            return of_levels
        parts = [
            np.stack([_quantile(scores, noise, tail) for tail in tails], axis=1)
            for scores, noise in self._noisy_samples(*self._pairs(rows, cols, positions))
        ]
        return self._to_data(np.concatenate(parts).astype(self.row_factors_.dtype))


def _run_of_levels(chances: Array, level: float) -> Array:
    """Places of the first and last of the adjacent levels whose joint probability is closest to ``level``.

    Runs grow from the likeliest level by the likelier neighbour.
    """
    rows, last = np.arange(len(chances)), chances.shape[1] - 1
    padded = np.pad(chances, [(0, 0), (1, 1)], constant_values=-1.0)
    ends = np.repeat(chances.argmax(axis=1)[:, None], 2, axis=1)
    held = chances[rows, ends[:, 0]]
    found, away = ends.copy(), np.abs(held - level)
    for _ in range(last):
        below, above = padded[rows, ends[:, 0]], padded[rows, ends[:, 1] + 2]
        down, grows = below >= above, np.maximum(below, above) >= 0
        ends = ends + np.stack([-(grows & down).astype(int), (grows & ~down).astype(int)], axis=1)
        held = held + np.where(grows, np.maximum(below, above), 0.0)
        closer = np.abs(held - level) < away
        found[closer], away[closer] = ends[closer], np.abs(held - level)[closer]
    return found


def _deviation(scores: Array, noise: Array) -> Array:
    """Standard deviation of a new observation."""
    return np.asarray(np.sqrt(scores.var(axis=1) + np.mean(1.0 / noise, axis=1)))


def _quantile(scores: Array, noise: Array, share: float) -> Array:
    """Quantile of each row's mixture of normal distributions, by Newton steps between bounds."""
    std = 1.0 / np.sqrt(noise)
    ends = scores + std * ndtri(share)
    low, high = ends.min(axis=1), ends.max(axis=1)
    found = ends.mean(axis=1)
    for _ in range(NEWTON_STEPS):
        away = (found[:, None] - scores) / std
        gap = ndtr(away).mean(axis=1) - share
        low, high = np.where(gap < 0, found, low), np.where(gap > 0, found, high)
        density = (np.exp(-0.5 * away * away) / std).mean(axis=1) / np.sqrt(2 * np.pi)
        step = found - np.divide(gap, density, out=np.zeros_like(gap), where=density > 0)
        inside = (step > low) & (step < high)
        if np.all(np.abs(gap) < 1e-7):
            break
        found = np.where(inside, step, 0.5 * (low + high))
    return np.asarray(found)
