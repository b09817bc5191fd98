"""How many bytes a fit adds at its peak, before anything is fitted.

Every array that a fit holds grows with one of a few sizes, so the peak is a sum over these sizes. How many
arrays of each size are alive at the peak was measured (``python -m benchmarks memory``), at the default
settings and at those that change the way of a fit.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from scipy import sparse

from unseen.data import Observations
from unseen.exceptions import InvalidDataError, ParameterError, UnsupportedComposition
from unseen.linalg.nearest import BLOCK_COLUMNS
from unseen.typing import Array
from unseen.validation import check_count

__all__ = ["Sizes", "formula_of", "memory_estimate", "sizes_of", "terms_of"]

_TABLE: dict[str, dict[str, dict[str, float]]] = json.loads(
    resources.files("unseen").joinpath("memory_costs.json").read_text(encoding="utf-8")
)
"""Written by ``python -m benchmarks memory``."""
COSTS = _TABLE["completers"] | _TABLE["classifiers"]
OF_LABELS = frozenset(_TABLE["classifiers"])
ROWS_A_TIME = 1 << 16
LARGEST_AUTO_RANK = 50
"""What ``max_rank="auto"`` allows."""
MOST_NEIGHBORS = 250
"""What ``n_neighbors="auto"`` is taken for."""


@dataclass(frozen=True)
class Sizes:
    """What a formula goes by: n rows, m columns or labels, cells, rank, features, bytes of a number.

    ``reading`` is added while the target is read, of which ``kept`` stays.
    """

    n: int
    m: int
    cells: int
    rank: int
    d: float = 0.0
    e: float = 0.0
    item: int = 8
    neighbors: int = 0
    reading: int = 0
    kept: int = 0


def terms_of(sizes: Sizes, *, labels: bool = False) -> dict[str, float]:
    """Bytes of one array of each size."""
    n, m, k, item = sizes.n, sizes.m, sizes.rank, sizes.item
    common = {"values": item * sizes.cells, "lines": 8 * (n + m), "blocks": 1 << 20}
    met = sizes.cells**2 / max(
        n * m, 1
    )  # entries that two rows, or two columns, have with all others in common
    if labels:
        own = {
            "features": 8 * n * sizes.d,
            "scores": 8 * n * m,
            "gram": 8 * sizes.d**2,
            "embedding": item * n * k,
            "graph": 8 * n * min(n, sizes.neighbors, met),
        }
    else:
        alike = m * -math.expm1(-met / max(m, 1)) if sizes.neighbors else 0
        own = {
            "indices": 4 * sizes.cells,
            "factors": item * k * (n + m),
            "doubles": 8 * k * (n + m),
            "longest": item * k * max(n, m),
            "features": item * (n * sizes.d + m * sizes.e),
            "graph": 12 * m * min(sizes.neighbors, alike),
            "pairs": 12 * min(m, BLOCK_COLUMNS) * alike,
        }
    return {name: float(size) for name, size in (common | own).items()}


def formula_of(estimator: Any) -> str:
    """Name of the formula that holds for an estimator and its settings."""
    name = type(estimator).__name__
    settings = estimator.get_params(deep=False)
    variants = []
    if f"{name} reg" in COSTS and settings.get("reg") != "auto":
        variants.append(f"{name} reg")
    if settings.get("center") == "joint":
        variants.append(f"{name} joint")
    if settings.get("solver") == "ccd":
        variants.append(f"{name} ccd")
    found = [variant for variant in (*reversed(variants), name) if variant in COSTS]
    if not found:
        raise UnsupportedComposition(
            f"there is no formula for the memory of {name}; there is one for "
            f"{', '.join(sorted(key for key in COSTS if ' ' not in key))}"
        )
    return found[0]


def sizes_of(
    estimator: Any, X: Any, y: Any = None, *, row_features: Any = None, col_features: Any = None
) -> Sizes:
    """Sizes of the data of a fit."""
    target = X if y is None else y
    cells, reading, kept = _cells(target)
    n, m = target.shape
    rank = _rank(estimator, (n, m))
    item = 4 if _dtype(target if y is None else X) == np.float32 else 8
    given = (X, None) if y is not None else (row_features, col_features)
    d, e = (_width(features) for features in given)
    return Sizes(n, m, cells, rank, d, e, item, _neighbors(estimator), reading, kept)


def memory_estimate(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    row_features: Any = None,
    col_features: Any = None,
    shape: tuple[int, int] | None = None,
    nnz: int | None = None,
    n_features: tuple[int, int] = (0, 0),
    dtype: Any = np.float64,
) -> int:
    """Bytes that ``fit`` adds at its peak to what the process holds.

    With i bytes a number, n rows, m columns, c cells, rank k, d and e features of a row and of a column::

        completers   a1 i c + a2 4 c + a3 8 (n + m) + a4 i k (n + m) + a5 8 k (n + m) + a6 i k max(n, m)
                     + a7 i (n d + m e) + a8 MiB
        classifiers  a1 i c + a2 8 (n + m) + a3 8 n d + a4 8 n m + a5 8 d^2 + a6 i n k + a7 MiB

    where classifiers have m labels, of which c are set. Methods of neighbours add 8 n or 12 m times as many
    neighbours as there can be. The coefficients of each estimator say how many arrays of each size are alive
    at the peak; they were measured on one thread at the default settings. The guide has the table, and how
    far the estimate was off at sizes that had no part in it.

    Parameters
    ----------
    estimator : estimator
        With the settings of the fit.
    X : array, sparse matrix or Observations, optional
        Target; for classifiers the features. A dense array costs its reading, too.
    y : array or sparse matrix, optional
        Labels, for classifiers.
    row_features, col_features : array or sparse matrix, optional
        Side features.
    shape : (int, int), optional
        Rows and columns, instead of ``X``; for classifiers rows and labels.
    nnz : int, optional
        Stored cells, instead of ``X``.
    n_features : (int, int), default=(0, 0)
        Features of a row and of a column, instead of arrays.
    dtype : dtype, default=float64
        Of the values, instead of ``X``.

    Returns
    -------
    int

    Raises
    ------
    UnsupportedComposition
        If there is no formula for this estimator.

    Examples
    --------
    >>> import unseen
    >>> model = unseen.BiasMC(rank=64)
    >>> need = unseen.memory_estimate(model, shape=(200_000, 50_000), nnz=4_460_000)
    >>> 100 < need / 2**20 < 1000
    True
    """
    name = formula_of(estimator)
    if X is not None:
        if shape is not None or nnz is not None:
            raise ParameterError("give X, or shape and nnz, not both")
        sizes = sizes_of(estimator, X, y, row_features=row_features, col_features=col_features)
    elif shape is None or nnz is None:
        raise ParameterError("give X, or shape and nnz")
    else:
        n, m = (check_count("shape", length, maximum=None) for length in shape)
        cells = check_count("nnz", nnz, minimum=0, maximum=None)
        d, e = (check_count("n_features", count, minimum=0) for count in n_features)
        item = 4 if np.dtype(dtype) == np.float32 else 8
        sizes = Sizes(n, m, cells, _rank(estimator, (n, m)), d, e, item, _neighbors(estimator))
    return max(sizes.reading, sizes.kept + round(needed(name, sizes)))


def needed(name: str, sizes: Sizes) -> float:
    """Bytes of all arrays that a formula counts."""
    terms = terms_of(sizes, labels=name in OF_LABELS)
    return sum(count * terms[part] for part, count in COSTS[name].items())


def _rank(estimator: Any, shape: tuple[int, int]) -> int:
    settings = estimator.get_params(deep=False)
    for name in ("rank", "max_rank", "n_components", "n_clusters"):
        if name in settings and settings[name] is not None:
            found = settings[name]
            return min(LARGEST_AUTO_RANK if found == "auto" else check_count(name, found), *shape)
    return min(shape) if "max_rank" in settings else 0


def _neighbors(estimator: Any) -> int:
    found = estimator.get_params(deep=False).get("n_neighbors", 0)
    return MOST_NEIGHBORS if found == "auto" else check_count("n_neighbors", found, minimum=0)


def _dtype(values: Any) -> Any:
    return values.values.dtype if isinstance(values, Observations) else getattr(values, "dtype", np.float64)


def _width(features: Any) -> float:
    """Numbers that features have in a row."""
    if features is None:
        return 0.0
    if sparse.issparse(features):
        stored: Any = features
        return float(stored.nnz / max(stored.shape[0], 1))
    return float(np.shape(features)[1])


def _cells(target: Any) -> tuple[int, int, int]:
    """Stored cells of a target, bytes that reading it takes, and those that are kept of them."""
    if isinstance(target, Observations):
        return target.nnz, 0, 0
    if sparse.issparse(target):
        stored: Any = target
        as_it_is = stored.format == "csr" and stored.has_canonical_format
        record, cells = 4 + stored.dtype.itemsize, int(stored.nnz)
        return cells, 0 if as_it_is else (record + 1) * cells, 0 if as_it_is else record * cells
    if not isinstance(target, np.ndarray) or target.ndim != 2:
        raise InvalidDataError(
            "X must be a matrix, a sparse matrix or Observations; for others give shape and nnz"
        )
    cells = sum(_known(target[start : start + ROWS_A_TIME]) for start in range(0, len(target), ROWS_A_TIME))
    record = 4 + (4 if target.dtype == np.float32 else 8)
    return cells, target.size + (record + 1) * cells, record * cells


def _known(part: Array) -> int:
    return int(np.count_nonzero(part == part)) if part.dtype.kind == "f" else part.size
