"""cmfrec on users, then movies, of MovieLens-100K that are held out whole, predicted from their features.

Same features, splits and rule as the experiment ``mixed-cold`` of ``unseen reproduce``, in an environment
of its own.

    python -m benchmarks mixed_cold
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._peers import run_child
from benchmarks._store import STORED, if_measured, store
from papers.display import markdown, with_spread
from papers.mixed_choice import errors, ratings
from papers.mixed_cold import Side

CHILD = Path(__file__).with_name("_mixed_cold_child.py")
PEERS = {
    "CMF": [{"k": 40, "reg": reg, "weight": w} for reg in (3.0, 10.0, 30.0) for w in (1.0, 10.0)],
    "ContentBased": [{"k": 5, "reg": reg} for reg in (10.0, 1000.0)],
}


def one(cold: Side, model: str) -> dict[str, Any]:
    """Errors on the held-out rows, whose ratings the other process does not get."""
    with tempfile.TemporaryDirectory() as folder:
        request = {"data": f"{folder}/data.npz", "out": f"{folder}/out.npy", "model": model,
                   "settings": PEERS[model], "n_threads": 1}  # fmt: skip
        hidden = np.where(cold.role[cold.rows] == 2, np.nan, cold.values)
        np.savez(request["data"], rows=cold.rows, cols=cold.cols, values=hidden, role=cold.role,
                 row_features=cold.row_features, col_features=cold.col_features)  # fmt: skip
        answer = run_child("cmfrec", CHILD, request, n_threads=1)
        return {**errors(np.load(request["out"]), cold.truth(2)), "params": answer["setting"]}


def cmfrec_table(results: dict[str, Any]) -> str:
    entries = results["results"]
    lines = [
        [name, *(with_spread(e[key] for e in entries if (e["method"], e["side"]) == (name, side))
                 for side in ("row", "col") for key in ("rmse", "mae"))]
        for name in dict.fromkeys(entry["method"] for entry in entries)
    ]  # fmt: skip
    return markdown(["", "users: RMSE", "MAE", "movies: RMSE", "MAE"], lines)


def tables() -> dict[str, str]:
    """What docs/papers/mixed.md shows."""
    return {"cmfrec": if_measured("mixed_cold", cmfrec_table)}


def main() -> None:
    """Add the runs that are not stored yet."""
    path = STORED / "mixed_cold.json"
    table = json.loads(path.read_text())["results"] if path.exists() else []
    done = {(entry["method"], entry["side"], entry["seed"]) for entry in table}
    data = ratings(quick=False)
    for side in ("row", "col"):
        for seed in range(int(os.environ.get("SEEDS", "4"))):
            cold = Side(data, side, seed)
            for model in PEERS:
                if (f"cmfrec {model}", side, seed) not in done:
                    table.append(
                        {"method": f"cmfrec {model}", "side": side, "seed": seed, **one(cold, model)}
                    )
                    print(table[-1], flush=True)
                    store("mixed_cold", {"results": table})


if __name__ == "__main__":
    main()
