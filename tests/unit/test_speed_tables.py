"""Tables of suites on the pages of the documentation are those of the stored runs."""

from __future__ import annotations

import re
from typing import Any

import pytest

benchmarks = pytest.importorskip("benchmarks", reason="benchmarks are not part of this copy")
from benchmarks import _tables, exmlds_speed_tables, gimc_speed_tables, mixed_tables, which_method_tables  # noqa: E402

MODULES = [exmlds_speed_tables, gimc_speed_tables, mixed_tables, which_method_tables]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.PAGE)
def test_tables_are_those_of_the_stored_results(module: Any) -> None:
    page = (_tables.ROOT / "docs" / module.PAGE).read_text(encoding="utf-8")
    tables = module.tables()
    name = module.__name__.removeprefix("benchmarks.")
    assert _tables.fill(page, tables) == page, f"run: python -m benchmarks {name}"
    assert {mark for mark in re.findall("<!-- table: (.*?) -->", page) if "/" not in mark} == set(tables)
    # Negative control: a typed line is noticed.
    mark = f"<!-- table: {next(iter(tables))} -->\n"
    typed = page.replace(mark, f"{mark}| typed |\n")
    assert _tables.fill(typed, tables) == page != typed
