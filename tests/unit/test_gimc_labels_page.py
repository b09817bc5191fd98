"""The page on learned maps for labels shows the stored results: no figure in its tables is typed."""

from __future__ import annotations

import re
from statistics import mean

import pytest

pytest.importorskip("benchmarks", reason="benchmarks are not part of this copy")
from benchmarks import _tables, gimc_tables


def test_tables_are_those_of_the_stored_results() -> None:
    page = (_tables.ROOT / "docs" / gimc_tables.PAGE).read_text(encoding="utf-8")
    tables = gimc_tables.tables()
    assert _tables.fill(page, tables) == page, "run: python -m benchmarks gimc_tables"
    assert set(re.findall("<!-- table: (.*?) -->", page)) == set(tables)
    # Negative control: a typed digit is noticed.
    digit = re.search(r"<!-- table: classes -->.*?\.(\d)", page, flags=re.DOTALL)
    assert digit is not None
    typed = page[: digit.start(1)] + str((int(digit[1]) + 1) % 10) + page[digit.end(1) :]
    assert _tables.fill(typed, tables) != typed


def test_learned_maps_are_ahead_as_the_page_says() -> None:
    runs = _tables.stored("gimc_classify")["runs"]
    for data, m in {(run["data"], run["m"]) for run in runs if run["m"] is not None}:
        for fixed, learned in (("IMC-RFF", "GIMC-LFF"), ("IMC-NYS", "GIMC-LNYS")):
            here = gimc_tables.pick(runs, data=data, m=m)
            before = mean(run["test"][0] for run in gimc_tables.pick(here, method=fixed))
            after = mean(
                run["test"][0] for run in gimc_tables.pick(here, method=learned, solver="lbfgs", whiten=True)
            )
            assert after > before, (data, m, learned)
