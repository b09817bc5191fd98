"""``score`` of completers: hidden cells of rows, predicted by folding the others in."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from unseen import (
    IMC,
    AugmentedMF,
    BiasMC,
    BiasModel,
    Blend,
    Completion,
    MatrixFactorization,
    Observations,
    SoftImpute,
    SpectralFilter,
)
from unseen.baselines import MMMF, NMF, OneBitMC, Popularity
from unseen.datasets import make_positives
from unseen.estimators.judging import held_back
from unseen.exceptions import InvalidDataError
from unseen.links import CommonNeighbors, TruncatedSVDLinks
from unseen.losses import Logistic
from unseen.metrics import auc, rmse


def ratings(n: int = 40, m: int = 20, share: float = 0.6) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, m)) + 3
    X[rng.random(X.shape) > share] = np.nan
    return X


def by_hand(model: Any, X: np.ndarray) -> float:
    """Minus the RMSE of the held-back cells, by ``transform`` of what is left."""
    cells = Observations.from_any(X)
    hidden = held_back(cells, np.ones(cells.nnz, dtype=bool))
    told = X.copy()
    told[cells.rows[hidden], cells.indices[hidden]] = np.nan
    found = model.transform(told)[cells.rows[hidden], cells.indices[hidden]]
    return -rmse(cells.values[hidden], found)


@pytest.mark.parametrize(
    "model",
    [
        BiasModel(),
        MatrixFactorization(2, reg=0.1, random_state=0),
        MatrixFactorization(2, reg=0.1, clip=(1.0, 5.0), random_state=0),
        SoftImpute(reg=1.0, max_iter=30),
        AugmentedMF(2, random_state=0, max_iter=10),
        NMF(2, random_state=0, max_iter=10),
        Blend([BiasModel(), SoftImpute(reg=1.0, max_iter=30)], weights=[0.5, 0.5]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_values_are_judged_by_the_error_of_what_is_hidden(model: Any) -> None:
    X = np.abs(ratings())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = model.fit(X[:25])
    assert model.score(X[25:]) == pytest.approx(by_hand(model, X[25:]), rel=1e-9)
    shifted = X[25:] + 1.0  # the control: other cells have another score
    assert model.score(shifted) != pytest.approx(by_hand(model, X[25:]), rel=1e-3)


def test_levels_are_judged_as_levels() -> None:
    X = np.clip(np.round(np.abs(ratings(20, 10, 0.9))), 1, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MMMF(2, random_state=0, max_iter=20).fit(X[:15])
    assert model.score(X[15:]) == pytest.approx(by_hand(model, X[15:]))


@pytest.mark.parametrize(
    "model",
    [
        BiasMC(4, random_state=0, max_iter=10),
        SpectralFilter(4),
        Popularity(),
        OneBitMC(2, random_state=0, max_iter=20),
    ],
    ids=lambda model: type(model).__name__,
)
def test_positives_are_judged_by_their_rank_among_blank_cells(model: Any) -> None:
    X = make_positives(60, 30, n_groups=3, random_state=0).observations.csr
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = model.fit(X[:40])
    new = X[40:]
    cells = Observations.from_any(new)
    hidden = held_back(cells, np.ones(cells.nnz, dtype=bool))
    told = new.toarray()
    told[cells.rows[hidden], cells.indices[hidden]] = 0
    scores = model.transform(sparse.csr_array(told))
    chances = []
    for i, j in zip(cells.rows[hidden], cells.indices[hidden], strict=True):
        blank = scores[i, new.toarray()[i] == 0]
        chances.append(auc(np.r_[1, np.zeros(blank.size)], np.r_[scores[i, j], blank]))
    assert model.score(new) == pytest.approx(np.mean(chances))
    assert 0.5 < model.score(new) < 1 or isinstance(model, Popularity)


def test_links_are_judged_on_new_nodes() -> None:
    rng = np.random.default_rng(0)
    groups = np.arange(40) % 2
    graph = np.triu(rng.random((40, 40)) < np.where(groups[:, None] == groups, 0.6, 0.05), 1)
    graph = sparse.csr_array((graph | graph.T).astype(float))
    for model in (CommonNeighbors(), TruncatedSVDLinks(2)):
        assert np.mean(cross_val_score(model, graph, cv=4)) > 0.7


def test_losses_of_classes_are_judged_by_their_own_deviance() -> None:
    X = (ratings() > 3).astype(float)
    X[np.isnan(ratings())] = np.nan
    X[0, :2] = 0.0, 1.0
    model = Completion(loss=Logistic(), random_state=0, max_iter=20).fit(X)
    assert -np.log(2) < model.score(X) < 0


def test_the_same_rows_have_the_same_score_in_any_order() -> None:
    X = ratings()
    model = BiasModel().fit(X)
    order = np.random.default_rng(1).permutation(len(X))
    assert model.score(X) == model.score(X)
    assert model.score(X[order]) == pytest.approx(model.score(X), rel=1e-12)
    assert model.score(sparse_of(X)) == model.score(X)
    table = Observations.from_any(X).to_frame()
    table["row"] = table.row.map("r{:02d}".format)
    table["col"] = table.col.map("c{:02d}".format)
    named = BiasModel().fit(Observations.from_frame(table, row="row", col="col", value="value"))
    shuffled = table.sample(frac=1.0, random_state=0)
    assert named.score(Observations.from_frame(shuffled, row="row", col="col", value="value")) == (
        pytest.approx(model.score(X), rel=1e-12)
    )


def sparse_of(X: np.ndarray) -> sparse.csr_array:
    rows, cols = np.nonzero(~np.isnan(X))
    return sparse.csr_array((X[rows, cols], (rows, cols)), shape=X.shape)


def test_a_fifth_of_each_row_is_held_back() -> None:
    cells = Observations.from_any(np.arange(40.0).reshape(4, 10))
    every = np.ones(cells.nnz, dtype=bool)
    hidden = held_back(cells, every).reshape(4, 10)
    assert hidden.sum(axis=1).tolist() == [2, 2, 2, 2]
    assert len({tuple(row) for row in hidden}) > 1  # not the same columns everywhere
    few = Observations.from_any([[1.0, np.nan, np.nan], [1.0, 2.0, np.nan]])
    assert held_back(few, np.ones(3, dtype=bool)).tolist()[0] is False
    assert held_back(few, np.ones(3, dtype=bool)).sum() == 1
    silent = every.copy()
    silent[:10] = False
    assert not held_back(cells, silent)[:10].any()


def test_weights_count() -> None:
    X = ratings()
    cells = Observations.from_any(X)
    model = BiasModel().fit(X)
    weights = np.where(cells.rows < 20, 1.0, 0.0)
    half = cells.with_weights(weights)
    assert model.score(half) == pytest.approx(model.score(X[:20]), rel=1e-9)
    assert model.score(half) != pytest.approx(model.score(X), rel=1e-3)


def test_rows_without_a_second_cell_are_refused() -> None:
    model = BiasModel().fit(ratings())
    X = np.full((2, 20), np.nan)
    X[:, 0] = 1.0
    with pytest.raises(InvalidDataError, match="no row with two cells"):
        model.score(X)


@pytest.mark.parametrize("kind", ["dense", "sparse", "frame", "observations"])
def test_scikit_learn_searches_over_completers(kind: str) -> None:
    dense = ratings(60, 20, 0.8)
    X: Any = {
        "dense": dense,
        "sparse": sparse_of(dense),
        "frame": pd.DataFrame(dense, columns=[f"c{j}" for j in range(20)]),
        "observations": Observations.from_any(dense),
    }[kind]
    search = GridSearchCV(
        MatrixFactorization(reg=0.1, random_state=0, max_iter=20), {"rank": [1, 2]}, cv=KFold(3)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X)
        again = cross_val_score(BiasModel(), X, cv=KFold(3))
    assert search.best_params_ == {"rank": 2}
    assert search.best_score_ > again.mean()
    assert search.best_estimator_.n_features_in_ == 20


def test_features_of_rows_are_routed_to_fit_and_score() -> None:
    rng = np.random.default_rng(0)
    F = rng.normal(size=(60, 3))
    X = F @ rng.normal(size=(3, 15)) + 0.1 * rng.normal(size=(60, 15))
    with config_context(enable_metadata_routing=True):
        model = IMC(3, reg=0.1, random_state=0).set_fit_request(row_features=True)
        model = model.set_score_request(row_features=True)
        scores = cross_val_score(model, X, cv=3, params={"row_features": F})
    assert scores.min() > -0.5
    fitted = IMC(3, reg=0.1, random_state=0).fit(X, row_features=F)
    with pytest.raises(ValueError, match="row_features"):
        fitted.score(X)


def test_rows_of_observations_go_with_ids_weights_and_times() -> None:
    cells = Observations.from_frame(
        pd.DataFrame({"u": ["a", "b", "c"], "i": [1, 2, 1], "v": [1.0, 2.0, 3.0], "t": [5, 6, 7]}),
        row="u",
        col="i",
        value="v",
        time="t",
    ).with_weights([1.0, 2.0, 3.0])
    part = cells[[2, 0]]
    assert part.shape == (2, 2)
    about = (part.row_ids.values, part.values, part.weights, part.times)  # type: ignore[union-attr]
    assert [found.tolist() for found in about] == [["c", "a"], [3, 1], [3, 1], [7, 5]]  # type: ignore[union-attr]
    assert cells[np.array([True, False, False])].nnz == 1
    assert cells[1:].shape == (2, 2)
    for wrong, why in (([3], "outside of 0..2"), (0, "several rows"), ([0, 0], "more than once")):
        with pytest.raises(InvalidDataError, match=why):
            cells[wrong]
    with pytest.raises(InvalidDataError, match="mask"):
        cells[np.array([True])]
