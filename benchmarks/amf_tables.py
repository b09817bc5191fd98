"""Write the tables of docs/papers/amf.md from the stored results of ``amf`` and ``yelp_best``.

python -m benchmarks amf_tables
"""

from __future__ import annotations

from statistics import mean, stdev
from typing import Any

from benchmarks._tables import ROOT, fill, stored, table, write_page

PAGE = ROOT / "docs" / "papers" / "amf.md"
REPORTED = {"yelp-2013": "1.231", "yelp-3zones": "0.951 on other data"}
"""Best RMSE of AMF in the paper; of the other methods its tables are not available."""


def with_spread(values: list[float]) -> str:
    spread = f" ± {stdev(values):.4f}" if len(values) > 1 else ""
    return f"{mean(values):.4f}{spread}"


def error_table(data: dict[str, Any]) -> str:
    names = [name for name in ("yelp-2013", "yelp-3zones", "ml100k", "filmtrust", "ciao") if name in data]
    counts = [len({row["split"] for row in data[name]["rows"]}) for name in names]
    head = ["RMSE", *(f"{name} ({count})" for name, count in zip(names, counts, strict=True))]
    lines = []
    for method in dict.fromkeys(row["method"] for row in data[names[0]]["rows"]):
        found = ([row["rmse"] for row in data[name]["rows"] if row["method"] == method] for name in names)
        lines.append([method, *(with_spread(values) for values in found)])
    lines.append(["AMF in the paper", *(REPORTED.get(name, "") for name in names)])
    return table(head, lines)


def chosen_table(data: dict[str, Any]) -> str:
    lines = []
    for name, found in data.items():
        rows = [row["setting"] for row in found["rows"] if row["method"] == "AMF, biases, chosen"]
        settings = [f"{s['weight']:g}, {s['reg']:g}, {tuple(s['bias_reg'])}" for s in rows]
        counted = (f"{text}: {settings.count(text)}" for text in dict.fromkeys(settings))
        lines.append([name, "; ".join(counted)])
    return table(["matrix", "weight, reg, bias_reg: splits that chose it"], lines)


def restart_table(data: dict[str, Any]) -> str:
    rows = data.get("yelp-3zones", {}).get("restarts", [])
    lines = [
        [
            row["method"],
            f"{mean(row['rmse']):.4f}",
            f"{stdev(row['rmse']):.5f}",
            f"{row['prediction_sd']:.3f}",
        ]
        for row in rows
    ]
    return table(["method", "RMSE", "sd of RMSE", "mean sd of a prediction"], lines)


def best_table(runs: list[dict[str, Any]]) -> str:
    reference = [run["rmse"]["BiasModel"] for run in runs]
    lines = []
    for name in runs[0]["rmse"]:
        values = [run["rmse"][name] for run in runs]
        gains = [a - b for a, b in zip(reference, values, strict=True)]
        wins = f"{sum(gain > 0 for gain in gains)} of {len(runs)}"
        lines.append([name, with_spread(values), with_spread(gains), "" if name == "BiasModel" else wins])
    return table(["model", f"RMSE ({len(runs)} folds)", "below BiasModel by", "folds below"], lines)


def tables() -> dict[str, str]:
    data = stored("amf")["data"]
    return {
        "errors": error_table(data),
        "chosen": chosen_table(data),
        "restarts": restart_table(data),
        "best": best_table(stored("yelp_best")["runs"]),
    }


def filled(page: str) -> str:
    """The page with every table replaced by the stored results."""
    return fill(page, tables())


def main() -> None:
    write_page("papers/amf.md", tables())


if __name__ == "__main__":
    main()
