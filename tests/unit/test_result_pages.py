"""Pages with results show the stored ones: no figure on them is typed."""

from __future__ import annotations

import importlib
import re
from typing import Any

import pytest

benchmarks = pytest.importorskip("benchmarks", reason="benchmarks are not part of this copy")
from benchmarks import _tables, pu_tables  # noqa: E402

PAGES = ["links_tables", "pu_tables"]


def page_of(name: str) -> tuple[str, dict[str, str]]:
    module: Any = importlib.import_module(f"benchmarks.{name}")
    return (_tables.ROOT / "docs" / module.PAGE).read_text(encoding="utf-8"), module.tables()


@pytest.mark.parametrize("name", PAGES)
def test_tables_are_those_of_the_stored_results(name: str) -> None:
    page, tables = page_of(name)
    assert _tables.fill(page, tables) == page, f"run: python -m benchmarks {name}"
    assert set(re.findall("<!-- table: (.*?) -->", page)) == set(tables)
    # Negative control: a typed digit is noticed.
    digit = re.search(r"<!-- table: .*? -->.*?\.(\d)", page, flags=re.DOTALL)
    assert digit is not None
    typed = page[: digit.start(1)] + str((int(digit[1]) + 1) % 10) + page[digit.end(1) :]
    assert _tables.fill(typed, tables) != typed


def test_stored_results_are_as_the_page_says() -> None:
    runs = _tables.stored("pu_alpha")["runs"]
    for group in pu_tables.grouped(runs, "setting", "rho").values():
        chosen, best = (sum(run[f"recall_{key}"] for run in group) for key in ("chosen", "best"))
        assert chosen > 0.95 * best
    runs = _tables.stored("pu_clustering")["runs"]
    default = [r for r in runs if not r["whiten"] and r["method"] == "weighted" and r["reg"] == "0.02max"]
    for group in pu_tables.grouped(default, "data").values():
        assert sum(run["clusters"] for run in group) / len(group) < 0.1
