"""What a fit adds to the memory of the process: measured, and what ``unseen.memory_estimate`` says.

``python -m benchmarks memory`` fits every model to targets of several sizes, each in a process of its own.
From "designs" come the coefficients of the formula (non-negative least squares of relative errors); "checks"
are sizes that had no part in that.
"""

from __future__ import annotations

import ctypes
import inspect
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.optimize import nnls

import unseen
from benchmarks._store import ROOT, STORED, if_measured, store, stored
from papers.display import markdown
from unseen import baselines, links
from unseen.memory import COSTS, Sizes, needed, sizes_of, terms_of

NAME = "memory"
TABLE = ROOT / "src" / "unseen" / "memory_costs.json"
SHORT = {"max_iter": 2, "n_samples": 4, "burn_in": 2, "n_trees": 5, "n_jobs": 1, "random_state": 0}
"""Settings that cut a fit short and leave its arrays as they are."""


@dataclass(frozen=True)
class Model:
    """What a class is fitted to, and with which settings beside those of SHORT."""

    kind: str
    settings: dict[str, Any] = field(default_factory=dict)


KINDS = {
    "BiasModel": Model("values"),
    "MatrixFactorization": Model("values"),
    "MatrixFactorization reg": Model("values", {"reg": 1.0}),
    "MatrixFactorization joint": Model("values", {"reg": 1.0, "center": "joint"}),
    "MatrixFactorization ccd": Model("values", {"reg": 1.0, "solver": "ccd"}),
    "BayesianMF": Model("values"),
    "SoftImpute": Model("values"),
    "SoftImpute reg": Model("values", {"reg": 1.0}),
    "AugmentedMF": Model("values"),
    "IMC": Model("values and features"),
    "IMC reg": Model("values and features", {"reg": 1.0}),
    "GIMC": Model("values and features", {"max_iter": 1}),
    "Maxide": Model("values and features"),
    "DirtyIMC": Model("values and features"),
    "SparseBilinear": Model("values and features"),
    "MixedLinear": Model("values and features"),
    "BiasMC": Model("positives"),
    "ShiftMC": Model("positives", {"rho": 0.3}),
    "BiasIMC": Model("positives and features"),
    "ShiftIMC": Model("positives and features", {"rho": 0.3}),
    "SpectralFilter": Model("positives"),
    "ItemNeighbors": Model("positives"),
    "Popularity": Model("positives"),
    "NMF": Model("positive values"),
    "PMF": Model("values"),
    "MMMF": Model("levels"),
    "RidgeOvA": Model("labels"),
    "LEML": Model("labels"),
    "GIMCClassifier": Model("labels"),
    "LinearOvA": Model("labels"),
    "ExMLDS": Model("labels"),
    "SLEEC": Model("labels"),
    "FastXML": Model("labels"),
    "PfastreXML": Model("labels"),
    "GIMCClustering": Model("pairs", {"n_clusters": 4}),
    "MCCC": Model("pairs", {"n_clusters": 4}),
    "PUClustering": Model("pairs", {"n_clusters": 4}),
    "CommonNeighbors": Model("graph"),
    "Katz": Model("graph"),
    "SVDKatz": Model("graph"),
    "TruncatedSVDLinks": Model("graph"),
}
"""The estimators that have a formula; a second word says for which settings."""


def made(name: str, rank: int) -> Any:
    """An estimator of a rank."""
    known = name.split()[0]
    cls = next(getattr(home, known) for home in (unseen, baselines, links) if hasattr(home, known))
    accepted = inspect.signature(cls).parameters
    settings = {key: value for key, value in SHORT.items() if key in accepted}
    settings |= {key: rank for key in ("rank", "max_rank", "n_components") if key in accepted}
    return cls(**{**settings, **KINDS[name].settings})


@dataclass(frozen=True)
class Design:
    """A target: rows, columns, cells, rank, features a row and a column, type."""

    n: int
    m: int
    cells: int
    rank: int
    d: int = 6
    e: int = 4
    dtype: str = "f8"
    labels: int = 100


