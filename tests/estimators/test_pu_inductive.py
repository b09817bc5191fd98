"""Positives through side features."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import unseen
from unseen import BiasIMC, BiasMC, ShiftIMC, Whitened
from unseen.datasets import make_positives
from unseen.exceptions import InvalidDataError, NotInductiveError, ParameterError, UnsupportedComposition

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N, M = 60, 40
DATA = make_positives(N, M, n_groups=3, inside=0.95, across=0.02, rho=0.5, n_features=5, random_state=0)
X, A, B = DATA.observations, DATA.row_features, DATA.col_features
SIDES = {
    "both": {"row_features": A, "col_features": B},
    "rows": {"row_features": A},
    "cols": {"col_features": B},
    "none": {},
}
FITTED = {
    "bias-cg": BiasIMC(5, rho=0.5, random_state=0),
    "bias-prox": BiasIMC(rho=0.5, solver="prox", random_state=0),
    "bias-white": BiasIMC(5, rho=0.5, whiten=True, random_state=0),
    "bias-auto": BiasIMC(5, random_state=0),
    "shift-cg": ShiftIMC(5, rho=0.5, random_state=0),
    "shift-prox": ShiftIMC(rho=0.5, solver="prox", random_state=0),
    "shift-box": ShiftIMC(rho=0.5, bound="box", random_state=0, tol=1e-3),
}


@pytest.fixture(params=FITTED)
def model(request: pytest.FixtureRequest) -> Any:
    return clone(FITTED[request.param])


@pytest.mark.parametrize("sides", SIDES)
def test_all_sides(model: Any, sides: str, tmp_path: Any) -> None:
    model.fit(X, **SIDES[sides])
    values = model.row_factors_ @ model.col_factors_.T
    assert np.isfinite(values).all()
    new = {key: value[:7] for key, value in SIDES[sides].items()}
    if sides != "none":
        block = model.predict_new(**new)
        rows = slice(7) if "row_features" in new else slice(None)
        cols = slice(7) if "col_features" in new else slice(None)
        np.testing.assert_allclose(block, values[rows, cols], atol=1e-9)
    for key, value in SIDES["both"].items():
        if key not in SIDES[sides]:
            with pytest.raises(NotInductiveError, match=key):
                model.predict_new(**{key: value})
    model.save(tmp_path / "model")
    loaded = unseen.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_new(**new), model.predict_new(**new))


def test_objective_is_that_of_the_paper_and_never_rises(model: Any) -> None:
    box = model.get_params().get("bound") == "box"
    model.set_params(standardize=False, intercept=False, max_iter=20, tol=0.0)
    model.fit(X, **SIDES["both"])
    values = model.row_factors_ @ model.col_factors_.T
    seen = X.csr.toarray() != 0
    shifted = isinstance(model, ShiftIMC)
    a, b, tau = (1.0, 1.0, 2.0) if shifted else (model.alpha_, 1 - model.alpha_, 1.0)
    data = a * np.sum((values[seen] - tau) ** 2) + b * np.sum(values[~seen] ** 2)
    core = model.state_.get("0.core")
    if core is None:
        penalty = 0.5 * sum(np.sum(model.state_[key] ** 2) for key in ("0.row", "0.col"))
    else:
        penalty = np.linalg.svd(core, compute_uv=False).sum()
    expected = data + model.reg_ * penalty
    np.testing.assert_allclose(model.history_[-1]["objective"], expected, rtol=1e-9)
    assert abs(data + 2 * model.reg_ * penalty - expected) > 1e-3 * expected or penalty == 0
    if not box:
        objectives = [entry["objective"] for entry in model.history_]
        assert all(after <= before * (1 + 1e-12) for before, after in itertools.pairwise(objectives))


def test_factored_and_convex_form_agree() -> None:
    common = {"rho": 0.5, "reg": "0.1max", "tol": 1e-12, "max_iter": 3000, "random_state": 0}
    for whiten in (False, True):
        convex = BiasIMC(solver="prox", whiten=whiten, **common).fit(X, **SIDES["both"])
        factored = BiasIMC(6, whiten=whiten, **common).fit(X, **SIDES["both"])
        np.testing.assert_allclose(
            factored.history_[-1]["objective"], convex.history_[-1]["objective"], rtol=1e-6
        )
    thin = BiasIMC(1, **common).fit(X, **SIDES["both"])
    assert thin.history_[-1]["objective"] > convex.history_[-1]["objective"] * 1.001


def test_largest_reg_is_the_gradient_at_zero() -> None:
    model = BiasIMC(5, rho=0.5, reg="0.5max", standardize=False, intercept=False, random_state=0)
    model.fit(X, **SIDES["both"])
    largest = 2 * 0.75 * np.linalg.norm(A.T @ X.csr.toarray() @ B, 2)
    np.testing.assert_allclose(model.reg_, 0.5 * largest, rtol=1e-9)
    gone = clone(model).set_params(reg=1.001 * largest, solver="prox").fit(X, **SIDES["both"])
    assert np.abs(gone.state_["0.core"]).max() == 0.0
    left = clone(model).set_params(reg=0.98 * largest, solver="prox").fit(X, **SIDES["both"])
    assert np.abs(left.state_["0.core"]).max() > 0.0


def test_sparse_features_are_as_good_as_dense_ones() -> None:
    a = np.where(np.abs(A) > 0.5, A, 0.0)
    common = {"rho": 0.5, "standardize": False, "random_state": 0}
    for whiten in (False, True):
        dense = BiasIMC(4, whiten=whiten, max_iter=5, **common).fit(X, row_features=a)
        thin = BiasIMC(4, whiten=whiten, max_iter=5, **common).fit(X, row_features=sparse.csr_array(a))
        np.testing.assert_allclose(thin.row_factors_, dense.row_factors_, atol=1e-6)


def test_whitened_columns_are_orthonormal() -> None:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((30, 4)) * [1, 10, 100, 0.1]
    features = np.column_stack([features, features[:, 0], np.zeros(30)])  # a repeated and an empty one
    a_map = Whitened()
    params = a_map.init(features, 30, rng)
    design = a_map.apply(features, 30, params).toarray()
    assert design.shape == (30, 4)
    np.testing.assert_allclose(design.T @ design, np.eye(4), atol=1e-10)
    np.testing.assert_allclose(a_map.apply(features[:3], 3, params).toarray(), design[:3], atol=1e-12)
    assert np.abs(features.T @ features - np.eye(6)).max() > 1


def test_whitening_makes_the_scale_of_features_irrelevant() -> None:
    common = {"rho": 0.5, "standardize": False, "solver": "prox", "tol": 1e-10, "max_iter": 2000}
    mix = np.random.default_rng(0).standard_normal((5, 5))
    results = {}
    for whiten in (True, False):
        one = BiasIMC(whiten=whiten, **common).fit(X, row_features=A, col_features=B)
        two = BiasIMC(whiten=whiten, **common).fit(X, row_features=A @ mix, col_features=B)
        values = [m.row_factors_ @ m.col_factors_.T for m in (one, two)]
        results[whiten] = np.abs(values[0] - values[1]).max()
    assert results[True] < 1e-3 < 1e-2 < results[False]


def test_box_holds_for_all_pairs() -> None:
    boxed = ShiftIMC(rho=0.5, bound="box", reg="0.1max", tol=1e-4, max_iter=3000).fit(X, **SIDES["both"])
    free = ShiftIMC(rho=0.5, solver="prox", reg="0.1max", max_iter=500).fit(X, **SIDES["both"])
    inside = boxed.row_factors_ @ boxed.col_factors_.T
    outside = free.row_factors_ @ free.col_factors_.T
    assert inside.min() > -0.02
    assert inside.max() < 1.02
    assert outside.min() < -0.1 or outside.max() > 1.1


def test_features_find_positives_of_new_rows() -> None:
    train = X.csr[:45]
    model = BiasIMC(5, rho=0.5, random_state=0).fit(train, row_features=A[:45], col_features=B)
    scores = model.predict_new(row_features=A[45:])
    truth = DATA.positives.toarray()[45:] != 0
    assert unseen.metrics.auc(truth.ravel(), scores.ravel()) > 0.95
    shuffled = model.predict_new(row_features=A[np.random.default_rng(0).permutation(np.arange(45, N))])
    assert unseen.metrics.auc(truth.ravel(), shuffled.ravel()) < 0.8


def test_without_features_it_is_completion() -> None:
    common = {"rho": 0.5, "reg": 1.0, "solver": "prox", "tol": 1e-10, "max_iter": 2000}
    inductive = BiasIMC(None, **common).fit(X)
    plain = BiasMC(None, **common).fit(X)
    np.testing.assert_allclose(
        inductive.row_factors_ @ inductive.col_factors_.T, plain.row_factors_ @ plain.col_factors_.T
    )


def test_explain_needs_free_rows() -> None:
    model = BiasIMC(5, rho=0.5, random_state=0).fit(X, **SIDES["both"])
    with pytest.raises(UnsupportedComposition, match="row_features"):
        model.explain(X, 0, 0)
    half = BiasIMC(5, rho=0.5, reg=0.5, tol=1e-9, max_iter=300, random_state=0).fit(X, col_features=B)
    _, shares = half.explain(X, 3, 4)
    np.testing.assert_allclose(shares.sum(), half.predict_entries([3], [4])[0], atol=1e-2)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"rho": 1.0}, "rho"),
        ({"rho": 0.5, "solver": "als"}, "solver"),
        ({"rho": 0.5, "rank": 0}, "rank"),
        ({"rho": 0.5, "reg": "lots"}, "0.1max"),
        ({"rho": 0.5, "cg_steps": 0}, "cg_steps"),
        ({"rho": 0.5, "bound": "relaxed"}, "bound"),
    ],
)
def test_bad_parameters_are_named(params: dict[str, Any], words: str) -> None:
    for model in (BiasIMC(5), ShiftIMC(5)):
        if set(params) <= set(model.get_params()):
            with pytest.raises(ParameterError, match=words):
                model.set_params(**params).fit(X, **SIDES["both"])
    with pytest.raises(InvalidDataError, match="row_features"):
        BiasIMC(5, rho=0.5).fit(X, row_features=A[:-1])
