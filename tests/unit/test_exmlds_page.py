"""The page on many labels shows the stored results."""

from __future__ import annotations

import re

import pytest

benchmarks = pytest.importorskip("benchmarks", reason="benchmarks are not part of this copy")
from benchmarks import _tables, exmlds_tables  # noqa: E402


def test_tables_are_those_of_the_stored_results() -> None:
    page = (_tables.ROOT / "docs" / exmlds_tables.PAGE).read_text(encoding="utf-8")
    tables = exmlds_tables.tables()
    assert _tables.fill(page, tables) == page, "run: python -m benchmarks exmlds_tables"
    assert set(re.findall("<!-- table: (.*?) -->", page)) == set(tables)
    # Negative control: a typed digit is noticed.
    digit = re.search(r"<!-- table: Bibtex -->.*?\.(\d)", page, flags=re.DOTALL)
    assert digit is not None
    typed = page[: digit.start(1)] + str((int(digit[1]) + 1) % 10) + page[digit.end(1) :]
    assert _tables.fill(typed, tables) != typed
