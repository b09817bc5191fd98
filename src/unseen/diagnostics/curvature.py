"""How stiff the objective is: the second derivative by the factors of each row and each column.

With the factors of the other side fixed, the objective is quadratic in p_i with the matrix
A_i = ridge I + w0 Q'Q + sum_j c_ij q_j q_j', j over the known cells of row i; B_j likewise. Solutions
within a noise of variance s^2 of the optimum move the prediction p_i . q_j by a standard deviation of
s sqrt(q_j' A_i^-1 q_j + p_i' B_j^-1 p_i). Biases that were subtracted first add s^2 / (n_i + reg) for each
side, n_i the number of cells or the sum of their weights: a cell of weight w has noise of variance s^2 / w.
Those learned with the factors are one more coordinate of p_i, and of q_j.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unseen.data import Observations
from unseen.linalg.blocked import gram
from unseen.losses import CellLoss, Quadratic, Squared
from unseen.maps import Identity
from unseen.offsets import Offsets
from unseen.terms import BoundTerm
from unseen.typing import BoolArray, FloatArray, IndexArray

__all__ = ["Curvature", "curvature_of", "why_no_curvature"]

NUMBERS_AT_A_TIME = 1 << 21
"""Size of the temporary arrays, in numbers."""
WIDE = 24
"""From so many coordinates on, one product for each row is quicker than one for many rows."""
SINGULAR = 1e-10
"""Share of the mean eigenvalue that is added, so that directions without data are very soft, not NaN."""


@dataclass(frozen=True)
class Curvature:
    """Second derivatives of a fitted factorisation, kept as the cells that they are sums over.

    Attributes
    ----------
    cells : Observations
        Training cells.
    left, right : ndarray of shape (n, k) and (m, k), float64
        Factors without offsets.
    widths : list of int
        Columns of each term.
    ridge : ndarray of shape (k,)
        Penalty of each coordinate.
    weight : float or ndarray of shape (nnz,)
        Weight of the known cells less that of the background.
    background : float
        Weight of all other cells.
    offsets : Offsets
        Mean and biases that were subtracted.
    unit : float
        Weight of a known value, so that the noise is that of values; 1 where weights differ.
    sides : list of {"row", "col"} or None
        For each term, the side that alone moves it; None where both do. A bias of the rows stands
        in a coordinate that is one for every column.
    """

    cells: Observations
    left: FloatArray
    right: FloatArray
    widths: list[int]
    ridge: FloatArray
    weight: FloatArray | float
    background: float
    offsets: Offsets
    unit: float = 1.0
    sides: Sequence[str | None] = ()

    def _moved_by(self, side: str) -> BoolArray:
        """Coordinates that the rows (or columns) have a say in."""
        if not self.sides:
            return np.ones(self.left.shape[1], dtype=bool)
        return np.repeat([own in (side, None) for own in self.sides], self.widths)

    def leverage(self, rows: IndexArray, cols: IndexArray) -> FloatArray:
        """Variance of predictions for noise of variance one.

        Parameters
        ----------
        rows, cols : array of int
            Row and column numbers.

        Returns
        -------
        ndarray of float64
            Zero or larger.
        """
        cells, csc = self.cells, self.cells.csc
        total = self.bias_leverage(rows, cols)
        if self.left.shape[1]:
            by_column = self.weight if np.ndim(self.weight) == 0 else np.asarray(self.weight)[csc.order]
            by_rows, by_cols = self._moved_by("row"), self._moved_by("col")
            of_rows = self._side(
                cells.indptr,
                cells.indices,
                self.weight,
                self.right[:, by_rows],
                self.ridge[by_rows],
                rows,
                cols,
            )
            of_cols = self._side(
                csc.indptr, csc.indices, by_column, self.left[:, by_cols], self.ridge[by_cols], cols, rows
            )
            total += self.unit * (of_rows + of_cols)
        return total

    def bias_leverage(self, rows: IndexArray, cols: IndexArray) -> FloatArray:
        """Part of the leverage that biases have.

        Parameters
        ----------
        rows, cols : array of int
            Row and column numbers.

        Returns
        -------
        ndarray of float64
            Zero for models without biases.
        """
        total = np.zeros(len(rows))
        for side, bias, asked, reg in (
            ("row", self.offsets.row, rows, self.offsets.reg_row),
            ("col", self.offsets.col, cols, self.offsets.reg_col),
        ):
            if bias is not None:
                size = self.cells.degrees(side)[asked] + reg
                total += np.divide(1.0, size, out=np.full(len(size), np.inf), where=size > 0)
        return total

    def rotation(self, rows: IndexArray, cols: IndexArray) -> FloatArray:
        """Variance of predictions over rotations of one block's factors against the other's.

        Between blocks, (P R, Q R) fits as well for any orthogonal R of either block, and
        p . R q has mean zero and variance |p|^2 |q|^2 / k over all R.

        Parameters
        ----------
        rows, cols : array of int
            Row and column numbers.

        Returns
        -------
        ndarray of float64
            Sum over the terms.
        """
        total = np.zeros(len(rows))
        start = 0
        for width, side in zip(self.widths, self.sides or [None] * len(self.widths), strict=True):
            part = slice(start, start + width)
            start += width
            if side is not None:
                continue  # a bias is the same whichever way the factors are turned
            sizes = (np.einsum("ij,ij->i", side[:, part], side[:, part]) for side in (self.left, self.right))
            row_size, col_size = sizes
            total += row_size[rows] * col_size[cols] / max(width, 1)
        return total

    def _side(
        self,
        indptr: IndexArray,
        indices: IndexArray,
        weight: FloatArray | float,
        other: FloatArray,
        ridge: FloatArray,
        near: IndexArray,
        far: IndexArray,
    ) -> FloatArray:
        """``q' A^-1 q`` with A of the entities ``near`` and q the factors of ``far``."""
        fixed = np.diag(ridge) + self.background * gram(other)
        order = np.argsort(near, kind="stable")
        entities, starts = np.unique(near[order], return_index=True)
        ends = np.append(starts[1:], len(near))
        out = np.empty(len(near))
        step = _step(other)
        for first in range(0, len(entities), step):
            part = slice(first, first + step)
            inverse, is_empty = _inverses(indptr, indices, weight, other, entities[part], fixed)
            asked = order[starts[part][0] : ends[part][-1]]
            owner = np.repeat(np.arange(len(inverse)), ends[part] - starts[part])
            values = _forms(inverse, owner, other, far[asked])
            values[is_empty[owner] & np.any(other[far[asked]], axis=1)] = np.inf
            out[asked] = values
        return out


