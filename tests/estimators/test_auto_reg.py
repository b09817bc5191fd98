"""Defaults that beat the baseline: penalties chosen on held-out cells, centring, caps of the rank."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from unseen import (
    GIMC,
    IMC,
    AugmentedMF,
    BiasModel,
    DirtyIMC,
    Fourier,
    MatrixFactorization,
    Maxide,
    MixedLinear,
    Observations,
    SoftImpute,
    SparseBilinear,
    load,
)
from unseen.datasets import make_gimc_toy, make_low_rank, make_ratings
from unseen.exceptions import DataWarning, ParameterError
from unseen.metrics import rmse
from unseen.model_selection import split_entries

MODELS: dict[str, Any] = {
    "MatrixFactorization": MatrixFactorization,
    "SoftImpute": SoftImpute,
    "AugmentedMF": AugmentedMF,
    "IMC": IMC,
    "GIMC": GIMC,
    "MixedLinear": MixedLinear,
    "SparseBilinear": SparseBilinear,
    "Maxide": Maxide,
    "DirtyIMC": DirtyIMC,
}
WITH_FEATURES = ("IMC", "GIMC", "MixedLinear", "SparseBilinear", "Maxide", "DirtyIMC")
PENALTY = {"MixedLinear": "reg_e", "DirtyIMC": "reg_rest"}


def sides(name: str, data: Any) -> dict[str, Any]:
    both = {"row_features": data.row_features, "col_features": data.col_features}
    return both if name in WITH_FEATURES else {}


@pytest.mark.parametrize("name", MODELS)
def test_defaults_are_not_worse_than_the_baseline(name: str) -> None:
    data = make_ratings(150, 120, random_state=1)
    train, test = split_entries(data.observations, test_fraction=0.2, random_state=0)
    asked = test.rows, test.indices
    baseline = rmse(test.values, BiasModel().fit(train).predict_entries(*asked))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[name](random_state=0, n_jobs=1).fit(train, **sides(name, data))
    assert rmse(test.values, model.predict_entries(*asked)) <= baseline * 1.001
    # The choice can be seen.
    assert model.reg_path_[0]["reg"] == np.inf
    assert all(entry["validation"] > 0 for entry in model.reg_path_)


@pytest.mark.parametrize(
    "name", ["MatrixFactorization", "SoftImpute", "AugmentedMF", "IMC", "Maxide", "SparseBilinear"]
)
def test_a_choice_is_a_fit_with_that_number(name: str) -> None:
    """Not from the same start: factors have many minima, and the path leads to a good one."""
    data = make_ratings(80, 60, density=0.4, random_state=0)
    options: dict[str, Any] = {"random_state": 0, "max_iter": 500, "tol": 1e-9}

    def fitted(reg: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return MODELS[name](reg=reg, **options).fit(data.observations, **sides(name, data))

    chosen = fitted("auto")
    assert {entry["reg"] for entry in chosen.history_} == {chosen.reg_}
    reached, named, other = (
        model.history_[-1]["objective"] for model in (chosen, fitted(chosen.reg_), fitted(3 * chosen.reg_))
    )
    assert reached <= named * 1.002
    # Control: another number.
    assert other > reached * 1.02


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_factors_of_few_cells_do_not_lose_to_the_baseline(noise: float) -> None:
    """One random part of 24 cells misleads the choice, and a random start the factors."""
    worst, careless = 0.0, 0.0
    for seed in range(4):
        cells = make_low_rank(30, 20, 2, density=0.5, noise=noise, random_state=seed).observations
        train, test = split_entries(cells, test_fraction=0.2, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            models = [
                BiasModel(),
                MatrixFactorization(2, random_state=0),
                MatrixFactorization(2, reg=1e-3, center="biases", random_state=0),
            ]
            base, chosen, by_hand = (
                rmse(test, model.fit(train).predict_entries(test.rows, test.indices)) for model in models
            )
        worst, careless = max(worst, chosen / base), max(careless, by_hand / base)
    assert worst < 1.01
    # Control: such cells do mislead.
    assert careless > 1.5


def test_held_out_cells_are_not_blank() -> None:
    """The pull of blank cells to the baseline leaves the cells alone that judge."""
    data = make_low_rank(60, 50, 2, density=0.3, noise=0.1, random_state=0)
    chosen = AugmentedMF(2, center="none", weight=30.0, random_state=0).fit(data.observations)
    held = min(entry["validation"] for entry in chosen.reg_path_)
    # A fit that takes the held-out tenth for blank ones is drawn to zero there.
    train, test = split_entries(data.observations, test_fraction=0.1, random_state=0)
    pulled = AugmentedMF(2, center="none", weight=30.0, reg=chosen.reg_, random_state=0).fit(train)
    as_blank = rmse(test.values, pulled.predict_entries(test.rows, test.indices)) ** 2
    assert held < 0.9 * as_blank


def test_the_choice_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    model = MatrixFactorization(2, random_state=0, verbose=1).fit(
        make_ratings(60, 50, random_state=0).observations
    )
    assert f"reg={model.reg_:.4g}" in capsys.readouterr().err


def test_noise_leaves_the_offsets_and_says_so() -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((80, 60)) < 0.3, rng.normal(size=(80, 60)), np.nan)
    with pytest.warns(DataWarning, match="offsets alone"):
        model = MatrixFactorization(random_state=0).fit(X)
    baseline = BiasModel().fit(X)
    rows, cols = np.nonzero(np.isnan(X))
    np.testing.assert_allclose(
        model.predict_entries(rows, cols), baseline.predict_entries(rows, cols), atol=1e-3
    )
    assert model.reg_ > max(entry["reg"] for entry in model.reg_path_[1:])
    # Control: a signal does not.
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        MatrixFactorization(3, random_state=0).fit(make_low_rank(80, 60, 3, random_state=0).observations)


def test_noiseless_cells_ask_for_next_to_no_penalty() -> None:
    data = make_low_rank(100, 80, rank=3, density=0.5, noise=0.0, random_state=0)
    model = MatrixFactorization(3, center="none", max_iter=300, random_state=0).fit(data.observations)
    assert model.reg_ < 0.01 * model.reg_path_[1]["reg"]


def test_a_path_costs_less_than_three_fits() -> None:
    """Counted in sweeps over the cells, which is what time goes into."""
    data = make_ratings(300, 200, random_state=0)
    model = MatrixFactorization(random_state=0).fit(data.observations)
    sweeps = 5 * (len(model.reg_path_) - 1)
    assert sweeps < 3 * max(model.n_iter_, 20)


def test_the_path_is_the_same_at_any_number_of_threads_and_leaves_the_seed_alone() -> None:
    X = make_ratings(60, 50, random_state=0).observations
    one, two = (MatrixFactorization(random_state=0, n_jobs=n).fit(X) for n in (1, 2))
    assert [e["validation"] for e in one.reg_path_] == [e["validation"] for e in two.reg_path_]
    np.testing.assert_array_equal(one.row_factors_, two.row_factors_)


def test_weights_of_cells_count_in_the_choice() -> None:
    """Cells of weight zero are pure noise here; a choice that heard them would ask for a large penalty."""
    rng = np.random.default_rng(0)
    data = make_low_rank(80, 60, rank=2, density=0.5, noise=0.01, random_state=0)
    cells = data.observations
    dull = rng.random(cells.nnz) < 0.5
    values = np.where(dull, 30 * rng.normal(size=cells.nnz), cells.values)
    weighted = cells.with_values(values).with_weights(np.where(dull, 0.0, 1.0))
    model = MatrixFactorization(2, center="none", random_state=0, max_iter=200).fit(weighted)
    plain = MatrixFactorization(2, center="none", random_state=0, max_iter=200).fit(cells.with_values(values))
    assert model.reg_ < 0.05 * plain.reg_


def test_too_few_cells_are_not_asked() -> None:
    X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    X[2, 2] = np.nan
    model = MatrixFactorization(1, random_state=0).fit(X)
    assert model.reg_path_ == []
    assert np.isfinite(model.predict_entries([2], [2])).all()


def test_learned_maps_stop_before_they_overfit() -> None:
    data = make_gimc_toy(60, 60, 15, fraction=0.3, random_state=0)
    both = {"row_features": data.row_features, "col_features": data.col_features}
    truth = data.row_factors @ data.col_factors.T
    unseen = np.ones(truth.shape, dtype=bool)
    unseen[data.observations.rows, data.observations.indices] = False

    def error(model: Any) -> float:
        model.fit(data.observations, **both)
        off = (model.row_factors_ @ model.col_factors_.T - truth)[unseen]
        return float(np.linalg.norm(off) / np.linalg.norm(truth[unseen]))

    fixed = error(GIMC(row_map=Fourier(), col_map=Fourier(), random_state=0))
    default = GIMC(random_state=0)
    assert error(default) <= fixed * 1.02
    assert default.map_sweeps_ is not None
    assert default.map_sweeps_ < 5
    # Control: maps that move on, with the same penalty.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert error(GIMC(reg=default.reg_, max_iter=15, random_state=0)) > 1.2 * fixed


def test_caps_of_the_rank_warn_when_they_bind() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 100))
    with pytest.warns(DataWarning, match="cap of max_rank"):
        model = SoftImpute(0.1, center="none", max_iter=5).fit(X)
    assert model.rank_ == 50
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        assert SoftImpute(0.1, max_rank=None, center="none", max_iter=5).fit(X).rank_ > 50


def test_saved_models_keep_their_choice(tmp_path: Any) -> None:
    X = make_ratings(60, 50, random_state=0).observations
    model = MatrixFactorization(random_state=0).fit(X)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.reg_ == model.reg_
    new = Observations.from_any(X.csr[:3])
    np.testing.assert_array_equal(again.fold_in(new), model.fold_in(new))
    assert again.terms_[0].reg.reg == model.reg_


@pytest.mark.parametrize("name", MODELS)
def test_other_words_are_refused(name: str) -> None:
    word = {PENALTY.get(name, "reg"): "much"}
    with pytest.raises(ParameterError, match="auto"):
        MODELS[name](**word).fit(np.eye(6))


@pytest.mark.parametrize("sparse_features", [False, True])
def test_features_give_biases_to_new_rows_and_columns(sparse_features: bool, tmp_path: Any) -> None:
    """Cells are biases alone, which the features of the rows explain; a new row gets its own."""
    rng = np.random.default_rng(0)
    features = (rng.random((80, 3)) < 0.5) * [1.0, 20.0, 0.1] + 100 * (not sparse_features)
    truth = 3 + features @ [1.0, -0.1, 5.0] + 0.1 * rng.normal(size=80)
    X = truth[:, None] + 0.3 * rng.normal(size=(1, 40)) + 0.1 * rng.normal(size=(80, 40))
    X[rng.random(X.shape) < 0.5] = np.nan
    given = sparse.csr_array(features) if sparse_features else features

    def error(center: str) -> float:
        model = IMC(2, reg=1e6, center=center, random_state=0, max_iter=3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X[:60], row_features=given[:60])
        model.save(tmp_path / center)
        block = load(tmp_path / center).predict_new(row_features=given[60:])
        return float(np.sqrt(np.nanmean((block - X[60:]) ** 2)))

    assert error("informed") < 0.35
    # Control: biases that nothing is known about.
    assert error("biases") > 2 * error("informed")
