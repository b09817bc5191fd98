"""Baselines: what they minimise, and that they do so."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import check_grad
from scipy.special import expit

import unseen
from unseen import Logistic
from unseen.baselines import LowDensityNMF, OneBitMC, SpectralPairs
from unseen.baselines.low_density import guesses
from unseen.datasets import make_positives
from unseen.exceptions import InvalidDataError, ParameterError, TooLargeError
from unseen.metrics import auc

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def positives(seed: int = 0) -> Any:
    return make_positives(50, 40, n_groups=3, inside=1.0, across=0.0, rho=0.5, random_state=seed)


def hidden_auc(model: Any, data: Any) -> float:
    """Hidden positives against true zeros."""
    truth = data.positives.toarray() != 0
    seen = data.observations.csr.toarray() != 0
    rows, cols = np.nonzero(~seen)
    return auc(truth[rows, cols], model.predict_entries(rows, cols))


def test_logistic_loss(rng: np.random.Generator) -> None:
    values, scores = (rng.random(30) < 0.5).astype(float), 3 * rng.standard_normal(30)
    loss = Logistic()
    probability = expit(scores)
    naive = -np.sum(values * np.log(probability) + (1 - values) * np.log(1 - probability))
    assert loss.value(scores, values) == pytest.approx(naive)
    assert loss.value(scores, 1 - values) != pytest.approx(naive)
    error = check_grad(lambda s: loss.value(s, values), lambda s: loss.grad(s, values), scores)
    assert error < 1e-5
    assert np.isfinite(loss.value(np.array([1e4, -1e4]), np.array([0.0, 1.0])))


@pytest.mark.parametrize("model", [OneBitMC(3, reg=1.0, random_state=0), LowDensityNMF(3, random_state=0)])
def test_hidden_positives_rank_above_zeros(model: Any, tmp_path: Any) -> None:
    data = positives()
    model.fit(data.observations)
    assert hidden_auc(model, data) > 0.95
    model.save(tmp_path / "model")
    loaded = unseen.load(tmp_path / "model")
    np.testing.assert_array_equal(
        loaded.predict_entries([1, 2], [3, 4]), model.predict_entries([1, 2], [3, 4])
    )
    # A matrix whose positives say nothing gives nothing.
    noise = sparse.csr_array((np.random.default_rng(1).random((50, 40)) < 0.17).astype(float))
    assert hidden_auc(type(model)(3, random_state=0).fit(noise), data) < 0.7


def test_one_bit_is_stationary_and_folds_in() -> None:
    X = positives().observations
    model = OneBitMC(3, reg=1.0, random_state=0, tol=1e-12, max_iter=2000).fit(X)
    objectives = [entry["objective"] for entry in model.history_]
    assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(objectives))
    folded = model.fold_in(X.csr[:5])
    np.testing.assert_allclose(folded, model.row_factors_[:5], atol=2e-3)
    np.testing.assert_allclose(
        model.predict_probability([0], [1]), expit(model.predict_entries([0], [1], raw=True)), rtol=1e-12
    )


def test_low_density_objective_falls_while_the_temperature_stays() -> None:
    model = LowDensityNMF(3, class_prior=0.3, random_state=0).fit(positives().observations)
    for before, after in itertools.pairwise(model.history_):
        if before["temperature"] == after["temperature"]:
            assert after["objective"] <= before["objective"] * (1 + 1e-12)
    assert len({entry["temperature"] for entry in model.history_}) == 6
    assert model.row_factors_.min() >= 0
    assert model.col_factors_.min() >= 0
    folded = model.fold_in(positives().observations.csr[:4])
    np.testing.assert_allclose(
        folded @ model.col_factors_.T, (model.row_factors_ @ model.col_factors_.T)[:4], atol=0.05
    )


def test_guesses_have_the_mean_of_the_prior_and_minimise(rng: np.random.Generator) -> None:
    scores = rng.random((20, 15))
    positive = rng.random((20, 15)) < 0.1
    q, nu = guesses(scores, positive, 0.3, 0.25, start=0.0)
    assert q.mean() == pytest.approx(0.25)
    assert (q[positive] == 1).all()
    np.testing.assert_allclose(q[~positive], expit((2 * scores[~positive] - 1) / 0.3 + nu), rtol=1e-9)

    def cost(p: np.ndarray) -> float:
        x = scores[~positive]
        entropy = p * np.log(p) + (1 - p) * np.log(1 - p)
        return float(np.sum(p * (1 - x) ** 2 + (1 - p) * x**2 + 0.3 * entropy))

    best = q[~positive]
    for _ in range(50):
        step = 1e-3 * rng.standard_normal(best.size)
        other = best + step - step.mean()  # the mean stays
        assert cost(np.clip(other, 1e-9, 1 - 1e-9)) >= cost(best) - 1e-9
    # Without the constraint the minimum is elsewhere: nu matters.
    assert cost(expit((2 * scores[~positive] - 1) / 0.3)) < cost(best)


def test_spectral_pairs_finds_connected_groups() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 20)
    i, j = np.triu_indices(60, k=1)
    same = np.flatnonzero(labels[i] == labels[j])
    pairs = np.column_stack([i, j])[rng.permutation(same)[:300]]
    found = SpectralPairs(3, random_state=0).fit(np.zeros((60, 1)), pairs=pairs).labels_
    assert all(len(set(found[labels == group])) == 1 for group in range(3))
    assert len(set(found)) == 3
    # Lanczos and LAPACK agree.
    import unseen.baselines.spectral_pairs as module

    limit, module.DENSE_ITEMS = module.DENSE_ITEMS, 10
    try:
        again = SpectralPairs(3, random_state=0).fit(np.zeros((60, 1)), pairs=pairs).labels_
    finally:
        module.DENSE_ITEMS = limit
    np.testing.assert_array_equal(found[:, None] == found, again[:, None] == again)


def test_bad_input_is_named() -> None:
    X = positives().observations
    for model in (OneBitMC(3), LowDensityNMF(3)):
        with pytest.raises(TooLargeError, match="max_dense_cells"):
            model.set_params(max_dense_cells=100).fit(X)
        model.set_params(max_dense_cells=10**6)
        with pytest.raises(InvalidDataError, match="positive"):
            model.fit(sparse.csr_array((5, 6)))
        with pytest.raises(ParameterError, match="row_features"):
            model.fit(X, row_features=np.ones((50, 2)))
    with pytest.raises(ParameterError, match="class_prior"):
        LowDensityNMF(2, class_prior=0.01).fit(X)
    with pytest.raises(ParameterError, match="temperatures"):
        LowDensityNMF(2, temperatures=(1.0, 0.0)).fit(X)
    with pytest.raises(ParameterError, match="n_clusters"):
        SpectralPairs(10).fit(np.zeros((5, 1)))


@pytest.mark.parametrize(
    "model", [OneBitMC(2, reg=0.1, random_state=0), LowDensityNMF(2, reg=0.01, random_state=0)]
)
def test_full_matrix_is_all_positive(model: Any) -> None:
    model.set_params(random_state=0).fit(np.ones((6, 5)))
    assert model.predict_entries([0, 5], [0, 4]).min() > 0.9
