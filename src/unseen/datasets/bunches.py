"""What loaders return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from unseen.data import Observations
from unseen.exceptions import ParameterError
from unseen.typing import CSR, Array, Features
from unseen.validation import check_count

__all__ = ["ClassData", "GraphData", "MatrixData", "MultiLabelData", "Summarised"]

RowNumbers = npt.NDArray[np.int64]


class Summarised:
    """A repr with a line for each field: sizes in place of contents."""

    def __repr__(self) -> str:
        lines = [f"    {name}={_size(value)}," for name, value in vars(self).items() if _size(value)]
        return "\n".join([f"{type(self).__name__}(", *lines, ")"])


def _size(value: Any) -> str:
    """What a field holds, in a few words; nothing where it is empty."""
    if isinstance(value, Mapping):
        entries = [f"{key!r}: {_size(one) or 'empty'}" for key, one in value.items()]
        if len(entries) > 4:
            entries[2:] = ["..."]
        return "{" + ", ".join(entries) + "}" if entries else ""
    if isinstance(value, (list, tuple)):
        first = ", ".join(repr(one) if isinstance(one, str) else _size(one) for one in value[:3])
        return f"[{first}{', ...' if len(value) > 3 else ''}]" if len(value) else ""
    if isinstance(value, (sparse.csr_array, sparse.csc_array)):
        return f"sparse {' x '.join(map(str, value.shape))}, {value.nnz} stored"
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {' x '.join(map(str, value.shape))}"
    return "" if value is None else repr(value)


@dataclass(frozen=True, repr=False)
class MatrixData(Summarised):
    """Cells with what is known about them, their rows and their columns.

    Attributes
    ----------
    observations : Observations
        The cells.
    row_features, col_features : ndarray, csr_array or None
        Side features, as they are (not standardised).
    row_feature_names, col_feature_names : list of str
        Their names.
    cells : mapping of str to ndarray
        More about each cell, in the order of ``observations.values``.
    extras : mapping of str to object
        What else there is.
    """

    observations: Observations
    row_features: Features | None = None
    col_features: Features | None = None
    row_feature_names: list[str] = field(default_factory=list)
    col_feature_names: list[str] = field(default_factory=list)
    cells: Mapping[str, Array] = field(default_factory=dict)
    extras: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class MultiLabelData(Summarised):
    """Instances with features and labels.

    Attributes
    ----------
    X : csr_array of shape (n_rows, n_features)
        Features.
    Y : csr_array of shape (n_rows, n_labels)
        Ones for the labels.
    feature_names, label_names : list of str
        Names, empty where unknown.
    splits : mapping of str to pair of ndarray
        Row numbers of published training and test sets; the first is the default.
    """

    X: CSR
    Y: CSR
    feature_names: list[str]
    label_names: list[str]
    splits: Mapping[str, tuple[RowNumbers, RowNumbers]]

    def split(self, name: str | None = None) -> tuple[CSR, CSR, CSR, CSR]:
        """Training and test part of a published split.

        Parameters
        ----------
        name : str, optional
            Key of `splits`, by default its first.

        Returns
        -------
        X_train, Y_train, X_test, Y_test : csr_array
        """
        chosen = next(iter(self.splits)) if name is None else name
        if chosen not in self.splits:
            raise ParameterError(f"name must be one of {', '.join(map(repr, self.splits))}; got {name!r}.")
        train, test = self.splits[chosen]
        return self.X[train], self.Y[train], self.X[test], self.Y[test]


@dataclass(frozen=True, repr=False)
class GraphData(Summarised):
    """The largest connected part of an undirected graph, with fixed halves of its edges.

    Attributes
    ----------
    observations : Observations
        Symmetric ones on all edges; its ids are those of the source.
    edges : ndarray of shape (n_edges, 2)
        Pairs i < j, sorted.
    train : ndarray of bool, shape (5, n_edges)
        Five random halves of the edges.
    """

    observations: Observations
    edges: npt.NDArray[np.int64]
    train: npt.NDArray[np.bool_]

    def split(self, number: int = 0) -> tuple[Observations, npt.NDArray[np.int64]]:
        """Training graph and test edges.

        Parameters
        ----------
        number : int, default=0
            Which of the fixed halves.

        Returns
        -------
        train : Observations
            Symmetric, of the shape of the whole.
        test : ndarray of shape (n_test, 2)
            The other edges, i < j, by position: ask models with ``positions=True``.
        """
        if check_count("number", number, minimum=0) >= len(self.train):
            raise ParameterError(f"number must be at most {len(self.train) - 1}, got {number}.")
        mask = self.train[number]
        seen = self.observations
        pairs = np.sort(np.column_stack([seen.rows, seen.indices]).astype(np.int64), axis=1)
        key = pairs[:, 0] * seen.shape[1] + pairs[:, 1]
        train_key = self.edges[mask, 0] * seen.shape[1] + self.edges[mask, 1]
        return seen.select(np.isin(key, train_key)), self.edges[~mask]


@dataclass(frozen=True, repr=False)
class ClassData(Summarised):
    """Instances of one class each.

    Attributes
    ----------
    X : ndarray or csr_array
        Features, as they are.
    y : ndarray of int
        Class numbers from 0.
    feature_names, class_names : list of str
        Names.
    train, test : ndarray
        Row numbers of the customary split; all rows are in `train` where there is none.
    """

    X: Features
    y: npt.NDArray[np.int64]
    feature_names: list[str]
    class_names: list[str]
    train: RowNumbers
    test: RowNumbers
