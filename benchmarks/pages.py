"""Write the tables of all pages of the documentation from stored results.

A place for a table is marked ``<!-- table: EXPERIMENT/TABLE -->``. The experiments are run again by
``unseen reproduce all --out docs/results``.
"""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks._tables import ROOT, fill
from unseen.reproduction import EXPERIMENTS, read

RESULTS = ROOT / "docs" / "results"


def filled(page: str) -> str:
    """A page with the places that experiments are marked for filled."""
    tables = {}
    for mark in re.findall("<!-- table: (.*?) -->", page):
        name, _, table = mark.partition("/")
        if name in EXPERIMENTS:
            tables[mark] = read(EXPERIMENTS[name], RESULTS).tables()[table].markdown()
    return fill(page, tables)


def pages() -> list[Path]:
    """Pages with results of experiments."""
    found = sorted((ROOT / "docs").glob("papers/*.md"))
    return [path for path in found if "<!-- table: " in path.read_text(encoding="utf-8")]


def main() -> None:
    for path in pages():
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
        print(f"wrote the tables of {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
