"""Input that points outside of itself, or hides something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from unseen import IMC, BiasModel, ExMLDS, LinearOvA, Observations, RidgeOvA, SPPMIEmbedding
from unseen.exceptions import InvalidDataError, TooLargeError

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((20, 5))
RATINGS = np.where(RNG.random((20, 10)) < 0.6, RNG.standard_normal((20, 10)), np.nan)
LABELS = sparse.csr_array((RNG.random((20, 6)) < 0.4).astype(float))
SPARSE = sparse.csr_array(np.where(ROWS > 1.0, ROWS, 0.0))


def pointing(matrix: Any, index: int) -> Any:
    """The matrix with an index that leads elsewhere."""
    out = matrix.copy()
    out.indices[0] = index
    return out


@pytest.mark.parametrize("index", [-1, 10**6])
@pytest.mark.parametrize(
    "call",
    [
        lambda index: IMC(2).fit(RATINGS, row_features=pointing(SPARSE, index)),
        lambda index: IMC(2).fit(RATINGS, row_features=pointing(SPARSE.tocsc(), index)),
        lambda index: RidgeOvA().fit(ROWS, pointing(LABELS, index)),
        lambda index: LinearOvA().fit(pointing(SPARSE, index), LABELS),
        lambda index: ExMLDS().fit(ROWS, pointing(LABELS, index)),
        lambda index: SPPMIEmbedding(2).fit(pointing(LABELS, index)),
        lambda index: Observations.from_sparse(LABELS, weights=pointing(LABELS, index)),
        lambda index: Observations.from_sparse(pointing(LABELS, index)),
    ],
)
def test_sparse_matrices_that_point_outside_are_refused(call: Callable[[int], Any], index: int) -> None:
    with pytest.raises(InvalidDataError, match="not a valid sparse matrix"):
        call(index)


def test_what_is_masked_is_missing_or_refused() -> None:
    mask = np.eye(3, dtype=bool)
    cells = Observations.from_any(np.ma.masked_array(np.ones((3, 3)), mask=mask))
    np.testing.assert_array_equal(cells.csr.toarray(), 1.0 - mask)
    with pytest.raises(InvalidDataError, match="row_features is a masked array"):
        IMC(2).fit(RATINGS, row_features=np.ma.masked_array(ROWS, mask=ROWS > 1))


def test_matrices_of_numpy_are_arrays() -> None:
    filled = np.nan_to_num(RATINGS)
    one, other = (BiasModel().fit(X).row_factors_ for X in (filled, np.matrix(filled)))
    np.testing.assert_array_equal(one, other)


def test_sides_without_end_are_refused() -> None:
    wide = sparse.csr_array((np.ones(1), np.array([2**40]), np.array([0, 1])), shape=(1, 2**41))
    with pytest.raises(TooLargeError, match="from_frame"):
        BiasModel().fit(wide)
