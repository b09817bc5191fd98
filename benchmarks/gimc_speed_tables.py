"""Write the table of speed of docs/papers/gimc.md from the stored results of gimc_speed.

python -m benchmarks gimc_speed_tables
"""

from __future__ import annotations

from benchmarks._tables import STORED, stored, table, write_page

PAGE = "papers/gimc.md"


def tables() -> dict[str, str]:
    """Each table of the page that is not an experiment's."""
    if not (STORED / "gimc_speed.json").exists():
        return {"speed": "Not measured yet: `python -m benchmarks gimc_speed`."}
    rows = []
    for run in stored("gimc_speed")["runs"]:
        ours, theirs = run["unseen"], run["torch"]
        times = [ours["seconds"], theirs["seconds"]]
        growth = [f"{side['growth_mib']:.0f}" for side in (ours, theirs)]
        ratio = f"{times[1] / times[0]:.1f}"
        rows.append([run["data"], run["m"], *(f"{seconds:.3f}" for seconds in times), ratio, *growth])
    head = ["data", "m", "step, s", "autograd, s", "ratio", "memory, MiB", "autograd, MiB"]
    return {"speed": table(head, rows)}


def main() -> None:
    write_page(PAGE, tables())


if __name__ == "__main__":
    main()
