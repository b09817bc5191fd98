"""Loaders of instances with labels or classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

from unseen.data import Vocabulary, read_extreme
from unseen.data.streaming import PathLike
from unseen.datasets.bunches import ClassData, MultiLabelData, RowNumbers
from unseen.datasets.registry import FILES, find_files
from unseen.datasets.tables import read_columns, read_lines
from unseen.docstrings import described_by
from unseen.typing import CSR

__all__ = [
    "load_bibtex",
    "load_corel5k",
    "load_covtype",
    "load_delicious",
    "load_letter",
    "load_mediamill_subset",
    "load_mushroom",
    "load_rcv1_subset",
    "load_segment",
]


def _load_labels(name: str, split: str, data_home: PathLike | None, download: bool) -> MultiLabelData:
    """Stack the parts of a multi-label set; the parts themselves are its first split."""
    files = find_files(name, data_home=data_home, download=download)
    parts = [read_extreme(files[file]) for file in ("train.txt", "test.txt", "all.txt") if file in files]
    X = sparse.csr_array(sparse.vstack([part[0] for part in parts], format="csr"))
    Y = sparse.csr_array(sparse.vstack([part[1] for part in parts], format="csr"))
    n_train = parts[0][0].shape[0] if len(parts) == 2 else 1750
    rows = np.arange(X.shape[0])
    splits = {split: (rows[:n_train], rows[n_train:])}
    if "sleec_train_rows.txt" in files and "sleec_test_rows.txt" in files:
        splits["sleec"] = (
            _row_numbers(files["sleec_train_rows.txt"])[:, 0],
            _row_numbers(files["sleec_test_rows.txt"])[:, 0],
        )
    if "splits10_train_rows.txt" in files and "splits10_test_rows.txt" in files:
        published = zip(
            _row_numbers(files["splits10_train_rows.txt"]).T,
            _row_numbers(files["splits10_test_rows.txt"]).T,
            strict=True,
        )
        splits.update({f"repository{number}": pair for number, pair in enumerate(published)})
    names = [
        read_lines(files[file]) if file in files else [] for file in ("feature_names.txt", "label_names.txt")
    ]
    return MultiLabelData(X, Y, names[0], names[1], splits)


def _row_numbers(path: Path) -> RowNumbers:
    return np.loadtxt(read_lines(path), dtype=np.int64, ndmin=2)


def _load_classes(
    name: str, class_column: str, n_train: int | None, data_home: PathLike | None, download: bool
) -> ClassData:
    """A table of numbers with one column of classes."""
    (path,) = find_files(name, data_home=data_home, download=download).values()
    columns = {column[0]: column[1:] for column in read_columns(path)}
    classes, y = Vocabulary.encode(columns.pop(class_column))
    rows = np.arange(y.size)
    return ClassData(
        np.ascontiguousarray(np.array(list(columns.values()), dtype=np.float64).T),
        y.astype(np.int64),
        list(columns),
        list(classes),
        rows[:n_train],
        rows[y.size if n_train is None else n_train :],
    )


@described_by(FILES)
def load_bibtex(*, data_home: PathLike | None = None, download: bool = False) -> MultiLabelData:
    """Bibtex: 7,395 documents, 1,836 words, 159 tags.

    Returns
    -------
    MultiLabelData
        Splits ``"mulan"`` (4,880 and 2,515 rows), and where the files are there ``"sleec"`` and
        ``"repository0"`` to ``"repository9"``.
    """
    return _load_labels("bibtex", "mulan", data_home, download)


@described_by(FILES)
def load_delicious(*, data_home: PathLike | None = None, download: bool = False) -> MultiLabelData:
    """Delicious: 16,105 web pages, 500 words, 983 tags.

    Returns
    -------
    MultiLabelData
        Split ``"mulan"`` (12,920 and 3,185 rows). 14 rows have no label.
    """
    return _load_labels("delicious", "mulan", data_home, download)


@described_by(FILES)
def load_corel5k(*, data_home: PathLike | None = None, download: bool = False) -> MultiLabelData:
    """Corel5k: 5,000 images, 499 visual words, 374 labels with a long tail.

    Returns
    -------
    MultiLabelData
        Split ``"mulan"`` (4,500 and 500 rows).
    """
    return _load_labels("corel5k", "mulan", data_home, download)


@described_by(FILES)
def load_rcv1_subset(*, data_home: PathLike | None = None, download: bool = False) -> MultiLabelData:
    """RCV1-v2, subset 1: 6,000 news stories, 944 frequent words, 101 topics.

    Returns
    -------
    MultiLabelData
        Split ``"halves"`` (3,000 and 3,000 rows). Names are unknown, and 16 rare labels of the test half
        were matched to those of the training half with low confidence.
    """
    return _load_labels("rcv1_subset", "halves", data_home, download)


@described_by(FILES)
def load_mediamill_subset(*, data_home: PathLike | None = None, download: bool = False) -> MultiLabelData:
    """MediaMill, 2,500 shots: 120 dense features, 101 concepts.

    Returns
    -------
    MultiLabelData
        Split ``"first1750"``: the first 1,750 rows against the rest, a convention of this library, as none
        is published. 74 rows have no label.
    """
    return _load_labels("mediamill_subset", "first1750", data_home, download)


@described_by(FILES)
def load_letter(*, data_home: PathLike | None = None, download: bool = False) -> ClassData:
    """Letter recognition: 20,000 letters, 16 features, 26 classes.

    Returns
    -------
    ClassData
        The customary split: the first 16,000 rows and the last 4,000.
    """
    return _load_classes("letter", "Letter", 16_000, data_home, download)


@described_by(FILES)
def load_segment(*, data_home: PathLike | None = None, download: bool = False) -> ClassData:
    """Image segmentation: 2,310 rows, 18 features, 7 classes of 330 rows.

    Returns
    -------
    ClassData
        Features differ by orders of magnitude: scale them.
    """
    return _load_classes("segment", "category", None, data_home, download)


@described_by(FILES)
def load_covtype(*, data_home: PathLike | None = None, download: bool = False) -> ClassData:
    """Forest cover, a balanced sample: 15,120 rows, 54 features, 7 classes.

    Returns
    -------
    ClassData
        Two indicators (``Soil_Type7``, ``Soil_Type15``) are all zero.
    """
    return _load_classes("covtype", "Cover_Type", None, data_home, download)


@described_by(FILES)
def load_mushroom(*, data_home: PathLike | None = None, download: bool = False) -> ClassData:
    """Mushroom: 8,124 rows, 112 indicators, edible (0) or poisonous (1).

    Returns
    -------
    ClassData
        Sparse indicators of 21 attributes; ``stalk-root``, which has missing values, is left out.
    """
    (path,) = find_files("mushroom", data_home=data_home, download=download).values()
    columns = {column[0]: column[1:] for column in read_columns(path)}
    kinds, y = Vocabulary.encode(columns.pop("poisonous"))
    blocks: list[CSR] = []
    names: list[str] = []
    for attribute, letters in columns.items():
        if attribute != "stalk-root":
            found, codes = Vocabulary.encode(letters)
            flags = (np.ones(codes.size), codes, np.arange(codes.size + 1))
            blocks.append(sparse.csr_array(flags, shape=(codes.size, len(found))))
            names.extend(f"{attribute}={letter}" for letter in found)
    X = sparse.csr_array(sparse.hstack(blocks, format="csr"))
    full = {"e": "edible", "p": "poisonous"}
    rows = np.arange(y.size)
    return ClassData(X, y.astype(np.int64), names, [full[kind] for kind in kinds], rows, rows[:0])
