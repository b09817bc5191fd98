"""The imputer beside those of scikit-learn: small tables of measurements, and a large one.

    python -m benchmarks imputation [--size small|large]

``small`` runs the tables that come with scikit-learn, ``large`` also 100,000 x 500. There
``IterativeImputer`` would take hours, so a round of it is timed on fewer columns, a law ``a columns^b`` is
fitted to these times, and the seconds of one round and of its ten rounds at full width are said to be
estimates. What is stored is not run again; delete the file for a new run.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from threadpoolctl import threadpool_limits

from benchmarks._store import STORED, if_measured, store
from papers.display import markdown
from unseen import Imputer
from unseen.typing import Array, FloatArray

THREADS = 1
SHARES = (0.1, 0.3, 0.5)
SEEDS = 2
TABLES: dict[str, Callable[..., Any]] = {
    "diabetes": datasets.load_diabetes,
    "wine": datasets.load_wine,
    "breast cancer": datasets.load_breast_cancer,
    "iris": datasets.load_iris,
    "digits": datasets.load_digits,
    "linnerud": datasets.load_linnerud,
}
IMPUTERS: dict[str, Callable[[int], Any]] = {
    "Imputer": lambda seed: Imputer(random_state=seed, n_jobs=THREADS),
    "IterativeImputer": lambda seed: IterativeImputer(random_state=seed),
    "KNNImputer": lambda seed: KNNImputer(),
    "SimpleImputer": lambda seed: SimpleImputer(),
}
KEYS = ("table", "share", "seed", "imputer")
"""What tells one run on a small table from another."""
LARGE = (100_000, 500)
WIDTHS = (10, 20, 40)
"""Columns of the parts on which a round of ``IterativeImputer`` is timed."""
ROUNDS = 10
"""Rounds that it makes by default, unless it converges before."""
NEIGHBOURS_ROWS = 5_000
"""Rows on which ``KNNImputer`` is run: it compares all pairs of rows."""


def removed(table: FloatArray, share: float, seed: int) -> FloatArray:
    """The table without a share of its cells; every column and row keeps at least one."""
    rng = np.random.default_rng([seed, round(100 * share)])
    gone = rng.random(table.shape) < share
    gone[rng.integers(len(table), size=table.shape[1]), np.arange(table.shape[1])] = False
    gone[np.arange(len(table)), rng.integers(table.shape[1], size=len(table))] = False
    return np.where(gone, np.nan, table)


def error(filled: FloatArray, table: FloatArray, holed: FloatArray) -> float:
    """Root mean square over the removed cells, in units of the deviations of the columns."""
    gone = np.isnan(holed)
    scale = table.std(axis=0)
    off = (filled - table) / np.where(scale > 0, scale, 1.0)
    return float(np.sqrt(np.mean(np.square(off[gone]))))


def timed(imputer: Any, holed: FloatArray) -> tuple[Array, float]:
    """What a fit fills in, and its processor seconds on one thread, which other work hardly changes."""
    begin = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(THREADS):
        warnings.simplefilter("ignore")
        filled = imputer.fit_transform(holed)
    return filled, time.process_time() - begin


def small(done: set[tuple[str, float, int, str]]) -> Iterator[dict[str, Any]]:
    for name, load in TABLES.items():
        table = load().data.astype(np.float64)
        table = table[:, table.std(axis=0) > 0]
        for share in SHARES:
            for seed in range(SEEDS):
                holed = removed(table, share, seed)
                for imputer, make in IMPUTERS.items():
                    if (name, share, seed, imputer) in done:
                        continue
                    filled, seconds = timed(make(seed), holed)
                    yield {"table": name, "share": share, "seed": seed, "imputer": imputer,
                           "error": error(filled, table, holed), "seconds": seconds}  # fmt: skip


def generated(n_rows: int, n_cols: int) -> FloatArray:
    """Twenty common factors, noise of a third of the variance, columns of other scales."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((n_rows, 20)) @ rng.standard_normal((20, n_cols)) / np.sqrt(20)
    table = np.sqrt(2 / 3) * table + np.sqrt(1 / 3) * rng.standard_normal((n_rows, n_cols))
    found: FloatArray = table * rng.uniform(0.1, 10, n_cols) + rng.normal(0, 5, n_cols)
    return found


