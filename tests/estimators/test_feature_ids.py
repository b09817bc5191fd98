"""Features given as frames are matched by the ids of lines and the names of columns, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import unseen
from unseen import IMC, Observations
from unseen.exceptions import DataWarning, InvalidDataError, NotInductiveError, UnknownIdError

WHO = [f"u{number:02d}" for number in range(20)]
FILMS = [f"f{number}" for number in range(8)]
JOBS = ["baker", "judge", "smith"]


def people(names: list[str], seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, job = rng.uniform(20, 60, len(names)), rng.choice(JOBS, len(names))
    return pd.DataFrame({"who": names, "age": age, "job": job})


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    table = people(WHO).set_index("who")
    rng = np.random.default_rng(1)
    i, j = np.nonzero(rng.random((20, 8)) < 0.6)
    level = table.age.to_numpy()[i] / 20 * (j + 1) + 2.0 * (table.job.to_numpy()[i] == "judge")
    frame = pd.DataFrame({"who": np.array(WHO)[i], "film": np.array(FILMS)[j], "stars": level})
    return frame.sample(frac=1.0, random_state=2, ignore_index=True)


def fit(frame: Any, features: Any) -> IMC:
    X = Observations.from_frame(frame, row="who", col="film", value="stars")
    return IMC(rank=2, reg=0.01, max_iter=300, tol=1e-3, random_state=0, center="none").fit(
        X, row_features=features
    )


@pytest.fixture(scope="module")
def fitted(frame: pd.DataFrame) -> IMC:
    return fit(frame, people(WHO))


def test_lines_in_any_order_give_the_same_model(frame: Any, fitted: Any) -> None:
    shuffled = people(WHO).sample(frac=1.0, random_state=5)
    for given in (shuffled, shuffled.set_index("who"), pl.from_pandas(shuffled)):
        np.testing.assert_array_equal(fit(frame, given).col_factors_, fitted.col_factors_)
    by_position = shuffled.assign(**{job: shuffled.job == job for job in JOBS}).drop(columns=["who", "job"])
    wrong = fit(frame, by_position.to_numpy(dtype=float))
    assert not np.allclose(wrong.col_factors_, fitted.col_factors_)
    assert fitted.row_feature_names_ == ["age", "job=baker", "job=judge", "job=smith"]


def test_people_without_cells_are_left_out_of_training(frame: Any, fitted: Any) -> None:
    more = pd.concat([people(WHO), people(["zoe"], 1)])
    with pytest.warns(DataWarning, match="1 of 21 ids of row_features"):
        again = fit(frame, more)
    np.testing.assert_array_equal(again.col_factors_, fitted.col_factors_)


def test_columns_in_any_order_and_missing_categories(fitted: Any) -> None:
    new = people(["x1", "x2", "x3"], 3)
    block = fitted.predict_new(new)
    np.testing.assert_allclose(fitted.predict_new(new[["job", "who", "age"]]), block)
    np.testing.assert_allclose(fitted.predict_new(new.iloc[[2]].reset_index(drop=True)), block[[2]])
    np.testing.assert_allclose(fitted.predict_new(pl.from_pandas(new.set_index("who"))), block)
    by_hand = np.column_stack([new.age, *(new.job == job for job in JOBS)]).astype(float)
    np.testing.assert_allclose(fitted.predict_new(by_hand), block)
    table = fitted.predict_new(new, as_frame=True)
    assert list(table.columns) == ["who", "film", "prediction"]
    assert table.who.tolist() == np.repeat(["x1", "x2", "x3"], len(FILMS)).tolist()
    np.testing.assert_array_equal(table.prediction, block.ravel())


@pytest.mark.parametrize(
    ("features", "error", "message"),
    [
        (people(WHO[:-2]), UnknownIdError, "row_features has no line for 2 of 20 ids: 'u18', 'u19'"),
        (people([*WHO, "u03"]), InvalidDataError, "'who' must hold each id once; 'u03' occurs again"),
        (
            people(WHO).drop(columns="who"),
            InvalidDataError,
            "row_features is a frame without ids.*column 'who'",
        ),
        (
            pl.from_pandas(people(WHO).drop(columns="who")),
            InvalidDataError,
            "row_features is a frame without ids",
        ),
        (
            people(WHO).assign(age=[*[1.0] * 3, None, *[1.0] * 16]),
            InvalidDataError,
            "'age' has no value for id 'u03'",
        ),
        (people(WHO).assign(who=range(20)), UnknownIdError, "none is an id of the cells"),
        (people(WHO)[["who"]], InvalidDataError, "row_features has no column besides the ids"),
        (np.ones((19, 2)), InvalidDataError, "row_features has 19 rows, but 20"),
    ],
)
def test_training_features_that_do_not_match_are_refused(
    frame: Any, features: Any, error: type, message: str
) -> None:
    with pytest.raises(error, match=message):
        fit(frame, features)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (people(["x"]).drop(columns="age"), "row_features lacks 'age', which the model was fitted with"),
        (people(["x"]).drop(columns="job"), "row_features lacks 'job=baker', 'job=judge', 'job=smith'"),
        (people(["x"]).assign(height=1.8), "row_features has 'height', which the model was not fitted with"),
        (people(["x"]).assign(town="Ulm"), "row_features has 'town=Ulm'|row_features has 'town'"),
        (people(["x"]).assign(job=3), "row_features lacks 'job=baker'"),
        (people(["x"]).assign(age="old"), "row_features lacks 'age'"),
        (np.ones((1, 3)), "row_features has 3 columns; the model was fitted with 4"),
    ],
)
def test_features_of_new_rows_that_do_not_match_are_refused(fitted: Any, features: Any, message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        fitted.predict_new(features)


def test_an_unheard_category_is_said(fitted: Any) -> None:
    with pytest.warns(DataWarning, match="row_features has 'job=pilot', which did not occur in training"):
        block = fitted.predict_new(people(["x"]).assign(job="pilot"))
    np.testing.assert_allclose(block, fitted.predict_new(np.array([[people(["x"]).age[0], 0, 0, 0]])))


def test_lists_of_new_rows_by_features_and_by_both(frame: Any, fitted: Any, tmp_path: Any) -> None:
    new = people(["x1", "x2"], 3)
    lists = fitted.recommend(row_features=new, k=3, as_frame=True)
    assert lists.who.tolist() == ["x1"] * 3 + ["x2"] * 3
    block = fitted.predict_new(new)
    best = np.argsort(-block, axis=1, kind="stable")[:, :3]
    assert lists.film.tolist() == np.array(FILMS)[best].ravel().tolist()
    cells = pd.DataFrame({"who": ["x2", "x1"], "film": ["f7", "f7"], "stars": [3.0, 4.0]})
    X = Observations.from_frame(cells, row="who", col="film", value="stars")
    both = fitted.recommend(cells=X, row_features=new.iloc[::-1], k=8, as_frame=True)
    assert both.who.tolist() == ["x1"] * 7 + ["x2"] * 7
    assert "f7" not in set(both.film)
    at = fitted.col_ids_.index_of(both.film[:7])
    np.testing.assert_allclose(both.score[:7], block[0][at])  # the second person's features are not taken
    with pytest.raises(UnknownIdError, match="row_features has no line for 1 of 2 ids: 'x2'"):
        fitted.recommend(cells=X, row_features=new.iloc[:1])
    with pytest.raises(NotInductiveError, match="pass row_features="):
        fitted.recommend(cells=X)
    fitted.save(tmp_path / "m")
    again = unseen.load(tmp_path / "m").recommend(row_features=new, k=3, as_frame=True)
    pd.testing.assert_frame_equal(again, lists)


def test_a_shuffled_index_is_not_taken_by_position() -> None:
    X = np.random.default_rng(0).random((6, 4))
    features = pd.DataFrame({"a": np.arange(6.0)})
    model = IMC(rank=1, tol=1e-2, random_state=0, reg=1.0, center="none")
    model.fit(X, row_features=features)
    with pytest.raises(InvalidDataError, match="the index of row_features counts its lines in another order"):
        model.fit(X, row_features=features.iloc[::-1])
