"""What the checks of the kernels' arguments cost: the seconds spent in them, as a share of those of a fit.

``python -m benchmarks checks`` fits and makes lists with a clock around each check, in a process that uses
one thread, so that the share is at its largest for the same work.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks._store import if_measured, store
from benchmarks.kernels import power_law
from papers.display import markdown
from unseen import BiasMC, MatrixFactorization, SoftImpute, kernels
from unseen.kernels import _arguments as arguments

NAME = "checks"
CHECKS = (
    "pattern",
    "within",
    "sorted_rows",
    "dense",
    "on_cells",
    "in_place",
    "table",
    "same_rank",
    "indices_of",
)


class Clock:
    """Seconds spent in functions, those that one calls of the others counted once."""

    def __init__(self) -> None:
        self.seconds, self.depth = 0.0, 0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function with the clock running."""

        def timed(*given: Any, **options: Any) -> Any:
            self.depth += 1
            start = time.perf_counter()
            try:
                return function(*given, **options)
            finally:
                self.depth -= 1
                if self.depth == 0:
                    self.seconds += time.perf_counter() - start

        return timed


@contextmanager
def clocked() -> Iterator[Clock]:
    """All checks with a clock around them."""
    clock = Clock()
    before = {name: getattr(arguments, name) for name in CHECKS}
    for name, function in before.items():
        setattr(arguments, name, clock.around(function))
    try:
        yield clock
    finally:
        for name, function in before.items():
            setattr(arguments, name, function)


def main() -> None:
    """Measure and store."""
    warnings.simplefilter("ignore")
    cells = power_law(60_000, 20_000, 1_000_000)
    fitted = BiasMC(64, max_iter=5, tol=0.0, n_jobs=1, random_state=0).fit(cells)
    indptr, indices, left, right = cells.indptr, cells.indices, fitted.row_factors_, fitted.col_factors_
    jobs: dict[str, Callable[[], Any]] = {
        "BiasMC, rank 64, 5 sweeps": lambda: BiasMC(64, max_iter=5, tol=0.0, n_jobs=1, random_state=0).fit(
            cells
        ),
        "BiasMC, rank 8, 5 sweeps": lambda: BiasMC(8, max_iter=5, tol=0.0, n_jobs=1, random_state=0).fit(
            cells
        ),
        "MatrixFactorization, rank 16, 5 sweeps": lambda: MatrixFactorization(
            16, reg=1.0, max_iter=5, tol=0.0, n_jobs=1, random_state=0
        ).fit(cells),
        "SoftImpute, 5 sweeps": lambda: SoftImpute(
            reg=20.0, max_rank=16, max_iter=5, tol=0.0, n_jobs=1, random_state=0
        ).fit(cells),
        "lists of ten for 2,000 rows": lambda: fitted.recommend(range(2000), 10, exclude="seen"),
        "one direct call of `kernels.sddmm`, rank 64, arrays that can be written to": lambda: kernels.sddmm(
            indptr.copy(), indices.copy(), left, right
        ),
    }
    found = {}
    for name, job in jobs.items():
        shares = []
        for _ in range(3):
            with clocked() as clock:
                start = time.perf_counter()
                job()
                shares.append(clock.seconds / (time.perf_counter() - start))
        found[name] = sorted(shares)
        print(name, found[name], flush=True)
    store(NAME, {"cells": int(cells.nnz), "shape": list(cells.shape), "shares": found})


def tables() -> dict[str, str]:
    """The share of each job."""
    return {NAME: if_measured(NAME, _table)}


def _table(results: dict[str, Any]) -> str:
    lines = [[name, f"{100 * shares[1]:.2f} %"] for name, shares in results["shares"].items()]
    return markdown(["work, on one thread", "of its time, spent in checks"], lines)


if __name__ == "__main__":
    main()
