"""The embedding of a label matrix as a scikit-learn transformer."""

from __future__ import annotations

import numbers
import warnings
from os import PathLike
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from unseen import io
from unseen.embeddings.graph import MAX_COST, neighbor_counts, with_diagonal
from unseen.embeddings.sppmi import sppmi
from unseen.exceptions import DataWarning, InvalidDataError, ParameterError
from unseen.settings import check_settings
from unseen.typing import CSR, FloatArray
from unseen.validation import (
    check_choice,
    check_count,
    check_features,
    check_n_jobs,
    check_positive,
    check_rng,
)

__all__ = ["SPPMIEmbedding"]


class SPPMIEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Vectors of instances, and of labels, from which labels instances share (ExMLDS).

    With M = YY' the numbers of shared labels, m_i their sum over a row and m over all (eq. 4 of the
    paper)::

        S_ij = max( log(M_ij m / (m_i m_j)) - log shift, 0 ),   0 where M_ij = 0
        S ~ U diag(w) U' with the largest positive eigenvalues w;   Z = U diag(w)^(1/2)

    Instances that share labels more often than chance would have it get similar vectors. Z Z' is also
    where skip-gram training with ``shift`` negative samples for each pair would end, if it had enough
    dimensions. M is never formed: only the nearest rows of each row are kept.

    With ``label_correlations`` C, labels are embedded together with the instances (Algorithm 3), from
    the matrix ``[mu2 M, mu3 Y; mu3 Y', mu1 C]`` in place of M. Labels alone are embedded by
    ``fit(Y.T)``.

    Parameters
    ----------
    n_components : int, default=100
        Length of the vectors.
    shift : float, default=1.0
        Above 1, weaker relations are dropped too. Below 1, all pairs with a shared label count more.
    n_neighbors : int or None, default=250
        Rows kept for each row: those with the most similar labels by cosine, ties to the lower row. A
        pair stays if either row keeps the other. None keeps every pair that shares a label.
    counts : {"graph", "full"}, default="graph"
        Whether the sums m_i and m run over the pairs that are kept or over all pairs.
    label_correlations : None, "cooccurrence" or matrix of shape (n_labels, n_labels), default=None
        How often labels occur together, at least 0 and symmetric. "cooccurrence" counts in Y itself,
        with ``n_neighbors`` for each label.
    weighting : {"counts", "blocks"}, default="counts"
        "counts" multiplies the counts by ``mu`` before logarithms, as the paper does; a larger mu1
        then strengthens relations of instances, not of labels. "blocks" computes S for each block and
        multiplies these.
    mu : (mu1, mu2, mu3), optional
        Weights of the blocks C, M and Y. (1, 1, 10) for "counts" and (10, 1, 10) for "blocks" by default.
    max_cost : float, default=2e10
        Steps that the search for neighbours may take, about a minute on one core. The sum of squared
        label counts is what it takes. Where that is more, each frequent label leads to a random part of
        its rows only.
    random_state : int, Generator or None, default=None
        Start of the eigen-solver, and the choice of rows for frequent labels.
    n_jobs : int or None, default=None
        Threads; None takes all cores. The result does not depend on it.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, n_components)
        Zero for rows without labels.
    label_embedding_ : ndarray of shape (n_labels, n_components) or None
        With ``label_correlations``.
    eigenvalues_ : ndarray of shape (n_components,)
        Decreasing; exact zeros, like the dimensions that belong to them, where S has no more.
    n_iter_ : int
        Products with S that the eigen-solver made.
    n_features_in_ : int
        Number of labels.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen import SPPMIEmbedding
    >>> Y = sparse.csr_array([[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 0]])
    >>> Z = SPPMIEmbedding(2, random_state=0).fit_transform(Y)
    >>> (Z @ Z.T).round(1)
    array([[0.6, 0.7, 0. , 0. ],
           [0.7, 0.8, 0. , 0. ],
           [0. , 0. , 0.6, 0.7],
           [0. , 0. , 0.7, 0.8]])
    """

    embedding_: FloatArray
    label_embedding_: FloatArray | None
    eigenvalues_: FloatArray
    n_iter_: int
    n_features_in_: int

    def __init__(
        self,
        n_components: int = 100,
        *,
        shift: float = 1.0,
        n_neighbors: int | None = 250,
        counts: Literal["graph", "full"] = "graph",
        label_correlations: Any = None,
        weighting: Literal["counts", "blocks"] = "counts",
        mu: tuple[float, float, float] | None = None,
        max_cost: float = MAX_COST,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.shift = shift
        self.n_neighbors = n_neighbors
        self.counts = counts
        self.label_correlations = label_correlations
        self.weighting = weighting
        self.mu = mu
        self.max_cost = max_cost
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, Y: Any, y: None = None) -> Self:
        """Embed the rows of ``Y``.

        Parameters
        ----------
        Y : sparse matrix or array of shape (n, n_labels)
            Labels: every non-zero is one.
        y : None
            Ignored; there for scikit-learn.

        Returns
        -------
        self
        """
        check_settings(self)
        n_components = check_count("n_components", self.n_components)
        shift = check_positive("shift", self.shift)
        n_neighbors = None if self.n_neighbors is None else check_count("n_neighbors", self.n_neighbors)
        counts = check_choice("counts", self.counts, ("graph", "full"))
        weighting = check_choice("weighting", self.weighting, ("counts", "blocks"))
        max_cost = check_positive("max_cost", self.max_cost)
        mu = _check_mu(self.mu)
        rng, n_threads = check_rng(self.random_state), check_n_jobs(self.n_jobs)
        labels = _check_labels(Y)
        correlations = self._correlations(labels, n_neighbors, max_cost, rng, n_threads)
        labelled = np.flatnonzero(np.diff(labels.indptr))
        found = sppmi(
            labels[labelled], n_components, rng=rng, shift=shift, n_neighbors=n_neighbors, counts=counts,
            label_correlations=correlations, weighting=weighting, mu=mu, max_cost=max_cost,
            n_threads=n_threads,
        )  # fmt: skip
        self.embedding_ = np.zeros((labels.shape[0], n_components), dtype=found.instances.dtype)
        self.embedding_[labelled] = found.instances
        self.label_embedding_ = found.labels
        self.eigenvalues_ = found.eigenvalues
        self.n_iter_ = found.n_iter
        self.n_features_in_ = labels.shape[1]
        return self

    def fit_transform(self, Y: Any, y: None = None) -> FloatArray:
        """Embed the rows of ``Y`` and return their vectors.

        Parameters
        ----------
        Y : sparse matrix or array of shape (n, n_labels)
            Labels.
        y : None
            Ignored; there for scikit-learn.

        Returns
        -------
        ndarray of shape (n, n_components)
            ``embedding_``.
        """
        return self.fit(Y).embedding_

    def save(self, path: str | PathLike[str]) -> None:
        """Write the embedding to a directory, replacing an older one only when complete.

        Parameters
        ----------
        path : str or path-like
            Directory to write; see :func:`unseen.load`.
        """
        check_is_fitted(self)
        io.save(self, path)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def _correlations(
        self,
        labels: CSR,
        n_neighbors: int | None,
        max_cost: float,
        rng: np.random.Generator,
        n_threads: int,
    ) -> CSR | None:
        given = self.label_correlations
        if given is None:
            return None
        if isinstance(given, str):
            check_choice("label_correlations", given, ("cooccurrence",))
            by_label = sparse.csr_array(labels.T)
            near = neighbor_counts(
                by_label, n_neighbors or labels.shape[1], rng=rng, max_cost=max_cost, n_threads=n_threads
            )
            return with_diagonal(near, np.diff(by_label.indptr)).astype(np.float64)
        return check_correlations(given, labels.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def check_correlations(given: Any, n_labels: int) -> CSR:
    """Check label correlations: square, symmetric, nowhere negative."""
    matrix = sparse.csr_array(check_features(given, n_labels, "label_correlations", dtype=np.float64))
    if matrix.shape[1] != n_labels:
        raise InvalidDataError(
            f"label_correlations must be square with one row a label ({n_labels}), got {matrix.shape}."
        )
    if matrix.nnz and matrix.data.min() < 0:
        place = int(np.argmin(matrix.data))
        row = int(np.searchsorted(matrix.indptr, place, side="right")) - 1
        raise InvalidDataError(
            f"label_correlations holds {matrix.data[place]} in row {row}, column {matrix.indices[place]}; "
            "counts of at least 0 are accepted."
        )
    difference = abs(matrix - matrix.T)
    if difference.nnz and difference.max() > 1e-8 * abs(matrix.data).max():
        coo = difference.tocoo()
        place = int(np.argmax(coo.data))
        row, col = coo.coords[0][place], coo.coords[1][place]
        raise InvalidDataError(
            f"label_correlations must be symmetric, but row {row}, column {col} and its mirror image differ "
            f"by {coo.data[place]:g}."
        )
    matrix.eliminate_zeros()
    return matrix


def _check_labels(Y: Any) -> CSR:
    labels = sparse.csr_array(check_features(Y, None, "Y"))
    for count, what in zip(labels.shape, ("sample", "feature"), strict=True):
        if count == 0:
            raise InvalidDataError(
                f"Y has 0 {what}(s) (shape={labels.shape}) while a minimum of 1 is required."
            )
    if labels.nnz and labels.data.min() < 0:
        place = int(np.argmin(labels.data))
        row = int(np.searchsorted(labels.indptr, place, side="right")) - 1
        raise InvalidDataError(
            f"Negative values in data: Y holds {labels.data[place]} in row {row}, column "
            f"{labels.indices[place]}; 0 and 1 are accepted."
        )
    if (labels.data == 0).any():
        labels = labels.copy()
        labels.eliminate_zeros()
    if (labels.data != 1).any():
        other = labels.data[labels.data != 1][0]
        warnings.warn(
            f"Y holds values other than 0 and 1, such as {other:g}; every non-zero counts as one label.",
            DataWarning,
            stacklevel=3,
        )
    return labels


def _check_mu(mu: Any) -> tuple[float, float, float] | None:
    if mu is None:
        return None
    values = [float(v) for v in mu if isinstance(v, numbers.Real)] if isinstance(mu, (tuple, list)) else []
    if (
        len(values) != 3
        or len(mu) != 3
        or not np.isfinite(values).all()
        or min(values) < 0
        or not any(values)
    ):
        raise ParameterError(
            f"mu must be three numbers >= 0, not all zero (labels, instances, cross), got {mu!r}."
        )
    return values[0], values[1], values[2]
