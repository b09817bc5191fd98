"""Best columns of rows on a device: filter in halves, decide in the type of the factors.

Scores of halves are wrong by at most ``2^-10 |w| max |h|``. What lies above a row's bound less that much is
kept and scored again; a row is sure where its last wanted score is above the bound by more than the error.
The others go through an exact pass, so all lists are those of exact scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unseen.exceptions import ParameterError
from unseen.kernels.cuda import programs as cuda
from unseen.typing import FloatArray, IndexArray

__all__ = ["ListsOnDevice"]

MARGIN = 1.05 * 2.0**-10
"""Largest error of a score of halves, as a share of the product of lengths; rounding of sums included."""
LARGEST = 2.0**10
"""What the largest entry of a factor is scaled to before it is rounded to halves."""
BLOCKS_WANTED = 264
MOST_KEPT = 1024
"""Columns that are kept of a row, over all parts of the columns."""
ROWS_AT_ONCE = 1 << 18
SCORES_AT_ONCE = 1 << 27


class ListsOnDevice:
    """The part of a device provider that makes lists."""

    xp: Any
    tensor_cores: bool = True
    asarray: Any
    to_host: Any
    padded: Any
    launch: Any

    def topk(
        self,
        left: Any,
        right: Any,
        k: int,
        *,
        exclude: tuple[IndexArray, IndexArray] | None = None,
        col_ids: IndexArray | None = None,
    ) -> tuple[IndexArray, FloatArray]:
        """As :func:`unseen.kernels.topk`, from arrays here or on the host."""
        left, right = self.asarray(left), self.asarray(right)
        if left.shape[1] != right.shape[1]:
            raise ParameterError(
                f"factors must have the same number of columns, got {left.shape} and {right.shape}"
            )
        dtype = np.dtype(np.result_type(left.dtype, right.dtype, np.float32))
        n, width = len(left), cuda.padded(left.shape[1])
        ids, scores = np.full((n, k), -1, dtype=np.int64), np.full((n, k), np.nan, dtype=dtype)
        if not n or not len(right):
            return ids, scores
        right = self.padded(right, dtype, width)
        columns = None if col_ids is None else self.asarray(col_ids, np.int64)
        for start in range(0, n, ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            part = self.padded(left[rows], dtype, width)
            without = None
            if exclude is not None:
                indptr = np.asarray(exclude[0][start : start + len(part) + 1]).astype(np.int64)
                cells = exclude[1][indptr[0] : indptr[-1]]
                without = self.asarray(indptr - indptr[0]), self.asarray(cells, np.int64)
            found = self.lists(part, right, min(k, len(right)), without, columns)
            for target, made in zip((ids, scores), found, strict=True):
                target[rows, : made.shape[1]] = self.to_host(made)
        return ids, scores

    def lists(self, left: Any, right: Any, k: int, without: Any, columns: Any) -> tuple[Any, Any]:
        """Lists of padded factors that are here already; they stay here."""
        xp, dtype, n = self.xp, left.dtype, len(left)
        wide = dtype == np.float64
        keep = next((keep for keep in cuda.KEPT if 2 * k <= keep), None)
        if keep is None:
            return self._sorted_lists(left, right, k, without, columns)
        ids = xp.full((n, k), -1, dtype=np.int64)
        scores = xp.full((n, k), np.nan, dtype=dtype)
        unsure, n_unsure = xp.empty(n, dtype=np.int32), xp.zeros(1, dtype=np.int32)
        arguments: dict[str, Any] = {
            "left": left, "right": right, "n_cols": len(right), "k": k, "ids": ids, "scores": scores,
            "exclude_ptr": None if without is None else without[0],
            "exclude_ids": None if without is None else without[1],
            "col_ids": columns, "unsure": unsure, "n_unsure": n_unsure, "unit": 1.0,
        }  # fmt: skip
        rows, count = None, n
        if not wide and self.tensor_cores and left.shape[1] <= 256:
            scaled = self._halves(left, right)
            if scaled is not None:
                program = cuda.list_program(left.shape[1], keep, filtered=True)
                self._two_passes(program, "filter", None, n, arguments | scaled | {"filtered": 1})
                count = int(n_unsure[0])
                if count == 0:
                    return ids, scores
                rows = xp.sort(unsure[:count])
                picked = rows.astype(np.int64)
                ids[picked], scores[picked] = -1, np.nan
        program = cuda.list_program(left.shape[1], keep, wide=wide, filtered=False)
        spent = {"unsure": xp.empty(n, dtype=np.int32), "n_unsure": xp.zeros(1, dtype=np.int32)}
        self._two_passes(program, "exact", rows, count, arguments | spent)
        return ids, scores

    def _two_passes(
        self, program: cuda.Program, kernel: str, rows: Any, count: int, arguments: dict[str, Any]
    ) -> None:
        xp, macros = self.xp, dict(program.macros)
        keep, at_once, wide = macros["KEEP"], macros["ROWS"], bool(macros["WIDE"])
        blocks = -(-count // at_once)
        n_splits = max(1, min(MOST_KEPT // keep, BLOCKS_WANTED // blocks, arguments["n_cols"] // 1024))
        key = 16 if wide else 8
        own = arguments | {
            "rows": rows, "n_rows": count, "n_splits": n_splits,
            "kept": xp.empty((count * n_splits * keep, key // 8), dtype=np.uint64),
            "bounds": xp.empty((count, n_splits)),
        }  # fmt: skip
        room = keep + 16 + 64
        shared = at_once * (room * key + 4 + (16 if wide else 8))
        shared = -(-shared // 16) * 16
        if kernel == "filter":
            shared += 2 * 64 * (macros["HALVES"] + 8) * 2
        else:
            shared += 32 * (at_once + 1 + 65) * (8 if wide else 4)
        self.launch(program, kernel, (blocks, n_splits), 256, own, shared=shared)
        self.launch(program, "refine", -(-count // 4), 128, own, shared=4 * n_splits * keep * key)

    def _halves(self, left: Any, right: Any) -> dict[str, Any] | None:
        """Factors as halves, each scaled by a power of two; None where they hold what halves cannot."""
        xp = self.xp
        largest = xp.stack([xp.abs(left).max(), xp.abs(right).max()])
        lengths = [xp.sqrt(xp.sum(factors.astype(np.float64) ** 2, axis=1)) for factors in (left, right)]
        tops = self.to_host(xp.concatenate([largest.astype(np.float64), lengths[1].max()[None]]))
        if not np.isfinite(tops).all():
            return None
        units = [2.0 ** np.floor(np.log2(LARGEST / top)) if top > 0 else 1.0 for top in tops[:2]]
        if not all(1e-30 < unit < 1e30 for unit in units):
            return None
        halves = []
        for factors, unit in zip((left, right), units, strict=True):
            width = cuda.padded(factors.shape[1], 16)
            half = xp.zeros((len(factors), width), dtype=np.float16)
            half[:, : factors.shape[1]] = factors * factors.dtype.type(unit)
            halves.append(half)
        return {
            "left16": halves[0],
            "right16": halves[1],
            "unit": units[0] * units[1],
            # What is below the smallest half is lost as well: a share of the largest entry, once a column.
            "margin": MARGIN * float(tops[2]) + 2.0**-33 * float(tops[1]) * left.shape[1],
            "norms": (lengths[0] + 2.0**-23 * float(tops[0]) * left.shape[1] ** 0.5).astype(left.dtype),
        }

    def _sorted_lists(self, left: Any, right: Any, k: int, without: Any, columns: Any) -> tuple[Any, Any]:
        """Long lists: scores of some rows at a time, sorted."""
        xp, n, m = self.xp, len(left), len(right)
        ids = xp.full((n, k), -1, dtype=np.int64)
        scores = xp.full((n, k), np.nan, dtype=left.dtype)
        labels = xp.arange(m) if columns is None else columns
        step = max(1, SCORES_AT_ONCE // m)
        for start in range(0, n, step):
            product = left[start : start + step] @ right.T
            if without is not None:
                bounds = self.to_host(without[0][start : start + len(product) + 1])
                for row, (first, end) in enumerate(
                    zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
                ):
                    places = xp.searchsorted(labels, without[1][first:end])
                    places = xp.minimum(places, m - 1)
                    hit = places[labels[places] == without[1][first:end]]
                    product[row, hit] = np.nan
            order = xp.argsort(-product, axis=1, kind="stable")[:, :k]
            best = xp.take_along_axis(product, order, axis=1)
            ids[start : start + step] = xp.where(xp.isnan(best), -1, labels[order])
            scores[start : start + step] = best
        return ids, scores
