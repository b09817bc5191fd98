"""Write the tables of speed of docs/papers/exmlds.md from the stored results of exmlds_speed.

python -m benchmarks exmlds_speed_tables
"""

from __future__ import annotations

from statistics import median

from benchmarks._tables import STORED, stored, table, write_page
from unseen.reproduction.experiment import grouped

PAGE = "papers/exmlds.md"


def speed_table() -> str:
    """Times beside those of other libraries."""
    rows = []
    for (name, method), group in grouped(stored("exmlds_speed")["runs"], "data", "method").items():
        fit, predict = (median(run[key] for run in group) for key in ("fit_s", "predict_s"))
        peak = median(run["memory_mib"] for run in group)
        times = [f"{fit:.2f}", f"{predict:.2f}", f"{peak:.0f}"]
        rows.append([name, method, *times, f"{group[0]['precision'][0]:.2f}"])
    return table(["data", "method", "fit, s", "predict, s", "peak, MiB", "P@1"], rows)


def large_table() -> str:
    """The generated set."""
    large = stored("exmlds_speed")["large"]
    sizes = [f"{large[key]:,}" for key in ("n_rows", "n_features", "n_labels", "n_positives")]
    times = [f"{large['fit_s']:.0f}", f"{large['predict_s']:.0f}", f"{large['peak_gib']:.1f}"]
    head = ["rows", "features", "labels", "positives", "fit, s", "predict, s", "peak, GiB", "P@1"]
    found = [f"{large[key][0]:.1f}" for key in ("precision", "precision_of_frequent_labels")]
    return table([*head, "P@1 of the frequent"], [[*sizes, *times, *found]])


def tables() -> dict[str, str]:
    """Each table of the page that is not an experiment's."""
    if not (STORED / "exmlds_speed.json").exists():
        return dict.fromkeys(("speed", "large"), "Not measured yet: `python -m benchmarks exmlds_speed`.")
    return {"speed": speed_table(), "large": large_table()}


def main() -> None:
    write_page(PAGE, tables())


if __name__ == "__main__":
    main()
