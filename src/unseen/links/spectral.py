"""Scores from the leading eigenvectors of the graph."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

import numpy as np

from unseen.data import Observations
from unseen.links.base import LinkCompleter
from unseen.links.graph import top_eigenpairs
from unseen.links.neighbours import check_beta
from unseen.typing import CSR, Features, FloatArray
from unseen.validation import check_count

__all__ = ["SVDKatz", "TruncatedSVDLinks"]


class SpectralLinks(LinkCompleter):
    """``V diag(g(w)) V'`` for the eigenpairs ``(w, V)`` of largest magnitude."""

    rank: int
    eigenvalues_: FloatArray

    @abstractmethod
    def _gain(self, eigenvalues: FloatArray) -> FloatArray:
        """``g(w) / w``: what is applied to a node's links."""

    def _fit_graph(self, graph: CSR) -> None:
        values, vectors = top_eigenpairs(graph, min(check_count("rank", self.rank), graph.shape[0]))
        self.eigenvalues_ = values
        self.col_factors_ = np.ascontiguousarray(vectors, dtype=graph.dtype)
        self.row_factors_ = np.ascontiguousarray(vectors * (values * self._gain(values)), dtype=graph.dtype)

    def _fold_in(self, cells: Observations, row_features: Features | None) -> FloatArray:
        projected = np.asarray(cells.csr.astype(np.float64) @ self.col_factors_.astype(np.float64))
        return np.ascontiguousarray(projected * self._gain(self.eigenvalues_), dtype=self.row_factors_.dtype)


class TruncatedSVDLinks(SpectralLinks):
    """The graph cut to low rank: ``V diag(w) V'`` with the eigenvalues of largest magnitude.

    Of all matrices of that rank the nearest to A in squares, every blank pair taken as zero. It
    orders pairs as BiasMC with alpha = 1/2 does in the limit of no penalty.

    Parameters
    ----------
    rank : int, default=50
        Number of eigenvectors; at most all are taken.
    n_jobs : int, optional
        Threads for products; all cores by default. Results do not depend on it.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (rank,)
        By decreasing magnitude.
    row_factors_, col_factors_ : ndarray of shape (n_nodes, rank)
        Eigenvectors, those of the rows times the eigenvalues.
    history_ : list of dict
        Empty.
    n_iter_ : int
        1.
    converged_ : bool
        True.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen.links import TruncatedSVDLinks
    >>> path = sparse.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> float(TruncatedSVDLinks(2).fit(path).predict_entries([0], [1])[0].round(6))
    1.0
    """

    def __init__(self, rank: int = 50, *, n_jobs: int | None = None) -> None:
        self.rank = rank
        self.n_jobs = n_jobs

    def _gain(self, eigenvalues: FloatArray) -> FloatArray:
        return np.ones_like(eigenvalues)


class SVDKatz(SpectralLinks):
    """Katz scores of the graph cut to low rank: ``V diag(1/(1 - beta w) - 1) V'``.

    Parameters
    ----------
    rank : int, default=50
        Number of eigenvectors; at most all are taken.
    beta : float or "auto", default="auto"
        Weight of a step, below 1/lambda_1; "auto" is 0.3/lambda_1.
    n_jobs : int, optional
        Threads for products; all cores by default. Results do not depend on it.

    Attributes
    ----------
    beta_ : float
        Weight of a step.
    eigenvalues_ : ndarray of shape (rank,)
        By decreasing magnitude.
    row_factors_, col_factors_ : ndarray of shape (n_nodes, rank)
        Eigenvectors, those of the rows times their weights.
    history_ : list of dict
        Empty.
    n_iter_ : int
        1.
    converged_ : bool
        True.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen.links import Katz, SVDKatz
    >>> path = sparse.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> low_rank = SVDKatz(3, beta=0.1).fit(path).predict_entries([0], [2])
    >>> full = Katz(0.1, tol=1e-9).fit(path).predict_entries([0], [2])
    >>> bool(abs(low_rank - full)[0] < 1e-9)
    True
    """

    def __init__(
        self, rank: int = 50, *, beta: float | Literal["auto"] = "auto", n_jobs: int | None = None
    ) -> None:
        self.rank = rank
        self.beta = beta
        self.n_jobs = n_jobs

    def _fit_graph(self, graph: CSR) -> None:
        # Among the eigenvalues of largest magnitude of a non-negative matrix is the largest one.
        largest = float(top_eigenpairs(graph, 1, which="LA")[0][0])
        self.beta_ = check_beta(self.beta, largest)
        super()._fit_graph(graph)

    def _gain(self, eigenvalues: FloatArray) -> FloatArray:
        gain: FloatArray = self.beta_ / (1.0 - self.beta_ * eigenvalues)
        return gain
