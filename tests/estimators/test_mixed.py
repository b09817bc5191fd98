"""Mixed linear, sparse bilinear, Maxide and DirtyIMC: what they predict, explain and refuse."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import unseen
from unseen import DirtyIMC, Maxide, MixedLinear, Observations, SoftImpute, SparseBilinear
from unseen.exceptions import DataWarning, InvalidDataError, NotInductiveError, ParameterError
from unseen.solvers import MixedADMM
from unseen.solvers.mixed import MixedSolver

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

MODELS = {
    "hard": MixedLinear(
        1.0, 3.0, max_iter=60, random_state=0, constraint="hard", max_rank=None, center="none"
    ),
    "soft": MixedLinear(
        1.0, 30.0, constraint="soft", rho=10.0, max_iter=60, random_state=0, max_rank=None, center="none"
    ),
    "soft-biases": MixedLinear(
        1.0, 30.0, constraint="soft", rho=10.0, center="biases", max_iter=60, random_state=0, max_rank=None
    ),
    "bilinear": SparseBilinear(1.0, center="mean"),
    "maxide": Maxide(0.5, center="none"),
    "dirty": DirtyIMC(0.5, 2.0, center="none", random_state=0),
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Any:
    return clone(MODELS[request.param])


def problem(
    seed: int = 0, n: int = 40, m: int = 25, observed: float = 0.5
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, Y = rng.gamma(2.0, 1.0, (n, 4)) + 5.0, rng.poisson(1.0, (m, 3)).astype(float)
    G = np.array([[2.0, 0, 0], [0, 0, -1.5], [0, 0, 0], [0, 0, 0]])
    full = X @ G @ Y.T + 0.5 * X[:, [3]] + 3.0 + rng.standard_normal((n, 2)) @ rng.standard_normal((2, m))
    return np.where(rng.random((n, m)) < observed, full, np.nan), X, Y


def fit(model: Any, seed: int = 0) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    target, X, Y = problem(seed)
    return model.fit(target, row_features=X, col_features=Y), target, X, Y


def test_predictions_are_inner_products_and_explained(model: Any) -> None:
    fitted, _, _, _ = fit(model)
    for i, j in ((0, 0), (7, 20), (39, 24)):
        value = fitted.row_factors_[i] @ fitted.col_factors_[j]
        np.testing.assert_allclose(fitted.predict_entries([i], [j])[0], value, rtol=1e-12)
        parts = fitted.explain(i, j)
        np.testing.assert_allclose(parts.prediction, value, rtol=1e-9, atol=1e-9)
        if isinstance(model, (Maxide, SparseBilinear)):
            assert abs(parts.low_rank) < 1e-9
        else:
            assert abs(parts.low_rank) > 1e-6


def test_interactions_are_in_the_units_of_the_features(model: Any) -> None:
    fitted, _, X, Y = fit(model)
    learned = fitted.interactions_
    assert learned.row_names == ["row0", "row1", "row2", "row3", "1"]
    Xa, Ya = (np.hstack([side, np.ones((len(side), 1))]) for side in (X, Y))
    by_hand = Xa @ learned.matrix @ Ya.T
    cold = fitted.predict_new(row_features=X, col_features=Y)
    np.testing.assert_allclose(by_hand, cold, atol=1e-8)
    sizes = [abs(entry.weight) for entry in learned.top(one_sided=True)]
    assert sizes == sorted(sizes, reverse=True)
    assert len(learned.top(2)) == 2
    # Control: without the constant the product differs.
    assert not np.allclose(Xa[:, :-1] @ learned.matrix[:-1] @ Ya.T, cold, atol=1e-3)


def test_sparse_models_find_the_interactions_that_are_there() -> None:
    for name in ("bilinear", "soft"):
        target, X, Y = problem(observed=0.8)
        fitted = clone(MODELS[name]).fit(target, row_features=X, col_features=Y)
        strongest = {(entry.row_feature, entry.col_feature) for entry in fitted.interactions_.top(2)}
        assert strongest == {("row0", "col0"), ("row1", "col2")}


def test_feature_names_come_from_data_frames() -> None:
    pd = pytest.importorskip("pandas")
    target, X, Y = problem()
    frame = pd.DataFrame(X, columns=["age", "height", "weight", "pulse"])
    fitted = SparseBilinear(1.0).fit(target, row_features=frame, col_features=Y)
    assert fitted.interactions_.row_names == ["age", "height", "weight", "pulse", "1"]


def test_new_rows_and_columns_use_the_features_alone(model: Any) -> None:
    fitted, _, X, Y = fit(model)
    block = fitted.predict_new(row_features=X[:3])
    assert block.shape == (3, 25)
    assert fitted.predict_new(col_features=Y[:2]).shape == (40, 2)
    low_rank = np.array([fitted.explain(1, j).low_rank for j in range(25)])
    trained = fitted.predict_entries(np.ones(25, int), np.arange(25))
    offsets = fitted.offsets_.row[1] if fitted.offsets_.row is not None else 0.0
    np.testing.assert_allclose(block[1], trained - low_rank - offsets, atol=1e-7)


def test_objective_never_rises_where_descent_is_promised(model: Any) -> None:
    fitted, *_ = fit(model)
    objectives = [entry["objective"] for entry in fitted.history_]
    if getattr(model, "constraint", "soft") == "soft":
        assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(objectives))
    else:
        feasibility = [entry["feasibility"] for entry in fitted.history_]
        assert feasibility[-1] < 0.2 * feasibility[0]


def test_hard_constraint_keeps_observed_cells() -> None:
    target, X, Y = problem()
    seen = ~np.isnan(target)
    completed = clone(MODELS["hard"]).fit_transform(target, row_features=X, col_features=Y)
    np.testing.assert_array_equal(completed[seen], target[seen])
    soft = clone(MODELS["soft"]).fit_transform(target, row_features=X, col_features=Y)
    assert not np.array_equal(soft[seen], target[seen])
    fitted = clone(MODELS["hard"]).set_params(max_iter=2000, tol=1e-7)
    fitted.fit(target, row_features=X, col_features=Y)
    rows, cols = np.nonzero(seen)
    np.testing.assert_allclose(fitted.predict_entries(rows, cols), target[seen], atol=1e-4)


def test_structured_and_dense_solver_agree() -> None:
    target, X, Y = problem(3)
    features = {"row_features": X, "col_features": Y}
    plain = MixedLinear(1.0, 3.0, constraint="hard", max_rank=None, center="none", tol=1e-8, max_iter=4000)
    models = [clone(plain).set_params(solver=s).fit(target, **features) for s in ("auto", "admm")]
    dense = [m.row_factors_ @ m.col_factors_.T for m in models]
    np.testing.assert_allclose(dense[0], dense[1], atol=2e-4)
    assert isinstance(models[1].solver_, MixedADMM)
    other = MixedLinear(
        1.0, 30.0, tol=1e-8, max_iter=4000, constraint="hard", max_rank=None, center="none"
    ).fit(target, **features)
    assert not np.allclose(other.row_factors_ @ other.col_factors_.T, dense[0], atol=1e-2)


def test_start_of_the_paper_reaches_the_same_point() -> None:
    target, X, Y = problem(4)
    reached = [
        MixedLinear(
            1.0,
            3.0,
            init=init,
            tol=1e-8,
            max_iter=5000,
            random_state=0,
            constraint="hard",
            max_rank=None,
            center="none",
        )
        .fit(target, row_features=X, col_features=Y)
        .certificate_.objective
        for init in ("lasso", "paper")
    ]
    np.testing.assert_allclose(*reached, rtol=1e-6)


def test_few_cells_and_little_shrinkage_give_the_lasso(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.gamma(2.0, 1.0, (50, 8)), rng.poisson(1.0, (70, 10)).astype(float)
    G = np.where(rng.random((8, 10)) < 0.1, 10.0 * rng.standard_normal((8, 10)), 0.0)
    truth = X @ G @ Y.T
    target = np.where(rng.random(truth.shape) < 0.05, truth + rng.standard_normal(truth.shape), np.nan)

    def off(model: Any) -> float:
        predicted = model.fit(target, row_features=X, col_features=Y).predict_new(X, Y)
        return float(np.linalg.norm(predicted - lasso) / np.linalg.norm(lasso))

    lasso = SparseBilinear(1.0, center="mean", max_iter=5000, tol=1e-10)
    lasso = lasso.fit(target, row_features=X, col_features=Y)
    lasso = lasso.predict_new(X, Y)
    hard = MixedLinear(1.0, 0.01, center="mean", constraint="hard", max_rank=None)
    assert off(hard) < 0.02
    # Control: sweeps alone do not make up for a start that gives up soon.
    monkeypatch.setattr(MixedSolver, "start_steps", 20)
    assert off(hard) > 0.05


def test_soft_form_approaches_the_hard_one() -> None:
    target, X, Y = problem(5)
    features = {"row_features": X, "col_features": Y}
    hard = MixedLinear(
        1.0, 3.0, tol=1e-7, max_iter=4000, constraint="hard", max_rank=None, center="none"
    ).fit(target, **features)
    exact = hard.row_factors_ @ hard.col_factors_.T
    off = []
    for rho in (1.0, 1000.0):
        soft = MixedLinear(
            1.0, 3.0, constraint="soft", rho=rho, tol=1e-12, max_iter=4000, max_rank=None, center="none"
        )
        soft.fit(target, **features)
        off.append(np.linalg.norm(soft.row_factors_ @ soft.col_factors_.T - exact) / np.linalg.norm(exact))
    assert off[1] < 5e-3 < off[0]


def test_limits_of_dirty_imc() -> None:
    target, X, Y = problem(6)
    features = {"row_features": X, "col_features": Y}
    only_rest = DirtyIMC(1e6, 2.0, center="none", tol=1e-13, max_iter=2000).fit(target, **features)
    soft = SoftImpute(2.0, tol=1e-13, max_iter=2000, max_rank=None, center="none").fit(target)
    np.testing.assert_allclose(
        only_rest.row_factors_ @ only_rest.col_factors_.T, soft.row_factors_ @ soft.col_factors_.T, atol=1e-3
    )
    only_features = DirtyIMC(0.5, 1e6, center="none", tol=1e-13, max_iter=500).fit(target, **features)
    maxide = Maxide(0.5, center="none", tol=1e-13, max_iter=2000).fit(target, **features)
    np.testing.assert_allclose(only_features.predict_new(X, Y), maxide.predict_new(X, Y), atol=1e-3)


def test_fold_in_of_training_rows() -> None:
    target, X, Y = problem(7)
    features = {"row_features": X, "col_features": Y}
    for name in ("soft", "dirty"):
        fitted = clone(MODELS[name]).set_params(tol=1e-13, max_iter=5000).fit(target, **features)
        folded = fitted.fold_in(target, row_features=X)
        np.testing.assert_allclose(
            folded @ fitted.col_factors_.T, fitted.row_factors_ @ fitted.col_factors_.T, atol=5e-3
        )
        assert np.isfinite(fitted.fold_in(np.full((1, 25), np.nan), row_features=X[:1])).all()
    maxide = clone(MODELS["maxide"]).fit(target, **features)
    np.testing.assert_allclose(maxide.fold_in(target, row_features=X), maxide.row_factors_, atol=1e-10)
    with pytest.raises(NotInductiveError, match="row_features"):
        maxide.fold_in(target)


def test_one_side_of_features(model: Any) -> None:
    target, X, Y = problem()
    by_row = clone(model).fit(target, row_features=X)
    assert by_row.predict_new(row_features=X[:2]).shape == (2, 25)
    with pytest.raises(NotInductiveError, match="col_features"):
        by_row.predict_new(col_features=Y)
    parts = by_row.explain(2, 3)
    np.testing.assert_allclose(parts.prediction, by_row.predict_entries([2], [3])[0], atol=1e-9)
    by_col = clone(model).fit(target, col_features=Y)
    assert by_col.predict_new(col_features=Y[:2]).shape == (40, 2)
    assert by_col.interactions_.matrix.shape == (41, 4)


def test_sparse_features_agree_with_dense_ones() -> None:
    target, X, Y = problem()
    for name in ("bilinear", "soft", "maxide"):
        plain = clone(MODELS[name]).set_params(standardize=False)
        dense = plain.fit(target, row_features=X, col_features=Y).predict_new(X, Y)
        again = plain.fit(target, row_features=sparse.csr_array(X), col_features=sparse.csr_array(Y))
        np.testing.assert_allclose(again.predict_new(X, Y), dense, atol=1e-6)


def test_awkward_features() -> None:
    target, X, Y = problem()
    constant, zero = X.copy(), np.zeros_like(X)
    constant[:, 1] = 7.0
    wide = np.random.default_rng(0).standard_normal((40, 60))
    for base in MODELS.values():
        with pytest.warns(DataWarning, match="column 1"):
            clone(base).fit(target, row_features=constant, col_features=Y)
        with pytest.warns(DataWarning, match="4 of 4"):
            fitted = clone(base).fit(target, row_features=zero, col_features=Y)
        assert np.isfinite(fitted.predict_new(X, Y)).all()
        fitted = clone(base).fit(target, row_features=wide, col_features=Y)
        assert np.isfinite(fitted.predict_new(wide, Y)).all()
        bad = X.copy()
        bad[3, 2] = np.nan
        with pytest.raises(InvalidDataError, match=r"row_features.*row 3.*imput"):
            clone(base).fit(target, row_features=bad, col_features=Y)
        one = clone(base).fit(target[:, :1], row_features=X)
        assert np.isfinite(one.predict_entries(np.arange(40), np.zeros(40, int))).all()


def test_rows_and_columns_without_cells(model: Any) -> None:
    target, X, Y = problem()
    target[2], target[:, 4] = np.nan, np.nan
    fitted = model.fit(target, row_features=X, col_features=Y)
    assert np.isfinite(fitted.predict_entries([2, 0, 2], [0, 4, 4])).all()


def test_float32(model: Any) -> None:
    target, X, Y = problem()
    model.set_params(max_iter=5)
    large = clone(model).fit(target, row_features=X, col_features=Y)
    small = model.fit(target.astype(np.float32), row_features=X, col_features=Y)
    assert small.row_factors_.dtype == np.float32
    rows, cols = np.nonzero(np.isnan(target))
    np.testing.assert_allclose(
        small.predict_entries(rows, cols), large.predict_entries(rows, cols), rtol=2e-2, atol=5e-2
    )


def test_same_bits_for_any_number_of_threads(model: Any) -> None:
    rng = np.random.default_rng(0)
    n, m = 9000, 40
    X = sparse.random_array((n, m), density=0.05, rng=rng, format="csr")
    A, B = rng.standard_normal((n, 5)), rng.standard_normal((m, 4))
    model.set_params(max_iter=2)
    one = clone(model).set_params(n_jobs=1).fit(X, row_features=A, col_features=B)
    two = clone(model).set_params(n_jobs=2).fit(X, row_features=A, col_features=B)
    np.testing.assert_array_equal(one.row_factors_, two.row_factors_)
    np.testing.assert_array_equal(one.col_factors_, two.col_factors_)


def test_save_and_load_with_features(model: Any, tmp_path: Any) -> None:
    fitted, _, X, Y = fit(model)
    fitted.save(tmp_path / "model")
    again = unseen.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_new(X, Y), fitted.predict_new(X, Y))
    assert again.certificate_ == fitted.certificate_
    assert again.explain(1, 2) == fitted.explain(1, 2)
    assert again.interactions_.top(3) == fitted.interactions_.top(3)


@pytest.mark.parametrize("name", ["soft", "dirty", "maxide", "bilinear"])
def test_path_equals_separate_fits(name: str) -> None:
    target, X, Y = problem()
    base = clone(MODELS[name]).set_params(tol=1e-12, max_iter=3000)
    parameter = base.path_parameter
    start = base.get_params()[parameter]
    models = list(base.path(target, [start, 4 * start], row_features=X, col_features=Y))
    assert [m.get_params()[parameter] for m in models] == [4 * start, start]
    alone = base.fit(target, row_features=X, col_features=Y)
    np.testing.assert_allclose(
        models[1].history_[-1]["objective"], alone.history_[-1]["objective"], rtol=1e-6
    )
    assert models[1].n_iter_ <= 1.5 * alone.n_iter_ + 5


def test_continuation_reaches_the_same_optimum() -> None:
    target, X, Y = problem()
    reached = [
        Maxide(0.01, continuation=stages, tol=1e-12, max_iter=3000)
        .fit(target, row_features=X, col_features=Y)
        .history_[-1]["objective"]
        for stages in (0, 5)
    ]
    np.testing.assert_allclose(*reached, rtol=1e-6)


def test_automatic_penalties_follow_the_scale_of_the_data() -> None:
    target, X, Y = problem()
    one = MixedLinear(max_iter=2, constraint="hard", max_rank=None, center="none").fit(
        target, row_features=X, col_features=Y
    )
    ten = MixedLinear(max_iter=2, constraint="hard", max_rank=None, center="none").fit(
        10 * target, row_features=X, col_features=Y
    )
    np.testing.assert_allclose([ten.reg_g_, ten.reg_e_], [10 * one.reg_g_, 10 * one.reg_e_], rtol=1e-6)
    assert one.reg_g == "auto"


def test_automatic_penalties_keep_the_rank_small_where_cells_are_few() -> None:
    rng = np.random.default_rng(0)
    n, m = 900, 600
    keys = np.unique(rng.integers(0, n * m, 7000))
    rows, cols = np.divmod(keys, m)
    X, Y = rng.standard_normal((n, 3)), rng.standard_normal((m, 3))
    values = np.einsum("ij,ij->i", X[rows], Y[cols]) + rng.standard_normal(keys.size)
    cells = Observations.from_triples(rows, cols, values, shape=(n, m))
    model = MixedLinear(
        constraint="soft", max_iter=4, tol=0.0, random_state=0, max_rank=None, center="none", reg_e="spectral"
    )
    model.fit(cells, row_features=X, col_features=Y)
    assert 0 < max(entry["rank"] for entry in model.history_) <= 65
    # Control: a share of the largest value alone lets a good part of the noise pass.
    centred = sparse.coo_array((values - values.mean(), (rows, cols)), shape=(n, m))
    norm = np.linalg.norm(centred.toarray(), 2)
    shared = clone(model).set_params(reg_e=0.11 * 100.0 * norm, max_iter=1)
    assert shared.fit(cells, row_features=X, col_features=Y).rank_ > 300


@pytest.mark.parametrize(
    ("name", "value"),
    [("reg_g", -1.0), ("reg_e", 0.0), ("reg_e", "best"), ("constraint", "firm"), ("rho", 0.0), ("init", "x"),
     ("solver", "sgd"), ("max_rank", 0)],
)  # fmt: skip
def test_bad_settings_are_named(name: str, value: Any) -> None:
    target, X, Y = problem()
    with pytest.raises(ValueError, match=name):
        MixedLinear(**{name: value}).fit(target, row_features=X, col_features=Y)


def test_refusals() -> None:
    target, X, Y = problem()
    with pytest.raises(ParameterError, match="hard"):
        MixedLinear(constraint="soft", solver="admm", max_rank=None, center="none", reg_e="spectral").fit(
            target, row_features=X, col_features=Y
        )
    for base in (Maxide(), DirtyIMC(), SparseBilinear(), SoftImpute(reg=1.0, max_rank=None, center="none")):
        reg = next(name for name in base.get_params() if name.startswith("reg"))
        with pytest.raises(ValueError, match="reg"):
            base.set_params(**{reg: -1.0}).fit(target)
    wide = Observations.from_triples([0, 8000], [0, 8000], [1.0, 2.0], shape=(8001, 8001))
    with pytest.raises(ValueError, match="numbers"):
        MixedLinear(1.0, 1.0, solver="admm", constraint="hard", max_rank=None, center="none").fit(wide)
    with pytest.raises(NotInductiveError, match="without features"):
        _ = Maxide().fit(target).interactions_


def test_without_features_the_soft_form_is_a_pulled_soft_impute() -> None:
    """G = 0: 1/2 ||E||^2 + rho/2 ||P(E - M)||^2 + reg ||E||_*, which a background at zero also gives."""
    from unseen import Background, Completion, Full, Nuclear, Squared, Term
    from unseen.solvers import LowRankProx

    target, _, _ = problem()
    loss = Squared(weight=11.0, background=Background(1.0, 0.0))
    seen = np.where(np.isnan(target), np.nan, 10.0 / 11.0 * target)
    other = Completion([Term(core=Full(), reg=Nuclear(3.0))], loss=loss, solver=LowRankProx(),
                       max_iter=5000, tol=1e-13).fit(seen)  # fmt: skip
    model = MixedLinear(
        1e9, 3.0, constraint="soft", rho=10.0, tol=1e-13, max_iter=5000, max_rank=None, center="none"
    ).fit(target)
    np.testing.assert_allclose(
        model.row_factors_ @ model.col_factors_.T, other.row_factors_ @ other.col_factors_.T, atol=1e-4
    )


def test_display_of_interactions() -> None:
    pytest.importorskip("matplotlib")
    from unseen.plotting import InteractionDisplay

    fitted, *_ = fit(clone(MODELS["bilinear"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display = InteractionDisplay.from_estimator(fitted)
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels == ["row0", "row1", "row2", "row3", "1"]
