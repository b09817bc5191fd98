"""Neighbours among columns, found from the rows that columns share."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse

from unseen.estimators.positive_rows import PositiveRows, degree_scales
from unseen.estimators.row_scores import RowParts
from unseen.linalg.nearest import nearest_columns
from unseen.parallel import one_blas_thread
from unseen.settings import check_settings
from unseen.typing import CSR, FloatArray, IndexArray
from unseen.validation import check_choice, check_count, check_pair, check_positive

__all__ = ["ItemNeighbors"]

SATURATION, LENGTH_SHARE = 1.2, 0.75
"""Of BM25: how soon large values stop to count, and how far columns with many positives are held back."""


class ItemNeighbors(PositiveRows):
    """Lists from positives by neighbours among columns: the classical baseline.

    With R the positives, d_u and d_i the sums of their rows and columns, degree powers (a, b) and
    N = D_u^-a R D_i^-b, columns i and j are alike by

        s_ij = ( (N' N)_ij / (1 + shrinkage / (R' R)_ij) )^power

    Of the similarities of each column j the ``n_neighbors`` largest are kept (none with itself). The score of
    a cell is the sum of s_ij over the row's positives i. Powers (0, 0.5) are the cosine of columns; a larger
    a lets rows with many positives say less about what is alike.

    Parameters
    ----------
    n_neighbors : int, default=100
        Similarities kept of each column.
    weighting : {"degrees", "bm25"}, default="degrees"
        "bm25" weighs the positives first, as words of documents are weighed: rows are words, columns are
        documents, and similarities are inner products, without powers of degrees.
    degree_power : float or (float, float), default=(0.4, 0.4)
        How far rows with many positives, and columns with many, are held back.
    shrinkage : float, default=0.0
        Holds back similarities that few rows speak for.
    power : float, default=1.0
        Above one, near neighbours count more than many distant ones.
    weights : bool, optional
        None: values other than one are refused. True: a value is the weight of its positive, repeated
        cells add up. False: every non-zero is one positive.
    n_jobs : int, optional
        Threads for lists; all cores by default. Results do not depend on it.

    Attributes
    ----------
    positives_ : csr_array
        The training positives with their weights.
    similarity_ : csr_array of shape (n_cols, n_cols)
        Kept similarities, the neighbours of column j in column j.
    history_ : list of dict
        Empty: nothing is iterated.
    n_iter_ : int
        1.
    converged_ : bool
        True.

    References
    ----------
    Deshpande and Karypis (2004), "Item-based top-N recommendation algorithms"; Paudel et al. (2017),
    "Updatable, accurate, diverse, and scalable recommendations for interactive applications", for powers
    of degrees.

    Examples
    --------
    >>> from unseen import ItemNeighbors
    >>> from unseen.datasets import make_positives
    >>> from unseen.metrics import recall_at_k
    >>> data = make_positives(200, 100, n_groups=4, inside=1.0, across=0.0, rho=0.5, random_state=0)
    >>> model = ItemNeighbors(20).fit(data.observations)
    >>> lists, scores = model.recommend(range(200), k=20, exclude=data.observations)
    >>> bool(recall_at_k(data.hidden, lists, 20) > 0.95)
    True
    """

    def __init__(
        self,
        n_neighbors: int = 100,
        *,
        weighting: str = "degrees",
        degree_power: float | tuple[float, float] = (0.4, 0.4),
        shrinkage: float = 0.0,
        power: float = 1.0,
        weights: bool | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weighting = weighting
        self.degree_power = degree_power
        self.shrinkage = shrinkage
        self.power = power
        self.weights = weights
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: None = None, *, row_features: Any = None, col_features: Any = None) -> Self:
        """Find the neighbours of each column.

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
        n_neighbors = check_count("n_neighbors", self.n_neighbors)
        powers = check_pair("degree_power", self.degree_power)
        shrinkage = check_positive("shrinkage", self.shrinkage, strict=False)
        power = check_positive("power", self.power)
        check_choice("weighting", self.weighting, ("degrees", "bm25"))
        cells = self._read_positives(X, row_features, col_features)
        ones = self._weighed(cells)
        normal = _bm25(ones) if self.weighting == "bm25" else _scaled(ones, powers)
        self.positives_ = ones
        with one_blas_thread():
            self.similarity_ = nearest_columns(
                normal, n_neighbors, counts=ones if shrinkage else None, shrinkage=shrinkage, power=power
            ).astype(cells.dtype)
        self._finish(cells)
        return self

    # -- scores ----------------------------------------------------------------------

    def _parts(self, rows: IndexArray) -> RowParts:
        return RowParts(np.ascontiguousarray(self._scores_from(self.positives_[rows]).T))

    def _scores_from(self, cells: CSR) -> FloatArray:
        scores: FloatArray = (cells @ self.similarity_).toarray()
        return scores


def _scaled(ones: CSR, powers: tuple[float, float]) -> CSR:
    """Positives over powers of the sums of their rows and columns."""
    rows, cols = degree_scales(ones, powers)
    data = ones.data * np.repeat(rows, np.diff(ones.indptr)) * cols[ones.indices]
    return sparse.csr_array((data, ones.indices, ones.indptr), shape=ones.shape)


def _bm25(ones: CSR) -> CSR:
    """Positives weighed as words (rows) of documents (columns)."""
    held = np.asarray(ones.sum(axis=0), dtype=np.float64)
    longer = 1 - LENGTH_SHARE + LENGTH_SHARE * held / held.mean()
    n_cols = ones.shape[1]
    rare = np.log(n_cols) - np.log1p(np.diff(ones.indptr))
    values = ones.data.astype(np.float64)
    values = values * (SATURATION + 1) / (SATURATION * longer[ones.indices] + values)
    data = values * np.repeat(np.maximum(rare, 0.0), np.diff(ones.indptr))
    return sparse.csr_array((data, ones.indices, ones.indptr), shape=ones.shape)
