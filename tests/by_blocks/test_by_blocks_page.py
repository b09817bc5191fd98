"""The page on fits by blocks shows stored results, and the generator that they rest on."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

from unseen.datasets import iter_scale_bipartite
from unseen.exceptions import ParameterError

benchmarks = pytest.importorskip("benchmarks", reason="benchmarks are not part of this copy")
from benchmarks import _tables, distributed_tables  # noqa: E402


def test_tables_are_those_of_the_stored_results() -> None:
    page = (_tables.ROOT / "docs" / distributed_tables.PAGE).read_text(encoding="utf-8")
    tables = distributed_tables.tables()
    assert _tables.fill(page, tables) == page, "run: python -m benchmarks distributed_tables"
    assert set(re.findall("<!-- table: (.*?) -->", page)) == set(tables)
    # Negative control: a typed digit is noticed.
    typed = re.sub(r"(<!-- table: sizing -->.*?)\d GiB", r"\g<1>x GiB", page, count=1, flags=re.DOTALL)
    assert typed != page
    assert _tables.fill(typed, tables) != typed


def test_parts_make_up_a_matrix_without_repetitions() -> None:
    parts = list(iter_scale_bipartite(3000, 900, 12, n_parts=5, random_state=0))
    rows, cols = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    assert rows.size == 36_000
    assert len(np.unique(rows * 900 + cols)) == rows.size
    assert rows.min() >= 0
    assert rows.max() < 3000
    assert cols.max() < 900
    assert all(first[0].max() < second[0].min() for first, second in pairwise(parts))
    degrees = np.bincount(rows, minlength=3000)
    assert degrees.max() > 5 * degrees.mean()  # a power law
    again = next(iter(iter_scale_bipartite(3000, 900, 12, n_parts=5, random_state=0)))
    np.testing.assert_array_equal(parts[0][1], again[1])


def test_impossible_parts_are_refused() -> None:
    with pytest.raises(ParameterError, match="asks for"):
        next(iter_scale_bipartite(10, 10, 9, n_parts=1))
    with pytest.raises(ParameterError, match="at most 10 parts"):
        next(iter_scale_bipartite(10, 10, 2, n_parts=20))
