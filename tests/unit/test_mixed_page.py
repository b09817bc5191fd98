"""Speed and other libraries on the page of the mixed model are those of the stored runs."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("benchmarks", reason="benchmarks are not part of this copy")
from benchmarks import _tables, mixed_tables


def test_tables_are_those_of_the_stored_results() -> None:
    page = (_tables.ROOT / "docs" / mixed_tables.PAGE).read_text(encoding="utf-8")
    tables = mixed_tables.tables()
    assert _tables.fill(page, tables) == page, "run: python -m benchmarks mixed_tables"
    assert {mark for mark in re.findall("<!-- table: (.*?) -->", page) if "/" not in mark} == set(tables)
    # Negative control: a typed digit is noticed.
    digit = re.search(r"<!-- table: scale -->.*?\.(\d)", page, flags=re.DOTALL)
    assert digit is not None
    typed = page[: digit.start(1)] + str((int(digit[1]) + 1) % 10) + page[digit.end(1) :]
    assert _tables.fill(typed, tables) != typed