def large(done: set[str]) -> Iterator[dict[str, Any]]:
    table = generated(*LARGE)
    holed = removed(table, 0.3, 0)
    for imputer in ("Imputer", "SimpleImputer"):
        if imputer not in done:
            filled, seconds = timed(IMPUTERS[imputer](0), holed)
            yield {"imputer": imputer, "rows": LARGE[0], "columns": LARGE[1],
                   "error": error(filled, table, holed), "seconds": seconds}  # fmt: skip
    if "KNNImputer" not in done:
        part = slice(NEIGHBOURS_ROWS)
        filled, seconds = timed(KNNImputer(), holed[part])
        yield {"imputer": "KNNImputer", "rows": NEIGHBOURS_ROWS, "columns": LARGE[1],
               "error": error(filled, table[part], holed[part]), "seconds": seconds}  # fmt: skip
    for width in WIDTHS:
        part = holed[:, :width]
        for name, imputer in (
            ("IterativeImputer", IterativeImputer(random_state=0, max_iter=1)),
            ("Imputer", IMPUTERS["Imputer"](0)),
        ):
            if f"{name} {width}" not in done:
                filled, seconds = timed(imputer, part)
                yield {"imputer": f"{name} {width}", "rows": LARGE[0], "columns": width,
                       "error": error(filled, table[:, :width], part), "seconds": seconds}  # fmt: skip


def law(results: list[dict[str, Any]]) -> tuple[float, float]:
    """Exponent of the columns, and seconds of a round at full width."""
    rounds = [one for one in results if one["imputer"].startswith("IterativeImputer ")]
    widths, seconds = (np.log([one[key] for one in rounds]) for key in ("columns", "seconds"))
    power, level = np.polyfit(widths, seconds, 1)
    return float(power), float(np.exp(level + power * np.log(LARGE[1])))


def small_table(results: dict[str, Any]) -> str:
    """Mean error of each imputer; ours is bold where it is no worse than any other."""
    lines = []
    for name in dict.fromkeys(one["table"] for one in results["small"]):
        for share in SHARES:
            runs = [one for one in results["small"] if (one["table"], one["share"]) == (name, share)]
            means = {
                imputer: [np.mean([one[key] for one in runs if one["imputer"] == imputer])
                          for key in ("error", "seconds")]
                for imputer in IMPUTERS
            }  # fmt: skip
            best = min(found[0] for found in means.values())
            cells = [
                (f"**{found[0]:.3f}**" if found[0] == best else f"{found[0]:.3f}") + f" ({found[1]:.2f} s)"
                for found in means.values()
            ]
            lines.append([name, f"{share:.0%}", *cells])
    return markdown(["", "removed", *(f"`{name}`" for name in IMPUTERS)], lines)


def large_table(results: dict[str, Any]) -> str:
    found = {one["imputer"]: one for one in results["large"]}
    lines = []
    for one in found.values():
        name = one["imputer"].split()[0]
        what = f"`{name}`" + (", one round" if name == "IterativeImputer" else "")
        lines.append(
            [what, f"{one['rows']:,} x {one['columns']}", f"{one['error']:.3f}", f"{one['seconds']:.1f}"]
        )
    if all(f"IterativeImputer {width}" in found for width in WIDTHS):
        power, seconds = law(results["large"])
        for rounds in (1, ROUNDS):
            what = f"`IterativeImputer`, rounds: {rounds}, estimated (columns to the {power:.1f})"
            lines.append([what, f"{LARGE[0]:,} x {LARGE[1]}", "", f"{rounds * seconds:,.0f}"])
    return markdown(["", "table, 30 % removed", "error", "processor seconds"], lines)


def tables() -> dict[str, str]:
    """What docs/guide/scikit_learn.md shows."""
    return {
        "imputation_small": if_measured("imputation", small_table),
        "imputation_large": if_measured("imputation", large_table),
    }


def main(size: str = "large") -> None:
    """Add what is not stored yet."""
    path = STORED / "imputation.json"
    results = json.loads(path.read_text()) if path.exists() else {"small": [], "large": []}

    def keep() -> None:
        store("imputation", {"threads": THREADS, "small": results["small"], "large": results["large"]})

    for entry in small({tuple(one[key] for key in KEYS) for one in results["small"]}):
        results["small"].append(entry)
        keep()
    if size == "large":
        for entry in large({one["imputer"] for one in results["large"]}):
            print(entry, flush=True)
            results["large"].append(entry)
            keep()


if __name__ == "__main__":
    main()
