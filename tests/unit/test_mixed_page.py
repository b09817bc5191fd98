"""The page on the mixed model shows the stored results: no figure in its tables is typed."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("benchmarks", reason="benchmarks are not part of this copy")
from benchmarks import mixed_tables


def test_tables_are_those_of_the_stored_results() -> None:
    page = mixed_tables.PAGE.read_text(encoding="utf-8")
    assert mixed_tables.filled(page) == page, "run: python -m benchmarks mixed_tables"
    marks = re.findall("<!-- table: (.*?) -->", page)
    assert set(marks) == set(mixed_tables.TABLES)
    # Negative control: a typed digit is noticed.
    digit = re.search(r"<!-- table: rates -->.*?0\.2(\d)", page, flags=re.DOTALL)
    assert digit is not None
    typed = page[: digit.start(1)] + str((int(digit[1]) + 1) % 10) + page[digit.end(1) :]
    assert mixed_tables.filled(typed) != typed
