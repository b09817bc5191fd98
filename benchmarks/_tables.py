"""Markdown tables, and their places on the pages of the documentation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
STORED = Path(__file__).parent / "stored"


def stored(name: str) -> dict[str, Any]:
    """Results of a suite."""
    results: dict[str, Any] = json.loads((STORED / f"{name}.json").read_text(encoding="utf-8"))
    return results


def table(head: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def three(value: float) -> str:
    """Three digits after the point, the zero before it left out."""
    return f"{value:.3f}".removeprefix("0")


def fill(page: str, tables: Mapping[str, str]) -> str:
    """The text of a page with the places that are marked for these tables filled."""
    for name, text in tables.items():
        marked = re.compile(rf"(<!-- table: {re.escape(name)} -->\n).*?(<!-- end -->)", flags=re.DOTALL)
        page, count = marked.subn(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page)
        assert count == 1, f"the page must have one place for the table {name!r}, it has {count}"
    return page


def write_page(path: str, tables: Mapping[str, str]) -> None:
    """Fill a page of the documentation, given by its path in ``docs``."""
    page = ROOT / "docs" / path
    page.write_text(fill(page.read_text(encoding="utf-8"), tables), encoding="utf-8")
    print(f"wrote the tables of docs/{path}")