def _step(vectors: FloatArray) -> int:
    return max(1, NUMBERS_AT_A_TIME // int(vectors.shape[1]) ** 2)


def _inverses(
    indptr: IndexArray,
    indices: IndexArray,
    weight: FloatArray | float,
    other: FloatArray,
    entities: IndexArray,
    fixed: FloatArray,
) -> tuple[FloatArray, BoolArray]:
    """Inverse of each entity's matrix, and which matrices are zero."""
    k = other.shape[1]
    matrices = np.zeros((len(entities), k, k))
    counts = np.diff(indptr)[entities]
    owner = np.repeat(np.arange(len(entities)), counts)
    before = np.cumsum(counts) - counts
    place = np.arange(len(owner)) + np.repeat(indptr[entities] - before, counts)
    weights = np.broadcast_to(np.asarray(weight, dtype=np.float64), indices.shape)
    for part in _runs(owner, k):
        vectors = other[indices[place[part]]]
        weighted = weights[place[part], None] * vectors
        own = owner[part]
        if k >= WIDE:
            matrices[own[0]] += weighted.T @ vectors
        else:
            begins = np.flatnonzero(np.r_[True, own[1:] != own[:-1]])
            products = weighted[:, :, None] * vectors[:, None, :]
            matrices[own[begins]] += np.add.reduceat(products, begins, axis=0)
    matrices += fixed
    size = np.trace(matrices, axis1=1, axis2=2) / k
    is_empty = size <= 0
    matrices += np.where(is_empty, 1.0, SINGULAR * size)[:, None, None] * np.eye(k)
    return np.linalg.inv(matrices), is_empty


def _forms(inverse: FloatArray, owner: IndexArray, other: FloatArray, far: IndexArray) -> FloatArray:
    """``q' inverse q`` for each vector q, whose matrix is that of its owner."""
    k = other.shape[1]
    out = np.empty(len(owner))
    for part in _runs(owner, k):
        vectors = other[far[part]]
        own = owner[part]
        moved = vectors @ inverse[own[0]] if k >= WIDE else np.einsum("cij,cj->ci", inverse[own], vectors)
        out[part] = np.maximum(np.einsum("ci,ci->c", moved, vectors), 0.0)
    return out


def _runs(owner: IndexArray, k: int) -> Iterator[slice]:
    """Parts of sorted owners: one owner at a time where its matrix is wide, else many small ones."""
    if k >= WIDE:
        edges = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]]) if len(owner) else np.empty(0, int)
        ends = np.append(edges[1:], len(owner))
    else:
        step = max(1, NUMBERS_AT_A_TIME // (k * k))
        edges = np.arange(0, len(owner), step)
        ends = np.minimum(edges + step, len(owner))
    yield from (slice(int(start), int(end)) for start, end in zip(edges, ends, strict=True))


def why_no_curvature(model: Any) -> str | None:
    """Say why a model has no curvature of this kind, or give None if it has.

    Parameters
    ----------
    model : completer
        Fitted.

    Returns
    -------
    str or None
        A reason.
    """
    name = type(model).__name__
    if getattr(model, "_posterior", None) is not None:
        return f"{name} is a mean over draws, and at no minimum"
    if not hasattr(model, "offsets_") or not hasattr(model, "row_factors_"):
        return f"{name} keeps no factors and offsets of its own"
    terms = getattr(model, "terms_", [])
    if not terms and model.row_factors_.shape[1] != model.offsets_.width:
        return f"{name} has factors of its own kind"
    if terms and not isinstance(model.loss_, Quadratic):
        return f"the loss of {name} is not quadratic"
    background = getattr(model.loss_, "background", None) if terms else None
    if background is not None and background.numbers().separable:
        return f"the background of {name} has weights of rows or columns"
    for index, term in enumerate(terms):
        row_map, col_map, _, reg = term.parts()
        if BoundTerm(index, *term.parts()).bias_side is not None:
            continue
        if not (isinstance(row_map, Identity) and isinstance(col_map, Identity)):
            return f"{name} has terms with features"
        rule = reg.factored()
        if f"{index}.core" in model.state_ or not (rule.quadratic and not getattr(rule, "degree_power", 0.0)):
            return f"a term of {name} is not a pair of factors with a ridge"
    return None


def curvature_of(model: Any, cells: Observations) -> Curvature:
    """Second derivatives of a model at its fit.

    Parameters
    ----------
    model : completer
        Fitted; one for which :func:`why_no_curvature` gives None.
    cells : Observations
        What it was fitted to.

    Returns
    -------
    Curvature
        Nothing is computed yet.
    """
    terms = getattr(model, "terms_", [])
    widths = [int(width) for width in getattr(model, "widths_", [])]
    rules = [term.parts()[3].factored() for term in terms]
    total = sum(widths)
    weight: FloatArray | float = 1.0
    background, unit = 0.0, 1.0
    if terms:
        loss = CellLoss(model.loss_, cells)
        weight, _ = loss.normal_terms()
        background = loss.blank.weight
        if isinstance(model.loss_, Squared):
            unit = float(model.loss_.weight)
    return Curvature(
        cells,
        np.ascontiguousarray(model.row_factors_[:, :total], dtype=np.float64),
        np.ascontiguousarray(model.col_factors_[:, :total], dtype=np.float64),
        widths,
        np.repeat([float(rule.ridge) for rule in rules], widths),
        weight,
        float(background),
        model.offsets_,
        unit,
        [BoundTerm(index, *term.parts()).bias_side for index, term in enumerate(terms)],
    )
