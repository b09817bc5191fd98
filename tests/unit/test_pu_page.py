"""The paper page shows the stored results."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tables() -> Any:
    path = ROOT / "benchmarks" / "pu_tables.py"
    if not path.exists():
        pytest.skip("benchmarks are not part of this copy")
    spec = importlib.util.spec_from_file_location("pu_tables", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_are_those_of_the_stored_results(tables: Any) -> None:
    page = tables.PAGE.read_text(encoding="utf-8")
    assert tables.filled(page) == page, "run: python -m benchmarks pu_tables"
    # Negative control: a typed digit is noticed.
    digit = re.search(r"<!-- table: alpha -->.*?\.(\d)", page, flags=re.DOTALL)
    assert digit is not None
    typed = page[: digit.start(1)] + str((int(digit[1]) + 1) % 10) + page[digit.end(1) :]
    assert tables.filled(typed) != typed


def test_stored_results_are_as_the_page_says(tables: Any) -> None:
    runs = json.loads((tables.STORED / "pu_alpha.json").read_text())["runs"]
    for group in tables.grouped(runs, "setting", "rho").values():
        chosen, best = (sum(run[f"recall_{key}"] for run in group) for key in ("chosen", "best"))
        assert chosen > 0.95 * best
    runs = json.loads((tables.STORED / "pu_clustering.json").read_text())["runs"]
    default = [r for r in runs if not r["whiten"] and r["method"] == "weighted" and r["reg"] == "0.02max"]
    for group in tables.grouped(default, "data").values():
        assert sum(run["clusters"] for run in group) / len(group) < 0.1