DESIGNS = [
    Design(20_000, 10_000, 200_000, 8),
    Design(5_000, 4_000, 400_000, 8, 12, 8),
    Design(40_000, 20_000, 150_000, 12),
    Design(10_000, 8_000, 150_000, 32, 20, 15),
    Design(30_000, 20_000, 200_000, 24, 10, 4, "f4"),
    Design(5_000, 4_000, 400_000, 16, 4, 6, "f4"),
    Design(60_000, 500, 300_000, 16, 5, 20),
    Design(60_000, 30_000, 800_000, 18, 7, 9),
    Design(100_000, 40_000, 1_500_000, 32, 8, 6),
    Design(22_000, 9_000, 220_000, 18, 7, 9),
]
CHECKS = [
    Design(15_000, 12_000, 300_000, 16, 8, 8),
    Design(25_000, 5_000, 250_000, 20, 12, 5, "f4"),
    Design(80_000, 50_000, 1_000_000, 24, 6, 8, "f4"),
]
LABELS = [
    Design(4_000, 0, 20_000, 16, 100, labels=200),
    Design(8_000, 0, 60_000, 16, 50, labels=100),
    Design(3_000, 0, 15_000, 32, 300, labels=100),
    Design(3_000, 0, 15_000, 16, 100, labels=800),
    Design(9_000, 0, 40_000, 24, 150, labels=300, dtype="f4"),
    Design(5_000, 0, 50_000, 24, 60, labels=400, dtype="f4"),
    Design(6_000, 0, 30_000, 20, 250, labels=60, dtype="f4"),
]
LABEL_CHECKS = [
    Design(6_000, 0, 30_000, 20, 120, labels=300),
    Design(5_000, 0, 30_000, 20, 200, labels=150, dtype="f4"),
]


