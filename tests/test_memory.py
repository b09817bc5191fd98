"""Nothing between sparse input and fitted model is as large as rows x columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tests.peaks import LIMIT, M, N, peak_of, target
from unseen import (
    GIMC,
    IMC,
    AugmentedMF,
    BiasIMC,
    BiasMC,
    BiasModel,
    Completion,
    DirtyIMC,
    ExMLDS,
    Fourier,
    Given,
    Identity,
    LowRank,
    MatrixFactorization,
    Maxide,
    MixedLinear,
    Nystrom,
    ShiftMC,
    SoftImpute,
    SparseBilinear,
    Term,
)
from unseen.baselines import MMMF, NMF, PMF

FREE = [
    BiasModel(max_iter=2),
    MatrixFactorization(4, max_iter=2, random_state=0, reg=1.0, center="none"),
    MatrixFactorization(4, solver="ccd", center="biases", max_iter=2, random_state=0, reg=1.0),
    AugmentedMF(4, max_iter=2, random_state=0),
    AugmentedMF(4, solver="linesearch", max_iter=2, random_state=0),
    NMF(4, max_iter=2, random_state=0),
    PMF(4, max_iter=2, random_state=0),
    MMMF(4, max_iter=2, random_state=0),
    SoftImpute(8.0, max_rank=10, max_iter=2, random_state=0, center="none"),
    BiasMC(4, alpha=0.9, max_iter=2, random_state=0, cg_steps=None),
    BiasMC(4, alpha=0.9, reg="0.5max", solver="prox", max_iter=2, random_state=0, cg_steps=None),
    ShiftMC(4, rho=0.5, max_iter=2, random_state=0),
]
WITH_FEATURES = [
    IMC(3, max_iter=2, random_state=0, reg=1.0, center="none"),
    GIMC(
        3,
        row_map=Fourier(4, learnable=True),
        col_map=Nystrom(4, learnable=True),
        start_sweeps=1,
        max_iter=1,
        random_state=0,
        reg=0.1,
        center="none",
    ),
    BiasIMC(3, alpha=0.9, max_iter=2, random_state=0),
    Completion(
        [Term(Given(), Given(), LowRank(2)), Term(Identity(), Identity(), LowRank(2))],
        max_iter=2,
        random_state=0,
    ),
    Maxide(1.0, max_iter=2),
    SparseBilinear(1.0, max_iter=2),
    DirtyIMC(1.0, 8.0, max_iter=2, random_state=0),
    MixedLinear(1.0, 1e3, constraint="soft", max_rank=10, max_iter=2, random_state=0, center="none"),
]


def name_of(model: Any) -> str:
    return f"{type(model).__name__}-{getattr(model, 'solver', '')}"


@pytest.mark.parametrize("model", FREE, ids=name_of)
def test_fit_and_recommend_stay_sparse(model: Any) -> None:
    X = target(positive=type(model).__name__ in ("BiasMC", "ShiftMC", "NMF", "MMMF"))
    peak = peak_of(lambda: model.fit(X).recommend([0, 1, 2], exclude=X))
    assert peak < LIMIT, f"{peak / 2**20:.0f} MiB"


@pytest.mark.parametrize("model", WITH_FEATURES, ids=name_of)
def test_fit_with_features_stays_sparse(model: Any) -> None:
    rng = np.random.default_rng(1)
    X = target(positive=isinstance(model, BiasIMC))
    A, B = rng.standard_normal((N, 5)), rng.standard_normal((M, 4))
    peak = peak_of(lambda: model.fit(X, row_features=A, col_features=B))
    assert peak < LIMIT, f"{peak / 2**20:.0f} MiB"


@pytest.mark.parametrize("settings", [{"center": "joint", "init": "svd"}, {"center": "mean"}])
def test_a_fit_holds_few_copies_of_the_cells(settings: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    n, m, count = 2000, 1000, 400_000
    keys = np.unique(rng.integers(0, n * m, count))
    X = sparse.csr_array(
        (rng.random(len(keys), dtype=np.float32), (keys // m, keys % m)), shape=(n, m), dtype=np.float32
    )
    copy = 4 * X.nnz
    model = MatrixFactorization(
        4, **{"reg": 1.0, "center": "none", **settings}, max_iter=2, tol=0.0, random_state=0
    )
    peak = peak_of(lambda: model.fit(X))
    # Values without their mean; rows, values and places of the columns; the scores of one part.
    assert peak < 6 * copy, f"{peak / copy:.1f} arrays of a number a cell"


def test_a_dense_copy_would_be_seen() -> None:
    assert peak_of(lambda: np.zeros((N, M))) > LIMIT


@pytest.mark.parametrize("joint", [False, True])
def test_neighbours_that_vote_stay_sparse(joint: bool) -> None:
    rng = np.random.default_rng(2)
    n, n_labels = 8_000, 20_000
    topic = rng.integers(0, 2000, n)
    labels = 10 * topic[:, None] + rng.integers(0, 10, (n, 3))
    Y = sparse.csr_array((np.ones(3 * n), labels.ravel(), 3 * np.arange(n + 1)), shape=(n, n_labels))
    Y.sum_duplicates()
    Y.data[:] = 1.0
    words = topic[:, None] % 300 + rng.integers(0, 5, (n, 8))
    X = sparse.csr_array((np.ones(8 * n), words.ravel(), 8 * np.arange(n + 1)), shape=(n, 305))
    model = ExMLDS(
        n_components=8,
        n_neighbors=10,
        k=5,
        label_correlations=Y.T @ Y if joint else None,
        random_state=0,
        n_jobs=1,
        neighbor_power=0.0,
    )
    peak = peak_of(lambda: model.fit(X, Y).predict_topk(X, 5))
    assert peak < 8 * n * n_labels // 20, f"{peak / 2**20:.0f} MiB"
    assert peak < 8 * n * n // 4, "all pairs of rows"
