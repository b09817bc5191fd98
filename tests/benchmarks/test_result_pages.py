"""Pages with results show the stored ones: no figure on them is typed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import pages
from papers.catalogue import EXPERIMENTS
from papers.experiment import Verdict
from papers.runner import read

FOUND = pages.pages()


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.name)
def test_what_is_shown_is_what_is_stored(path: Path) -> None:
    page = FOUND[path]
    assert pages.filled(path, page) == page, "run: python -m benchmarks pages"
    for place in pages.PLACE.finditer(page):
        if place[2] == "figure":
            assert (pages.RESULTS / f"{place[3].replace('/', '-')}.svg").exists()
        # Negative controls: a typed digit, or line where there is no digit, is noticed.
        digit = re.compile(r"\d").search(page, place.end(1), place.start(4))
        start, stop = digit.span() if digit else (place.end(1), place.end(1))
        typed = str((int(digit[0]) + 1) % 10) if digit else "| typed |\n"
        assert pages.filled(path, page[:start] + typed + page[stop:]) == page


def test_every_suite_has_its_page_and_every_table_its_place() -> None:
    assert {pages.DOCS / name for name in pages.SUITES} <= set(FOUND)
    path = pages.DOCS / "papers/mixed.md"
    without = FOUND[path].replace("<!-- table: scale -->", "<!-- table: elsewhere -->")
    with pytest.raises(AssertionError, match="one place for the table 'scale'"):
        pages.filled(path, without)
    with pytest.raises(KeyError, match="elsewhere"):
        pages.filled(path, FOUND[path] + "<!-- table: elsewhere -->\n<!-- end -->\n")


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if (pages.RESULTS / f"{name}.json").exists()])
def test_stored_results_are_whole(name: str) -> None:
    outcome = read(EXPERIMENTS[name], pages.RESULTS)
    assert not outcome.quick
    assert outcome.claims()
    assert all(table.lines for table in outcome.tables().values())


def test_stored_results_are_as_the_page_says() -> None:
    claims = read(EXPERIMENTS["pu-alpha"], pages.RESULTS).claims()
    assert claims[0].verdict is Verdict.HOLDS
    claims = read(EXPERIMENTS["pu-links"], pages.RESULTS).claims()
    assert claims[0].verdict is Verdict.HOLDS
