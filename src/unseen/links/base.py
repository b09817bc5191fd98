"""What the scores of links share: a square graph in, symmetric scores out."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from unseen.data import Observations
from unseen.data.ids import SeenCells
from unseen.estimators.base import Completer, refuse_weights
from unseen.estimators.row_scores import RowParts, RowScores
from unseen.exceptions import ParameterError
from unseen.links.graph import read_links, undirected
from unseen.parallel import one_blas_thread
from unseen.settings import check_settings
from unseen.typing import CSR, FloatArray, IndexArray

__all__ = ["LinkCompleter", "NeighbourLinks"]


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
        check_settings(self)
        if row_features is not None or col_features is not None:
            raise ParameterError(f"{type(self).__name__} takes no row_features or col_features")
        cells = self._read_target(X)
        graph = undirected(cells)
        with one_blas_thread():
            self._fit_graph(graph)
        self.history_: list[dict[str, Any]] = []
        self.n_iter_, self.converged_ = 1, True
        self._remember(cells)
        return self

    @abstractmethod
    def _fit_graph(self, graph: CSR) -> None:
        """Learn from a validated symmetric graph without loops."""

    def _read_target(self, X: Any) -> Observations:
        return refuse_weights(read_links(X), self, "the values of X are the weights of links")

    def _ranks_cells(self) -> bool:
        return True

    def _left_out(self, seen: SeenCells | None, picked: IndexArray) -> tuple[IndexArray, IndexArray]:
        """Columns left out of lists: those asked for, and each node itself."""
        shape = (len(picked), self.n_features_in_)
        itself = sparse.csr_array(
            (np.ones(len(picked)), np.asarray(picked), np.arange(len(picked) + 1)), shape=shape
        )
        if seen is not None:
            indptr, indices = seen.rows(picked)
            known = sparse.csr_array((np.ones(indices.size), indices, indptr), shape=shape)
            itself = sparse.csr_array(itself + known)
        itself.sort_indices()
        return itself.indptr, itself.indices

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        tags.input_tags.positive_only = True
        return tags


class NeighbourLinks(RowScores, LinkCompleter):
    """Base of the models that read scores off the graph, without factors.

    A row's scores are computed when they are asked for, from its links.
    """

    graph_: CSR

    def _parts(self, rows: IndexArray) -> RowParts:
        return RowParts(np.ascontiguousarray(self._scores_at(rows).T))

    def _scores_at(self, picked: IndexArray) -> FloatArray:
        return self._scores_from(self.graph_[picked])

    def _n_rows(self) -> int:
        return int(self.graph_.shape[0])

    def _dtype(self) -> np.dtype[Any]:
        return np.dtype(self.graph_.dtype)
