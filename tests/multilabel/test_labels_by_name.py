"""Label sets in, names out; weights of rows; probabilities from held-out rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import unseen
from unseen import (
    LEML,
    SLEEC,
    AnnexML,
    Blend,
    ExMLDS,
    FastXML,
    GIMCClassifier,
    LabelTree,
    LinearOvA,
    PDSparse,
    PfastreXML,
    PPDSparse,
    RidgeOvA,
)
from unseen.exceptions import InvalidDataError, NotFittedError
from unseen.linalg.ridge import ridge
from unseen.multilabel.calibration import fit_chances

NAMES = np.array(["ash", "birch", "cedar", "oak"])


def named(n: int = 80, seed: int = 0) -> tuple[np.ndarray, np.ndarray, list[list[str]]]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    Y = (X @ np.random.default_rng(9).standard_normal((5, 4)) + 0.3 * rng.standard_normal((n, 4)) > 0.8) * 1
    Y[0] = 1
    return X, Y, [NAMES[row > 0].tolist() for row in Y]


SMALL: dict[str, Any] = {"n_components": 3, "k": 5, "n_neighbors": 10, "random_state": 0}
MODELS = [
    PDSparse(random_state=0),
    RidgeOvA(fit_intercept=True),
    LEML(3, random_state=0),
    LinearOvA(),
    ExMLDS(**SMALL),
    SLEEC(**SMALL),
    AnnexML(3, n_learners=2, k=5, random_state=0),
    LabelTree(2, max_leaf=2, random_state=0),
    PPDSparse(random_state=0),
    FastXML(10, random_state=0),
    PfastreXML(10, random_state=0),
    GIMCClassifier(8, max_iter=3, validation_fraction=0.2, random_state=0),
    Blend([RidgeOvA(), RidgeOvA(10.0)], random_state=0),
]
WEIGHING = [
    RidgeOvA(fit_intercept=True),
    RidgeOvA(),
    RidgeOvA(reg=0.3, tol=1e-12, fit_intercept=True),
    LEML(3, label_features=2, tol=1e-12, max_iter=100, random_state=0),
    LinearOvA(tol=1e-9),
]
each = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
pytestmark = pytest.mark.filterwarnings("ignore::unseen.exceptions.ConvergenceWarning")


@each
def test_label_sets_are_the_indicator_with_names(model: Any, tmp_path: Path) -> None:
    X, Y, sets = named()
    by_number = model.fit(X, Y)
    ids, scores = by_number.predict_topk(X, 3)
    chosen, numbers = by_number.predict(X).toarray(), by_number.score(X, Y)
    assert by_number.classes_.tolist() == [0, 1, 2, 3]
    by_name = model.fit(X, [labels[::-1] for labels in sets])
    assert by_name.classes_.tolist() == NAMES.tolist()
    names, again = by_name.predict_topk(X, 3)
    np.testing.assert_array_equal(again, scores)
    np.testing.assert_array_equal(names, np.where(ids < 0, "", NAMES[ids]))
    np.testing.assert_array_equal(by_name.predict_topk(X, 3, positions=True)[0], ids)
    assert by_name.predict(X) == [NAMES[row > 0].tolist() for row in chosen]
    assert by_name.score(X, sets) == numbers
    by_name.save(tmp_path / "m")
    loaded = unseen.load(tmp_path / "m")
    assert loaded.predict(X) == by_name.predict(X)
    assert loaded.predict_topk(X[:2], 2)[0].tolist() == names[:2, :2].tolist()


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda sets: [set(row) for row in sets],
        lambda sets: tuple(tuple(row) for row in sets),
        lambda sets: pd.Series(sets),
        lambda sets: pl.Series(sets),
        lambda sets: [row + row for row in sets],
    ],
    ids=["sets", "tuples", "pandas", "polars", "twice"],
)
def test_sets_come_in_many_forms(wrapped: Any) -> None:
    X, Y, sets = named()
    expected = RidgeOvA().fit(X, Y).decision_function(X)
    np.testing.assert_array_equal(RidgeOvA().fit(X, wrapped(sets)).decision_function(X), expected)


@pytest.mark.parametrize("library", [pd.DataFrame, lambda data, columns: pl.DataFrame(data, schema=columns)])
def test_frames_name_their_labels(library: Any) -> None:
    X, Y, _ = named()
    shuffled = [2, 0, 3, 1]
    model = RidgeOvA().fit(X, library(Y[:, shuffled], columns=NAMES[shuffled].tolist()))
    plain = RidgeOvA().fit(X, Y)
    best = plain.predict_topk(X, 2, positions=True)[0]
    np.testing.assert_array_equal(model.predict_topk(X, 2)[0], NAMES[best])
    # Test labels are matched by name, in any order of columns; without names they have the order of training.
    assert model.score(X, library(Y, columns=NAMES.tolist())) == plain.score(X, Y)
    assert model.score(X, Y) != plain.score(X, Y)


def test_labels_called_by_numbers_are_sets_or_refused() -> None:
    X = np.eye(3)
    model = RidgeOvA(0.1).fit(X, [{7, 3}, {3}, set()])
    assert model.classes_.tolist() == [3, 7]
    assert model.predict(X) == [[3, 7], [3], []]
    with pytest.raises(InvalidDataError, match=r"set\(row\) for row in y"):
        RidgeOvA().fit(X, [[7, 3], [3], []])
    with pytest.raises(InvalidDataError, match=r"Y holds 7 in row 0, column 0.*\[\{1, 2\}, \{3\}\]"):
        RidgeOvA().fit(X, [[7, 3], [3, 4], [1, 2]])


def test_labels_that_training_did_not_have_are_missed() -> None:
    X, _, sets = named()
    model = RidgeOvA().fit(X, sets)
    foreign = [["yew"] for _ in sets]
    assert model.score(X, foreign) == 0.0
    assert model.score(X, sets[:40] + foreign[40:]) == pytest.approx(model.score(X[:40], sets[:40]) / 2)
    with pytest.raises(InvalidDataError, match=r"y names labels like 1, but .* like 'ash'"):
        model.score(X, [{1} for _ in sets])
    with pytest.raises(InvalidDataError, match="y has 3 columns, but the model knows 4 labels"):
        model.score(X, np.ones((80, 3)))


BAD: list[tuple[Any, str]] = [
    ([["a"], None, ["b"]], "None in row 1.*empty list"),
    ([["a"], "b", ["c"]], "'b' in row 1.*empty list"),
    ([["a"], ["b", 3], ["b"]], "found int, str, such as 3 in row 1"),
    ([["a"], ["b", None], ["b"]], "NoneType, str, such as None in row 1"),
    ([[], [], []], "no label at all: every row is empty"),
    (["a", None, "b"], "such as None in row 1.*leave them out"),
    ([["a"], ["b"]], "X has 3 rows and Y has 2"),
    (pd.DataFrame(np.eye(3), columns=["a", "b", "a"]), "y has 2 columns called 'a'"),
]


@pytest.mark.parametrize(("y", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_labels_are_named(y: Any, message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        RidgeOvA().fit(np.eye(3), y)


def test_rows_of_frames_that_name_others_are_refused() -> None:
    X, _, sets = named()
    features, y = pd.DataFrame(X).add_prefix("f"), pd.Series(sets)
    expected = RidgeOvA().fit(X, sets).decision_function(X)
    shuffled = y.sample(frac=1.0, random_state=0)
    with pytest.raises(InvalidDataError, match=r"different indexes, first in row 0.*y.loc\[X.index\]"):
        RidgeOvA().fit(features, shuffled)
    model = RidgeOvA().fit(features, shuffled.loc[features.index])
    np.testing.assert_array_equal(model.decision_function(features), expected)
    with pytest.raises(InvalidDataError, match="different indexes"):
        model.score(features, shuffled)
    people = features.set_axis([f"p{i}" for i in range(80)])
    RidgeOvA().fit(people, y)  # one side says nothing: by their order
    with pytest.raises(InvalidDataError, match="'p0' and 'q0'"):
        RidgeOvA().fit(people, y.set_axis([f"q{i}" for i in range(80)]))
    with pytest.raises(ValueError, match="order"):
        model.predict(features[features.columns[::-1]])
    assert list(model.feature_names_in_) == [f"f{i}" for i in range(5)]


# -- weights of rows -----------------------------------------------------------------------


@pytest.mark.parametrize("model", WEIGHING, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("as_sparse", [False, True])
def test_weights_count_rows(model: Any, as_sparse: bool) -> None:
    X, _, sets = named()
    weights = np.random.default_rng(1).integers(0, 4, 80)
    twice = np.repeat(np.arange(80), weights)
    given = sparse.csr_array(X) if as_sparse else X
    weighted = model.fit(given, sets, sample_weight=weights).decision_function(X)
    repeated = model.fit(given[twice], [sets[row] for row in twice]).decision_function(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)
    assert np.abs(weighted - model.fit(given, sets).decision_function(X)).max() > 1e-3


@pytest.mark.parametrize("method", ["primal", "dual", "cg"])
@pytest.mark.parametrize("intercept", [False, True])
def test_weighted_ridge_on_every_route(method: Any, intercept: bool) -> None:
    X, Y, _ = named()
    weights = np.random.default_rng(2).uniform(0.1, 3.0, 80)
    W, b = ridge(X, Y, 0.7, intercept=intercept, weights=weights, method=method, tol=1e-13)
    A = np.hstack([X, np.ones((80, 1))]) if intercept else X
    penalty = 0.7 * np.eye(A.shape[1])
    if intercept:
        penalty[-1, -1] = 0.0
    exact = np.linalg.solve(A.T @ (weights[:, None] * A) + penalty, A.T @ (weights[:, None] * Y))
    np.testing.assert_allclose(W, exact[:5], atol=1e-9)
    np.testing.assert_allclose(b, exact[5] if intercept else 0.0, atol=1e-9)


def test_weights_that_say_nothing_and_too_much() -> None:
    X, Y, _ = named()
    one = RidgeOvA().fit(X, Y, sample_weight=np.ones(80)).coef_
    assert one.tobytes() == RidgeOvA().fit(X, Y).coef_.tobytes()
    weights = np.ones(80)
    weights[:40] = 0
    classes = ["old"] * 40 + ["new", "newer"] * 20
    assert RidgeOvA().fit(X, classes, sample_weight=weights).classes_.tolist() == ["new", "newer"]
    for wrong, said in ((np.ones(3), "shape"), (-np.ones(80), "below 0"), (np.zeros(80), "nothing")):
        with pytest.raises(InvalidDataError, match=f"sample_weight has.*{said}"):
            RidgeOvA().fit(X, Y, sample_weight=wrong)


@pytest.mark.parametrize("model", MODELS[4:], ids=lambda model: type(model).__name__)
def test_weights_are_refused_with_the_reason(model: Any) -> None:
    X, Y, _ = named()
    with pytest.raises(TypeError, match=r"fit takes no sample_weight: \w+ \w+"):
        model.fit(X, Y, sample_weight=np.ones(80))
    with pytest.raises(TypeError, match=r"fit takes no colour$"):
        model.fit(X, Y, colour=3)


def test_scores_count_the_weights_of_rows() -> None:
    X, Y, _ = named()
    model = RidgeOvA().fit(X, Y)
    weights = np.arange(80.0)
    hits = Y[np.arange(80), model.predict_topk(X, 1)[0][:, 0]]
    assert model.score(X, Y, weights) == pytest.approx(np.average(hits, weights=weights))


# -- probabilities -------------------------------------------------------------------------


def calibrating(model: Any) -> Any:
    return model.set_params(calibrate=True) if "calibrate" in model.get_params() else model


@each
def test_probabilities_are_calibrated(model: Any) -> None:
    X, _, sets = named(600)
    fresh, truth, _ = named(2000, seed=1)
    model = calibrating(model).fit(X, sets)
    chance = model.predict_proba(fresh)
    assert chance.shape == (2000, 4)
    np.testing.assert_allclose(model.predict_proba(fresh[:3]), chance[:3], atol=1e-12)
    score = model.decision_function(fresh)
    score = score.toarray() if sparse.issparse(score) else score
    assert np.all(np.diff(chance.ravel()[np.argsort(score.ravel())]) >= 0)
    assert chance.mean() == pytest.approx(truth.mean(), abs=0.05)
    for low in (0.0, 0.25, 0.5, 0.75):
        cells = (chance >= low) & (chance < low + 0.25)
        if cells.sum() > 200:
            assert truth[cells].mean() == pytest.approx(chance[cells].mean(), abs=0.22), low


@each
def test_chances_of_classes_sum_to_one(model: Any, tmp_path: Path) -> None:
    X, _, _ = named(300)
    classes = NAMES[(X @ np.random.default_rng(9).standard_normal((5, 4))).argmax(axis=1)]
    model = calibrating(model).fit(X, classes)
    chance = model.predict_proba(X)
    np.testing.assert_allclose(chance.sum(axis=1), 1.0)
    predicted = np.searchsorted(model.classes_, model.predict(X))  # ties have rules of their own
    np.testing.assert_array_equal(chance[np.arange(300), predicted], chance.max(axis=1))
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(unseen.load(tmp_path / "m").predict_proba(X), chance)


def test_held_out_rows_make_honest_chances() -> None:
    """Labels are noise: on the rows that it was fitted to, such a model is sure."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((120, 100)), (rng.random((120, 3)) < 0.3) * 1
    model = RidgeOvA(1e-6, calibrate=True).fit(X, Y)
    chance = model.predict_proba(X)
    assert chance.max() < 0.8
    itself = fit_chances(model.decision_function(X), sparse.csr_array(Y), False)
    assert itself[0] > 5 * model.calibration_[0]


