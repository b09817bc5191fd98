"""Pages with results show the stored ones: no figure on them is typed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from unseen.reproduction import EXPERIMENTS, Verdict, read

benchmarks = pytest.importorskip("benchmarks", reason="benchmarks are not part of this copy")
from benchmarks import pages  # noqa: E402


@pytest.mark.parametrize("path", pages.pages(), ids=lambda path: path.name)
def test_tables_are_those_of_the_stored_results(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    assert pages.filled(page) == page, "run: python -m benchmarks pages"
    for kind, mark in re.findall("<!-- (table|claims|figure): (.*?) -->", page):
        names = mark.split() if kind == "claims" else [mark.partition("/")[0]]
        if not {*names} <= {*EXPERIMENTS}:
            assert "/" not in mark  # tables of speed have other names
            continue
        if kind == "figure":
            assert (pages.RESULTS / f"{mark.replace('/', '-')}.svg").exists()
        # Negative control: a typed digit is noticed.
        digit = re.search(rf"<!-- {kind}: {re.escape(mark)} -->.*?(\d)", page, flags=re.DOTALL)
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
