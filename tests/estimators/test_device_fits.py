"""Fits where solvers compute elsewhere: with the device code as NumPy, and on a GPU where there is one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import unseen
from tests.kernels.strict import StrictProvider
from unseen import BayesianMF, BiasMC, MatrixFactorization, kernels
from unseen.exceptions import DeviceError, ParameterError, TooLargeError, UnsupportedComposition
from unseen.kernels import devices

BIAS = {"alpha": 0.9, "reg": 0.3, "random_state": 0, "max_iter": 4, "tol": 0.0}
PLAIN = {"reg": 0.5, "random_state": 0, "max_iter": 4, "tol": 0.0}
MODELS = {
    "cg": BiasMC(6, cg_steps=3, **BIAS),
    "exact": BiasMC(6, **BIAS),
    "explicit": MatrixFactorization(4, **PLAIN),
    "biases": MatrixFactorization(4, center="joint", **PLAIN),
    "validated": MatrixFactorization(4, center="mean", validation_fraction=0.1, **PLAIN),
    "gibbs": BayesianMF(4, n_samples=4, burn_in=2, random_state=0),
}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def target(name, dtype=np.float64):
    rng = np.random.default_rng(3)
    pattern = sparse.random_array((60, 40), density=0.2, rng=rng, dtype=np.float64).tocsr()
    pattern.data[:] = 1.0 if name in ("cg", "exact") else rng.integers(1, 6, pattern.nnz)
    return pattern.astype(dtype)


@pytest.fixture
def twin(monkeypatch):
    """device="cuda" is served by the device code as NumPy, with arrays that refuse to be NumPy's."""
    provider = StrictProvider()
    monkeypatch.setattr(devices, "_cuda", lambda number: provider)
    return provider


@pytest.fixture
def gpu():
    try:
        return kernels.get_provider("cuda")
    except DeviceError as error:
        pytest.skip(f"no CUDA device: {error}")


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_is_that_of_the_cpu(name, twin):
    X = target(name)
    here = MODELS[name].get_params()
    made = {device: type(MODELS[name])(**here | {"device": device}).fit(X) for device in ("cpu", "cuda")}
    objectives = [[entry["objective"] for entry in model.history_] for model in made.values()]
    assert np.allclose(*objectives, rtol=1e-9)
    # All products of factors, also among themselves: they are the same up to a rotation of both sides.
    one, two = (np.vstack([model.row_factors_, model.col_factors_]) for model in made.values())
    assert isinstance(made["cuda"].row_factors_, np.ndarray)
    assert np.allclose(one @ one.T, two @ two.T, atol=1e-6)
    assert [made[device].device_ for device in ("cpu", "cuda")] == ["cpu", "cuda:0 (strict)"]
    lists = [model.recommend([0, 5, 9], 5, exclude=X) for model in made.values()]
    assert np.array_equal(lists[0][0], lists[1][0])
    near = [model.similar_cols([0, 5, 9], 5) for model in made.values()]
    assert np.array_equal(near[0][0], near[1][0])


def test_another_seed_is_another_fit(twin):
    one = MODELS["cg"].set_params(device="cuda").fit(target("cg")).history_[-1]["objective"]
    two = BiasMC(6, **BIAS | {"random_state": 1}, cg_steps=3).fit(target("cg")).history_[-1]["objective"]
    assert not np.isclose(one, two, rtol=1e-9)


def test_the_environment_names_the_default_device(twin, monkeypatch):
    monkeypatch.setenv("UNSEEN_DEVICE", "cuda")
    assert BiasMC(3, cg_steps=2, **BIAS).fit(target("cg")).device_ == "cuda:0 (strict)"
    assert BiasMC(3, cg_steps=2, device="cpu", **BIAS).fit(target("cg")).device_ == "cpu"
    unseen.BiasModel().fit(target("explicit"))  # has no device, and needs none


def test_solvers_that_cannot_refuse(twin):
    with pytest.raises(UnsupportedComposition, match=r"CCD .*CPU alone"):
        BiasMC(3, solver="ccd", device="cuda", **BIAS).fit(target("cg"))
    with pytest.raises(ParameterError, match="'cuda:N'"):
        BiasMC(3, device="gpu", **BIAS).fit(target("cg"))


def test_too_large_a_fit_is_refused_before_anything_is_sent(twin, monkeypatch):
    monkeypatch.setattr(twin, "reserve", lambda needed: devices.check_memory(needed, 100.0, "cuda:0"))
    monkeypatch.setattr(twin, "pattern", None)
    with pytest.raises(TooLargeError, match="GB on cuda:0, and 1e-07 GB are free"):
        BiasMC(3, device="cuda", **BIAS).fit(target("cg"))


def test_a_model_of_a_device_is_loaded_without_one(twin, tmp_path, monkeypatch):
    X = target("cg")
    model = BiasMC(5, device="cuda", **BIAS).fit(X)
    model.save(tmp_path / "model")
    monkeypatch.undo()
    again = unseen.load(tmp_path / "model")
    assert again.device_ == "cuda:0 (strict)"
    assert np.array_equal(again.predict_entries([0, 1], [2, 3]), model.predict_entries([0, 1], [2, 3]))
    ids, _ = again.set_params(device="cpu").recommend([0, 1], 3)
    assert ids.shape == (2, 3)


@pytest.mark.gpu
@pytest.mark.parametrize("name", MODELS)
def test_a_fit_on_a_gpu(name, gpu):
    X = target(name, np.float32)
    here = MODELS[name].get_params()
    cpu, one, two = (
        type(MODELS[name])(**here | {"device": device}).fit(X) for device in ("cpu", "cuda", "cuda")
    )
    assert np.isclose(cpu.history_[-1]["objective"], one.history_[-1]["objective"], rtol=1e-5)
    assert one.row_factors_.tobytes() == two.row_factors_.tobytes()
    lists = [model.recommend(np.arange(60), 10, exclude=X)[0] for model in (cpu, one)]
    assert (lists[0] == lists[1]).all(axis=1).mean() > 0.97
