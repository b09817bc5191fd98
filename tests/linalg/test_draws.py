"""Random starts do not depend on threads or type."""

from __future__ import annotations

import numpy as np
import pytest

from unseen.linalg.draws import ONE_STREAM_ROWS, standard_normal


@pytest.mark.parametrize("n", [10, ONE_STREAM_ROWS + 20_001])
def test_draws_are_the_same_for_any_number_of_threads_and_type(n: int) -> None:
    def draw(dtype: type, n_threads: int, seed: int = 0) -> np.ndarray:
        return standard_normal((n, 3), dtype, np.random.default_rng(seed), n_threads=n_threads)

    one = draw(np.float64, 1)
    assert np.array_equal(one, draw(np.float64, 3))
    assert np.array_equal(one.astype(np.float32), draw(np.float32, 2))
    assert not np.array_equal(one, draw(np.float64, 1, seed=1))
    assert np.unique(one).size == one.size  # no two parts share a stream
    assert abs(one.mean()) < 5 / np.sqrt(one.size)
    assert abs(one.std() - 1) < 5 / np.sqrt(one.size)
