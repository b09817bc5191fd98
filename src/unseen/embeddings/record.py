"""What every embedding hands back."""

from __future__ import annotations

from dataclasses import dataclass

from unseen.typing import FloatArray

__all__ = ["Embedding"]


@dataclass(frozen=True)
class Embedding:
    """Vectors of instances and, where they were asked for, of labels.

    Attributes
    ----------
    instances : array of shape (n, n_components)
    labels : array of shape (n_labels, n_components) or None
    eigenvalues : array of shape (n_components,)
        Of the matrix that was factorised, decreasing; all zero for methods that factorise nothing.
    n_iter : int
        Products with that matrix, or sweeps.
    """

    instances: FloatArray
    labels: FloatArray | None
    eigenvalues: FloatArray
    n_iter: int
