"""Public sets that are too large to come with this library: a recorded protocol for files that users have.

    FILES=DIR python -m benchmarks large_sets        # DIR/EURLex-4K/train.txt and test.txt, and so on
    python -m benchmarks large_sets                  # generated files of the same shapes

``SETS`` in the environment names some only, with ``|`` between them; ``ROWS`` how many rows a generated file
has at most; features, labels, columns and what a row holds are those of the real set. Every line is a
process that reads the files, fits the defaults of a method, and judges what was held out. Figures of
generated files say that the way from file to figure works and what it costs; only those of real files say
anything about a method.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks._store import ROOT, if_measured, store
from papers.display import markdown
from unseen.data import write_extreme
from unseen.typing import CSR, Array

ROWS = int(os.environ.get("ROWS", "20000"))
WORDS = 20
"""Features that a label of a generated set brings with it."""


class Labels(NamedTuple):
    """A set of many labels: rows to learn from and to test on, features, labels, and how many a row has."""

    train: int
    test: int
    features: int
    labels: int
    row_features: float
    row_labels: float


class Cells(NamedTuple):
    """A matrix of ratings or links: rows, columns, stored cells."""

    rows: int
    cols: int
    cells: int


LABELS = {
    "EURLex-4K": Labels(15_539, 3_809, 5_000, 3_993, 236.8, 5.3),
    "Wiki10-31K": Labels(14_146, 6_616, 101_938, 30_938, 673.4, 18.6),
    "AmazonCat-13K": Labels(1_186_239, 306_782, 203_882, 13_330, 71.2, 5.0),
    "Delicious-200K": Labels(196_606, 100_095, 782_585, 205_443, 301.2, 75.5),
    "MediaMill": Labels(30_993, 12_914, 120, 101, 120, 4.4),
    "NUS-WIDE": Labels(161_789, 107_859, 500, 81, 500, 1.9),
    "CIFAR-10": Labels(50_000, 10_000, 1_024, 10, 1_024, 1.0),
}
CELLS = {"Netflix": Cells(480_189, 17_770, 100_480_507), "MySpace": Cells(2_100_000, 2_100_000, 90_300_000)}
METHODS: dict[str, dict[str, Any]] = {
    "LabelTree": {},
    "PPDSparse": {},
    "ExMLDS": {},
    "GIMCClassifier": {"max_iter": 10},
}
"""Defaults, but for the steps of the last."""
DENSE_LABELS = 5_000
"""Above, GIMCClassifier is left out, for its labels x features coefficients; PPDSparse at twice as many."""


def topics(shape: Labels, n: int, rng: np.random.Generator) -> tuple[CSR, CSR]:
    """Rows whose labels, a few frequent and most rare, bring words with them."""
    counts = (
        np.maximum(1, rng.poisson(shape.row_labels, n)) if shape.row_labels > 1 else np.ones(n, dtype=int)
    )
    rows = np.repeat(np.arange(n), counts)
    cols = (shape.labels * rng.random(len(rows)) ** 2.5).astype(np.int64)
    Y = _ones(rows, cols, (n, shape.labels))
    if shape.row_features >= shape.features:  # dense, as features of images are
        centres = rng.standard_normal((shape.labels, shape.features))
        X = Y @ centres + 2.0 * rng.standard_normal((n, shape.features))
        return sparse.csr_array(np.round(X, 3)), Y
    words = np.random.default_rng(0).integers(0, shape.features, (shape.labels, WORDS))
    own = words[Y.indices].ravel()
    own_rows = np.repeat(np.repeat(np.arange(n), np.diff(Y.indptr)), WORDS)
    keep = rng.random(len(own)) < 0.5
    most = max(int(shape.row_features) - int(keep.sum() / n), 1)
    noise = (shape.features * rng.random(n * most) ** 3).astype(np.int64)
    X = _ones(
        np.concatenate([own_rows[keep], np.repeat(np.arange(n), most)]),
        np.concatenate([own[keep], noise]),
        (n, shape.features),
    )
    X.data = np.round(rng.random(X.nnz) + 0.1, 3)
    return X, Y


def _ones(rows: Array, cols: Array, shape: tuple[int, int]) -> CSR:
    found = sparse.csr_array((np.ones(len(rows)), (rows, cols)), shape=shape)
    found.sum_duplicates()
    found.data[:] = 1.0
    return found


def write_labels(name: str, folder: Path) -> None:
    """Generated files of a set of labels; the centres of dense features are the same in both."""
    shape = LABELS[name]
    n_train, n_test = min(shape.train, ROWS), min(shape.test, ROWS // 4)
    X, Y = topics(shape, n_train + n_test, np.random.default_rng(1))
    write_extreme(folder / "train.txt", X[:n_train], Y[:n_train])
    write_extreme(folder / "test.txt", X[n_train:], Y[n_train:])


def write_cells(name: str, folder: Path) -> None:
    """Generated triples, as many for a row as in the real matrix; a fifth of them is for testing."""
    shape, rng = CELLS[name], np.random.default_rng(1)
    n = min(shape.rows, 10 * ROWS)
    n_cols = n if shape.rows == shape.cols else shape.cols
    count = int(shape.cells / shape.rows * n)
    rows = rng.integers(0, n, count)
    cols = (n_cols * rng.random(count) ** 2).astype(np.int64)
    keys = np.unique(rows * n_cols + cols)
    rows, cols = np.divmod(rng.permutation(keys), n_cols)
    left, right = rng.standard_normal((n, 3)), rng.standard_normal((n_cols, 3))
    values = np.clip(np.round(3.5 + 0.6 * np.einsum("ij,ij->i", left[rows], right[cols])), 1, 5).astype(int)
    cut = len(rows) // 5
    for part, where in (("test", slice(0, cut)), ("train", slice(cut, None))):
        table = np.column_stack([rows[where], cols[where], values[where]])
        if name == "MySpace":
            table = table[:, :2]
        np.savetxt(folder / f"{part}.txt", table, fmt="%d")


def judged(name: str, method: str, folder: Path) -> dict[str, Any]:
    """One method on files, in a process of its own."""
    request = {"kind": "labels" if name in LABELS else name, "method": method, "folder": str(folder),
               "setting": METHODS.get(method, {})}  # fmt: skip
    command = [sys.executable, "-m", "benchmarks._large_child", json.dumps(request)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def methods_of(name: str) -> list[str]:
    """What is run on a set."""
    if name in CELLS:
        return ["MatrixFactorization" if name == "Netflix" else "BiasMC"]
    left_out = {"GIMCClassifier"} if LABELS[name].labels > DENSE_LABELS else set()
    left_out |= {"PPDSparse"} if LABELS[name].labels > 2 * DENSE_LABELS else set()
    return [method for method in METHODS if method not in left_out]


def main() -> None:
    """Run all sets on real files where there are some, else on generated ones."""
    real = os.environ.get("FILES")
    rows: list[dict[str, Any]] = []
    for name in os.environ.get("SETS", "|".join([*LABELS, *CELLS])).split("|"):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(real) / name if real else Path(place)
            if not real:
                (write_labels if name in LABELS else write_cells)(name, folder)
            for method in methods_of(name):
                found = judged(name, method, folder)
                rows.append({"data": name, "method": method, "generated": not real, **found})
                print(rows[-1], flush=True)
                keep = [row for row in _stored() if (row["data"], row["method"]) != (name, method)]
                store("large_sets", {"rows": [*keep, rows[-1]]})


def _stored() -> list[dict[str, Any]]:
    path = Path(__file__).parent / "stored" / "large_sets.json"
    found: list[dict[str, Any]] = json.loads(path.read_text())["rows"] if path.exists() else []
    return found


def table_of(found: dict[str, Any]) -> str:
    """A line for each set and method."""
    order = [*LABELS, *CELLS]
    lines = []
    for row in sorted(found["rows"], key=lambda row: order.index(row["data"])):
        told = ", ".join(f"{key} {value:.3g}" for key, value in row["quality"].items())
        lines.append(
            [
                row["data"],
                "generated" if row["generated"] else "real",
                " x ".join(f"{size:,}" for size in row["shape"]),
                f"{row['cells']:,}",
                row["method"],
                *(f"{row[key]:.1f}" for key in ("read_s", "fit_s", "predict_s")),
                f"{row['gib']:.2f}",
                told,
            ]
        )
    head = [
        "set",
        "files",
        "shape that was read",
        "cells",
        "method",
        "read, s",
        "fit, s",
        "judge, s",
        "GiB",
        "found",
    ]
    return markdown(head, lines)


def tables() -> dict[str, str]:
    """What docs/papers/large_sets.md shows."""
    return {"large sets": if_measured("large_sets", table_of)}


if __name__ == "__main__":
    main()
