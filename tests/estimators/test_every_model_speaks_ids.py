"""Every public completer speaks ids: after saving, from disk and through a search too."""

from __future__ import annotations

import inspect
import warnings
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given as given_by
from hypothesis import settings
from hypothesis import strategies as st

import unseen
from unseen import Observations, baselines, links
from unseen.distributed import DiskCompleter
from unseen.estimators import Completer
from unseen.exceptions import UnknownIdError, UnsupportedComposition
from unseen.model_selection import GridSearch

NODES = [f"n{number:02d}" for number in range(14)]
FEW = {"max_iter": 5, "random_state": 0, "rank": 2, "n_jobs": 1}
OWN: dict[str, dict[str, Any]] = {"MMMF": {"max_iter": 20}, "ShiftMC": {"rho": 0.5}, "ShiftIMC": {"rho": 0.5}}
NO_WEIGHTS = {"LowDensityNMF"}
COMPLETERS = sorted(
    {
        found
        for module in (unseen, baselines, links)
        for name in module.__all__
        if inspect.isclass(found := getattr(module, name))
        and issubclass(found, Completer)
        and found is not Completer
        if not inspect.isabstract(found)
    },
    key=lambda cls: cls.__name__,
)


def frame(cls: type) -> pd.DataFrame:
    """Links for models of a graph, positives for those of positives, small numbers for the others."""
    rng = np.random.default_rng(0)
    n = len(NODES)
    i, j = np.nonzero(np.triu(rng.random((n, n)) < 0.4, 1))
    i, j = np.concatenate([i, j]), np.concatenate([j, i])
    whole = inspect.signature(cls).parameters
    positive = issubclass(cls, links.base.LinkCompleter) or {"rho", "alpha", "class_prior", "weights"} & set(
        whole
    )
    stars = np.ones(len(i)) if positive or cls.__name__ == "OneBitMC" else 1.0 + (i + j) % 3
    return pd.DataFrame({"who": np.array(NODES)[i], "whom": np.array(NODES)[j], "stars": stars})


def cells(table: pd.DataFrame, **about: Any) -> Observations:
    return Observations.from_frame(table, row="who", col="whom", value="stars", **about)


@lru_cache
def fitted(cls: type) -> Any:
    known = inspect.signature(cls).parameters
    options = {name: value for name, value in FEW.items() if name in known} | OWN.get(cls.__name__, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cls(**options).fit(cells(frame(cls)))


def test_all_completers_are_tested() -> None:
    assert {"BiasModel", "GIMC", "MMMF", "BlendedLinks", "Completion", "Popularity"} <= {
        c.__name__ for c in COMPLETERS
    }


@pytest.mark.parametrize("cls", COMPLETERS, ids=lambda cls: cls.__name__)
def test_every_completer_speaks_ids(cls: type, tmp_path: Any) -> None:
    model, table = fitted(cls), frame(cls)
    who, whom = NODES[:4], NODES[3:7]
    at = model.row_ids_.index_of(who), model.col_ids_.index_of(whom)
    found = model.predict_entries(who, whom)
    np.testing.assert_array_equal(found, model.predict_entries(*at, positions=True))
    with pytest.raises(UnknownIdError, match="'zoe'"):
        model.predict_entries(["zoe"], whom[:1])
    lists = model.recommend(NODES, k=20, as_frame=True)
    assert list(lists.columns) == ["who", "whom", "rank", "score"]
    seen = set(zip(table.who, table.whom, strict=True))
    assert not seen & set(zip(lists.who, lists.whom, strict=True))
    own = len(NODES) if isinstance(model, links.base.LinkCompleter) else 0  # no node is a link to itself
    assert len(lists) == len(NODES) ** 2 - len(table) - own
    ids, scores = model.recommend(model.row_ids_.index_of(NODES), k=20, positions=True)
    assert model.col_ids_[ids[ids >= 0]].tolist() == lists.whom.tolist()
    np.testing.assert_array_equal(scores[ids >= 0], lists.score)
    shuffled = cells(table.sample(frac=1.0, random_state=3)).transpose().transpose()
    assert (
        model.recommend(["n05"], exclude=shuffled, k=3)[0].tolist()
        == lists.whom[lists.who == "n05"][:3].to_numpy()[None].tolist()
    )
    model.save(tmp_path / "model")
    again = unseen.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_entries(who, whom), found)
    pd.testing.assert_frame_equal(again.recommend(NODES, k=20, as_frame=True), lists)


