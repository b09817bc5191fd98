"""Write the tables of docs/papers/exmlds.md from the stored results of the exmlds suites.

python -m benchmarks exmlds_tables
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean, median, pstdev
from typing import Any

from benchmarks._tables import STORED, stored, table, write_page

PAGE = "papers/exmlds.md"
Runs = list[dict[str, Any]]

# Tables 3 and 4 of the paper, P@1, P@3, P@5.
PAPER = {
    ("Bibtex", "ExMLDS1"): (63.38, 38.00, 27.64),
    ("Bibtex", "SLEEC"): (65.29, 39.60, 28.63),
    ("Bibtex", "LEML"): (62.54, 38.41, 28.21),
    ("Bibtex", "LinearOvA"): (62.62, 39.09, 28.79),
    ("Delicious", "ExMLDS1"): (67.94, 61.35, 56.30),
    ("Delicious", "SLEEC"): (68.10, 61.78, 57.34),
    ("Delicious", "LEML"): (65.67, 60.55, 56.08),
    ("Delicious", "LinearOvA"): (65.01, 58.88, 53.28),
}
PAPER_HIDDEN = {
    ("Bibtex", "ExMLDS3, counts"): (48.51, 28.43, 20.70),
    ("Bibtex", "SLEEC"): (30.50, 14.90, 9.81),
    ("Bibtex", "LEML"): (35.98, 21.02, 15.50),
    ("Bibtex", "LEML-IMC"): (41.23, 25.25, 18.56),
    ("rcv1 subset", "ExMLDS3, counts"): (81.67, 52.82, 37.74),
    ("rcv1 subset", "SLEEC"): (41.80, 17.48, 10.63),
    ("rcv1 subset", "LEML"): (64.83, 42.56, 31.68),
    ("rcv1 subset", "LEML-IMC"): (73.68, 48.56, 34.82),
}


def grouped(runs: Runs, *keys: str) -> dict[tuple[Any, ...], Runs]:
    out: dict[tuple[Any, ...], Runs] = {}
    for run in runs:
        out.setdefault(tuple(run[key] for key in keys), []).append(run)
    return out


def numbers(runs: Runs, key: str, show: Callable[[list[float]], str]) -> list[str]:
    return [show([run[key][place] for run in runs]) for place in range(3)]


def average(values: list[float]) -> str:
    return f"{mean(values):.2f}"


def with_spread(values: list[float]) -> str:
    return f"{mean(values):.2f} ± {pstdev(values):.2f}"


def told(setting: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in setting.items()) or "defaults"


def printed(values: tuple[float, ...] | None) -> str:
    return " / ".join(f"{value:.2f}" for value in values) if values else ""


def precision_table(runs: Runs, name: str) -> str:
    rows = []
    for (method,), group in grouped([r for r in runs if r["data"] == name], "method").items():
        show = with_spread if len(group) > 1 else average
        rows.append(
            [
                method,
                *numbers(group, "precision", show),
                average([run["psp"][2] for run in group]),
                printed(PAPER.get((name, method))),
                told(group[0]["setting"]),
            ]
        )
    return table(["method", "P@1", "P@3", "P@5", "PSP@5", "paper, P@1 / 3 / 5", "chosen"], rows)


def bin_table(runs: Runs) -> str:
    rows = [
        [name, method, *(average([r["recall_by_bin"][b] for r in group]) for b in ("head", "middle", "tail"))]
        for (name, method), group in grouped(runs, "data", "method").items()
    ]
    return table(["data", "method", "head", "middle", "tail"], rows)


def hidden_table(runs: Runs, name: str) -> str:
    rows = []
    for (method,), group in grouped([r for r in runs if r["data"] == name], "method").items():
        row = [method, printed(PAPER_HIDDEN.get((name, method)))]
        for reading in ("keep", "drop"):
            row += numbers([run for run in group if run["reading"] == reading], "precision", with_spread)
        rows.append(row)
    head = [f"{reading}, P@{k}" for reading in ("keep", "drop") for k in (1, 3, 5)]
    return table(["method", "paper, P@1 / 3 / 5", *head], rows)


def speed_table() -> str:
    if not (STORED / "exmlds_speed.json").exists():
        return "Not measured yet: `python -m benchmarks exmlds_speed`."
    results = stored("exmlds_speed")
    rows = []
    for (name, method), group in grouped(results["runs"], "data", "method").items():
        fit, predict = (median(run[key] for run in group) for key in ("fit_s", "predict_s"))
        rows.append([name, method, f"{fit:.2f}", f"{predict:.2f}", f"{group[0]['precision'][0]:.2f}"])
    return table(["data", "method", "fit, s", "predict, s", "P@1"], rows)


def large_table() -> str:
    if not (STORED / "exmlds_speed.json").exists():
        return "Not measured yet: `python -m benchmarks exmlds_speed`."
    large = stored("exmlds_speed")["large"]
    sizes = [f"{large[key]:,}" for key in ("n_rows", "n_features", "n_labels", "n_positives")]
    times = [f"{large['fit_s']:.0f}", f"{large['predict_s']:.0f}", f"{large['peak_gib']:.1f}"]
    head = ["rows", "features", "labels", "positives", "fit, s", "predict, s", "peak, GiB", "P@1"]
    found = [f"{large[key][0]:.1f}" for key in ("precision", "precision_of_frequent_labels")]
    return table([*head, "P@1 of the frequent"], [[*sizes, *times, *found]])


def tables() -> dict[str, str]:
    """Each table of the page."""
    runs, hidden = stored("exmlds")["runs"], stored("exmlds_hidden")["runs"]
    names = ("Bibtex", "Delicious", "Corel5k", "rcv1 subset", "mediamill subset")
    out = {name: precision_table(runs, name) for name in names}
    out |= {f"hidden {name}": hidden_table(hidden, name) for name in ("Bibtex", "rcv1 subset")}
    return {**out, "bins": bin_table(runs), "speed": speed_table(), "large": large_table()}


def main() -> None:
    write_page(PAGE, tables())


if __name__ == "__main__":
    main()
