"""What the contract promises of every completer, in one reusable suite."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import unseen
import unseen.kernels
from unseen import (
    GIMC,
    IMC,
    L1,
    AugmentedMF,
    Biased,
    BiasModel,
    Completion,
    DirtyIMC,
    Full,
    Given,
    Identity,
    LowRank,
    MatrixFactorization,
    Maxide,
    MixedLinear,
    NonNegative,
    Nuclear,
    Observations,
    Ridge,
    SoftImpute,
    SparseBilinear,
    Term,
)
from unseen.exceptions import (
    ConvergenceWarning,
    InvalidDataError,
    NotFittedError,
    NotInductiveError,
    ParameterError,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N, M = 40, 25


def target(seed: int = 0, observed: float = 0.5, dtype: Any = np.float64) -> np.ndarray:
    rng = np.random.default_rng(seed)
    full = rng.standard_normal((N, 3)) @ rng.standard_normal((3, M)) + 2.0
    return np.where(rng.random((N, M)) < observed, full, np.nan).astype(dtype)


def as_sparse(dense: np.ndarray) -> sparse.csr_array:
    seen = Observations.from_dense(dense)
    return sparse.csr_array((seen.values, seen.indices, seen.indptr), shape=seen.shape)


FREE = {
    "bias": BiasModel(),
    "mf": MatrixFactorization(3, reg=0.5, random_state=0, center="none"),
    "mf-mean": MatrixFactorization(3, reg=0.5, center="mean", random_state=0),
    "mf-joint": MatrixFactorization(3, reg=0.5, center="joint", random_state=0),
    "mf-svd": MatrixFactorization(3, reg=0.5, center="joint", init="svd", random_state=0),
    "mf-biases": MatrixFactorization(3, reg=0.5, center="biases", random_state=0),
    "ccd": MatrixFactorization(3, reg=0.5, solver="ccd", center="biases", random_state=0),
    "soft": SoftImpute(2.0, center="mean", random_state=0, max_rank=None),
    "amf": AugmentedMF(3, random_state=0),
    "amf-line": AugmentedMF(3, center="mean", solver="linesearch", random_state=0),
    "imc": IMC(3, reg=0.5, random_state=0, center="none"),
    "gimc": GIMC(3, reg=0.5, start_sweeps=2, max_iter=5, random_state=0, center="none"),
    "maxide": Maxide(2.0, random_state=0),
    "dirty": DirtyIMC(2.0, 3.0, center="mean", random_state=0),
    "bilinear": SparseBilinear(0.5),
    "mixed-soft": MixedLinear(
        0.5, 20.0, constraint="soft", rho=10.0, random_state=0, max_rank=None, center="none"
    ),
    "completion": Completion([Term(core=LowRank(2)), Term(core=LowRank(1), reg=Ridge(0.1))], random_state=0),
}


@pytest.fixture(params=FREE)
def model(request: pytest.FixtureRequest) -> Any:
    from sklearn.base import clone

    return clone(FREE[request.param])


def test_predictions_are_inner_products(model: Any) -> None:
    X = target()
    model.fit(X)
    rows, cols = np.array([0, 5, 39, 7]), np.array([3, 0, 24, 24])
    expected = [model.row_factors_[i] @ model.col_factors_[j] for i, j in zip(rows, cols, strict=True)]
    np.testing.assert_allclose(model.predict_entries(rows, cols), expected, rtol=1e-12)
    assert model.row_factors_.shape[0] == N
    assert model.col_factors_.shape[0] == M


def test_history_is_monotone_and_complete(model: Any) -> None:
    model.fit(target())
    objectives = [entry["objective"] for entry in model.history_]
    assert len(objectives) == model.n_iter_ >= 1
    assert all(b <= a + 1e-10 * abs(a) for a, b in itertools.pairwise(objectives))
    assert all(entry["time_s"] >= 0 for entry in model.history_)
    assert isinstance(model.converged_, bool)


def test_dense_and_sparse_input_agree(model: Any) -> None:
    X = target()
    dense = model.fit(X).transform(X)
    for other in (
        as_sparse(X),
        sparse.coo_matrix(as_sparse(X)),
        Observations.from_dense(X),
        sparse.csc_array(as_sparse(X)),
    ):
        from sklearn.base import clone

        np.testing.assert_allclose(clone(model).fit(other).transform(other), dense, atol=1e-10)


def test_same_bits_for_any_number_of_threads(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unseen.kernels._arguments.WORK_A_THREAD", 1)
    if "n_jobs" not in model.get_params():
        pytest.skip("runs on one thread")
    rng = np.random.default_rng(0)
    # Larger than one block of rows, so that threads really share the work.
    X = sparse.random_array((40_000, 60), density=0.03, rng=rng, format="csr")
    X.data = X.data + 1.0
    model.set_params(max_iter=2)
    one = model.set_params(n_jobs=1).fit(X)
    rows, cols = one.row_factors_.copy(), one.col_factors_.copy()
    for n_jobs in (2, 3, None):
        model.set_params(n_jobs=n_jobs).fit(X)
        np.testing.assert_array_equal(model.row_factors_, rows)
        np.testing.assert_array_equal(model.col_factors_, cols)


@pytest.mark.parametrize(("solver", "kernel"), [("als", "als_solve"), ("ccd", "ccd_sweep")])
def test_threads_reach_the_kernels(solver: str, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original, seen = getattr(unseen.kernels, kernel), []

    def spy(*arguments: Any, **options: Any) -> Any:
        seen.append(options["n_threads"])
        return original(*arguments, **options)

    monkeypatch.setattr(f"unseen.kernels.{kernel}", spy)
    MatrixFactorization(2, solver=solver, max_iter=1, n_jobs=2, random_state=0, reg=1.0, center="none").fit(
        target()
    )
    assert seen
    assert set(seen) == {2}


def test_float32_in_float32_out(model: Any) -> None:
    X32, X64 = target(dtype=np.float32), target()
    model.set_params(max_iter=5)
    small = model.fit(X32).transform(X32)
    assert model.row_factors_.dtype == np.float32
    assert small.dtype == np.float32
    large = model.fit(X64).transform(X64)
    assert model.row_factors_.dtype == np.float64
    np.testing.assert_allclose(small, large, rtol=2e-3, atol=2e-3)


def test_fold_in_of_training_rows_is_a_refit_of_those_rows(model: Any) -> None:
    X = target()
    model.fit(X)
    folded = model.fold_in(X[3:6])
    assert folded.shape == (3, model.row_factors_.shape[1])
    # Stationary: moving a folded row in any direction raises its own objective.
    if isinstance(model, MatrixFactorization) and model.solver == "als":
        np.testing.assert_allclose(folded, model.row_factors_[3:6], atol=1e-9)
    # Rows are independent of each other.
    np.testing.assert_allclose(model.fold_in(X[4:5]), folded[1:2], atol=1e-12)


def test_row_without_cells_gets_the_baseline(model: Any) -> None:
    X = target()
    X[2] = np.nan
    X[:, 4] = np.nan
    model.fit(X)
    predictions = model.predict_entries([2, 0, 2], [0, 4, 4])
    assert np.isfinite(predictions).all()
    if getattr(model, "center", "") == "mean":
        np.testing.assert_allclose(predictions, np.nanmean(X), atol=1e-9)
    folded = model.fold_in(np.full((1, M), np.nan))
    assert np.isfinite(folded).all()


def test_recommend(model: Any) -> None:
    X = target()
    model.fit(X)
    rows = [3, 0, 39]
    full = model.row_factors_[rows] @ model.col_factors_.T
    ids, scores = model.recommend(rows, k=6, exclude=None)
    for row in range(3):
        order = np.lexsort((np.arange(M), -full[row]))[:6]
        np.testing.assert_array_equal(ids[row], order)
        np.testing.assert_allclose(scores[row], full[row, order], rtol=1e-9)
    ids, scores = model.recommend(rows, k=M, exclude=as_sparse(X))
    for row, i in enumerate(rows):
        left = np.flatnonzero(np.isnan(X[i]))
        assert set(ids[row][ids[row] >= 0]) == set(left)
        assert (ids[row] == -1).sum() == M - len(left)
        assert np.isnan(scores[row][ids[row] == -1]).all()
    ids, _ = model.recommend(3, k=10, candidates=[7, 2, 2, 11], exclude=None)
    assert set(ids[0][:3]) == {2, 7, 11}
    assert (ids[0][3:] == -1).all()


def test_save_and_load(model: Any, tmp_path: Any) -> None:
    X = target()
    model.fit(X)
    model.save(tmp_path / "model")
    loaded = unseen.load(tmp_path / "model")
    assert type(loaded) is type(model)
    assert str(loaded.get_params(deep=False)) == str(model.get_params(deep=False))
    np.testing.assert_array_equal(
        loaded.predict_entries([1, 2], [3, 4]), model.predict_entries([1, 2], [3, 4])
    )
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    assert loaded.history_ == model.history_
    assert loaded.n_features_in_ == M


def test_same_seed_same_model(model: Any) -> None:
    X = target()
    first = model.fit(X).transform(X)
    np.testing.assert_array_equal(model.fit(X).transform(X), first)


def test_permuting_rows_and_columns_permutes_predictions() -> None:
    """For convex models, where the optimum does not depend on the start."""
    X = target()
    rng = np.random.default_rng(1)
    rows, cols = rng.permutation(N), rng.permutation(M)
    for model in (
        BiasModel(tol=1e-14, max_iter=500),
        SoftImpute(3.0, tol=1e-13, max_iter=5000, max_rank=None, center="none"),
    ):
        plain = model.fit_transform(X)
        permuted = model.fit_transform(X[np.ix_(rows, cols)])
        np.testing.assert_allclose(permuted, plain[np.ix_(rows, cols)], atol=1e-4)


def test_unfitted_model_says_so(model: Any, tmp_path: Any) -> None:
    with pytest.raises(NotFittedError):
        model.predict_entries([0], [0])
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "model")


def test_unknown_rows_and_columns_are_named(model: Any) -> None:
    model.fit(target())
    with pytest.raises(InvalidDataError, match="40"):
        model.predict_entries([40], [0])
    with pytest.raises(InvalidDataError, match="-1"):
        model.predict_entries([0], [-1])
    with pytest.raises(InvalidDataError, match="26 features"):
        model.transform(np.ones((2, 26)))
    with pytest.raises(ParameterError, match="k"):
        model.recommend([0], k=0)
    with pytest.raises(InvalidDataError, match="exclude"):
        model.recommend([0], exclude=sparse.eye_array(3))


def test_all_missing_and_infinite_targets_are_refused(model: Any) -> None:
    with pytest.raises(InvalidDataError, match="no observed cell"):
        model.fit(np.full((3, 4), np.nan))
    with pytest.raises(InvalidDataError, match="no observed cell"):
        model.fit(sparse.csr_array((5, 6)))
    bad = target()
    bad[1, 2] = np.inf
    with pytest.raises(InvalidDataError, match=r"row 1.*col.* 2"):
        model.fit(bad)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rank", 0),
        ("rank", 2.5),
        ("reg", -1.0),
        ("reg", np.nan),
        ("max_iter", 0),
        ("tol", -1e-3),
        ("n_jobs", 0),
        ("center", "median"),
        ("solver", "sgd"),
        ("validation_fraction", 1.0),
        ("patience", 0),
        ("bias_reg", -1.0),
    ],
)
def test_bad_hyper_parameters_are_named(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        MatrixFactorization(3, reg=1.0, center="none").set_params(**{name: value}).fit(target())


def test_convergence_warning_at_the_cap() -> None:
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        MatrixFactorization(3, max_iter=1, tol=0.0, random_state=0, reg=1.0, center="none").fit(target())


def test_early_stopping_keeps_the_best_sweep() -> None:
    X = target(observed=0.4) + 0.5 * np.random.default_rng(3).standard_normal((N, M))
    model = MatrixFactorization(
        10, reg=1.0, random_state=0, validation_fraction=0.2, patience=3, max_iter=100, tol=0.0, center="none"
    ).fit(X)
    errors = [entry["validation"] for entry in model.history_]
    best = int(np.argmin(errors))
    assert model.n_iter_ == best + 1 + 3
    # The kept factors are those of the best sweep: its objective can be recomputed from them.
    shorter = MatrixFactorization(
        10,
        reg=1.0,
        random_state=0,
        validation_fraction=0.2,
        patience=99,
        max_iter=best + 1,
        tol=0.0,
        center="none",
    ).fit(X)
    np.testing.assert_array_equal(model.row_factors_, shorter.row_factors_)


def test_warm_start_continues() -> None:
    X = target()
    model = MatrixFactorization(
        3, reg=0.5, random_state=0, max_iter=5, tol=0.0, warm_start=True, center="none"
    )
    first = model.fit(X).history_[-1]["objective"]
    second = model.fit(X).history_[0]["objective"]
    assert second <= first


def test_soft_impute_path_matches_separate_fits() -> None:
    X = target()
    regs = [1.0, 4.0, 2.0]
    models = list(SoftImpute(tol=1e-12, max_iter=3000, reg=1.0, max_rank=None, center="none").path(X, regs))
    assert [m.reg for m in models] == [4.0, 2.0, 1.0]
    assert models[0].rank_ <= models[-1].rank_
    for m in models:
        alone = SoftImpute(m.reg, tol=1e-12, max_iter=3000, max_rank=None, center="none").fit(X)
        np.testing.assert_allclose(m.history_[-1]["objective"], alone.history_[-1]["objective"], rtol=1e-8)


def features(seed: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((N, 4)), rng.standard_normal((M, 3))
    X = A @ rng.standard_normal((4, 2)) @ rng.standard_normal((2, 3)) @ B.T
    return np.where(rng.random((N, M)) < 0.6, X, np.nan), A, B


def test_features_speak_about_new_rows_and_columns() -> None:
    X, A, B = features()
    model = IMC(2, reg=1e-5, random_state=0, max_iter=300, tol=1e-10, center="none")
    model.fit(X[:30, :20], row_features=A[:30], col_features=B[:20])
    block = model.predict_new(row_features=A[30:], col_features=B[20:])
    assert block.shape == (10, 5)
    seen = ~np.isnan(X[30:, 20:])
    np.testing.assert_allclose(block[seen], X[30:, 20:][seen], atol=1e-2)
    np.testing.assert_allclose(
        model.predict_new(row_features=A[:30]), model.row_factors_ @ model.col_factors_.T, atol=1e-10
    )
    assert model.predict_new().shape == (30, 20)
    assert model.predict_new(col_features=B[20:]).shape == (30, 5)


@pytest.mark.parametrize("core", [LowRank(2), Full()])
@pytest.mark.parametrize("sparse_features", [False, True])
def test_new_rows_of_training_features_repeat_training_predictions(core: Any, sparse_features: bool) -> None:
    X, A, B = features()
    a, b = (sparse.csr_array(A), sparse.csr_array(B)) if sparse_features else (A, B)
    model = Completion([Term(Given(standardize=True), Given(), core, Ridge(0.1))], random_state=0)
    model.fit(X, row_features=a, col_features=b)
    np.testing.assert_allclose(model.predict_new(a, b), model.row_factors_ @ model.col_factors_.T, atol=1e-10)


def test_models_without_features_refuse_new_rows() -> None:
    X, A, B = features()
    with pytest.raises(NotInductiveError, match="row_features"):
        MatrixFactorization(2, reg=1.0, center="none").fit(X).predict_new(row_features=A)
    model = IMC(2, random_state=0, reg=1.0, center="none").fit(X, row_features=A)
    with pytest.raises(NotInductiveError, match="col_features"):
        model.predict_new(col_features=B)
    with pytest.raises(InvalidDataError, match="columns"):
        model.predict_new(row_features=A[:, :2])
    with pytest.raises(InvalidDataError, match="rows"):
        IMC(2, reg=1.0, center="none").fit(X, row_features=A[:-1])
    with pytest.raises(ParameterError, match="IMC"):
        MatrixFactorization(2, reg=1.0, center="none").fit(X, row_features=A)
    with pytest.raises(InvalidDataError, match="row_features"):
        Completion([Term(Given(), Identity())]).fit(X)
    bad = A.copy()
    bad[3, 1] = np.nan
    with pytest.raises(InvalidDataError, match=r"row_features.*row 3"):
        IMC(2, reg=1.0, center="none").fit(X, row_features=bad)


def test_cold_rows_use_only_the_feature_part() -> None:
    X, A, _ = features()
    terms = [Term(Given(), Identity(), LowRank(2), Ridge(0.1)), Term(core=LowRank(1), reg=Ridge(0.1))]
    model = Completion(terms, random_state=0).fit(X, row_features=A)
    cold = model.predict_new(row_features=A)
    np.testing.assert_allclose(cold, model.row_factors_[:, :2] @ model.col_factors_[:, :2].T, atol=1e-10)
    # With some cells known as well, fold_in solves the free part on top of the features.
    folded = model.fold_in(X, row_features=A)
    np.testing.assert_allclose(folded[:, :2], model.row_factors_[:, :2], atol=1e-10)
    np.testing.assert_allclose(folded, model.row_factors_, atol=5e-2)


def test_fold_in_respects_bounds_and_penalties() -> None:
    X = np.abs(target())
    for reg in (NonNegative(0.1), L1(0.3)):
        model = Completion([Term(core=LowRank(3), reg=reg)], random_state=0, max_iter=300, tol=1e-10).fit(X)
        folded = model.fold_in(X)
        if isinstance(reg, NonNegative):
            assert folded.min() >= 0
        np.testing.assert_allclose(
            folded @ model.col_factors_.T, model.row_factors_ @ model.col_factors_.T, atol=2e-2
        )


def test_fold_in_with_background() -> None:
    rng = np.random.default_rng(0)
    X = sparse.csr_array((rng.random((N, M)) < 0.2).astype(float))
    model = Completion([Term(core=LowRank(4), reg=Nuclear(0.2))], loss=Biased(0.9), random_state=0).fit(X)
    np.testing.assert_allclose(model.fold_in(X), model.row_factors_, atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    seed=st.integers(0, 10_000),
    observed=st.floats(0.05, 1.0),
)
def test_any_small_matrix_gives_finite_predictions(
    shape: tuple[int, int], seed: int, observed: float
) -> None:
    rng = np.random.default_rng(seed)
    X = np.where(rng.random(shape) < observed, rng.standard_normal(shape) * 10, np.nan)
    X[0, 0] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in (
            BiasModel(0.0),
            MatrixFactorization(4, reg=0.0, random_state=0, max_iter=5, center="biases"),
            SoftImpute(0.5, max_iter=20, max_rank=None, center="none"),
        ):
            assert np.isfinite(model.fit_transform(X)).all()


@pytest.mark.parametrize("solver", ["als", "ccd"])
def test_units_of_values_and_weights_do_not_matter(solver: str) -> None:
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((25, 2)) @ rng.standard_normal((2, 20)) + 0.1 * rng.standard_normal((25, 20))
    cells = Observations.from_dense(np.where(rng.random(dense.shape) < 0.5, dense, np.nan))
    weights = rng.uniform(0.5, 2.0, cells.nnz)
    rows, cols = np.indices(cells.shape).reshape(2, -1)

    def scores(unit: float, weight: float) -> np.ndarray:
        model = MatrixFactorization(
            2, reg=unit * weight, solver=solver, center="none", max_iter=6, tol=0.0, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(cells.with_values(unit * cells.values).with_weights(weight * weights))
        return np.asarray(model.predict_entries(rows, cols)) / unit

    wanted = scores(1.0, 1.0)
    for unit, weight in ((2.0**-40, 1.0), (2.0**40, 1.0), (1.0, 2.0**-20), (1.0, 2.0**20)):
        np.testing.assert_allclose(scores(unit, weight), wanted, rtol=1e-6, atol=1e-9)
