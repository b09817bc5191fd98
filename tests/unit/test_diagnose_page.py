"""The page on diagnostics shows the stored results, and what it says about them holds."""

from __future__ import annotations

import re

import pytest

benchmarks = pytest.importorskip("benchmarks", reason="benchmarks are not part of this copy")
from benchmarks import _tables, identifiability_tables  # noqa: E402


def test_tables_are_those_of_the_stored_results() -> None:
    page = (_tables.ROOT / "docs" / identifiability_tables.PAGE).read_text(encoding="utf-8")
    tables = identifiability_tables.tables()
    assert _tables.fill(page, tables) == page, "run: python -m benchmarks identifiability_tables"
    digit = re.search(r"<!-- table: .*? -->.*?\.(\d)", page, flags=re.DOTALL)
    assert digit is not None
    typed = page[: digit.start(1)] + str((int(digit[1]) + 1) % 10) + page[digit.end(1) :]
    assert _tables.fill(typed, tables) != typed  # negative control


@pytest.mark.parametrize("name", ["MovieLens-100K", "yelp-3zones"])
def test_error_grows_with_the_spread(name: str) -> None:
    runs = identifiability_tables.runs_of(name)
    for run in runs:
        found = run["measures"]
        std, expected = (
            found["std (curvature, noise by row and column)"],
            found["error (std and noise)"],
        )
        assert expected["spearman"] > 0.2
        assert max(std["kept_rmse"]["0.8"], expected["kept_rmse"]["0.8"]) < run["rmse"]
        assert std["spearman"] > found["curvature, one noise for all"]["spearman"]
        assert abs(found["chance"]["spearman"]) < 0.05
    mean = sum(run["measures"]["std (curvature, noise by row and column)"]["spearman"] for run in runs) / len(
        runs
    )
    assert mean > 0.2
