"""Multi-label files: the sparse text of extreme classification, and svmlight."""

from __future__ import annotations

import gzip
import itertools
import os
import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from unseen.data.streaming import GrowingArray, PathLike, open_text, unreadable
from unseen.exceptions import DataWarning, InvalidDataError
from unseen.typing import CSR, Array, FloatArray, SparseLike

__all__ = ["read_extreme", "read_svmlight", "write_extreme"]

_CHUNK_ROWS = 1 << 12
MOST = (1 << 31) - 1
"""Rows, features or labels that are told apart: indices have 32 bits."""


def read_extreme(path: PathLike, *, dtype: npt.DTypeLike = np.float64) -> tuple[CSR, CSR]:
    r"""Read features and labels from the sparse text format of the extreme classification repository.

    The first line holds the numbers of rows, features and labels. Each further line is a row:
    labels with commas between them, a blank, and ``feature:value`` pairs; numbering is from 0. A row
    without labels starts with the blank or with its first pair.

    Parameters
    ----------
    path : path-like
        Plain or gzipped text.
    dtype : dtype, default=float64
        Type of the result.

    Returns
    -------
    X : csr_array of shape (n_rows, n_features)
        Features.
    Y : csr_array of shape (n_rows, n_labels)
        Ones for the labels of each row.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "tiny.txt"
    >>> _ = file.write_text("2 3 4\n0,3 1:0.5 2:1\n 0:2\n")
    >>> X, Y = read_extreme(file)
    >>> X.toarray().tolist(), Y.toarray().tolist()
    ([[0.0, 0.5, 1.0], [2.0, 0.0, 0.0]], [[1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    """
    features, values = GrowingArray(np.int32), GrowingArray(dtype)
    labels = GrowingArray(np.int32)
    with open_text(path) as handle:
        n_rows, n_features, n_labels = _header(path, handle.readline())
        feature_counts, label_counts = np.zeros((2, n_rows), dtype=np.int64)
        row = 0
        while row < n_rows and (lines := list(itertools.islice(handle, min(_CHUNK_ROWS, n_rows - row)))):
            parts = [_split(line) for line in lines]
            here = slice(row, row + len(lines))
            feature_counts[here] = [pairs.count(":") for _, pairs in parts]
            label_counts[here] = [names.count(",") + 1 if names else 0 for names, _ in parts]
            pairs = _numbers(" ".join(pairs for _, pairs in parts).replace(":", " "))
            found = _numbers(" ".join(names for names, _ in parts if names).replace(",", " "))
            if (
                pairs is None
                or found is None
                or pairs.size != 2 * feature_counts[here].sum()
                or found.size != label_counts[here].sum()
                or not _are_indices(pairs[::2], n_features)
                or not _are_indices(found, n_labels)
                or not np.isfinite(pairs).all()
            ):
                raise _explain(path, lines, row + 2, n_features, n_labels)
            features.append(pairs[::2])
            values.append(pairs[1::2])
            labels.append(found)
            row += len(lines)
        if row < n_rows:
            raise unreadable(path, row + 2, f"the header promises {n_rows} rows, the file ends after {row}.")
        for number, line in enumerate(handle, n_rows + 2):
            if line.strip():
                raise unreadable(path, number, f"the header promises {n_rows} rows, but there are more.")
    X = _rows(values.finish(), features.finish(), feature_counts, (n_rows, n_features))
    ones = np.ones(int(label_counts.sum()), dtype=dtype)
    Y = _rows(ones, labels.finish(), label_counts, (n_rows, n_labels))
    if X.nnz < feature_counts.sum():
        repeated = int(feature_counts.sum()) - X.nnz
        warnings.warn(f"{path}: {repeated} features repeat within a row; they were summed.", DataWarning, 2)
    Y.data[:] = 1
    return X, Y


def _header(path: PathLike, line: str) -> tuple[int, int, int]:
    fields = line.split()
    if not fields:
        raise unreadable(path, 1, "the file is empty.")
    if len(fields) != 3 or not all(field.isdecimal() for field in fields):
        raise unreadable(
            path, 1, f"expected the numbers of rows, features and labels, found {line.strip()!r}."
        )
    n_rows, n_features, n_labels = map(int, fields)
    if max(n_rows, n_features, n_labels) > MOST:
        raise unreadable(path, 1, f"rows, features and labels are at most {MOST}, found {line.strip()!r}.")
    return n_rows, n_features, n_labels


def _split(line: str) -> tuple[str, str]:
    """The labels and the pairs of a line."""
    labels, _, pairs = line.rstrip("\r\n").replace("\t", " ").partition(" ")
    return ("", f"{labels} {pairs}") if ":" in labels else (labels, pairs)


def _numbers(text: str) -> FloatArray | None:
    """All numbers of a text with blanks between them, None if something else is among them."""
    text = text.strip()  # of blanks alone NumPy makes a number
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)
            return np.fromstring(text, dtype=np.float64, sep=" ")
    except (DeprecationWarning, ValueError):
        return None


