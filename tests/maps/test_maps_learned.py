"""Learned feature maps: gradients, search paths, starts, and what they refuse."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

from unseen import Fourier, Nystrom, Tanh, Whitened
from unseen.exceptions import DataWarning, ParameterError
from unseen.maps import FeatureMap
from unseen.maps.base import moved
from unseen.maps.landmarks import unreached
from unseen.typing import Features
from unseen.validation import check_rng

MAPS: dict[str, FeatureMap] = {
    "fourier": Fourier(4, gamma=0.4, learnable=True),
    "nystrom-whitened": Nystrom(5, gamma=0.3, learnable=True),
    "nystrom-plain": Nystrom(5, gamma=0.3, learnable=True, whiten=False),
    "nystrom-kmeans": Nystrom(3, gamma=0.3, learnable=True, landmarks="kmeans"),
    "tanh": Tanh(4),
}
N, D = 30, 6


def make_features(kind: str, dtype: type = np.float64, seed: int = 0) -> Features:
    rng = np.random.default_rng(seed)
    dense = (rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.7)).astype(dtype)
    return sparse.csr_array(dense) if kind == "sparse" else dense


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("name", MAPS)
def test_pullback_against_finite_differences(name: str, kind: str) -> None:
    a_map, features = MAPS[name], make_features(kind)
    rng = np.random.default_rng(1)
    params = a_map.init(features, N, rng)
    params = moved(params, {key: rng.standard_normal(params[key].shape) for key in a_map.learned}, 0.1)
    design = a_map.apply(features, N, params)
    weights = rng.standard_normal(design.shape)

    def value(point: dict[str, np.ndarray]) -> float:
        return float(np.sum(weights * np.tanh(a_map.apply(features, N, point).toarray())))

    grad = weights / np.cosh(design.toarray()) ** 2
    pulled = a_map.pullback(features, params, design, grad)
    assert set(pulled) == set(a_map.learned)
    for key in a_map.learned:
        assert pulled[key].shape == params[key].shape
        change = {key: rng.standard_normal(params[key].shape)}
        slope = (value(moved(params, change, 1e-5)) - value(moved(params, change, -1e-5))) / 2e-5
        exact = float(np.sum(pulled[key] * change[key]))
        np.testing.assert_allclose(exact, slope, rtol=1e-7, atol=1e-9)
        # Control: the gradient at another point does not pass.
        elsewhere = moved(params, {key: np.ones_like(params[key])}, 0.3)
        other = a_map.pullback(features, elsewhere, a_map.apply(features, N, elsewhere), grad)[key]
        assert not np.isclose(float(np.sum(other * change[key])), slope, rtol=1e-7)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("name", MAPS)
def test_path_is_apply_at_moved_params(name: str, kind: str) -> None:
    a_map, features = MAPS[name], make_features(kind)
    rng = np.random.default_rng(2)
    params = a_map.init(features, N, rng)
    direction = {key: rng.standard_normal(params[key].shape) for key in a_map.learned}
    path = a_map.path(features, params, direction)
    for step in (0.0, 0.3, -1.2, 0.3):  # a path can be asked again
        expected = a_map.apply(features, N, moved(params, direction, step)).toarray()
        np.testing.assert_allclose(path(step).toarray(), expected, rtol=1e-9, atol=1e-12)
    assert not np.allclose(path(0.3).toarray(), path(0.0).toarray())


@pytest.mark.parametrize("name", MAPS)
def test_same_bits_at_any_number_of_threads_and_float32_stays(name: str) -> None:
    a_map = MAPS[name]
    features = np.random.default_rng(0).standard_normal((40_000, D)).astype(np.float32)
    params = a_map.init(features[:200], 200, np.random.default_rng(0))
    one, two = (a_map.apply(features, len(features), params, threads) for threads in (1, 2))
    assert one.toarray().dtype == np.float32
    np.testing.assert_array_equal(one.toarray(), two.toarray())
    grads = [a_map.pullback(features, params, one, one.toarray(), threads) for threads in (1, 2)]
    for key in a_map.learned:
        assert grads[0][key].dtype == np.float32
        np.testing.assert_array_equal(grads[0][key], grads[1][key])


@pytest.mark.parametrize("make", [Fourier, Nystrom])
def test_fixed_and_learned_start_alike(make: type) -> None:
    features = make_features("dense")
    fixed, learned = (make(5, learnable=flag) for flag in (False, True))
    designs = [
        a_map.apply(features, N, a_map.init(features, N, check_rng(3))).toarray()
        for a_map in (fixed, learned)
    ]
    np.testing.assert_array_equal(*designs)
    assert fixed.learned == ()
    assert learned.learned != ()


def test_whitened_similarities_reproduce_the_kernel_between_landmarks() -> None:
    features = make_features("dense")
    a_map = Nystrom(N, gamma=0.3)
    design = a_map.apply(features, N, a_map.init(features, N, check_rng(0))).toarray()
    exact = np.exp(-0.3 * np.sum((features[:, None] - features[None]) ** 2, axis=2))
    np.testing.assert_allclose(design @ design.T, exact, atol=1e-6)


def test_equal_landmarks_do_no_harm() -> None:
    features = np.repeat(make_features("dense")[:4], 5, axis=0)
    for how in ("random", "kmeans"):
        a_map = Nystrom(15, gamma=0.3, learnable=True, landmarks=how)
        params = a_map.init(features, 20, check_rng(0))
        design = a_map.apply(features, 20, params)
        assert np.isfinite(design.toarray()).all()
        assert np.abs(design.toarray()).max() < 10
        grad = a_map.pullback(features, params, design, design.toarray())
        assert np.isfinite(grad["landmarks"]).all()


def test_more_landmarks_than_rows_and_a_single_row() -> None:
    features = make_features("sparse")
    assert Nystrom(500).init(features, N, check_rng(0))["landmarks"].shape == (N, D)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for a_map in MAPS.values():
            params = a_map.init(features[:1], 1, check_rng(0))
            assert np.isfinite(a_map.apply(features[:1], 1, params).toarray()).all()


def test_underflowing_kernel_warns() -> None:
    features = make_features("dense")
    with pytest.warns(DataWarning, match="underflow"):
        Nystrom(5, gamma=1e6).init(features, N, check_rng(0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Nystrom(5, gamma=1.0).init(features, N, check_rng(0))
    far = np.vstack([features[:3], np.full((1, D), 1e3)])
    assert unreached(features, far, 1.0).tolist() == [3]


def test_kmeans_landmarks_are_centres() -> None:
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    features = np.repeat(centres, 20, axis=0) + 0.1 * rng.standard_normal((60, 2))
    found = Nystrom(3, landmarks="kmeans").init(features, 60, check_rng(0))["landmarks"]
    distances = np.linalg.norm(found[:, None] - centres[None], axis=2)
    assert sorted(distances.argmin(axis=1)) == [0, 1, 2]
    assert distances.min(axis=1).max() < 0.2


@pytest.mark.parametrize(
    ("a_map", "message"),
    [
        (Fourier(0), "n_components"),
        (Nystrom(-1), "n_components"),
        (Nystrom(3, landmarks="grid"), "landmarks"),
        (Fourier(3, gamma=-1.0), "gamma"),
        (Tanh(3, scale=0.0), "scale"),
        (Whitened(Fourier(3, learnable=True)), "Whitened keeps its base fixed"),
    ],
)
def test_bad_settings_are_named(a_map: FeatureMap, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        a_map.init(make_features("dense"), N, check_rng(0))
