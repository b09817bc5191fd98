"""Penalties that grow with the number of cells, as options of the estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unseen import IMC, BiasMC, Completion, LowRank, MatrixFactorization, Observations, Ridge, Term
from unseen.losses import Biased


def cells(positive: bool = False) -> Observations:
    rng = np.random.default_rng(0)
    n, m = 40, 30
    seen = rng.random((n, m)) < np.linspace(0.05, 0.8, m)
    values = np.ones((n, m)) if positive else 3 + rng.standard_normal((n, 2)) @ rng.standard_normal((2, m))
    return Observations.from_dense(np.where(seen, values, np.nan))


SHORT: dict[str, Any] = {"max_iter": 30, "tol": 0.0, "random_state": 0}


def test_it_is_the_ridge_with_powers_of_degrees() -> None:
    ratings, ones = cells(), cells(positive=True)
    composed = Completion([Term(core=LowRank(2), reg=Ridge(0.3, 0.5))], center="mean", **SHORT).fit(ratings)
    named = MatrixFactorization(2, reg=0.3, degree_scaling=0.5, center="mean", **SHORT).fit(ratings)
    np.testing.assert_allclose(named.predict_new(), composed.predict_new(), atol=1e-8)
    features = IMC(2, reg=0.3, degree_scaling=0.5, center="mean", **SHORT).fit(ratings)
    np.testing.assert_allclose(features.predict_new(), composed.predict_new(), atol=1e-2)
    positives = BiasMC(2, alpha=0.9, reg=0.3, degree_scaling=0.5, cg_steps=None, **SHORT).fit(ones)
    terms = [Term(core=LowRank(2), reg=Ridge(0.3, 0.5))]
    biased = Completion(terms, loss=Biased(0.9), **SHORT).fit(ones)
    np.testing.assert_allclose(positives.predict_new(), biased.predict_new(), atol=1e-6)
    # Planted: without the power the penalty is another, and so is the answer.
    plain = MatrixFactorization(2, reg=0.3, center="mean", **SHORT).fit(ratings)
    assert np.abs(plain.predict_new() - named.predict_new()).max() > 0.05


def test_biases_and_new_rows_are_scaled_alike() -> None:
    ratings = cells()
    model = MatrixFactorization(2, reg=0.3, degree_scaling=1.0, center="joint", **{**SHORT, "max_iter": 300})
    model.fit(ratings)
    np.testing.assert_allclose(model.fold_in(ratings), model.row_factors_, atol=1e-4)
    ones = cells(positive=True)
    lists = BiasMC(3, alpha=0.9, reg=0.3, degree_scaling=1.0, cg_steps=None, **{**SHORT, "max_iter": 500})
    lists.fit(ones)
    np.testing.assert_allclose(lists.fold_in(ones), lists.row_factors_, atol=1e-4)
    _, shares = lists.explain(ones, 3, 7)
    np.testing.assert_allclose(shares.sum(), lists.predict_entries([3], [7])[0], atol=1e-4)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (MatrixFactorization(2, degree_scaling=0.5), "number for reg"),
        (IMC(2, degree_scaling=0.5), "number for reg"),
        (MatrixFactorization(2, reg=1.0, degree_scaling=-1.0), "degree_scaling"),
        (MatrixFactorization(2, reg=1.0, degree_scaling=0.5, solver="ccd"), "coordinate descent"),
        (BiasMC(2, alpha=0.9, reg="0.1max", degree_scaling=0.5), "number for reg"),
        (BiasMC(2, alpha=0.9, degree_scaling=0.5, solver="prox"), "prox"),
        (BiasMC(2, alpha=0.9, degree_scaling=0.5, solver="ccd"), "coordinate descent"),
    ],
)
def test_what_it_does_not_go_with_is_refused(model: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        model.fit(cells(positive=isinstance(model, BiasMC)))
