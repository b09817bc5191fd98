"""Kernels called with arguments that do not fit: an error of the library, never a signal."""

from __future__ import annotations

import contextlib
import copy
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from tests.hostile.forge import SHOWN, limit_memory, shown
from unseen import kernels
from unseen.kernels import MarginDual, RowGroups
from unseen.learned import LIBRARY_ERRORS

N, M, K = 12, 9, 3
ODD: list[Any] = [None, -1, 0, 2**31, 2**40, 2**62, 2**63, 2**70, 1.5, np.nan, "x", [], True, np.eye(2)]
TYPES = (np.int8, np.uint64, np.float16, complex, object, bool)


def arguments(rng: np.random.Generator) -> dict[str, tuple[list[Any], dict[str, Any]]]:
    """Good arguments of every kernel."""
    dtype = np.float32 if rng.integers(2) else np.float64
    index = np.int32 if rng.integers(2) else np.int64
    cells = sparse.random_array((N, M), density=0.4, rng=rng, format="csr", dtype=np.float64)
    cells.sort_indices()
    csc = cells.tocsc()
    order = (
        sparse.csr_array((np.arange(cells.nnz), cells.indices, cells.indptr), shape=cells.shape).tocsc().data
    )
    by_row = [cells.indptr.astype(index), cells.indices.astype(index)]
    by_col = [csc.indptr.astype(index), csc.indices.astype(index)]
    left, right = (rng.standard_normal((size, K)).astype(dtype) for size in (N, M))
    values = cells.data.astype(dtype)
    pairs = rng.integers(0, min(N, M), (3, 5)).astype(index)
    negatives = rng.integers(0, M, (5, 2)).astype(index)
    labels = (rng.integers(0, N, (4, 2)).astype(index), rng.integers(0, N, (4, 2)).astype(index))
    features = sparse.csr_array(cells.astype(dtype))
    own = sparse.csr_array((rng.random((N, 4)) < 0.4).astype(dtype))
    groups = RowGroups(np.array([0, 5, 5, N], dtype=index), rng.permutation(N).astype(index))
    sides = np.where(rng.random(N) < 0.5, 1, -1).astype(np.int8)
    return {
        "gram": ([left], {}),
        "sddmm": ([*by_row, left, right], {}),
        "spmm": ([*by_row, values, right], {}),
        "spmm_t": ([*by_row, values, left, M], {}),
        "als_solve": (
            [*by_row, np.ones_like(values), values, right, np.eye(K, dtype=dtype), None, left],
            {
                "ridge": np.ones(N, dtype=dtype),
                "shift": np.zeros(M, dtype=dtype),
                "row_values": np.zeros(N),
                "cg_steps": 2,
                "method": "cg" if rng.integers(2) else "cholesky",
            },
        ),
        "ccd_sweep": (
            [*by_row, *by_col, order.astype(index), 1.0, values, np.zeros_like(values), left, right],
            {"reg": 1.0, "inner": 1},
        ),
        "topk": ([left, right, 4], {"exclude": tuple(by_row), "col_ids": np.arange(M)}),
        "signs": (
            [np.full(4, -1), 30, 0.2, 1.0, 3],
            {"block": 1, "first_row": int(rng.integers(1 << 40))},
        ),
        "normals": (
            [(4, 3), int(rng.integers(1 << 62)), 1, 2],
            {"first_row": int(rng.integers(1 << 40)), "dtype": dtype},
        ),
        "als_draw": (
            [*by_row, np.ones_like(values), values, right, np.eye(K, dtype=dtype), np.zeros_like(left), left],
            {"offset": np.zeros_like(left), "shift": np.zeros(M, dtype), "means": np.zeros_like(left)},
        ),
        "label_splits": ([features, own, groups, sides], {"C": 1.0, "max_passes": 3, "max_rounds": 3}),
        "linear_duals": (
            [features, groups, sides],
            {"alpha": np.zeros(N), "C": (1.0, 2.0), "l1": 0.1, "max_passes": 3, "seed": 1},
        ),
        "margin_sweep": (
            [features, own, rng.permutation(N).astype(index), MarginDual.start(features, own, 2), np.ones(N)],
            {"l1": 0.1, "n_candidates": 2, "feature_share": float(rng.choice([0.5, 1.0])), "seed": 3},
        ),
        "cooccurrence": ([*by_row, tuple(by_col), 3], {"recount": bool(rng.integers(2))}),
        "sgns_sweep": ([left, right, pairs[0], pairs[1], negatives], {"first_rate": 0.1, "last_rate": 0.01}),
        "joint_sweep": (
            [*by_row, values, right, np.zeros_like(right), pairs[0][:4], *labels],
            {"reg": 0.1, "cosine": bool(rng.integers(2))},
        ),
    }


