"""A generated matrix that comes in parts, for fits that do not hold it whole."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from unseen.datasets import iter_scale_bipartite
from unseen.exceptions import ParameterError


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
