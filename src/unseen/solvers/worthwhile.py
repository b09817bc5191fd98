"""Which columns of those whose cells changed are worth being solved for."""

from __future__ import annotations

import numpy as np
from scipy import linalg, sparse

from unseen.data.merging import Merged
from unseen.exceptions import DivergedError
from unseen.problem import Problem
from unseen.solvers.als import Side
from unseen.typing import FloatArray, IndexArray

__all__ = ["LEFT", "worthwhile"]

LEFT = 5e-5
"""Share of the objective that may be left where it would take most cells to get it."""


def worthwhile(
    problem: Problem,
    rows: Side,
    cols: Side,
    row_gram: FloatArray,
    col_counts: IndexArray,
    merged: Merged,
    objective: float,
) -> IndexArray:
    """Columns that bring most for their cells: all but the last ``LEFT`` of the objective.

    A column with many cells hardly moves for one more, and takes longest. Before an update it is near its
    minimum, so its gradient g is that of its new cells alone; with A the second derivative, solving for it
    lowers the objective by g'A^-1 g/2. In A its cells are taken to lie anywhere among the rows: then A is a
    multiple of the rows' Gram matrix and a ridge, and one set of eigenvectors serves all columns.

    Parameters
    ----------
    problem : Problem
        A background, one term without features and no biases.
    rows, cols : Side
    row_gram : ndarray of shape (k, k)
        What the background needs of the rows.
    col_counts : ndarray of int
        Cells of each column.
    merged : Merged
        The cells, and which of them changed. New columns, and those where an old cell changed, are picked in
        any case.
    objective : float
        Its last value.
    """
    cells, fresh = problem.observations, merged.fresh
    picked = np.flatnonzero(merged.cols)
    counts = col_counts[picked]
    at_rows, at_cols = np.searchsorted(cells.indptr, fresh, side="right") - 1, cells.indices[fresh]
    scores = np.einsum("ij,ij->i", rows.factors[at_rows], cols.factors[at_cols])
    curvature, linear = problem.cell_loss.normal_terms()
    c, d = (np.asarray(part)[fresh] if np.ndim(part) else part for part in (curvature, linear))
    n_rows = cells.shape[0]
    places = np.searchsorted(picked, at_cols)
    pull = sparse.csr_array((c * scores - d, (places, at_rows)), shape=(len(picked), n_rows)) @ rows.factors
    ridge = np.eye(len(row_gram)) * max(cols.rule.ridge, 1e-9 * float(np.trace(row_gram)))
    if not (np.isfinite(row_gram).all() and np.isfinite(ridge).all()):
        raise DivergedError("factors became NaN or infinite")
    stretched, frame = linalg.eigh(row_gram, ridge)
    weights = cols.blank.row_weights
    background = cols.blank.weight * (1.0 if weights is None else weights[picked])
    scale = 1.0 if cols.row_scale is None else cols.row_scale[picked, None]
    bend = (background + float(np.mean(c)) * counts / n_rows)[:, None] * stretched + scale
    gains = 0.5 * ((pull @ frame) ** 2 / bend).sum(axis=1)
    gains[~merged.cols_only_added[picked]] = np.inf
    order = np.argsort(gains / np.maximum(counts, 1))
    return np.sort(picked[order[np.cumsum(gains[order]) > LEFT * abs(objective)]])
