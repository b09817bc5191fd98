"""BayesianMF with features and histories: what they are worth, new rows, and that nothing leaks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import unseen
from unseen import BayesianMF, Completion, Given, History, Identity, Joined, LowRank, Observations, Term
from unseen.exceptions import NotInductiveError, ParameterError
from unseen.maps.joined import Seen, history_of
from unseen.model_selection import KFoldEntries, cross_validate


def rmse(one, other):
    return float(np.sqrt(np.mean((one - other) ** 2)))


@pytest.fixture(scope="module")
def data():
    """Rows whose factors follow from their features, but for noise."""
    rng = np.random.default_rng(0)
    n, m, k, d = 200, 120, 2, 4
    x = rng.normal(size=(n, d))
    u = 0.7 * x @ rng.normal(size=(d, k)) + 0.3 * rng.normal(size=(n, k))
    scores = u @ rng.normal(size=(k, m)) + 0.5 * x[:, :1] + 2
    values = scores + 0.3 * rng.normal(size=(n, m))
    return x, scores, np.where(rng.random((n, m)) < 0.06, values, np.nan)


@pytest.fixture(scope="module")
def model(data):
    x, _, X = data
    return BayesianMF(4, n_samples=20, burn_in=40, history="rows", random_state=0).fit(
        X[:150], row_features=x[:150]
    )


def test_features_help_rows_with_few_cells(data, model):
    _, scores, X = data
    without = BayesianMF(4, n_samples=20, burn_in=40, random_state=0).fit(X[:150])
    assert rmse(model.predict_new(), scores[:150]) < 0.9 * rmse(without.predict_new(), scores[:150])


def test_new_rows_by_features_and_by_both(data, model, tmp_path):
    x, scores, X = data
    known, truth = X[150:], scores[150:]
    by_features = model.predict_new(row_features=x[150:])
    by_both = model.transform(known, row_features=x[150:])
    assert rmse(by_features, truth) < 0.7 * scores.std()
    assert rmse(by_both, truth) < rmse(by_features, truth)
    model.save(tmp_path / "model")
    loaded = unseen.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_new(row_features=x[150:]), by_features)
    np.testing.assert_array_equal(loaded.transform(known, row_features=x[150:]), by_both)
    with pytest.raises(NotInductiveError):
        model.predict_new(col_features=np.ones((1, 2)))


def test_training_rows_folded_in_are_what_they_were(data):
    x, _, X = data
    model = BayesianMF(4, n_samples=6, burn_in=20, history="rows", noise="constant", random_state=0)
    model.fit(X[:150], row_features=x[:150])
    found = model.fold_in(X[:6], row_features=x[:6])
    np.testing.assert_allclose(found, model.row_factors_[:6], rtol=1e-4, atol=1e-6)


def test_sparse_features_give_what_dense_ones_give(data):
    x, _, X = data
    x = np.where(np.abs(x) > 1, x, 0.0)
    options = {"n_samples": 4, "burn_in": 4, "random_state": 0}
    dense = BayesianMF(2, **options).fit(X, row_features=x)
    held_sparse = BayesianMF(2, **options).fit(X, row_features=sparse.csr_array(x))
    np.testing.assert_allclose(dense.row_factors_, held_sparse.row_factors_, rtol=1e-6, atol=1e-8)


def test_histories_are_the_cells_that_count():
    cells = Observations.from_dense(np.array([[1.0, 0.0, np.nan], [np.nan, 5.0, 2.0], [np.nan] * 3]))
    weighted = cells.with_weights(np.array([2.0, 0.0, 1.0, 3.0]))
    half = np.sqrt(0.5)
    rows = history_of(cells, None, "row", np.dtype(float)).toarray()
    np.testing.assert_allclose(rows, [[half, half, 0], [0, half, half], [0, 0, 0]])
    cols = history_of(weighted, weighted.weights, "col", np.dtype(float)).toarray()
    np.testing.assert_allclose(cols, [[1, 0, 0], [0, 1, 0], [0, 1, 0]])


def informative(seed=1):
    """Cells whose pattern tells the taste of a row: it sees what it likes."""
    rng = np.random.default_rng(seed)
    n, m = 300, 80
    u, v = rng.normal(size=(n, 2)), rng.normal(size=(m, 2))
    scores = u @ v.T
    seen = rng.random((n, m)) < 0.3 / (1 + np.exp(-2.5 * scores))
    values = scores + 1.0 * rng.normal(size=(n, m))
    return scores, np.where(seen, values, np.nan)


def test_histories_help_where_the_choice_of_cells_says_something():
    scores, X = informative()
    # Long enough to find the factors: with so much noise, chains of 50 sweeps may still be near zero.
    options = {"n_samples": 60, "burn_in": 150, "thin": 1, "random_state": 0}
    found = {
        history: BayesianMF(3, history=history, **options).fit(X).predict_new() for history in (False, True)
    }
    with_history, without = (np.corrcoef(found[key].ravel(), scores.ravel())[0, 1] for key in (True, False))
    assert 1 - with_history < 0.9 * (1 - without)


def test_held_out_cells_are_in_no_history(monkeypatch):
    """The maps of a fold see as many cells as the fold has for training; a fit to all cells sees them all."""
    asked = []

    def spying(self, features, n_entities, params, n_threads=1):
        assert isinstance(features, Seen)
        asked.append(features.history.nnz)
        return original(self, features, n_entities, params, n_threads)

    original = History.apply
    monkeypatch.setattr(History, "apply", spying)
    _, X = informative()
    cells = Observations.from_dense(X)
    folds = KFoldEntries(4, random_state=0)
    sizes = {train.nnz for train, _ in folds.split(cells)}
    model = BayesianMF(2, history=True, n_samples=2, burn_in=1, random_state=0)
    cross_validate(model, cells, cv=folds)
    assert set(asked) <= sizes
    assert cells.nnz not in asked
    # The planted leak: a history of all cells would be seen here.
    asked.clear()
    model.fit(cells)
    assert set(asked) == {cells.nnz}


def test_point_solutions_of_the_same_parts_do_not_guess_new_rows(data):
    x, _, X = data
    term = Term(Joined([Identity(), Given()]), Identity(), LowRank(2))
    point = Completion([term], random_state=0, max_iter=300, tol=1e-3).fit(X, row_features=x)
    assert point.predict_new().shape == X.shape
    for ask in (
        lambda: point.fold_in(X[:2], row_features=x[:2]),
        lambda: point.predict_new(row_features=x[:2]),
    ):
        with pytest.raises(NotInductiveError, match="only where the model averages"):
            ask()
    with pytest.raises(ParameterError, match="one or more fixed maps"):
        Completion([Term(Joined(), Identity(), LowRank(2))]).fit(X)
    with pytest.raises(ParameterError, match="history"):
        BayesianMF(history="both").fit(X)


def test_memory_does_not_grow_with_rows_times_columns():
    import tracemalloc

    rng = np.random.default_rng(0)
    n, m, count = 20_000, 15_000, 40_000
    cells = Observations.from_triples(
        rng.integers(n, size=count), rng.integers(m, size=count), rng.normal(size=count), shape=(n, m),
        duplicates="mean",
    )  # fmt: skip
    tracemalloc.start()
    BayesianMF(2, history=True, n_samples=1, burn_in=0, thin=1, random_state=0).fit(cells)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.05 * n * m * 8
