"""Kept samples of a chain of any terms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unseen.data import Observations
from unseen.linalg.blocked import matmul
from unseen.solvers.gibbs_noise import NoiseSamples
from unseen.solvers.posterior import SideSamples, drawn_rows
from unseen.state import State
from unseen.typing import Array, FloatArray, IndexArray

__all__ = ["TermPosterior"]


@dataclass
class TermPosterior:
    """Samples of a chain, in the units of the data.

    Attributes
    ----------
    noise : ndarray of shape (S,)
        Precision of a cell of weight one.
    widths : list of int
        Columns of the factors of one sample, by terms.
    learned : dict of ndarray, shape (S, ...)
        Coefficients of features, and cores, by their names in the state.
    row_prior : SideSamples
        What was believed of the coordinates that rows have of their own.
    scale : float
        Unit of the chain: scores are ``scale * u . v``.
    thresholds : ndarray of shape (S, levels - 1), optional
        Where levels end, where cells have levels.
    varying : NoiseSamples, optional
        What rows and columns have of their own, where noise varies.
    """

    noise: Array
    widths: list[int]
    learned: dict[str, Array]
    row_prior: SideSamples
    scale: float = 1.0
    thresholds: Array | None = None
    varying: NoiseSamples | None = None

    @property
    def n_samples(self) -> int:
        """Kept samples."""
        return len(self.noise)

    @property
    def width(self) -> int:
        """Columns of the factors of one sample."""
        return sum(self.widths)

    def state(self, sample: int) -> State:
        """What was learned of features in one sample."""
        return {key: value[sample] for key, value in self.learned.items()}

    def stacked(self, side: str, found: Array) -> FloatArray:
        """Factors of the mean score, all samples side by side, from those of shape (S, n, width)."""
        wide = found * (self.scale / self.n_samples) if side == "row" else found
        return np.ascontiguousarray(np.swapaxes(wide, 0, 1)).reshape(found.shape[1], -1).astype(found.dtype)

    def apart(self, factors: FloatArray) -> FloatArray:
        """Stacked factors by samples, of shape (n, S, width)."""
        total = self.n_samples * self.width
        return factors[:, :total].reshape(len(factors), self.n_samples, self.width)

    def noise_at(self, rows: IndexArray, cols: IndexArray) -> Array:
        """Precisions of cells of weight one in each sample, of shape (cells or 1, S)."""
        return self.noise[None] if self.varying is None else self.noise * self.varying.at(rows, cols)

    def scores(self, left: FloatArray, right: FloatArray, rows: IndexArray | None = None) -> Array:
        """Scores of pairs in each sample, of shape (pairs, S), from stacked factors of both sides."""
        pair = self.apart(left), self.apart(right)
        return np.asarray(np.einsum("psk,psk->ps", *pair, dtype=np.float64) * self.n_samples)

    def spread(self, left: FloatArray, right: FloatArray, *, of_training: bool, n_threads: int = 1) -> Array:
        """Variance of the scores of a block over the samples, from stacked factors of both sides."""
        rows, columns = self.apart(left), self.apart(right)
        mean, squares = (np.zeros((len(left), len(right))) for _ in range(2))
        for s in range(self.n_samples):
            scores = self.n_samples * matmul(rows[:, s], columns[:, s].T, n_threads=n_threads)
            away = scores - mean
            mean += away / (s + 1)
            squares += away * (scores - mean)
        return squares / self.n_samples

    def fold_in(
        self,
        cells: Observations,
        col_factors: FloatArray,
        known: Array,
        free: Array,
        *,
        codes: Array | None = None,
        n_threads: int = 1,
    ) -> FloatArray:
        """Stacked factors of new rows: what features say, and the mean of the rest in each sample.

        ``known`` has the coordinates by features, of shape (S, n, width); ``free`` says which ones rows have
        of their own.
        """
        right = self.apart(col_factors)
        found = np.array(known, dtype=np.float64)
        if free.any():
            values = cells.values.astype(np.float64) / self.scale
            for s in range(self.n_samples):
                columns = right[:, s].astype(np.float64)
                found[s][:, free] = drawn_rows(
                    cells,
                    np.ascontiguousarray(columns[:, free]),
                    values,
                    alpha=float(self.noise[s] * self.scale**2),
                    prior=(self.row_prior.mean[s][None], self.row_prior.precision[s]),
                    beside=np.einsum("ij,ij->i", known[s][cells.rows], columns[cells.indices]),
                    levels=None if self.thresholds is None or codes is None else (self.thresholds[s], codes),
                    varying=None if self.varying is None else self.varying.of(s, cells.indices),
                    sample=s,
                    n_threads=n_threads,
                )
        return self.stacked("row", found).astype(col_factors.dtype)
