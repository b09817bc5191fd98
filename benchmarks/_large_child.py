"""One method on files of a large set, in a process of its own; see large_sets.py."""

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._store import peak_memory_gib


def _seconds(start: float, read: float, fitted: float) -> dict[str, float]:
    return {"read_s": read - start, "fit_s": fitted - read, "predict_s": time.process_time() - fitted}


def labels(folder: Path, method: str, setting: dict[str, Any]) -> dict[str, Any]:
    """Lists of five for the test rows."""
    import unseen
    from unseen.data import read_extreme
    from unseen.metrics import label_propensities, precision_at_k, propensity_scored_precision_at_k

    start = time.process_time()
    X, Y = read_extreme(folder / "train.txt", dtype=np.float32)
    X_test, Y_test = read_extreme(folder / "test.txt", dtype=np.float32)
    read = time.process_time()
    model = getattr(unseen, method)(n_jobs=1, random_state=0, **setting).fit(X, Y)
    fitted = time.process_time()
    ids, _ = model.predict_topk(X_test, 5)
    rarity = label_propensities(np.bincount(Y.indices, minlength=Y.shape[1]), Y.shape[0])
    quality = {f"P@{k}": 100 * precision_at_k(Y_test, ids, k) for k in (1, 3, 5)}
    quality["PSP@5"] = 100 * propensity_scored_precision_at_k(Y_test, ids, rarity, 5)
    return {"shape": [*X.shape, Y.shape[1]], "cells": int(X.nnz + Y.nnz), "quality": quality,
            **_seconds(start, read, fitted)}  # fmt: skip


def ratings(folder: Path, method: str, setting: dict[str, Any]) -> dict[str, Any]:
    """RMSE on the test cells."""
    import unseen
    from unseen.data import read_triples
    from unseen.metrics import rmse

    start = time.process_time()
    how: dict[str, Any] = {"row": 0, "col": 1, "value": 2, "sep": " ", "header": False}
    cells, test = (read_triples(folder / f"{part}.txt", **how) for part in ("train", "test"))
    read = time.process_time()
    model = getattr(unseen, method)(n_jobs=1, random_state=0, max_iter=10, **setting).fit(cells)
    fitted = time.process_time()
    rows, cols = test.row_ids.values[test.rows], test.col_ids.values[test.indices]
    known = np.isin(rows, cells.row_ids.values) & np.isin(cols, cells.col_ids.values)
    found = rmse(test.values[known], model.predict_entries(rows[known], cols[known]))
    return {"shape": list(cells.shape), "cells": cells.nnz, "quality": {"RMSE": found},
            **_seconds(start, read, fitted)}  # fmt: skip


def links(folder: Path, method: str, setting: dict[str, Any]) -> dict[str, Any]:
    """How often a held-out link scores above a random pair."""
    import unseen
    from unseen.data import read_edges

    start = time.process_time()
    graph, test = (read_edges(folder / f"{part}.txt") for part in ("train", "test"))
    read = time.process_time()
    model = getattr(unseen, method)(16, n_jobs=1, random_state=0, max_iter=5, **setting).fit(graph)
    fitted = time.process_time()
    ends = graph.row_ids.values
    rows, cols = test.row_ids.values[test.rows], test.col_ids.values[test.indices]
    known = np.flatnonzero(np.isin(rows, ends) & np.isin(cols, ends))[:100_000]
    rng = np.random.default_rng(0)
    chance = model.predict_entries(*rng.choice(ends, (2, len(known))))
    above = float(np.mean(model.predict_entries(rows[known], cols[known]) > chance))
    return {"shape": list(graph.shape), "cells": graph.nnz, "quality": {"above chance": above},
            **_seconds(start, read, fitted)}  # fmt: skip


def main() -> None:
    """Answer the request on the command line."""
    request = json.loads(sys.argv[1])
    warnings.simplefilter("ignore")
    run = {"labels": labels, "Netflix": ratings, "MySpace": links}[request["kind"]]
    found = run(Path(request["folder"]), request["method"], request["setting"])
    json.dump(found | {"gib": peak_memory_gib()}, sys.stdout)


if __name__ == "__main__":
    main()
