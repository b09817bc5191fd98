"""The page on joint learning shows what is stored."""

from __future__ import annotations

import pytest

benchmarks = pytest.importorskip("benchmarks", reason="benchmarks are not part of this copy")
from benchmarks import _tables, exmlds_joint, exmlds_joint_tables  # noqa: E402


def test_tables_are_those_of_the_stored_results():
    page = (_tables.ROOT / "docs" / exmlds_joint_tables.PAGE).read_text(encoding="utf-8")
    assert _tables.fill(page, exmlds_joint_tables.tables()) == page, (
        "run: python -m benchmarks exmlds_joint_tables"
    )


def test_only_the_best_on_validation_rows_was_tested():
    results = _tables.stored("exmlds_joint")["sets"]["bibtex"]
    known = exmlds_joint.all_trials()
    assert all(trial["settings"] == known[trial["trial"]] for trial in results["trials"])
    fresh = [t for t in results["trials"] if not {"method", "init"} & set(t["settings"])]
    best = max(fresh, key=lambda trial: sum(trial["power 4"]))
    assert [row["trial"] for row in results["test"]] == ["ExMLDS1", best["trial"]]
