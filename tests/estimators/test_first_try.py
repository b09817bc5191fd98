"""What people try first: right by a naive computation, or refused with the way out."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from unseen import IMC, MCCC, BiasMC, BiasModel, MatrixFactorization, Observations
from unseen.baselines import NMF
from unseen.exceptions import DataWarning, InvalidDataError, ParameterError, UnknownIdError
from unseen.links import Katz
from unseen.model_selection import Split, cross_validate

USERS, FILMS = [f"u{i:02d}" for i in range(20)], [f"f{j}" for j in range(8)]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    lines = [(u, f, float(rng.integers(1, 6))) for u in USERS for f in FILMS if rng.random() < 0.6]
    return pd.DataFrame(lines, columns=["user", "film", "stars"])


@pytest.fixture(scope="module")
def cells(table: pd.DataFrame) -> Observations:
    return Observations.from_frame(table, row="user", col="film", value="stars")


@pytest.fixture(scope="module")
def model(cells: Observations) -> MatrixFactorization:
    return MatrixFactorization(2, reg=1.0, random_state=0).fit(cells)


NEW = pd.DataFrame({"film": ["f3", "f1", "f5"], "user": ["zoe", "zoe", "kim"], "stars": [5.0, 1.0, 3.0]})


# -- a cell in each line ---------------------------------------------------------------------


@pytest.mark.parametrize("library", [lambda frame: frame, pl.from_pandas])
def test_a_list_of_cells_is_no_table(table: pd.DataFrame, library: Any) -> None:
    way = r"Observations.from_frame\(X, row='user', col='film', value='stars'\)"
    with pytest.raises(InvalidDataError, match=f"X has text in column 'user'.*{way}"):
        BiasModel().fit(library(table))
    numbers = table.assign(
        user=table.user.str[1:].astype(int), film=table.film.str[1:].astype(int), stars=table.stars
    )
    with pytest.warns(DataWarning, match=f"X is taken as {len(table)} rows and 3 columns.*{way}"):
        BiasModel().fit(library(numbers))


@pytest.mark.filterwarnings("error")
def test_tables_of_numbers_are_tables(table: pd.DataFrame) -> None:
    BiasModel().fit(table.pivot(index="user", columns="film", values="stars"))
    BiasModel().fit(pd.DataFrame(np.random.default_rng(0).integers(0, 5, (40, 4)), columns=list("abcd")))


def test_a_dict_is_what_is_known_of_one_row(cells: Observations, model: MatrixFactorization) -> None:
    """By id where the model has ids, in any order, by position elsewhere."""
    known = {"f5": 3.0, "f1": 1.0}
    line = np.full((1, len(FILMS)), np.nan)
    line[0, [5, 1]] = 3.0, 1.0
    by_position = model.fold_in(line, positions=True)
    np.testing.assert_allclose(model.fold_in(known), by_position, rtol=1e-12)
    names, scores = model.recommend(cells=known, k=3)
    places, same = model.recommend(cells=line, k=3, positions=True)
    assert [FILMS.index(name) for name in names[0]] == places[0].tolist()
    np.testing.assert_allclose(scores, same)
    assert not {"f5", "f1"} & set(names[0])
    plain = MatrixFactorization(2, reg=1.0, random_state=0).fit(cells.with_ids(None, None))
    np.testing.assert_allclose(plain.fold_in({5: 3.0, 1: 1.0}), by_position)
    # Nothing known: the list of an average row.
    np.testing.assert_allclose(model.fold_in({}), model.fold_in(np.full((1, 8), np.nan), positions=True))
    with pytest.raises(UnknownIdError, match="f99"):
        model.recommend(cells={"f99": 1.0})
    assert model.recommend(cells={"f99": 1.0, "f1": 2.0}, k=2, on_unknown="skip")[0].shape == (1, 2)
    with pytest.raises(InvalidDataError, match="must map columns to numbers"):
        model.recommend(cells={"zoe": {"f1": 2.0}})
    with pytest.raises(InvalidDataError, match="integers"):
        plain.recommend(cells={"f1": 2.0})


def test_rows_by_id_are_told_how(cells: Observations) -> None:
    with pytest.raises(InvalidDataError, match=r"cells.row_ids.index_of\(\['u03'\]\)"):
        cells[["u03"]]
    picked = cells[cells.row_ids.index_of(["u03"])]
    assert picked.row_ids is not None
    assert picked.row_ids.values.tolist() == ["u03"]


def test_frames_like_that_of_the_training_are_lists_of_cells(
    table: pd.DataFrame, cells: Observations, model: MatrixFactorization
) -> None:
    new = Observations.from_frame(NEW, row="user", col="film", value="stars")
    for given in (NEW, pl.from_pandas(NEW)):
        np.testing.assert_array_equal(model.fold_in(given), model.fold_in(new))
        np.testing.assert_array_equal(model.transform(given), model.transform(new))
        pd.testing.assert_frame_equal(
            model.recommend(cells=given, k=3, as_frame=True), model.recommend(cells=new, k=3, as_frame=True)
        )
    assert model.score(table) == model.score(cells)
    without = model.recommend("u03", k=8, exclude=table[["film", "user"]], as_frame=True)
    pd.testing.assert_frame_equal(without, model.recommend("u03", k=8, as_frame=True))
    assert not set(without.film) & set(table.film[table.user == "u03"])
    again = MatrixFactorization(2, reg=1.0, random_state=0).fit(cells)
    more = MatrixFactorization(2, reg=1.0, random_state=0).fit(cells)
    np.testing.assert_array_equal(
        again.partial_fit(NEW).predict_entries(["zoe", "kim"], ["f0", "f1"]),
        more.partial_fit(new).predict_entries(["zoe", "kim"], ["f0", "f1"]),
    )
    with pytest.raises(InvalidDataError, match=r"X_new has a cell in each line.*lacks the column 'stars'"):
        model.fold_in(NEW.drop(columns="stars"))


def test_frames_of_positives_need_no_values(table: pd.DataFrame) -> None:
    pairs = table[["user", "film"]]
    model = BiasMC(2, alpha=0.9, random_state=0).fit(Observations.from_frame(pairs, row="user", col="film"))
    new = NEW[["user", "film"]]
    np.testing.assert_array_equal(
        model.fold_in(new), model.fold_in(Observations.from_frame(new, row="user", col="film"))
    )
    with pytest.raises(InvalidDataError, match="lacks a column of values"):
        model.fold_in(NEW)


def test_unknown_columns_of_new_rows_are_refused_or_skipped(model: MatrixFactorization) -> None:
    strange = pd.concat([NEW, pd.DataFrame({"user": ["zoe"], "film": ["alien"], "stars": [2.0]})])
    with pytest.raises(UnknownIdError, match=r"'alien'.*on_unknown='skip' lets them pass"):
        model.recommend(cells=strange)
    with pytest.raises(UnknownIdError, match="'alien'") as told:
        model.fold_in(strange)
    assert "on_unknown" not in str(told.value)  # fold_in has no such argument
    pd.testing.assert_frame_equal(
        model.recommend(cells=strange, on_unknown="skip", as_frame=True),
        model.recommend(cells=NEW, as_frame=True),
    )


# -- refusals ------------------------------------------------------------------------------


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"user": ["ann", "bob"], "film": ["x", "y"], "stars": [4.0, 5.0], **columns})


BAD_FRAMES: list[tuple[pd.DataFrame, dict[str, str], str]] = [
    (frame(user=["ann", 1]), {}, r"column 'user' must be all integers or all strings, got str.*int"),
    (frame(user=["ann", None]), {}, "column 'user' has no id in row 1"),
    (frame(user=[1.0, np.nan]), {}, "column 'user' has no id in row 1"),
    (frame(user=[1.0, 2.0]), {}, "column 'user' must be integers or strings"),
    (frame(user=pd.array([1, None], dtype="Int64")), {}, "column 'user' has no id in row 1"),
    (frame(stars=[4.0, np.inf]), {}, "X holds inf in row 'bob', column 'y'"),
    (frame(stars=["4", "5"]), {}, "column 'stars' must hold numbers"),
    (frame(w=[1.0, -1.0]), {"weight": "w"}, "weights holds -1.0 for row 'bob', column 'y'"),
    (frame(w=[np.nan, 1.0]), {"weight": "w"}, "weights holds nan for row 'ann', column 'x'"),
    (frame(t=[pd.Timestamp("2020"), pd.NaT]), {"time": "t"}, "column 't' has no time in row 1"),
    (frame(t=["31.12.2020", "1.1.2021"]), {"time": "t"}, "'31.12.2020' at place 0.*2024-05-31"),
    (frame().head(0), {}, "frame has no line"),
    (pd.concat([frame(), frame()[["user"]]], axis=1), {}, "frame has 2 columns called 'user'"),
]


@pytest.mark.parametrize(("bad", "about", "message"), BAD_FRAMES, ids=[m for _, _, m in BAD_FRAMES])
def test_bad_frames_name_column_line_and_ids(bad: pd.DataFrame, about: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        Observations.from_frame(bad, row="user", col="film", value="stars", **about)


def test_one_column_is_not_both_sides() -> None:
    with pytest.raises(ParameterError, match="row and col are the same column, 'user'"):
        Observations.from_frame(frame(), row="user", col="user", value="stars")


def test_lazy_frames_are_refused_by_name() -> None:
    with pytest.raises(InvalidDataError, match=r"frame is a lazy frame; collect\(\) it first"):
        Observations.from_frame(pl.from_pandas(frame()).lazy(), row="user", col="film")


def test_a_wide_frame_names_the_cell() -> None:
    with pytest.raises(InvalidDataError, match="X holds inf in row 'bob', column 'b'"):
        BiasModel().fit(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, np.inf]}, index=["ann", "bob"]))


@pytest.mark.parametrize("exclude", [["f1"], ("f1",), {"f1"}, True])
def test_what_is_no_matrix_is_not_excluded(model: MatrixFactorization, exclude: Any) -> None:
    message = re.escape(f"exclude={exclude!r} is no matrix")
    with pytest.raises(ParameterError, match=f"{message}.*deny="):
        model.recommend("u00", exclude=exclude)


def test_features_of_other_ids_are_told_apart_from_missing_ones(cells: Observations) -> None:
    from unseen import IMC

    people = pd.DataFrame({"user": range(20), "age": range(20)})
    with pytest.raises(
        UnknownIdError, match=r"row_features has lines for 0, 1, 2.*none is an id of the cells"
    ):
        IMC(2).fit(cells, row_features=people)
    gap = people.assign(user=USERS, age=[np.nan, *range(19)])
    with pytest.raises(InvalidDataError, match=r"'age' has no value for id 'u00'; unseen.data.align"):
        IMC(2).fit(cells, row_features=gap)


def test_a_mixed_column_is_told_with_the_first_of_each_kind() -> None:
    with pytest.raises(InvalidDataError, match=r"got str \('ann' in row 0\), int \(1 in row 1\)"):
        Observations.from_frame(frame(user=["ann", 1]), row="user", col="film", value="stars")


def test_text_among_values_is_told_with_its_row() -> None:
    with pytest.raises(InvalidDataError, match="'many' in row 1"):
        Observations.from_frame(frame(stars=["4", "many"]), row="user", col="film", value="stars")


def test_the_way_names_rows_before_columns() -> None:
    numbered = frame(user=[7, 9])
    with pytest.raises(InvalidDataError, match=r"such as 'x'.*row='user', col='film', value='stars'"):
        BiasModel().fit(numbered)


def test_ids_among_the_columns_of_a_wide_table_are_told() -> None:
    wide = pd.DataFrame({"user": range(3, 9), "a": [1.0, np.nan, 3, 4, 5, 1], "b": [2.0, 1, 2, 2, 1, 2]})
    with pytest.warns(DataWarning, match=r"column 'user'.*set_index\('user'\)"):
        Observations.from_any(wide)
    with pytest.warns(DataWarning, match=r"column 'user'.*set_index\('user'\)"):
        Observations.from_any(pl.from_pandas(wide))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Observations.from_any(wide.set_index("user"))
        Observations.from_any(wide[["a", "user", "b"]])  # ids stand first
        Observations.from_any(wide.fillna(1.0))  # nothing is missing, so nothing is completed


# -- lines of feature frames that carry numbers of their own ---------------------------------


def test_an_index_that_looks_like_ids_beside_a_column_of_ids_is_refused() -> None:
    rng = np.random.default_rng(0)
    cells = pd.DataFrame(
        {"user": np.repeat(np.arange(6), 3), "film": list("abc") * 6, "stars": rng.random(18)}
    )
    X = Observations.from_frame(cells, row="user", col="film", value="stars")
    people = pd.DataFrame({"user_id": [3, 1, 0, 5, 4, 2], "age": rng.random(6)})
    shuffled = people.iloc[[5, 0, 3, 1, 2, 4]]
    model = IMC(1, reg=1.0, random_state=0)
    with pytest.raises(InvalidDataError, match=r"twice.*index \(5, 0, 3, ...\).*column 'user_id'"):
        model.fit(X, row_features=shuffled)
    with pytest.raises(InvalidDataError, match=r"name column 'user_id', which holds them, 'user'"):
        model.fit(X, row_features=people)
    with pytest.raises(InvalidDataError, match=r"name column 'user_id', which holds them, 'user'"):
        model.fit(X, row_features=pl.from_pandas(people))
    by_column = model.fit(X, row_features=shuffled.set_index("user_id")).row_factors_
    np.testing.assert_array_equal(
        by_column, model.fit(X, row_features=people.rename(columns={"user_id": "user"})).row_factors_
    )


# -- cells that a model cannot take are named by their ids -------------------------------------


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda X: BiasMC(1).fit(X), "value 2 in row 'ann', column 'y'"),
        (lambda X: NMF(1).fit(X.with_values(-X.values)), "has -1 in row 'ann', column 'x'"),
        (lambda X: Katz().fit(X.with_values(-X.values)), "holds -1.0 in row 'ann', column 'x'"),
        (
            lambda X: cross_validate(BiasModel(), X, cv=[Split(X, X)]),
            "3 test cells are also in training, first row 'ann', column 'x'",
        ),
    ],
)
def test_a_cell_that_cannot_be_taken_is_named_by_its_ids(fit: Any, message: str) -> None:
    lines = pd.DataFrame({"user": ["ann", "ann", "bob"], "film": ["x", "y", "x"], "stars": [1.0, 2.0, 3.0]})
    X = Observations.from_frame(lines, row="user", col="film", value="stars")
    with pytest.raises(InvalidDataError, match=message):
        fit(X)


def test_items_of_pairs_are_named_by_their_ids() -> None:
    points = pd.DataFrame({"a": [0.0, 1.0, 2.0]}, index=["ant", "bee", "cow"])
    with pytest.raises(InvalidDataError, match="item 'bee' does not belong with itself"):
        MCCC(2).fit(points, pairs=[["bee", "bee"]], same=[False])
    with pytest.raises(InvalidDataError, match=r"\('ant', 'cow'\) are said to belong together and not to"):
        MCCC(2).fit(points, pairs=[["ant", "cow"], ["cow", "ant"]], same=[True, False])
