"""A model that was fitted with ids speaks ids; one that was fitted on arrays speaks positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import unseen
from unseen import BiasMC, BiasModel, Completion, MatrixFactorization, Observations
from unseen.data import Vocabulary
from unseen.exceptions import InvalidDataError, ParameterError, UnknownIdError, UnsupportedComposition

USERS = [f"u{number:02d}" for number in range(12)]
FILMS = [f"film {letter}" for letter in "zyxwvutsr"]


def ratings(seed: int = 0) -> pd.DataFrame:
    """Half of the cells of a rank one matrix, in some order."""
    rng = np.random.default_rng(seed)
    i, j = np.nonzero(rng.random((len(USERS), len(FILMS))) < 0.5)
    stars = np.round(np.outer(rng.uniform(1, 2, len(USERS)), rng.uniform(1, 2.5, len(FILMS)))[i, j], 1)
    frame = pd.DataFrame({"who": np.array(USERS)[i], "film": np.array(FILMS)[j], "stars": stars})
    return frame.sample(frac=1.0, random_state=seed, ignore_index=True)


def cells(frame: Any) -> Observations:
    return Observations.from_frame(frame, row="who", col="film", value="stars")


def model_of(X: Any) -> MatrixFactorization:
    return MatrixFactorization(rank=2, reg=0.1, max_iter=30, tol=1e-6, center="mean", random_state=0).fit(X)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return ratings()


@pytest.fixture(scope="module")
def fitted(frame: pd.DataFrame) -> MatrixFactorization:
    return model_of(cells(frame))


def test_predictions_by_id_are_those_at_their_positions(fitted: Any) -> None:
    who, film = ["u03", "u11"], ["film x", "film r"]
    at = fitted.row_ids_.index_of(who), fitted.col_ids_.index_of(film)
    expected = fitted.predict_entries(*at, positions=True)
    for rows, cols in ((who, film), (np.array(who), pd.Series(film)), (pl.Series(who), pd.Categorical(film))):
        np.testing.assert_array_equal(fitted.predict_entries(rows, cols), expected)
    np.testing.assert_array_equal(fitted.predict_entries("u03", "film x"), expected[:1])
    assert not np.array_equal(fitted.predict_entries(who[::-1], film), expected)


def test_lists_are_in_ids_and_leave_out_what_was_seen(fitted: Any, frame: Any) -> None:
    ids, scores = fitted.recommend(["u03", "u07"], k=len(FILMS))
    for who, listed, score in zip(["u03", "u07"], ids, scores, strict=True):
        seen = set(frame.film[frame.who == who])
        there = ~np.isnan(score)
        assert set(listed[there]) == set(FILMS) - seen
        expected = fitted.predict_entries([who] * there.sum(), listed[there])
        np.testing.assert_allclose(score[there], expected, rtol=1e-12)
    everything, _ = fitted.recommend("u03", k=len(FILMS), exclude=None)
    assert set(everything[0]) == set(FILMS)
    places, _ = fitted.recommend(fitted.row_ids_.index_of(["u03", "u07"]), k=len(FILMS), positions=True)
    assert places.dtype == np.int64
    np.testing.assert_array_equal(fitted.col_ids_[places[0][places[0] >= 0]], ids[0][places[0] >= 0])


def test_candidates_and_deny(fitted: Any) -> None:
    only = ["film x", "film z", "film r"]
    ids, _ = fitted.recommend(["u03"], k=5, exclude=None, candidates=only, deny=["film z"])
    assert set(ids[0][:2]) == {"film x", "film r"}
    ids, scores = fitted.recommend(["u03"], k=2, exclude=None, candidates=only, deny=only)
    assert np.isnan(scores).all()
    with pytest.raises(UnknownIdError, match=r"deny has 1 of 1 ids .* 'film q'"):
        fitted.recommend(["u03"], deny=["film q"])
    ids, _ = fitted.recommend(["u03"], k=1, exclude=None, candidates=["film x", "film q"], on_unknown="skip")
    assert ids.tolist() == [["film x"]]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_are_in_the_users_words(frame: pd.DataFrame, library: str) -> None:
    given = frame if library == "pandas" else pl.from_pandas(frame)
    model = model_of(cells(given))
    table = model.recommend(["u07", "u03"], k=4, as_frame=True)
    assert type(table).__module__.split(".")[0] == library
    assert list(table.columns) == ["who", "film", "rank", "score"]
    ids, scores = model.recommend(["u07", "u03"], k=4)
    there = ~np.isnan(scores)
    assert list(table["film"]) == ids[there].tolist()
    assert list(table["who"]) == np.repeat(["u07", "u03"], there.sum(axis=1)).tolist()
    assert list(table["rank"])[:2] == [1, 2]
    pairs = model.predict_entries(["u07"], ["film x"], as_frame=True)
    assert list(pairs.columns) == ["who", "film", "prediction"]
    near = model.similar_cols(["film x"], k=2, as_frame=True)
    assert list(near.columns) == ["film", "similar", "rank", "score"]


def test_a_short_list_has_no_padding_in_a_frame(fitted: Any, frame: Any) -> None:
    table = fitted.recommend(USERS, k=len(FILMS), as_frame=True)
    assert len(table) == len(USERS) * len(FILMS) - len(frame)
    assert not table.merge(frame, on=["who", "film"]).size
    assert not table.isna().any().any()


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31))
def test_any_order_of_the_lines_gives_the_same_answers_by_id(seed: int) -> None:
    frame = ratings(1)
    shuffled = frame.sample(frac=1.0, random_state=seed, ignore_index=True)
    rng = np.random.default_rng(seed)
    one = model_of(cells(frame))
    other = model_of(
        Observations.from_frame(
            shuffled,
            row="who",
            col="film",
            value="stars",
            row_ids=Vocabulary(rng.permutation(frame.who.unique())),
            col_ids=Vocabulary(rng.permutation(frame.film.unique())),
        )
    )
    baseline, moved = BiasModel().fit(cells(frame)), BiasModel().fit(cells(shuffled))
    who, film = frame.who.to_numpy(), np.roll(frame.film.to_numpy(), 3)
    np.testing.assert_array_equal(baseline.predict_entries(who, film), moved.predict_entries(who, film))
    # Numbering decides where random factors stand: the vocabularies are another start of the same fit.
    same = model_of(cells(shuffled))
    np.testing.assert_array_equal(one.predict_entries(who, film), same.predict_entries(who, film))
    pd.testing.assert_frame_equal(
        one.recommend(USERS[:4], k=3, as_frame=True), same.recommend(USERS[:4], k=3, as_frame=True)
    )
    wide = frame.pivot(index="who", columns="film", values="stars")
    mixed = wide.iloc[rng.permutation(len(wide)), rng.permutation(wide.shape[1])]
    factors = one.fold_in(mixed) @ one.col_factors_.T
    expected = one.fold_in(wide) @ one.col_factors_.T
    np.testing.assert_allclose(factors, expected[one.row_ids_.index_of(mixed.index)], rtol=1e-9)
    # Another numbering, the same cells: new rows are solved for alike whatever the order of their columns.
    assert set(other.recommend(USERS[:1], k=3, as_frame=True).who) <= {"u00"}


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (
            lambda m: m.predict_entries(["u01", "zoe"], ["film x"] * 2),
            UnknownIdError,
            r"rows has 1 of 2.*'zoe'",
        ),
        (
            lambda m: m.predict_entries(["u01"], ["Zelig"]),
            UnknownIdError,
            r"cols has 1 of 1.*column.*'Zelig'",
        ),
        (
            lambda m: m.predict_entries([3], ["film x"]),
            UnknownIdError,
            r"rows holds integers \(3\).*positions=True",
        ),
        (
            lambda m: m.predict_entries([3, "u01"], ["film x"] * 2),
            InvalidDataError,
            "rows must be all integers or",
        ),
        (lambda m: m.predict_entries(["u01"], ["film x"] * 2), InvalidDataError, "same length, got 1 and 2"),
        (
            lambda m: m.recommend(["zoe"]),
            UnknownIdError,
            "rows .*'zoe'.*on_unknown='skip' or on_unknown='popular'",
        ),
        (lambda m: m.recommend(["u01"], candidates=[1]), UnknownIdError, "candidates holds integers"),
        (lambda m: m.recommend(["u01"], exclude="all"), ParameterError, "exclude must be one of 'seen'"),
        (lambda m: m.recommend(["u01"], on_unknown="nan"), ParameterError, "on_unknown must be one of"),
        (lambda m: m.recommend(), ParameterError, "needs rows="),
        (
            lambda m: m.recommend(["u01"], cells=np.ones((1, 9))),
            ParameterError,
            "one or the other|one or the",
        ),
        (
            lambda m: m.recommend(["u01"], exclude=np.ones((12, 9))),
            InvalidDataError,
            "exclude has no ids of columns",
        ),
        (lambda m: m.fold_in(np.ones((1, 9))), InvalidDataError, "X_new has no ids of columns.*col_ids"),
        (
            lambda m: m.transform(sparse.csr_array(np.ones((1, 9)))),
            InvalidDataError,
            "X has no ids of columns",
        ),
        (lambda m: m.similar_cols(["u01"]), UnknownIdError, "cols .*'u01'"),
        (lambda m: m.similar_rows(["zoe"]), UnknownIdError, "rows .*'zoe'"),
        (lambda m: m.similar_rows(["u01"], metric="l2"), ParameterError, "metric must be one of"),
        (
            lambda m: m.fold_in(pd.DataFrame({"Zelig": [1.0], "film x": [2.0]}, index=["me"])),
            UnknownIdError,
            "X_new .*'Zelig'",
        ),
    ],
)
def test_refusals_name_argument_and_id(fitted: Any, ask: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        ask(fitted)


def test_a_model_of_positions_refuses_ids() -> None:
    X = np.arange(12.0).reshape(4, 3)
    model = BiasModel().fit(X)
    with pytest.raises(InvalidDataError, match="rows must hold integers"):
        model.predict_entries(["u01"], [0])
    named = pd.DataFrame(X, index=list("abcd"), columns=list("xyz"))
    with pytest.raises(
        InvalidDataError, match=r"names its columns .'x', 'y', 'z'., but the model was fitted without"
    ):
        model.fold_in(named)
    np.testing.assert_array_equal(model.fold_in(named, positions=True), model.fold_in(X))


def test_integer_ids_are_never_taken_for_positions() -> None:
    frame = pd.DataFrame({"who": [5, 7, 9, 5], "film": [2, 3, 2, 4], "stars": [1.0, 2.0, 3.0, 4.0]})
    model = BiasModel().fit(cells(frame))
    with pytest.raises(UnknownIdError, match=r"rows has 1 of 1 ids .* row of this model: 0 "):
        model.predict_entries([0], [2])
    assert model.predict_entries([7], [2]) == model.predict_entries([1], [0], positions=True)
    ids, scores = model.recommend([9], k=3)
    assert set(ids[0][~np.isnan(scores[0])]) == {3, 4}


def test_unknown_ids_are_skipped_or_averaged(fitted: Any) -> None:
    found = fitted.predict_entries(["u01", "zoe"], ["film x"] * 2, on_unknown="skip")
    assert np.isnan(found).tolist() == [False, True]
    table = fitted.predict_entries(["u01", "zoe"], ["film x"] * 2, on_unknown="skip", as_frame=True)
    assert table.who.tolist() == ["u01"]
    popular = fitted.predict_entries(["zoe", "zoe"], ["film x", "film r"], on_unknown="popular")
    everyone = [np.mean(fitted.predict_entries(USERS, [film] * len(USERS))) for film in ("film x", "film r")]
    np.testing.assert_allclose(popular, everyone)
    lists = fitted.recommend(["zoe", "u01"], k=3, on_unknown="popular", as_frame=True)
    np.testing.assert_allclose(
        lists.score[lists.who == "zoe"],
        [
            np.mean(fitted.predict_entries(USERS, [film] * len(USERS)))
            for film in lists.film[lists.who == "zoe"]
        ],
    )
    alone = fitted.recommend(["u01"], k=3, as_frame=True)
    pd.testing.assert_frame_equal(
        lists[lists.who == "u01"].reset_index(drop=True), alone.reset_index(drop=True), check_dtype=False
    )
    skipped = fitted.recommend(["zoe", "u01"], k=3, on_unknown="skip", as_frame=True)
    assert set(skipped.who) == {"u01"}


def test_new_rows_are_matched_by_id(fitted: Any, frame: Any) -> None:
    mine = pd.DataFrame({"who": ["me", "me"], "film": ["film r", "film z"], "stars": [4.0, 1.5]})
    factors = fitted.fold_in(cells(mine))
    by_hand = np.full((1, len(FILMS)), np.nan)
    by_hand[0, fitted.col_ids_.index_of(mine.film)] = mine.stars
    np.testing.assert_array_equal(factors, fitted.fold_in(by_hand, positions=True))
    # By position the two columns of these cells would be the first two of the model: another answer.
    wrong = np.full((1, len(FILMS)), np.nan)
    wrong[0, :2] = mine.stars
    assert not np.allclose(factors, fitted.fold_in(wrong, positions=True))
    np.testing.assert_array_equal(fitted.transform(cells(mine)), fitted.transform(by_hand, positions=True))
    lists = fitted.recommend(cells=cells(mine), k=len(FILMS), as_frame=True)
    assert set(lists.who) == {"me"}
    assert set(lists.film) == set(FILMS) - {"film r", "film z"}
    np.testing.assert_allclose(
        lists.score, (factors @ fitted.col_factors_.T)[0][fitted.col_ids_.index_of(lists.film)]
    )
    everything = fitted.recommend(cells=cells(mine), k=len(FILMS), exclude=None, as_frame=True)
    assert set(everything.film) == set(FILMS)


def test_exclusions_are_matched_by_id(fitted: Any) -> None:
    barred = pd.DataFrame({"who": ["u03", "zoe"], "film": ["film r", "film z"], "stars": [1.0, 1.0]})
    ids, scores = fitted.recommend(["u03", "u04"], k=len(FILMS), exclude=cells(barred))
    assert "film r" not in ids[0][~np.isnan(scores[0])]
    assert "film z" in ids[0]
    assert not np.isnan(scores[1]).any()
    foreign = pd.DataFrame({"who": ["zoe"], "film": ["Zelig"], "stars": [1.0]})
    with pytest.raises(UnknownIdError, match="exclude has no id that is a column of this model: 'Zelig'"):
        fitted.recommend(["u03"], exclude=cells(foreign))


def test_similar_rows_and_columns(fitted: Any) -> None:
    factors = fitted.col_factors_[:, :2]
    unit = factors / np.linalg.norm(factors, axis=1, keepdims=True)
    for metric, directions in (("cosine", unit), ("dot", factors)):
        at = int(fitted.col_ids_.index_of(["film t"])[0])
        closeness = directions @ directions[at]
        closeness[at] = -np.inf
        best = np.argsort(-closeness)[:3]
        ids, scores = fitted.similar_cols(["film t"], k=3, metric=metric)
        assert ids[0].tolist() == fitted.col_ids_[best].tolist()
        np.testing.assert_allclose(scores[0], closeness[best])
    ids, scores = fitted.similar_rows("u03", k=20)
    assert set(ids[0][~np.isnan(scores[0])]) == set(USERS) - {"u03"}
    ids, scores = fitted.similar_rows(["zoe", "u03"], k=2, on_unknown="skip")
    assert np.isnan(scores).tolist() == [[True, True], [False, False]]
    with pytest.raises(UnsupportedComposition, match="BiasModel has no factors"):
        BiasModel().fit(np.eye(3)).similar_cols([0])


def test_saved_models_speak_ids_and_know_what_was_seen(fitted: Any, tmp_path: Any) -> None:
    fitted.save(tmp_path / "with")
    fitted.save(tmp_path / "without", seen=False)
    again, bare = unseen.load(tmp_path / "with"), unseen.load(tmp_path / "without")
    expected = fitted.recommend(["u05"], k=4, as_frame=True)
    pd.testing.assert_frame_equal(again.recommend(["u05"], k=4, as_frame=True), expected)
    with pytest.raises(ParameterError, match="exclude='seen': this MatrixFactorization does not hold"):
        bare.recommend(["u05"])
    assert fitted.seen_ is not None
    ids, _ = bare.recommend(["u05"], k=4, exclude=None)
    assert set(ids.ravel()) <= set(FILMS)


def test_explanations_are_in_ids(frame: Any) -> None:
    positives = frame.assign(stars=1.0)
    model = BiasMC(rank=2, alpha=0.9, reg=0.5, random_state=0, cg_steps=None).fit(cells(positives))
    films, shares = model.explain(cells(positives), "u03", "film t")
    assert set(films) == set(positives.film[positives.who == "u03"])
    np.testing.assert_allclose(shares.sum(), model.predict_entries("u03", "film t"), rtol=1e-3)
    assert model.predict_labels(["u03"], ["film t"]).shape == (1,)


def test_spread_is_asked_by_id(fitted: Any) -> None:
    prediction, std = fitted.predict_entries(["u03"], ["film t"], return_std=True)
    at = fitted.row_ids_.index_of(["u03"]), fitted.col_ids_.index_of(["film t"])
    found = unseen.diagnostics.identifiability(fitted, *at, positions=True)
    assert (prediction, std) == (found.prediction, found.std)
    again = unseen.diagnostics.identifiability(fitted, ["u03"], ["film t"])
    assert again.std == std


def test_completion_speaks_ids_too(frame: Any) -> None:
    model = Completion(random_state=0, max_iter=20, tol=1e-2).fit(cells(frame))
    assert model.recommend(["u01"], k=2)[0].dtype.kind == "U"
