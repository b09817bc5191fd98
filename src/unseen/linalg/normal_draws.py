"""Draws of the numbers that govern a Gaussian: precisions, means, coefficients."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg import solve_triangular

from unseen.exceptions import DivergedError
from unseen.linalg.blocked import gram, matmul
from unseen.linalg.cg import conjugate_gradients
from unseen.linalg.designs import CentredDesign, DenseDesign, Design, SparseDesign
from unseen.typing import Array, FloatArray

__all__ = ["RidgeDraws", "wishart"]

DIRECT = 1500
"""Size up to which a system is diagonalised once; larger ones take conjugate gradients at each draw."""
CG_STEPS, CG_TOL = 200, 1e-6


def wishart(degrees: float, inverse_scale: Array, rng: np.random.Generator) -> Array:
    """A draw from the Wishart distribution of mean ``degrees * inverse_scale^-1`` (Bartlett)."""
    k = len(inverse_scale)
    try:
        factor = np.linalg.cholesky(inverse_scale)
    except np.linalg.LinAlgError:
        factor = np.full_like(inverse_scale, np.nan)
    if not np.isfinite(factor).all():
        raise DivergedError("what was drawn has no covariance any more: some of its squares are too large")
    triangle = np.tril(rng.standard_normal((k, k)), -1)
    triangle[np.diag_indices(k)] = np.sqrt(rng.chisquare(degrees - np.arange(k)))
    root = solve_triangular(factor, triangle, lower=True, trans="T")
    return np.asarray(root @ root.T)


class RidgeDraws:
    """Draws of B in ``R = X B + E`` with E ~ N(0, 1) and B ~ N(0, 1 / weight), all entries independent.

    A column is distributed as N(A^-1 X'r, A^-1) with A = X'X + weight I. The smaller of X'X and XX' is
    diagonalised once, so that a draw costs products; where both are large, each draw is a perturbed system,
    solved by conjugate gradients.

    Parameters
    ----------
    design : Design
        X of shape (n, d).
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        n, d = design.shape
        self.side = "direct" if d <= min(n, DIRECT) else "dual" if n <= DIRECT else "cg"
        if self.side != "cg":
            self._values, self._vectors = np.linalg.eigh(_square(design, by_column=self.side == "direct"))
            self._values = np.maximum(self._values, 0.0)

    def evidence(self, target: FloatArray, weights: Array) -> Array | None:
        """Log density of R, up to a constant, for each of some weights, B integrated out.

        None where the system is not diagonalised.
        """
        if self.side == "cg":
            return None
        if self.side == "direct":
            along = self._vectors.T @ self.design.tdot(target)
            sizes = np.einsum("ik,ik->i", along, along) / np.maximum(self._values, 1e-300)
            sizes[self._values <= 1e-10 * self._values.max(initial=0.0)] = 0.0
        else:
            turned = self._vectors.T @ target
            sizes = np.einsum("ik,ik->i", turned, turned)
        stretch = 1.0 + self._values[:, None] / weights
        k = target.shape[1]
        return np.asarray(-0.5 * np.sum(k * np.log(stretch) + sizes[:, None] / stretch, axis=0))

    def draw(self, target: FloatArray, weight: float, noise: FloatArray) -> FloatArray:
        """One draw.

        Parameters
        ----------
        target : array of shape (n, k)
            R.
        weight : float
            Precision of the coefficients.
        noise : array of shape (d + n, k)
            Standard normal numbers.

        Returns
        -------
        array of shape (d, k)
        """
        d = self.design.shape[1]
        own, cells = noise[:d], noise[d:]
        if self.side == "direct":
            stiff = self._values[:, None] + weight
            along = self._vectors.T @ self.design.tdot(target)
            return np.asarray(self._vectors @ (along / stiff + own / np.sqrt(stiff)))
        if self.side == "dual":
            # A draw of the prior, moved by what the perturbed data say of its error (Matheron).
            prior = own / np.sqrt(weight)
            gap = target + cells - self.design.dot(prior)
            solved = self._vectors @ ((self._vectors.T @ gap) / (self._values[:, None] + weight))
            return np.asarray(prior + self.design.tdot(solved))

        def operator(x: FloatArray) -> FloatArray:
            return self.design.tdot(self.design.dot(x)) + weight * x

        right = self.design.tdot(np.ascontiguousarray(target + cells)) + np.sqrt(weight) * own
        goal = CG_TOL**2 * np.einsum("ij,ij->j", right, right)
        return conjugate_gradients(operator, right, goal=goal, max_iter=CG_STEPS)[0]


def _square(design: Design, *, by_column: bool) -> Array:
    """X'X, or XX', in full."""
    if isinstance(design, CentredDesign):
        a, shift = design.base.matrix.astype(np.float64), design.shift
        if by_column:
            crossed = np.outer(np.asarray(a.sum(axis=0)).ravel(), shift)
            return np.asarray((a.T @ a).toarray() - crossed - crossed.T + a.shape[0] * np.outer(shift, shift))
        along = np.broadcast_to((a @ shift)[:, None], (a.shape[0], a.shape[0]))
        return np.asarray((a @ a.T).toarray() - along - along.T + shift @ shift)
    if isinstance(design, SparseDesign):
        b = sparse.csr_array(design.matrix.astype(np.float64))
        return np.asarray(((b.T @ b) if by_column else (b @ b.T)).toarray())
    assert isinstance(design, DenseDesign)
    dense = design.matrix.astype(np.float64)
    return np.asarray(gram(dense) if by_column else matmul(dense, np.ascontiguousarray(dense.T)))