def _are_indices(numbers: Array, length: int) -> bool:
    return bool(((numbers >= 0) & (numbers < length) & (numbers == np.floor(numbers))).all())


def _explain(
    path: PathLike, lines: Sequence[str], first: int, n_features: int, n_labels: int
) -> InvalidDataError:
    """Find the line that could not be read."""
    for number, line in enumerate(lines, first):
        labels, pairs = _split(line)
        for label in labels.split(",") if labels else []:
            if not label.strip().isdecimal() or int(label) >= n_labels:
                return unreadable(path, number, f"{label!r} is not a label in 0..{n_labels - 1}.")
        for pair in pairs.split():
            feature, _, value = pair.partition(":")
            if not feature.isdecimal() or int(feature) >= n_features:
                return unreadable(path, number, f"{pair!r} has no feature in 0..{n_features - 1}.")
            try:
                is_finite = bool(np.isfinite(float(value)))
            except ValueError:
                is_finite = False
            if not is_finite:
                return unreadable(path, number, f"{pair!r} has no finite value.")
    return unreadable(path, None, f"lines {first} to {first + len(lines) - 1} cannot be read.")


def _rows(data: Array, indices: Array, counts: npt.NDArray[np.int64], shape: tuple[int, int]) -> CSR:
    indptr = np.concatenate([[0], np.cumsum(counts)])
    matrix = sparse.csr_array((data, indices, indptr), shape=shape)
    matrix.sum_duplicates()
    return matrix


def write_extreme(path: PathLike, X: SparseLike, Y: SparseLike) -> None:
    r"""Write features and labels in the sparse text format of the extreme classification repository.

    Parameters
    ----------
    path : path-like
        Written in one go: the file appears when it is complete. Gzipped if it ends in ``.gz``.
    X : scipy.sparse of shape (n_rows, n_features)
        Features; stored zeros are kept.
    Y : scipy.sparse of shape (n_rows, n_labels)
        Every stored non-zero is a label.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from scipy import sparse
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "tiny.txt"
    >>> write_extreme(file, sparse.csr_array([[0, 0.5]]), sparse.csr_array([[1, 0, 1]]))
    >>> file.read_text()
    '1 2 3\n0,2 1:0.5\n'
    """
    features, labels = sparse.csr_array(X), sparse.csr_array(Y, copy=True)
    if features.shape[0] != labels.shape[0]:
        raise InvalidDataError(
            f"X and Y must have the same number of rows, got {features.shape[0]} and {labels.shape[0]}."
        )
    labels.eliminate_zeros()
    temporary = Path(f"{os.fspath(path)}.{os.getpid()}.part")
    try:
        opener: Any = gzip.open if Path(path).suffix == ".gz" else open
        with opener(temporary, "wt", encoding="utf-8", newline="\n") as handle:
            _write_rows(cast(IO[str], handle), features, labels)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _write_rows(handle: IO[str], features: CSR, labels: CSR) -> None:
    handle.write(f"{features.shape[0]} {features.shape[1]} {labels.shape[1]}\n")
    for start in range(0, features.shape[0], _CHUNK_ROWS):
        X, Y = features[start : start + _CHUNK_ROWS], labels[start : start + _CHUNK_ROWS]
        # NumPy writes the shortest text that reads back as the same number.
        pairs = np.char.add(np.char.add(X.indices.astype(np.str_), ":"), X.data.astype(np.str_)).tolist()
        names = Y.indices.astype(np.str_).tolist()
        for row in range(X.shape[0]):
            own_names = ",".join(names[Y.indptr[row] : Y.indptr[row + 1]])
            handle.write(f"{own_names} {' '.join(pairs[X.indptr[row] : X.indptr[row + 1]])}\n")


def read_svmlight(
    path: PathLike,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    multilabel: bool = False,
) -> tuple[CSR, Any]:
    r"""Read an svmlight (libsvm) file with scikit-learn's reader.

    Parameters
    ----------
    path : path-like
        Plain or compressed text.
    n_features : int, optional
        By default the largest index found gives it.
    zero_based : bool or "auto", default="auto"
        Whether features are numbered from 0.
    multilabel : bool, default=False
        Whether a row may have several labels.

    Returns
    -------
    X : csr_array
        Features.
    y : ndarray, or list of tuples if `multilabel`
        Targets.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "tiny.svm"
    >>> _ = file.write_text("1 1:0.5 3:2\n0 2:1\n")
    >>> X, y = read_svmlight(file)
    >>> X.shape, y.tolist()
    ((2, 3), [1.0, 0.0])
    """
    from sklearn.datasets import load_svmlight_file  # many modules that other readers do without

    try:
        X, y = load_svmlight_file(
            os.fspath(path), n_features=n_features, zero_based=zero_based, multilabel=multilabel
        )
    except (ValueError, OverflowError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise unreadable(path, None, f"not an svmlight file ({error}).") from error
    return sparse.csr_array(X), y
