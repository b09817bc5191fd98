"""Write the tables of docs/guide/which_method.md from the stored results of ``which_method``.

python -m benchmarks which_method_tables
"""

from __future__ import annotations

from typing import Any

from benchmarks._tables import stored, table, write_page
from unseen.comparison.result import Comparison, Entry

PAGE = "guide/which_method.md"


def comparison(case: dict[str, Any]) -> Comparison:
    """What was stored, as it was found."""
    known = {name: value for name, value in case.items() if name not in ("entries", "recommendation")}
    return Comparison(**known, entries=[Entry(**entry) for entry in case["entries"]])


def shown(found: Comparison, entry: Entry) -> str:
    """A method with its score."""
    return f"{entry.method} {entry.mean(found.measures[0]):.4g}"


def overview(cases: dict[str, Comparison]) -> str:
    lines = []
    for name, found in cases.items():
        best, chosen = found.ranked[0], found.recommended()
        simple = next(entry for entry in found.ranked if entry.simple)
        assert chosen is not None
        lines.append([name, found.measures[0], *(shown(found, entry) for entry in (simple, best, chosen))])
    return table(["data", "measure", "best simple baseline", "best", "recommended"], lines)


def one(found: Comparison) -> str:
    head, lines = found.rows()
    return f"{table(head, lines)}\n\n{found.recommendation()}"


def tables() -> dict[str, str]:
    """Each table of the page."""
    cases = {name: comparison(case) for name, case in stored("which_method")["cases"].items()}
    return {"overview": overview(cases), **{name: one(found) for name, found in cases.items()}}


def main() -> None:
    write_page(PAGE, tables())


if __name__ == "__main__":
    main()
