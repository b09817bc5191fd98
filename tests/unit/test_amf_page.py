"""The page on AMF shows the stored results."""

from __future__ import annotations

import re

import pytest

benchmarks = pytest.importorskip("benchmarks", reason="benchmarks are not part of this copy")
from benchmarks import amf_tables  # noqa: E402


def test_tables_are_those_of_the_stored_results() -> None:
    page = amf_tables.PAGE.read_text(encoding="utf-8")
    assert amf_tables.filled(page) == page, "run: python -m benchmarks amf_tables"
    # Negative control: a typed digit is noticed.
    digit = re.search(r"<!-- table: errors -->.*?\.(\d)", page, flags=re.DOTALL)
    assert digit is not None
    typed = page[: digit.start(1)] + str((int(digit[1]) + 1) % 10) + page[digit.end(1) :]
    assert amf_tables.filled(typed) != typed


def test_best_model_on_yelp_is_below_biases_in_every_fold() -> None:
    for run in benchmarks._tables.stored("yelp_best")["runs"]:
        assert run["rmse"]["trees over all"] < run["rmse"]["BiasModel"]