def spoil(value: Any, rng: np.random.Generator) -> Any:
    """The same argument with something wrong, or at least odd."""
    if isinstance(value, tuple) and rng.random() < 0.9:
        parts = list(value)
        place = int(rng.integers(len(parts)))
        parts[place] = spoil(parts[place], rng)
        return value._make(parts) if hasattr(value, "_make") else tuple(parts)
    if sparse.issparse(value) and rng.random() < 0.9:
        out = copy.copy(value)
        name = str(rng.choice(["data", "indices", "indptr"]))
        setattr(out, name, spoil(getattr(out, name), rng))
        return out
    if not isinstance(value, np.ndarray):
        return ODD[int(rng.integers(len(ODD)))]
    return WAYS[int(rng.integers(len(WAYS)))](value, rng)


def _entry(value: np.ndarray, rng: np.random.Generator) -> Any:
    out = value.copy()
    odd = [-1, 1, N, 10**6, 2**31 - 1, -(2**31)] if out.dtype.kind == "i" else [np.nan, np.inf, 1e38, -1e38]
    if out.size:
        out.flat[int(rng.integers(out.size))] = odd[int(rng.integers(len(odd)))]
    return out


WAYS: list[Callable[[np.ndarray, np.random.Generator], Any]] = [
    _entry,
    _entry,
    _entry,
    lambda value, rng: value[: int(rng.integers(len(value) + 1))],
    lambda value, rng: np.concatenate([value, value]),
    lambda value, rng: value[::-1],
    lambda value, rng: value[..., None],
    lambda value, rng: value.ravel(),
    lambda value, rng: value.T,
    lambda value, rng: value.astype(TYPES[int(rng.integers(6))]),
    lambda value, rng: value.astype(str),
    lambda value, rng: np.empty((0,) * value.ndim, value.dtype),
    lambda value, rng: np.broadcast_to(value[:1], value.shape) if value.size else value,
    lambda value, rng: value.tolist(),
    lambda value, rng: np.ma.masked_array(value, mask=True),
]  # fmt: skip


def attack(directory: Path, *, first: int, count: int) -> Counter[str]:
    """Call kernels with one or two arguments spoiled; run in a process of its own."""
    limit_memory()
    found: Counter[str] = Counter()
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        calls = arguments(rng)
        name = sorted(calls)[seed % len(calls)]
        given, options = calls[name]
        for _ in range(int(rng.integers(1, 3))):
            with contextlib.suppress(
                ValueError, TypeError, OverflowError
            ):  # twice spoiled may not go together
                place = int(rng.integers(len(given) + len(options)))
                if place < len(given):
                    given[place] = spoil(given[place], rng)
                else:
                    key = sorted(options)[place - len(given)]
                    options[key] = spoil(options[key], rng)
        (directory / "current").write_text(f"{seed} {name}")
        try:
            if name != "margin_sweep":  # which shares its weights among rows, and so has one thread
                options["n_threads"] = int(rng.integers(1, 3))
            with np.errstate(all="ignore"):
                getattr(kernels, name)(*given, **options)
            found["answered"] += 1
        except LIBRARY_ERRORS:
            found["refused"] += 1
        except MemoryError:
            found["no memory"] += 1
        except Exception as error:
            found["foreign"] += 1
            if found["foreign"] <= SHOWN:
                found[f"seed {seed}, {name}: {shown(error)}"] += 1
    return found
