"""Pages with results show the stored ones: no figure on them is typed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from unseen.reproduction import EXPERIMENTS, Verdict, read

benchmarks = pytest.importorskip("benchmarks", reason="benchmarks are not part of this copy")
from benchmarks import pages  # noqa: E402

MARKED = [path for path in pages.pages() if pages.filled(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("path", MARKED, ids=lambda path: path.name)
def test_tables_are_those_of_the_stored_results(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    assert pages.filled(page) == page, "run: python -m benchmarks pages"
    for mark in re.findall("<!-- table: (.*?/.*?) -->", page):
        assert mark.partition("/")[0] in EXPERIMENTS
        # Negative control: a typed digit is noticed.
        digit = re.search(rf"<!-- table: {re.escape(mark)} -->.*?(\d)", page, flags=re.DOTALL)
        assert digit is not None
        typed = page[: digit.start(1)] + str((int(digit[1]) + 1) % 10) + page[digit.end(1) :]
        assert pages.filled(typed) != typed


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if (pages.RESULTS / f"{name}.json").exists()])
def test_stored_results_are_whole(name: str) -> None:
    experiment = EXPERIMENTS[name]
    outcome = read(experiment, pages.RESULTS)
    assert not outcome.quick
    assert outcome.claims()
    assert all(table.lines for table in outcome.tables().values())


def test_stored_results_are_as_the_page_says() -> None:
    claims = read(EXPERIMENTS["pu-alpha"], pages.RESULTS).claims()
    assert claims[0].verdict is Verdict.HOLDS
    claims = read(EXPERIMENTS["pu-links"], pages.RESULTS).claims()
    assert claims[0].verdict is Verdict.HOLDS


def test_the_page_of_speed_shows_the_stored_runs() -> None:
    from benchmarks import _tables, performance_tables

    page = (_tables.ROOT / "docs" / performance_tables.PAGE).read_text(encoding="utf-8")
    tables = performance_tables.tables()
    assert _tables.fill(page, tables) == page, "run: python -m benchmarks performance_tables"
    assert set(re.findall("<!-- table: (.*?) -->", page)) == set(tables)
    assert _tables.fill(page.replace("| unseen cg | 1.", "| unseen cg | 0."), tables) == page
