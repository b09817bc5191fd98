"""Write the tables of docs/papers/exmlds_joint.md from the stored results of the suite exmlds_joint.

python -m benchmarks exmlds_joint_tables
"""

from __future__ import annotations

from typing import Any

from benchmarks._tables import stored, table, write_page

PAGE = "papers/exmlds_joint.md"


def _numbers(values: list[float]) -> str:
    return " ".join(f"{value:.1f}" for value in values)


def _rows(trials: list[dict[str, Any]]) -> str:
    rows = [[t["trial"], _numbers(t["power 0"]), _numbers(t["power 4"])] for t in trials]
    return table(["trial", "P@1 P@3 P@5", "votes weighed by cos^4"], rows)


def tables() -> dict[str, str]:
    """Tables by the names of their places on the page."""
    made = {}
    for name, results in stored("exmlds_joint")["sets"].items():
        made[f"{name} trials"] = _rows(results["trials"])
        made[f"{name} test"] = _rows(results["test"])
    return made


def main() -> None:
    write_page(PAGE, tables())


if __name__ == "__main__":
    main()
