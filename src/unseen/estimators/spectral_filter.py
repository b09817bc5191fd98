"""A filter of positives: rows that share columns and leading singular vectors of the normalised matrix."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse

from unseen import kernels
from unseen.data import Observations
from unseen.estimators.positive_rows import PositiveRows, degree_scales
from unseen.estimators.row_scores import RowParts
from unseen.exceptions import ParameterError
from unseen.linalg.lowrank_sum import LowRankPlusSparse
from unseen.linalg.svt import thresholded_svd
from unseen.parallel import one_blas_thread
from unseen.settings import check_settings
from unseen.typing import CSR, FloatArray, IndexArray
from unseen.validation import check_count, check_pair, check_positive, check_rng

__all__ = ["SpectralFilter"]

SVD_TOL = 0.03
"""Residual of singular vectors beside the largest value. The last of them lie close together: finer ones
take many times as long and make no better lists."""


class SpectralFilter(PositiveRows):
    """Lists from positives without training: a filter of each row's own positives.

    With R the positives, d_u and d_i the sums of their rows and columns, degree powers (a, b) and
    N = D_u^-a R D_i^-b divided by its largest singular value, the scores are

        S = R D_i^-b N_0' N  +  low_pass R D_i^-b V diag(s^spectrum_power) V' D_i^b

    with ``N_0 = D_u^-a R`` over the same number. The first part counts rows that share a column with the row
    and have the other column, those with many positives less. The second keeps what the ``rank`` leading
    right singular vectors V of N (values s) see of the row; with ``spectrum_power=0`` it is an ideal low-pass
    filter. Powers (0.5, 0.5) make N N' a random walk.

    The first part is a sum over rows v of how far v shares columns with the row, q_v = (R D_i^-b R')_v. With
    ``neighbor_power`` p it is the sum with m (q_v / m)^p, m being the largest of the q_v: above one, rows
    that share much count more than many that share little. ``list_power`` c puts D_i^-c in place of D_i^-b
    everywhere but in q, in N too: what speaks for likeness and what is listed are held back apart.

    Nothing is learned but the singular vectors, so a fit takes about as long as a truncated SVD. Blank
    cells are unlabelled. Repeated or larger values count more only with ``weights=True``.

    Parameters
    ----------
    rank : int, default=256
        Singular vectors of the low-pass part.
    low_pass : float, default=0.1
        Weight of the low-pass part; 0 leaves it out.
    degree_power : float or (float, float), default=(0.35, 0.4)
        How far rows with many positives, and columns with many, are held back.
    spectrum_power : float, default=0.0
        How far the singular vectors of small values are held back.
    neighbor_power : float, default=1.0
        Above one, the rows that are most alike count more.
    list_power : float, optional
        How far columns with many positives are held back from lists; as in ``degree_power`` by default.
    weights : bool, optional
        None: values other than one are refused. True: a value is the weight of its positive, repeated
        cells add up. False: every non-zero is one positive.
    random_state : int or Generator, optional
        Seed of the search for singular vectors.

    Attributes
    ----------
    positives_ : csr_array
        The training positives with their weights.
    row_scale_, col_scale_ : ndarray
        ``d_u^-2a`` over the square of N's largest singular value, and ``d_i^-b``; zero without positives.
    list_scale_ : ndarray
        ``d_i^-c``; ``d_i^-b`` without ``list_power``.
    singular_values_ : ndarray of shape (rank,)
        Of N, the largest being one.
    left_basis_, right_basis_ : ndarray of shape (n_cols, rank)
        ``D_i^-c V`` and ``D_i^c V``.
    history_ : list of dict
        Empty: nothing is iterated.
    n_iter_ : int
        1.
    converged_ : bool
        True.

    References
    ----------
    Shen et al. (2021), "How powerful is graph convolution for recommendation?", for the filter;
    Fu et al. (2022), "Revisiting neighborhood-based link prediction for collaborative filtering", for free
    powers of degrees.

    Examples
    --------
    >>> from unseen import SpectralFilter
    >>> from unseen.datasets import make_positives
    >>> from unseen.metrics import recall_at_k
    >>> data = make_positives(200, 100, n_groups=4, inside=1.0, across=0.0, rho=0.5, random_state=0)
    >>> model = SpectralFilter(rank=4).fit(data.observations)
    >>> lists, scores = model.recommend(range(200), k=20, exclude=data.observations)
    >>> bool(recall_at_k(data.hidden, lists, 20) > 0.95)
    True
    """

    def __init__(
        self,
        rank: int = 256,
        *,
        low_pass: float = 0.1,
        degree_power: float | tuple[float, float] = (0.35, 0.4),
        spectrum_power: float = 0.0,
        neighbor_power: float = 1.0,
        list_power: float | None = None,
        weights: bool | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.rank = rank
        self.low_pass = low_pass
        self.degree_power = degree_power
        self.spectrum_power = spectrum_power
        self.neighbor_power = neighbor_power
        self.list_power = list_power
        self.weights = weights
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: None = None, *, row_features: Any = None, col_features: Any = None) -> Self:
        """Normalise the positives and find their leading singular vectors.

        Parameters
        ----------
        X : sparse matrix, array or Observations of shape (n_rows, n_cols)
            Stored non-zeros are positives, all other cells are unlabelled.
        y : None
            Ignored; there for scikit-learn.
        row_features, col_features : None
            Not used by this model; refused if given.

        Returns
        -------
        self
        """
        check_settings(self)
        powers = check_pair("degree_power", self.degree_power)
        rank = check_count("rank", self.rank)
        low_pass = check_positive("low_pass", self.low_pass, strict=False)
        spectrum_power = check_positive("spectrum_power", self.spectrum_power, strict=False)
        check_positive("neighbor_power", self.neighbor_power)
        list_power = powers[1]
        if self.list_power is not None:
            list_power = check_positive("list_power", self.list_power, strict=False)
        cells = self._read_positives(X, row_features, col_features)
        with one_blas_thread():
            self._fit_cells(cells, (*powers, list_power), rank if low_pass else 1, low_pass, spectrum_power)
        self._finish(cells)
        return self

    def _fit_cells(
        self,
        cells: Observations,
        powers: tuple[float, float, float],
        rank: int,
        low_pass: float,
        spectrum_power: float,
    ) -> None:
        ones = self._weighed(cells)
        row_scale, col_scale = degree_scales(ones, powers[:2])
        list_scale = degree_scales(ones, powers[::2])[1]
        normal = (ones.data * row_scale[cells.rows] * list_scale[cells.indices]).astype(cells.dtype)
        empty = [np.zeros((size, 0), dtype=cells.dtype) for size in cells.shape]
        operator = LowRankPlusSparse(cells, normal, empty[0], empty[1], self._n_threads())
        rng = check_rng(self.random_state)
        start = rng.standard_normal((cells.shape[1], min(rank, *cells.shape))).astype(cells.dtype)
        found = thresholded_svd(operator, 0.0, start=start, rng=rng, tol=SVD_TOL, max_rank=rank)
        if not found.s.size:
            raise ParameterError(
                f"degree_power={self.degree_power!r}, list_power={self.list_power!r}: powers of the degrees "
                "that leave no cell any weight; smaller ones are wanted"
            )
        largest = float(found.s[0])
        self.positives_ = ones
        self.row_scale_ = (row_scale / largest) ** 2
        self.col_scale_, self.list_scale_ = col_scale, list_scale
        self.singular_values_ = found.s / found.s.dtype.type(largest)
        keep = len(found.s) if low_pass else 0
        gain = low_pass * self.singular_values_[:keep].astype(np.float64) ** spectrum_power
        v = found.v[:, :keep].astype(np.float64)
        back = np.divide(1.0, list_scale, out=np.zeros_like(list_scale), where=list_scale > 0)
        self.left_basis_ = (v * list_scale[:, None] * gain).astype(cells.dtype)
        self.right_basis_ = (v * back[:, None]).astype(cells.dtype)

    # -- scores ----------------------------------------------------------------------

    def _parts(self, rows: IndexArray) -> RowParts:
        return self._filtered(self.positives_[rows])

    def _filtered(self, own: CSR) -> RowParts:
        """The filter, applied to rows of positives."""
        cells, n_threads = self.positives_, self._n_threads()
        scale = self.col_scale_.astype(cells.dtype)
        spread = sparse.csr_array((own.data * scale[own.indices], own.indices, own.indptr), shape=own.shape)
        near = self._near(cells @ spread.T)
        near *= self.row_scale_.astype(near.dtype)[:, None]
        n_cols = cells.shape[1]
        block = kernels.spmm_t(cells.indptr, cells.indices, cells.data, near, n_cols, n_threads=n_threads)
        block *= self.list_scale_.astype(cells.dtype)[:, None]
        if not self.left_basis_.shape[1]:
            return RowParts(block)
        left = kernels.spmm(own.indptr, own.indices, own.data, self.left_basis_, n_threads=n_threads)
        return RowParts(block, left, self.right_basis_)

    def _near(self, shared: CSR) -> FloatArray:
        """Of all rows (down), how far they share columns with those asked for (across)."""
        if self.neighbor_power != 1:
            most = shared.max(axis=0).toarray().ravel()[shared.indices]
            shared.data = most * (shared.data / most) ** shared.dtype.type(self.neighbor_power)
        return np.ascontiguousarray(shared.toarray())

    def _scores_from(self, cells: CSR) -> FloatArray:
        step = self._rows_at_a_time()
        out = np.empty(cells.shape, dtype=self._dtype())
        for start in range(0, cells.shape[0], step):
            part = slice(start, start + step)
            out[part] = self._filtered(cells[part]).dense(self._n_threads())
        return out
