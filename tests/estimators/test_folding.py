"""Folding in costs what the cells of the new rows cost, and says the same."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from unseen import (
    BiasMC,
    Completion,
    Logistic,
    LowRank,
    MatrixFactorization,
    Observations,
    Ordinal,
    Ridge,
    Term,
)
from unseen.estimators import factored
from unseen.losses import Loss
from unseen.solvers.rows import on_used_columns

N_COLS = 120


def new_rows(n_cells: int) -> Observations:
    rng = np.random.default_rng(1)
    cols = np.concatenate([rng.choice(N_COLS, n_cells, replace=False) for _ in range(2)])
    return Observations.from_triples(np.repeat([0, 2], n_cells), cols, shape=(3, N_COLS))


@pytest.fixture(scope="module")
def ratings() -> MatrixFactorization:
    X = sparse.random_array((50, N_COLS), density=0.3, rng=np.random.default_rng(0), format="csr")
    return MatrixFactorization(4, reg=0.5, center="biases", random_state=0).fit(X)


def positives(seed: int) -> BiasMC:
    X = sparse.random_array((50, N_COLS), density=0.1, rng=np.random.default_rng(seed), format="csr")
    return BiasMC(4, alpha=0.8, reg=1.0, random_state=0).fit((X > 0).astype(float))


def test_columns_without_cells_say_nothing(
    ratings: MatrixFactorization, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = new_rows(3)
    assert on_used_columns(few)[0].shape == (3, np.unique(few.indices).size)
    found = ratings.fold_in(few)
    monkeypatch.setattr(factored, "on_used_columns", lambda cells: (cells, slice(None)))
    np.testing.assert_array_equal(found, ratings.fold_in(few))


def test_with_many_cells_all_columns_stay() -> None:
    many = new_rows(30)
    assert on_used_columns(many)[0] is many


def test_a_gram_matrix_at_hand_changes_nothing() -> None:
    model, few = positives(0), new_rows(3)
    plain = model.fold_in(few)
    model._keep_gram()
    np.testing.assert_allclose(model.fold_in(few), plain, rtol=1e-12, atol=1e-14)
    assert model._kept_gram is not None
    model._kept_gram = model.col_factors_, 2.0 * model._kept_gram[1]
    assert not np.allclose(model.fold_in(few), plain)


def test_a_gram_matrix_of_other_factors_is_not_used() -> None:
    model, few = positives(0), new_rows(3)
    model._keep_gram()
    other = positives(1)
    model.fit(other._training_data().cells)
    np.testing.assert_array_equal(model.fold_in(few), other.fold_in(few))


@pytest.mark.parametrize("loss", [Logistic(), Ordinal()])
def test_rows_without_cells_have_no_factors_whatever_the_loss(loss: Loss) -> None:
    X = np.random.default_rng(0).integers(0, 2, (12, N_COLS)).astype(float)
    terms = [Term(core=LowRank(2), reg=Ridge(0.5))]
    model = Completion(terms, loss=loss, max_iter=5, tol=0.0, random_state=0).fit(X)
    empty = sparse.csr_array((2, N_COLS))
    np.testing.assert_array_equal(model.fold_in(empty), np.zeros((2, 2)))
    np.testing.assert_array_equal(model.fold_in(sparse.vstack([empty, X[:1]]))[:2], np.zeros((2, 2)))