def test_weights_calibrate_too() -> None:
    X, Y, _ = named(200)
    scores = RidgeOvA().fit(X, Y).decision_function(X)
    weights = np.random.default_rng(0).integers(1, 4, 200).astype(float)
    twice = np.repeat(np.arange(200), weights.astype(int))
    one_hot = sparse.csr_array(np.eye(4)[Y.argmax(axis=1)])
    for labels, multi_class in ((sparse.csr_array(Y), False), (one_hot, True)):
        found = fit_chances(scores, labels, multi_class, weights)
        np.testing.assert_allclose(found, fit_chances(scores[twice], labels[twice], multi_class), rtol=0.05)


@each
def test_who_asks_in_vain_is_told_the_way(model: Any) -> None:
    X, Y, _ = named()
    if "calibrate" in model.get_params():
        model = model.set_params(calibrate=False).fit(X, Y)
        way = r"\(calibrate=True\) calibrates"
    else:
        model = Blend(model.models, weights=[1, 1]).fit(X, Y)
        way = "weights='auto'"
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as told:
        model.predict_proba(X)
    with pytest.raises(AttributeError, match=way):
        raise told.value.__cause__  # type: ignore[misc]
    if "calibrate" in model.get_params():
        with pytest.raises(NotFittedError, match="fit it again"):
            model.set_params(calibrate=True).predict_proba(X)
        with pytest.raises(InvalidDataError, match=r"calibrate=True.*rows"):
            model.fit(X[:15], Y[:15])
        model.set_params(calibrate=False)
