"""Classifiers for many labels hold neither rows x labels nor labels x features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tests.peaks import peak_of
from unseen import AnnexML, LabelTree, PPDSparse

ROWS, LABELS, FEATURES = 3000, 3000, 6000
DENSE_BYTES = 8 * min(ROWS * LABELS, LABELS * FEATURES)


def data() -> tuple[sparse.csr_array, sparse.csr_array]:
    rng = np.random.default_rng(0)
    at = np.repeat(np.arange(ROWS), 3)
    X = sparse.csr_array((np.ones(3 * ROWS), (at, rng.integers(0, FEATURES, 3 * ROWS))), (ROWS, FEATURES))
    Y = sparse.csr_array((np.ones(3 * ROWS), (at, rng.integers(0, LABELS, 3 * ROWS))), (ROWS, LABELS))
    Y.data[:] = 1.0
    return X, Y


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        LabelTree(1, max_iter=3, random_state=0, n_jobs=1),
        PPDSparse(max_iter=2, inner_iter=3, random_state=0, n_jobs=1),
        AnnexML(8, n_learners=1, max_iter=1, random_state=0, n_jobs=1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_fits_and_lists_stay_sparse(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from unseen.multilabel import base, label_tree, pdsparse

    # Blocks that are small beside the data, as they are beside large ones.
    monkeypatch.setattr(label_tree, "BLOCK_WEIGHTS", 1 << 19)
    monkeypatch.setattr(pdsparse, "BLOCK_WEIGHTS", 1 << 19)
    monkeypatch.setattr(base, "BLOCK_CELLS", 1 << 18)
    monkeypatch.setattr(label_tree, "PAIRS_AT_A_TIME", 1 << 18)
    X, Y = data()
    assert peak_of(lambda: model.fit(X, Y)) < DENSE_BYTES // 2
    assert peak_of(lambda: model.predict_topk(X, 5)) < DENSE_BYTES // 2


def test_a_dense_copy_would_be_seen() -> None:
    _, Y = data()
    assert peak_of(Y.toarray) >= DENSE_BYTES
