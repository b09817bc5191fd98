"""What the scores of links share: a square graph in, symmetric scores out."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from unseen.data import Observations
from unseen.estimators.base import Completer, refuse_weights
from unseen.exceptions import InvalidDataError, NotInductiveError, ParameterError
from unseen.links.graph import read_links, undirected
from unseen.parallel import one_blas_thread
from unseen.typing import CSR, Features, FloatArray, IndexArray
from unseen.validation import check_entries

__all__ = ["LinkCompleter", "NeighbourLinks"]

BLOCK_CELLS = 1 << 22
"""Scores of whole rows that exist at a time."""


class LinkCompleter(Completer):
    """Base of the models of one undirected graph. Their scores are symmetric."""

    symmetric_scores: ClassVar[bool] = True

    def fit(self, X: Any, y: None = None, *, row_features: Any = None, col_features: Any = None) -> Self:
        """Learn from the links of a graph.

        Parameters
        ----------
        X : sparse matrix, array or Observations of shape (n_nodes, n_nodes)
            Adjacency matrix. Stored non-zeros are links, all other pairs are candidates; a value
            is the weight of a link. Self-loops are dropped and links of one direction count for
            both, with a warning.
        y : None
            Ignored; there for scikit-learn.
        row_features, col_features : None
            Not used by these models; refused if given.

        Returns
        -------
        self
        """
        if row_features is not None or col_features is not None:
            raise ParameterError(f"{type(self).__name__} takes no row_features or col_features")
        cells = self._read_target(X)
        graph = undirected(cells)
        with one_blas_thread():
            self._fit_graph(graph)
        self.history_: list[dict[str, Any]] = []
        self.n_iter_, self.converged_ = 1, True
        self.row_ids_, self.col_ids_ = cells.row_ids, cells.col_ids
        self.n_features_in_ = int(graph.shape[1])
        self._remember(cells)
        return self

    @abstractmethod
    def _fit_graph(self, graph: CSR) -> None:
        """Learn from a validated symmetric graph without loops."""

    def _read_target(self, X: Any) -> Observations:
        return refuse_weights(read_links(X), self, "the values of X are the weights of links")

    def _excluded(self, exclude: Any, picked: IndexArray) -> tuple[IndexArray, IndexArray]:
        """Cells left out of lists: those asked for, and each node itself."""
        n = self.n_features_in_
        itself = sparse.csr_array(
            (np.ones(len(picked)), np.asarray(picked), np.arange(len(picked) + 1)), shape=(len(picked), n)
        )
        if exclude is not None:
            cells = Observations.from_any(exclude)
            if cells.shape != (n, n):
                raise InvalidDataError(
                    f"exclude has shape {cells.shape}; it must have the training shape ({n}, {n})"
                )
            ones = sparse.csr_array((np.ones(cells.nnz), cells.indices, cells.indptr), shape=cells.shape)
            itself = sparse.csr_array(itself + ones[picked])
        itself.sort_indices()
        return itself.indptr, itself.indices

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        tags.input_tags.positive_only = True
        return tags


class NeighbourLinks(LinkCompleter):
    """Base of the models that read scores off the graph, without factors.

    A row's scores are computed when they are asked for, from its links. In place of factors, a
    row has its scores for all nodes, and ``col_factors_`` is the identity.
    """

    graph_: CSR

    @abstractmethod
    def _scores_from(self, links: CSR) -> FloatArray:
        """Scores for all nodes, of nodes with the given rows of links."""

    @property
    def col_factors_(self) -> CSR:  # type: ignore[override]
        """The identity: coordinates of a row are its scores."""
        return sparse.csr_array(sparse.eye_array(self.graph_.shape[0], dtype=self.graph_.dtype))

    def score_rows(self, rows: Any) -> FloatArray:
        """Scores of some nodes with all nodes.

        Parameters
        ----------
        rows : array-like of int
            Nodes.

        Returns
        -------
        ndarray of shape (len(rows), n_nodes)
            Dense; ask for few nodes at a time.
        """
        picked = self._check_rows(rows)
        with one_blas_thread():
            return self._scores_from(self.graph_[picked])

    def _n_rows(self) -> int:
        return int(self.graph_.shape[0])

    def _predict_entries(self, rows: Any, cols: Any) -> FloatArray:
        i, j = check_entries(rows, cols, (self.graph_.shape[0], self.graph_.shape[0]))
        nodes, place = np.unique(i, return_inverse=True)
        order = np.argsort(place, kind="stable")
        out: FloatArray = np.empty(len(i), dtype=self.graph_.dtype)
        step = self._rows_at_a_time()
        for start in range(0, len(nodes), step):
            first, last = np.searchsorted(place[order], [start, start + step])
            asked = order[first:last]
            out[asked] = self.score_rows(nodes[start : start + step])[place[asked] - start, j[asked]]
        return out

    def predict_new(self, row_features: Any = None, col_features: Any = None) -> FloatArray:
        """Scores of all pairs; there is no model of features.

        Parameters
        ----------
        row_features, col_features : None
            Refused if given.

        Returns
        -------
        ndarray of shape (n_nodes, n_nodes)
            Dense matrix of scores.
        """
        check_is_fitted(self)
        for side, given in (("row", row_features), ("col", col_features)):
            if given is not None:
                raise NotInductiveError(self._why_not_inductive(side))
        return self.score_rows(np.arange(self.graph_.shape[0]))

    def transform(self, X: Any, row_features: Any = None) -> FloatArray:
        """Scores of nodes with all nodes, from their links.

        Parameters
        ----------
        X : sparse matrix, array or Observations, with the training nodes as columns
            Links of known or new nodes.
        row_features : None
            Refused if given.

        Returns
        -------
        ndarray of shape (n_rows, n_nodes)
            Dense matrix of scores.
        """
        return self.fold_in(X, row_features=row_features)

    def _fold_in(self, cells: Observations, row_features: Features | None) -> FloatArray:
        return self._scores_from(cells.csr.astype(self.graph_.dtype))

    def _best_columns(
        self, picked: IndexArray, k: int, exclude: Any, candidates: Any
    ) -> tuple[IndexArray, FloatArray]:
        n = self.graph_.shape[0]
        indptr, indices = self._excluded(exclude, picked)
        barred = None
        if candidates is not None:
            wanted = np.unique(np.atleast_1d(np.asarray(candidates)))
            allowed, _ = check_entries(wanted, np.zeros_like(wanted), (n, 1))
            barred = np.ones(n, dtype=bool)
            barred[allowed] = False
        ids = np.full((len(picked), k), -1, dtype=np.int64)
        scores = np.full((len(picked), k), np.nan, dtype=self.graph_.dtype)
        step = self._rows_at_a_time()
        for start in range(0, len(picked), step):
            part = slice(start, min(start + step, len(picked)))
            block = self.score_rows(picked[part])
            counts = np.diff(indptr[part.start : part.stop + 1])
            block[
                np.repeat(np.arange(len(counts)), counts), indices[indptr[part.start] : indptr[part.stop]]
            ] = -np.inf
            if barred is not None:
                block[:, barred] = -np.inf
            best = np.argsort(-block, axis=1, kind="stable")[:, :k]
            found = np.take_along_axis(block, best, axis=1)
            left = found > -np.inf
            ids[part, : best.shape[1]] = np.where(left, best, -1)
            scores[part, : best.shape[1]] = np.where(left, found, np.nan)
        return ids, scores

    def _rows_at_a_time(self) -> int:
        return max(1, BLOCK_CELLS // self.graph_.shape[0])
