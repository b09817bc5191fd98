"""What the scores of links share: a square graph in, symmetric scores out."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from unseen.data import Observations
from unseen.data.ids import SeenCells, Side
from unseen.estimators.base import Completer, refuse_weights
from unseen.estimators.ids import Places
from unseen.exceptions import ParameterError, UnsupportedComposition
from unseen.links.graph import read_links, undirected
from unseen.parallel import one_blas_thread
from unseen.typing import CSR, Features, FloatArray, IndexArray

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
        self._remember(cells)
        return self

    @abstractmethod
    def _fit_graph(self, graph: CSR) -> None:
        """Learn from a validated symmetric graph without loops."""

    def _read_target(self, X: Any) -> Observations:
        return refuse_weights(read_links(X), self, "the values of X are the weights of links")

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

    def score_rows(self, rows: Any, *, positions: bool = False) -> FloatArray:
        """Scores of some nodes with all nodes.

        Parameters
        ----------
        rows : array-like of ids
            Nodes; positions where the model was fitted without ids.
        positions : bool, default=False
            Take positions, whatever the ids.

        Returns
        -------
        ndarray of shape (len(rows), n_nodes)
            Dense; ask for few nodes at a time.
        """
        check_is_fitted(self)
        with one_blas_thread():
            return self._scores_at(self._places(rows, "row", "rows", positions))

    def _scores_at(self, picked: IndexArray) -> FloatArray:
        """Scores of training nodes."""
        return self._scores_from(self.graph_[picked])

    def _n_rows(self) -> int:
        return int(self.graph_.shape[0])

    def _predict_entries(self, i: Places, j: Places) -> FloatArray:
        nodes, place = np.unique(i, return_inverse=True)
        order = np.argsort(place, kind="stable")
        out: FloatArray = np.empty(len(i), dtype=self.graph_.dtype)
        step = self._rows_at_a_time()
        for start in range(0, len(nodes), step):
            first, last = np.searchsorted(place[order], [start, start + step])
            asked = order[first:last]
            out[asked] = self._scores_at(nodes[start : start + step])[place[asked] - start, j[asked]]
        return out

    def _directions(self, side: Side) -> FloatArray:
        raise UnsupportedComposition(
            f"{type(self).__name__} has no factors; recommend lists the nodes with the highest scores"
        )

    def _average(self, side: Side) -> FloatArray:
        raise ParameterError(
            f"on_unknown='popular': {type(self).__name__} scores the links of single nodes, not of an average"
        )

    def _block(self, row_features: Features | None, col_features: Features | None) -> FloatArray:
        with one_blas_thread():
            return self._scores_at(np.arange(self.graph_.shape[0]))

    def _complete(self, cells: Observations, factors: FloatArray) -> FloatArray:
        return factors  # of a row these are its scores

    def _fold_in(self, cells: Observations, row_features: Features | None) -> FloatArray:
        return self._scores_from(cells.csr.astype(self.graph_.dtype))

    def _best_columns(
        self, picked: IndexArray, k: int, seen: SeenCells | None, columns: Any
    ) -> tuple[IndexArray, FloatArray]:
        left_out = self._left_out(seen, picked)
        ids = np.full((len(picked), k), -1, dtype=np.int64)
        scores = np.full((len(picked), k), np.nan, dtype=self.graph_.dtype)
        step = self._rows_at_a_time()
        for start in range(0, len(picked), step):
            part = slice(start, min(start + step, len(picked)))
            ids[part], scores[part] = _best_of(self._scores_at(picked[part]), part, k, left_out, columns)
        return ids, scores

    def _best_of_new(
        self, factors: FloatArray, cells: Observations | None, k: int, seen: SeenCells | None, columns: Any
    ) -> tuple[IndexArray, FloatArray]:
        left_out = None if seen is None else (seen.indptr, seen.indices)
        return _best_of(factors.copy(), slice(0, len(factors)), k, left_out, columns)

    def _rows_at_a_time(self) -> int:
        return max(1, BLOCK_CELLS // self.graph_.shape[0])


def _best_of(
    block: FloatArray,
    part: slice,
    k: int,
    left_out: tuple[IndexArray, IndexArray] | None,
    columns: IndexArray | None,
) -> tuple[IndexArray, FloatArray]:
    """Best columns of a block of scores, which is written over; ``part`` are its rows in ``left_out``."""
    if left_out is not None:
        indptr, indices = left_out
        counts = np.diff(indptr[part.start : part.stop + 1])
        rows = np.repeat(np.arange(len(counts)), counts)
        block[rows, indices[indptr[part.start] : indptr[part.stop]]] = -np.inf
    if columns is not None:
        barred = np.ones(block.shape[1], dtype=bool)
        barred[columns] = False
        block[:, barred] = -np.inf
    ids = np.full((len(block), k), -1, dtype=np.int64)
    scores = np.full((len(block), k), np.nan, dtype=block.dtype)
    best = np.argsort(-block, axis=1, kind="stable")[:, :k]
    found = np.take_along_axis(block, best, axis=1)
    there = found > -np.inf
    ids[:, : best.shape[1]] = np.where(there, best, -1)
    scores[:, : best.shape[1]] = np.where(there, found, np.nan)
    return ids, scores
