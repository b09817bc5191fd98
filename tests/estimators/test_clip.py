"""``clip`` keeps predictions on the scale of the values."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import unseen
from unseen import AugmentedMF, BiasModel, MatrixFactorization, MixedLinear, Observations, baselines
from unseen.exceptions import ParameterError

MODELS = [
    found
    for module in (unseen, baselines)
    for name in module.__all__
    if inspect.isclass(found := getattr(module, name)) and "clip" in inspect.signature(found).parameters
]


@pytest.fixture(scope="module")
def ratings() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = np.clip(np.round(3 + 2 * np.outer(rng.standard_normal(20), rng.standard_normal(15))), 1, 5)
    X[rng.random(X.shape) < 0.4] = np.nan
    return X


def fit(model: Any, X: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


def test_models_of_values_have_it() -> None:
    names = {cls.__name__ for cls in MODELS}
    assert {"BiasModel", "MatrixFactorization", "SoftImpute", "IMC", "GIMC", "Maxide", "DirtyIMC"} <= names
    assert {"MixedLinear", "SparseBilinear", "AugmentedMF", "Completion", "NMF", "PMF"} <= names
    assert not {"BiasMC", "ShiftMC"} & names


@pytest.mark.parametrize("cls", MODELS, ids=lambda cls: cls.__name__)
def test_every_answer_is_clipped(cls: type, ratings: np.ndarray, tmp_path: Any) -> None:
    known = inspect.signature(cls).parameters
    options = {k: v for k, v in {"max_iter": 10, "random_state": 0, "rank": 4}.items() if k in known}
    if cls is MixedLinear:
        options["constraint"] = "soft"
    i, j = (index.ravel() for index in np.indices(ratings.shape))
    free = fit(cls(**options), ratings)
    low = float(np.median(free.predict_entries(i, j))) + 0.01
    high = low + 0.01
    kept = fit(cls(**options, clip=(low, high)), ratings)
    expected = np.clip(free.predict_entries(i, j), low, high)
    assert (expected != free.predict_entries(i, j)).any()  # else nothing is tested
    np.testing.assert_array_equal(kept.predict_entries(i, j), expected)
    np.testing.assert_array_equal(kept.predict_entries(i, j, raw=True), free.predict_entries(i, j, raw=True))
    np.testing.assert_allclose(kept.predict_new(), expected.reshape(ratings.shape), atol=1e-9)
    assert np.ptp(kept.transform(ratings)) < 0.011
    ids, scores = kept.recommend(range(20), k=15)
    assert np.nanmin(scores) >= low
    assert np.nanmax(scores) <= high
    np.testing.assert_array_equal(ids, free.recommend(range(20), k=15)[0])
    kept.save(tmp_path / "m")
    np.testing.assert_array_equal(unseen.load(tmp_path / "m").predict_entries(i, j), expected)


def test_observed_limits_are_those_of_the_values_that_count(ratings: np.ndarray) -> None:
    assert fit(BiasModel(clip="observed"), ratings).clip_ == (1.0, 5.0)
    assert fit(BiasModel(), ratings).clip_ is None
    cells = Observations.from_dense(ratings)
    cells = cells.with_weights((cells.values < 5).astype(float))
    assert fit(BiasModel(clip="observed"), cells).clip_ == (1.0, 4.0)
    model = fit(AugmentedMF(2, clip="observed", random_state=0, max_iter=5), ratings)
    assert np.ptp(model.predict_new()) <= 4.0


@pytest.mark.parametrize("clip", ["seen", (5, 1), (1, 1), (1,), 3.0, ("a", "b"), (True, 5), (np.nan, 2.0)])
def test_other_limits_are_refused(clip: Any, ratings: np.ndarray) -> None:
    with pytest.raises(ParameterError, match="clip must be None, 'observed' or"):
        fit(MatrixFactorization(rank=1, clip=clip, random_state=0), ratings)