@pytest.mark.parametrize("cls", COMPLETERS, ids=lambda cls: cls.__name__)
def test_every_completer_matches_new_rows_by_id(cls: type) -> None:
    model, table = fitted(cls), frame(cls)
    mine = table[table.who == "n05"]
    few = cells(mine)  # with as many columns as it has cells
    assert few.shape[1] < len(NODES)
    whole = cells(mine, col_ids=model.col_ids_)
    expected = model.transform(whole)
    np.testing.assert_array_equal(model.transform(few), expected)
    np.testing.assert_array_equal(model.fold_in(few), model.fold_in(whole))
    with pytest.raises(ValueError, match="has no ids of columns"):
        model.transform(few.csr)
    lists = model.recommend(cells=few, k=20, as_frame=True)
    assert set(lists.who) == {"n05"}
    assert not set(lists.whom) & set(mine.whom)
    assert (np.diff(lists.score) <= 0).all()
    if cls.__name__ != "MMMF":  # whose lists are of scores, not of levels
        np.testing.assert_allclose(
            lists.score, expected[0][model.col_ids_.index_of(lists.whom)], rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize("cls", COMPLETERS, ids=lambda cls: cls.__name__)
def test_every_completer_lists_what_is_similar_or_says_why_not(cls: type) -> None:
    model = fitted(cls)
    for ask in (model.similar_rows, model.similar_cols):
        try:
            near = ask(["n05"], k=3, as_frame=True)
        except UnsupportedComposition as error:
            said = str(error)
            assert cls.__name__ in said
            continue
        assert "n05" not in set(near.similar)
        assert set(near.similar) <= set(NODES)
        assert near.score.between(-1 - 1e-6, 1 + 1e-6).all()


def test_a_model_from_disk_speaks_ids(tmp_path: Any) -> None:
    table = frame(unseen.MatrixFactorization)
    path = tmp_path / "cells.parquet"
    table.to_parquet(path)
    fit = DiskCompleter(
        unseen.MatrixFactorization(rank=2, reg=1.0, max_iter=5, random_state=0), memory="1GiB", n_jobs=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit.fit(str(path), row="who", col="whom", value="stars")
    bare, model = fit.to_local(), fit.to_local(seen=True)
    fit.close()
    with pytest.raises(ValueError, match="exclude='seen'"):
        bare.recommend(["n05"])
    lists = model.recommend(NODES, k=20, as_frame=True)
    assert list(lists.columns) == ["who", "whom", "rank", "score"]
    assert not set(zip(table.who, table.whom, strict=True)) & set(zip(lists.who, lists.whom, strict=True))
    given = bare.recommend(NODES, k=20, exclude=cells(table), as_frame=True)
    pd.testing.assert_frame_equal(given, lists)


def test_a_search_speaks_ids() -> None:
    table = frame(unseen.BiasModel)
    search = GridSearch(unseen.BiasModel(), {"reg": [1.0, 5.0]}, cv=2, scoring="rmse").fit(cells(table))
    assert search.predict_entries(["n03"], ["n05"]).shape == (1,)
    assert list(search.recommend(["n03"], k=2, as_frame=True).columns) == ["who", "whom", "rank", "score"]
    ranked = GridSearch(
        unseen.BiasMC(rank=2, alpha=0.9, random_state=0), {"reg": [0.5]}, cv=2, scoring="recall@3"
    )
    assert 0 <= ranked.fit(cells(table.assign(stars=1.0))).best_score_ <= 1


# -- the order in which a frame has its lines ------------------------------------------------


def features_of(side: str) -> pd.DataFrame:
    rng = np.random.default_rng(len(side))
    kinds = np.where(rng.random(len(NODES)) < 0.5, "left", "right")
    return pd.DataFrame({side: NODES, "size": rng.normal(size=len(NODES)), "kind": kinds})


def answers(cls: type, turned: np.random.Generator | None) -> pd.DataFrame:
    """Predictions by id of a fit to a frame, to its features where the model takes some, in any order."""
    known = inspect.signature(cls).parameters
    options = {name: value for name, value in FEW.items() if name in known} | OWN.get(cls.__name__, {})

    def order(table: pd.DataFrame) -> Any:
        if turned is None:
            return table
        mixed = table.iloc[turned.permutation(len(table))]
        return pl.from_pandas(mixed) if turned.random() < 0.5 else mixed.reset_index(drop=True)

    lines = frame(cls)
    weighed = not issubclass(cls, links.base.LinkCompleter) and cls.__name__ not in NO_WEIGHTS
    about = {"weight": "counts"} if weighed else {}
    lines["counts"] = 1.0 + np.arange(len(lines)) % 3
    given = {f"{side}_features": order(features_of(name)) for side, name in (("row", "who"), ("col", "whom"))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X = Observations.from_frame(order(lines), row="who", col="whom", value="stars", **about)
        try:
            model = cls(**options).fit(X, **given)
        except ValueError:  # takes none
            model = cls(**options).fit(X)
    found = model.predict_entries(np.repeat(NODES, len(NODES)), NODES * len(NODES))
    lists = model.recommend(NODES, k=4, as_frame=True)
    lists = lists if isinstance(lists, pd.DataFrame) else lists.to_pandas()
    return pd.concat([pd.DataFrame({"found": found}), lists], axis=1)


@pytest.mark.parametrize("cls", COMPLETERS, ids=lambda cls: cls.__name__)
@settings(max_examples=2, deadline=None)
@given_by(seed=st.integers(0, 2**31))
def test_any_order_of_cells_and_features_gives_the_same_answers_by_id(cls: type, seed: int) -> None:
    pd.testing.assert_frame_equal(answers(cls, None), answers(cls, np.random.default_rng(seed)))


def test_an_order_that_is_taken_by_position_would_be_seen() -> None:
    people = features_of("who")
    wrong = people.assign(who=np.roll(NODES, 1))
    X = cells(frame(unseen.IMC))
    right, other = (
        unseen.IMC(2, reg=0.1, random_state=0, max_iter=5)
        .fit(X, row_features=given)
        .predict_entries(NODES, NODES)
        for given in (people, wrong)
    )
    assert not np.allclose(right, other, rtol=1e-3)
