"""Counters and times in the text format of Prometheus."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import defaultdict

__all__ = ["Metrics"]

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 1024)


class _Histogram:
    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, labels: str) -> list[str]:
        out, so_far = [], 0
        for bound, count in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            so_far += count
            out.append(f'{name}_bucket{{{labels},le="{bound}"}} {so_far}')
        return [*out, f"{name}_sum{{{labels}}} {self.total:.6f}", f"{name}_count{{{labels}}} {so_far}"]


class Metrics:
    """What one worker has done. Workers are told apart by the label ``worker``."""

    def __init__(self) -> None:
        self._worker = f'worker="{os.getpid()}"'
        self._requests: dict[tuple[str, int], int] = defaultdict(int)
        self._seconds: dict[str, _Histogram] = defaultdict(lambda: _Histogram(BOUNDS))
        self._batches = _Histogram(SIZES)
        self.reloads = self.failed_reloads = self.updates = self.in_progress = 0

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests[path, status] += 1
        self._seconds[path].add(seconds)

    def batch(self, n_requests: int) -> None:
        """Count a pass over the factors that answered so many requests."""
        self._batches.add(n_requests)

    def text(self, generation: int, shape: tuple[int, int], recall: float | None = None) -> str:
        """All of it, as Prometheus reads it."""
        worker = self._worker
        out = ["# TYPE unseen_requests_total counter"]
        for (path, status), count in sorted(self._requests.items()):
            out.append(f'unseen_requests_total{{{worker},path="{path}",status="{status}"}} {count}')
        out.append("# TYPE unseen_request_seconds histogram")
        for path, times in sorted(self._seconds.items()):
            out += times.lines("unseen_request_seconds", f'{worker},path="{path}"')
        out.append("# TYPE unseen_batch_requests histogram")
        out += self._batches.lines("unseen_batch_requests", worker)
        for name, kind, value in (
            ("reloads_total", "counter", self.reloads),
            ("failed_reloads_total", "counter", self.failed_reloads),
            ("updates_total", "counter", self.updates),
            ("requests_in_progress", "gauge", self.in_progress),
            ("model_generation", "gauge", generation),
            ("model_rows", "gauge", shape[0]),
            ("model_cols", "gauge", shape[1]),
            *([] if recall is None else [("index_recall_at_10", "gauge", recall)]),
        ):
            out += [f"# TYPE unseen_{name} {kind}", f"unseen_{name}{{{worker}}} {value}"]
        return "\n".join(out) + "\n"
