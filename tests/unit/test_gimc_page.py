"""The page of learned maps shows the stored results: no figure on it is typed."""

from __future__ import annotations

import re

import pytest

benchmarks = pytest.importorskip("benchmarks", reason="benchmarks are not part of this copy")
from benchmarks import _tables, gimc_clustering_tables  # noqa: E402


def test_tables_are_those_of_the_stored_results() -> None:
    page = (_tables.ROOT / "docs" / gimc_clustering_tables.PAGE).read_text(encoding="utf-8")
    tables = gimc_clustering_tables.tables()
    assert _tables.fill(page, tables) == page, "run: python -m benchmarks gimc_clustering_tables"
    assert set(re.findall("<!-- table: (.*?) -->", page)) == set(tables)
    # Negative control: a typed digit is noticed.
    digit = re.search(r"<!-- table: waves -->.*?(\.\d)", page, flags=re.DOTALL)
    assert digit is not None
    typed = page[: digit.start(1)] + ".x" + page[digit.end(1) :]
    assert _tables.fill(typed, tables) != typed


def test_learned_maps_find_the_hidden_waves() -> None:
    runs = gimc_clustering_tables.picked(_tables.stored("gimc_toy")["runs"], toy="waves")
    learned, fixed = (
        [run["error"] for run in gimc_clustering_tables.picked(runs, method=method)]
        for method in ("GIMC", "IMC-RFF")
    )
    assert len(learned) == len(fixed) == 6
    assert max(learned) < 0.15
    assert min(fixed) > 0.9
