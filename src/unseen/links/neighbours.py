"""Scores that count walks between two nodes."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from unseen import kernels
from unseen.exceptions import ParameterError
from unseen.links.base import NeighbourLinks
from unseen.links.graph import top_eigenpairs
from unseen.typing import CSR, FloatArray
from unseen.validation import check_count, check_positive

__all__ = ["CommonNeighbors", "Katz", "check_beta"]

BLOCK_NODES = 128
"""Rows of scores that go through a sparse product together."""
DEFAULT_SHARE = 0.3
"""The default of beta, as a share of its limit 1/lambda_1."""
LONGEST_WALK = 10_000
"""Steps of walks that may be asked for."""


class CommonNeighbors(NeighbourLinks):
    """Neighbours that two nodes share: ``sum_z a_iz a_zj / d_z^degree_power``.

    By default their number, ``(A^2)_ij``; with weighted links each shared neighbour counts the
    product of the two weights.

    Parameters
    ----------
    degree_power : float, default=0.0
        How far neighbours that many nodes share are held back; d_z is the degree (sum of
        weights) of z. With 1 each shared neighbour counts one over its degree.

    Attributes
    ----------
    spread_ : csr_array
        The graph with rows divided by ``d_z^degree_power``.
    graph_ : csr_array
        The symmetric training graph.
    history_ : list of dict
        Empty: nothing is iterated.
    n_iter_ : int
        1.
    converged_ : bool
        True.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen.links import CommonNeighbors
    >>> square = sparse.csr_array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    >>> CommonNeighbors().fit(square).predict_entries([0, 0], [2, 1])
    array([2., 0.])
    """

    def __init__(self, degree_power: float = 0.0) -> None:
        self.degree_power = degree_power

    def _fit_graph(self, graph: CSR) -> None:
        power = check_positive("degree_power", self.degree_power, strict=False)
        degrees = np.asarray(graph.sum(axis=1), dtype=np.float64)
        share = np.divide(1.0, degrees**power, out=np.zeros_like(degrees), where=degrees > 0)
        per_link = np.repeat(share, np.diff(graph.indptr))
        self.graph_ = graph
        self.spread_ = sparse.csr_array(
            ((graph.data * per_link).astype(graph.dtype), graph.indices, graph.indptr), shape=graph.shape
        )

    def _scores_from(self, links: CSR) -> FloatArray:
        scores: FloatArray = (links @ self.spread_).toarray()
        return scores

    def sparse_scores(self, start: int, stop: int) -> CSR:
        """Scores of a range of nodes with all nodes, zeros left out.

        Parameters
        ----------
        start, stop : int
            The nodes are ``start, ..., stop - 1``.

        Returns
        -------
        csr_array of shape (stop - start, n_nodes)
        """
        check_is_fitted(self)
        scores: CSR = self.graph_[start:stop] @ self.spread_
        return scores


class Katz(NeighbourLinks):
    """All walks between two nodes, long ones damped: ``sum_l beta^l (A^l)_ij``.

    The series of ``(I - beta A)^-1 - I`` is cut after `length` terms. What is cut off is, for
    every pair, at most

        beta^(length+1) d lambda_1^(length-1) / (1 - beta lambda_1),

    with lambda_1 the largest eigenvalue of A and d the largest ``sum_j a_ij^2`` (the largest
    degree, if all weights are one). This is ``error_bound_``.

    Parameters
    ----------
    beta : float or "auto", default="auto"
        Weight of a step, below 1/lambda_1; "auto" is 0.3/lambda_1.
    length : int or "auto", default="auto"
        Longest walks counted; "auto" is the shortest length whose error bound is at most
        ``tol * beta**2``, so that errors are small beside the score of one shared neighbour.
    tol : float, default=0.01
        See `length`.

    Attributes
    ----------
    beta_ : float
        Weight of a step.
    lambda_max_ : float
        Largest eigenvalue of the graph.
    length_ : int
        Longest walks counted.
    error_bound_ : float
        Limit of the error that cutting the series makes in any score.
    graph_ : csr_array
        The symmetric training graph.
    history_ : list of dict
        Empty: nothing is iterated.
    n_iter_ : int
        1.
    converged_ : bool
        True.

    Examples
    --------
    >>> from scipy import sparse
    >>> from unseen.links import Katz
    >>> path = sparse.csr_array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]])
    >>> Katz(beta=0.1, length=3).fit(path).predict_entries([0, 0], [2, 3]).round(6)
    array([0.01 , 0.001])
    """

    def __init__(
        self,
        beta: float | Literal["auto"] = "auto",
        *,
        length: int | Literal["auto"] = "auto",
        tol: float = 0.01,
        n_jobs: int | None = None,
    ) -> None:
        self.beta = beta
        self.length = length
        self.tol = tol
        self.n_jobs = n_jobs

    def _fit_graph(self, graph: CSR) -> None:
        tol = check_positive("tol", self.tol)
        self.lambda_max_ = float(top_eigenpairs(graph, 1, which="LA")[0][0])
        self.beta_ = check_beta(self.beta, self.lambda_max_)
        weight = float(np.max(graph.multiply(graph).sum(axis=1)))
        ratio = self.beta_ * self.lambda_max_
        # Bound after `length` terms = scale * ratio^(length + 1).
        scale = weight / (self.lambda_max_**2 * (1.0 - ratio))
        if isinstance(self.length, str) and self.length == "auto":
            # Logarithms one by one: a tiny beta has no square.
            logs = math.log(tol), math.log(self.beta_), math.log(scale)
            decay = math.log1p(ratio - 1.0) if ratio > 0.5 else logs[1] + math.log(self.lambda_max_)
            wanted = (logs[0] + 2.0 * logs[1] - logs[2]) / decay - 1.0
            if wanted > LONGEST_WALK:
                raise ParameterError(
                    f"beta={self.beta_!r} is so close to 1 / lambda_max that {wanted:.3g} steps of a walk "
                    f"still count; make it smaller, or give a length of at most {LONGEST_WALK}"
                )
            self.length_ = max(2, math.ceil(wanted))
        else:
            self.length_ = check_count("length", self.length, maximum=LONGEST_WALK)
        self.error_bound_ = scale * ratio ** (self.length_ + 1)
        self.graph_ = graph

    def _scores_from(self, links: CSR) -> FloatArray:
        graph = self.graph_
        out: FloatArray = np.empty(links.shape, dtype=graph.dtype)
        beta = graph.dtype.type(self.beta_)
        for start in range(0, links.shape[0], BLOCK_NODES):
            part = slice(start, start + BLOCK_NODES)
            # One column for each asked node, so that products with the graph run along rows.
            first: FloatArray = np.ascontiguousarray(links[part].toarray().T) * beta
            scores = first
            for _ in range(self.length_ - 1):
                scores = kernels.spmm(
                    graph.indptr, graph.indices, graph.data, scores, n_threads=self._n_threads()
                )
                scores *= beta
                scores += first
            out[part] = scores.T
        return out


def check_beta(beta: float | str, lambda_max: float) -> float:
    """The weight of a step, which must keep the series finite."""
    if isinstance(beta, str) and beta == "auto":
        return DEFAULT_SHARE / lambda_max
    value = check_positive("beta", beta)
    if value * lambda_max >= 1.0:
        raise ParameterError(
            f"beta={value:g} is too large: the sum over walks is finite only below 1/lambda_1 = "
            f"{1.0 / lambda_max:.6g} of this graph"
        )
    return value