def data(kind: str, size: Design) -> tuple[list[Any], dict[str, Any]]:
    """Random input of a size."""
    rng = np.random.default_rng(0)
    n, m = (size.n, size.labels) if kind in ("labels", "pairs") else (size.n, size.m)
    if kind in ("graph", "pairs"):
        m = n
    if kind == "dense":
        n, m = n // 40, m // 40
    keys = np.unique(rng.integers(0, n * m, size.cells if kind != "dense" else size.cells // 40))
    at = (keys // m, keys % m)
    values = {
        "values": lambda: rng.standard_normal(len(keys)) + 3,
        "positive values": lambda: rng.random(len(keys)) + 0.5,
        "levels": lambda: rng.integers(1, 6, len(keys)).astype(float),
        "classes": lambda: rng.choice([-1.0, 1.0], len(keys)),
        "pairs": lambda: rng.choice([-1.0, 1.0], len(keys)),
    }.get(kind.removesuffix(" and features"), lambda: np.ones(len(keys)))()
    target: Any = sparse.csr_array((values.astype(size.dtype), at), shape=(n, m))
    if kind in ("graph", "pairs"):
        target = sparse.csr_array(sparse.triu(target, 1) + sparse.triu(target, 1).T).astype(size.dtype)
    rows = rng.standard_normal((size.n, size.d)).astype(size.dtype)
    if kind in ("labels", "pairs"):
        return [rows, target], {}
    if kind.endswith("features"):
        cols = rng.standard_normal((size.m, size.e)).astype(size.dtype)
        return [target], {"row_features": rows, "col_features": cols}
    return [target], {}


def added(task: Callable[[], Any]) -> int:
    """Bytes by which a task raises what its process holds, at the most; in a copy of this process."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            ctypes.CDLL(None).malloc_trim(0)
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
            before = held("VmRSS")
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                task()
            os.write(write, str(held("VmHWM") - before).encode())
        except BaseException as error:
            print(type(error).__name__, str(error)[:150], file=sys.stderr, flush=True)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        found = answer.read()
    os.waitpid(child, 0)
    if not found:
        raise RuntimeError("the fit failed")
    return int(found)


def held(name: str) -> int:
    """Bytes from the kernel's table."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def warm() -> None:
    """Let both libraries for dense products take the room that they keep for good."""
    for kind in (np.float32, np.float64):
        square = np.ones((1024, 1024), kind)
        square @ square
        linalg.blas.get_blas_funcs("gemm", (square,))(1.0, square, square)
        linalg.cho_factor(square + 2000 * np.eye(1024, dtype=kind))


def measure(names: list[str], known: dict[str, Any]) -> dict[str, Any]:
    """Peaks of all models at all sizes; what is known is not measured again."""
    warm()
    for name in names:
        kind = KINDS[name].kind
        labels = kind in ("labels", "pairs")
        entry = known.setdefault(name, {})
        if len(entry) < 2:  # a first fit, which loads what is imported late
            tiny = Design(300, 200, 3000, 3, labels=20)
            given, sides = data(kind, tiny)
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                made(name, 3).fit(*given, **sides)
        for part, designs in (
            ("designs", LABELS if labels else DESIGNS),
            ("checks", LABEL_CHECKS if labels else CHECKS),
        ):
            for number, size in enumerate(designs):
                key = f"{part} {number}"
                if key in entry:
                    continue
                given, sides = data(kind, size)
                model = made(name, size.rank)
                start = time.perf_counter()
                try:
                    peak = added(lambda model=model, given=given, sides=sides: model.fit(*given, **sides))
                except RuntimeError:
                    print(name, key, "failed", flush=True)
                    continue
                entry[key] = {"peak": peak, "sizes": asdict(sizes_of(model, *given, **sides))}
                print(name, key, f"{peak / 2**20:.1f} MiB {time.perf_counter() - start:.1f} s", flush=True)
        store(NAME, {"models": known})
    return known


def coefficients(name: str, entry: dict[str, Any]) -> dict[str, float]:
    """Least squares of relative errors over the designs, none below zero, two digits."""
    rows = [found for key, found in entry.items() if key.startswith("designs")]
    terms = [terms_of(Sizes(**found["sizes"]), labels=is_of_labels(name)) for found in rows]
    names = list(terms[0])
    left = np.array(
        [[term[part] / found["peak"] for part in names] for term, found in zip(terms, rows, strict=True)]
    )
    found, _ = nnls(left, np.ones(len(rows)))
    return {part: float(f"{value:.2g}") for part, value in zip(names, found, strict=True) if value > 1e-3}


def is_of_labels(name: str) -> bool:
    """Whether the second formula holds."""
    return KINDS[name].kind in ("labels", "pairs")


def off_by(name: str, entry: dict[str, Any]) -> dict[str, float]:
    """Estimate over measurement, at each size."""
    return {key: needed(name, Sizes(**found["sizes"])) / found["peak"] for key, found in entry.items()}


def tables() -> dict[str, str]:
    """The coefficients, and how far the estimate is off where nothing was fitted to it."""
    return {NAME: if_measured(NAME, _table)}


def _table(results: dict[str, Any]) -> str:
    lines = []
    for name, entry in results["models"].items():
        apart = [ratio for key, ratio in off_by(name, entry).items() if key.startswith("checks")]
        shown = ", ".join(f"{value:g} {part}" for part, value in COSTS[name].items())
        lines.append([name, shown, f"{min(apart):.2f} to {max(apart):.2f}"])
    return markdown(["estimator", "arrays alive at the peak", "estimate / measured"], lines)


def main() -> None:
    """Measure what is not stored yet, and write the table of ``unseen.memory``."""
    # The allocator gives back what is free, so that what is held can be read from the system.
    if "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks.memory", *sys.argv], environment)
    known = stored(NAME)["models"] if (STORED / f"{NAME}.json").exists() else {}
    names = [name for name in sys.argv[2:] if name in KINDS] or list(KINDS)
    found: dict[str, dict[str, Any]] = {"completers": {}, "classifiers": {}}
    for name, entry in measure(names, known).items():
        found["classifiers" if is_of_labels(name) else "completers"][name] = coefficients(name, entry)
    TABLE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
