"""The door of multi-label classifiers and the ridge behind it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import unseen
from unseen import ExMLDS, RidgeOvA
from unseen.exceptions import DataWarning, InvalidDataError, NotFittedError, ParameterError, TooLargeError
from unseen.linalg.ridge import ridge
from unseen.multilabel.selecting import best_of_dense, best_of_sparse


def labelled(
    n: int = 60, d: int = 7, n_labels: int = 9, seed: int = 0
) -> tuple[np.ndarray, sparse.csr_array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    scores = X @ rng.standard_normal((d, n_labels)) + 0.1 * rng.standard_normal((n, n_labels))
    Y = (scores > 1.5).astype(float)
    Y[0, 0] = 1.0
    return X, sparse.csr_array(Y)


def naive_ridge(X: Any, Y: Any, reg: float, intercept: bool) -> tuple[np.ndarray, np.ndarray]:
    X, Y = np.asarray(X), Y.toarray()
    x_mean, y_mean = (X.mean(0), Y.mean(0)) if intercept else (np.zeros(X.shape[1]), np.zeros(Y.shape[1]))
    A = X - x_mean
    W = np.linalg.solve(A.T @ A + reg * np.eye(X.shape[1]), A.T @ (Y - y_mean))
    return W, y_mean - x_mean @ W


@pytest.mark.parametrize("route", ["primal", "dual", "cg"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_every_route_solves_the_normal_equations(route: Any, intercept: bool, as_sparse: bool) -> None:
    X, Y = labelled()
    W, b = ridge(
        sparse.csr_array(X) if as_sparse else X, Y, 0.7, intercept=intercept, method=route, tol=1e-12
    )
    W0, b0 = naive_ridge(X, Y, 0.7, intercept)
    np.testing.assert_allclose(W, W0, atol=1e-9)
    np.testing.assert_allclose(b, b0, atol=1e-9)
    wrong, _ = naive_ridge(X, Y, 0.8, intercept)
    assert np.abs(W - wrong).max() > 1e-5


def test_no_penalty_and_singular_gives_least_norm() -> None:
    X, Y = labelled(n=5, d=7)
    twice = np.hstack([X, X])
    W, _ = ridge(twice, Y, 0.0, method="primal")
    np.testing.assert_allclose(W, np.linalg.pinv(twice) @ Y.toarray(), atol=1e-7)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n_labels=st.integers(1, 12), k=st.integers(1, 14), ordered=st.booleans())
def test_best_labels_against_sorting(seed: int, n_labels: int, k: int, ordered: bool) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 4, (5, n_labels)).astype(float)  # many ties
    order = rng.permutation(n_labels) if ordered else None
    ids, values = best_of_dense(scores, k, order)
    stored = sparse.csr_array(scores + 10)  # nothing is zero, so everything is stored
    sparse_ids, _ = best_of_sparse(stored, k, order)
    np.testing.assert_array_equal(ids, sparse_ids)
    preference = np.argsort(order) if ordered else np.arange(n_labels)
    for row in range(5):
        expected = sorted(range(n_labels), key=lambda j: (-scores[row, j], preference[j]))[:k]
        assert ids[row, : len(expected)].tolist() == expected
        assert np.all(ids[row, len(expected) :] == -1)
        assert np.isnan(values[row, len(expected) :]).all()


def test_unstored_scores_are_not_predicted() -> None:
    scores = sparse.csr_array(np.array([[0.0, -2.0, 0.0], [0.0, 0.0, 0.0]]))
    ids, values = best_of_sparse(scores, 2)
    np.testing.assert_array_equal(ids, [[1, -1], [-1, -1]])
    assert values[0, 0] == -2.0


def test_topk_scores_and_predictions_agree() -> None:
    X, Y = labelled()
    model = RidgeOvA(0.1).fit(X, Y)
    scores = model.decision_function(X)
    assert scores.shape == (60, 9)
    ids, best = model.predict_topk(X, 3)
    np.testing.assert_array_equal(ids, np.argsort(-scores, axis=1, kind="stable")[:, :3])
    np.testing.assert_allclose(best, np.take_along_axis(scores, ids, axis=1))
    predicted = model.predict(X)
    assert sparse.issparse(predicted)
    np.testing.assert_array_equal(predicted.toarray(), scores > 0.5)
    assert model.score(X, Y) == pytest.approx(np.mean(Y.toarray()[np.arange(60), ids[:, 0]]))


def test_blocks_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = labelled()
    model = RidgeOvA(0.1).fit(X, Y)
    whole, scores = model.predict_topk(X, 4), model.decision_function(X)
    monkeypatch.setattr("unseen.multilabel.base.BLOCK_CELLS", 30)
    np.testing.assert_array_equal(whole[0], model.predict_topk(X, 4)[0])
    np.testing.assert_allclose(scores, model.decision_function(X))


def test_classes_come_back_by_name() -> None:
    rng = np.random.default_rng(0)
    centres = np.repeat(np.eye(3) * 5, 20, axis=0)
    X = centres + rng.standard_normal((60, 3))
    y = np.repeat(["dog", "ant", "cat"], 20)
    model = RidgeOvA().fit(X, y)
    assert model.classes_.tolist() == ["ant", "cat", "dog"]
    assert model.score(X, y) > 0.9
    assert set(model.predict(X)) <= {"ant", "cat", "dog"}
    ids, _ = model.predict_topk(X[:1], 5)
    assert sorted(ids[0].tolist()) == ["ant", "cat", "dog"]  # never longer than there are labels


def test_dtype_and_threads() -> None:
    X, Y = labelled(n=400)
    single = RidgeOvA(n_jobs=1).fit(X.astype(np.float32), Y)
    double = RidgeOvA(n_jobs=2).fit(X.astype(np.float32), Y)
    assert single.coef_.dtype == np.float32
    assert single.decision_function(X).dtype == np.float32 or single.coef_.dtype == np.float32
    assert single.coef_.tobytes() == double.coef_.tobytes()


def test_save_and_load(tmp_path: Path) -> None:
    X, Y = labelled()
    model = RidgeOvA(0.3, fit_intercept=True).fit(X, Y)
    model.save(tmp_path / "m")
    again = unseen.load(tmp_path / "m")
    np.testing.assert_array_equal(model.decision_function(X), again.decision_function(X))
    named = RidgeOvA().fit(X, np.where(X[:, 0] > 0, "up", "down"))
    named.save(tmp_path / "n")
    assert unseen.load(tmp_path / "n").predict(X).tolist() == named.predict(X).tolist()


def test_large_scores_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = labelled()
    model = RidgeOvA().fit(X, Y)
    monkeypatch.setattr(RidgeOvA, "max_dense_cells", 100)
    with pytest.raises(TooLargeError, match=r"540.*max_dense_cells=100.*predict_topk"):
        model.decision_function(X)
    assert model.predict_topk(X)[0].shape == (60, 5)


BAD: list[tuple[Any, Any, str]] = [
    (np.ones((3, 2)), np.eye(2), "X has 3 rows and Y has 2"),
    (np.ones((2, 2)), np.array([[0, 2], [1, 0]]), "Y holds 2 in row 0, column 1"),
    (np.ones((2, 2)), np.array([[0, np.nan], [1, 0]]), "Y holds NaN in row 0, column 1"),
    (np.ones((2, 2)), np.zeros((2, 3)), "Y .2 x 3. has no label at all"),
    (np.array([[1.0, np.nan]]), np.ones((1, 1)), "X holds NaN in row 0, column 1.*[Ii]mpute"),
    (np.ones((0, 2)), np.ones((0, 1)), "X has 0 sample"),
    (np.ones((2, 0)), np.eye(2), "X has 0 feature"),
    (np.ones((2, 2)), np.ones((2, 2, 2)), "one or two dimensions"),
    (np.ones((2, 2)), None, "target y is None"),
    (np.ones((2, 2)), [1.5, 2.5], "Unknown label type"),
    (np.ones((2, 2)), np.array(["a", 1], dtype=object), "one kind"),
]


@pytest.mark.parametrize(("X", "Y", "message"), BAD, ids=[message for _, _, message in BAD])
def test_bad_input_is_named(X: Any, Y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RidgeOvA().fit(X, Y)


def test_bad_use_is_named() -> None:
    X, Y = labelled()
    with pytest.raises(NotFittedError):
        RidgeOvA().predict(X)
    with pytest.raises(ParameterError, match="reg"):
        RidgeOvA(-1.0).fit(X, Y)
    model = RidgeOvA().fit(X, Y)
    with pytest.raises(InvalidDataError, match="X has 3 features, but RidgeOvA is expecting 7"):
        model.predict_topk(X[:, :3])
    with pytest.raises(ParameterError, match="k must be"):
        model.predict_topk(X, 0)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_rows_that_look_alike_at_length_one_are_told(as_sparse: bool) -> None:
    """Raw features around 1000: what tells rows apart is lost in their lengths."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    Y = (X @ rng.normal(size=(8, 5)) > 0.5).astype(int)
    form = sparse.csr_array if as_sparse else np.asarray
    for raw in (form(X + 1000.0), form((X + 1000.0).astype(np.float32))):
        with pytest.warns(DataWarning, match=r"mean cosine 1\).*standardise"):
            ExMLDS(n_components=3, random_state=0).fit(raw, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        ExMLDS(n_components=3, random_state=0).fit(form(X), Y)
        ExMLDS(n_components=3, normalize=False, random_state=0).fit(form(X + 1000.0), Y)
