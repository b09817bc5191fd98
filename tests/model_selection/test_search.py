"""Cross-validation and grid search with a completer small enough to reason about."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import FitFailedWarning

from unseen.data import Observations
from unseen.exceptions import DataWarning, InvalidDataError, NotFittedError, ParameterError
from unseen.model_selection import (
    GridSearch,
    KFoldEntries,
    Split,
    cross_validate,
    get_scorer,
    make_scorer,
    split_entries,
    split_rows,
)


class ShrunkMean(BaseEstimator):
    """Predicts the mean of the training values times 1 / (1 + reg); remembers what it was fitted on."""

    def __init__(self, reg=0.0, shift=0.0, fail_above=np.inf):
        self.reg = reg
        self.shift = shift
        self.fail_above = fail_above

    def fit(self, X, y=None, *, row_features=None, col_features=None):
        if self.reg > self.fail_above:
            raise ValueError(f"reg {self.reg} is too large")
        self.seen_ = X
        self.features_ = (row_features, col_features)
        self.mean_ = X.values.mean() / (1 + self.reg) + self.shift
        self.popularity_ = np.bincount(X.indices, minlength=X.shape[1])
        return self

    def predict_entries(self, rows, cols):
        return np.full(len(rows), self.mean_)

    def recommend(self, rows, k=10, *, exclude=None, candidates=None):
        scores = np.tile(self.popularity_.astype(float), (len(rows), 1))
        if exclude is not None:
            scores[exclude.csr[rows].toarray() != 0] = -np.inf
        ids = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return ids, np.take_along_axis(scores, ids, axis=1)


class Memoriser(ShrunkMean):
    """Knows its training cells by heart and nothing else: perfect exactly where a split leaks."""

    def predict_entries(self, rows, cols):
        known = np.asarray(self.seen_.csr[rows, cols]).ravel()
        present = np.asarray((self.seen_.with_values(np.ones(self.seen_.nnz)).csr)[rows, cols]).ravel()
        return np.where(present > 0, known, -100.0)


class WarmMean(ShrunkMean):
    """Counts how often the same object was fitted and in which order."""

    log: list = []

    def __init__(self, reg=0.0, shift=0.0, warm_start=False):
        super().__init__(reg, shift)
        self.warm_start = warm_start

    def fit(self, X, y=None):
        self.fail_above = np.inf
        WarmMean.log.append((self.reg, self.shift, self.warm_start, hasattr(self, "mean_")))
        return super().fit(X)

    def get_params(self, deep=True):
        return {"reg": self.reg, "shift": self.shift, "warm_start": self.warm_start}


@pytest.fixture
def ratings():
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((30, 20)) < 0.4, 3.0 + rng.standard_normal((30, 20)), np.nan)
    return Observations.from_any(dense)


# --- cross_validate -------------------------------------------------------------------------


def test_cross_validate_by_hand(ratings):
    folds = KFoldEntries(4, random_state=3)
    results = cross_validate(ShrunkMean(), ratings, cv=folds, scoring=["rmse", "mae"])
    for row, (train, test) in zip(results, folds.split(ratings), strict=True):
        error = test.values - train.values.mean()
        assert row["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)))
        assert row["mae"] == pytest.approx(np.mean(np.abs(error)))
        assert (row["n_train"], row["n_test"]) == (train.nnz, test.nnz)
    assert results.mean("rmse") == pytest.approx(np.mean([row["rmse"] for row in results]))


def test_an_integer_means_the_same_folds_each_time(ratings):
    first, second = (cross_validate(ShrunkMean(), ratings, cv=3).column("rmse") for _ in range(2))
    assert first == second
    assert cross_validate(ShrunkMean(), ratings, cv=3, n_jobs=2).column("rmse") == first


def test_a_planted_leak_is_refused(ratings):
    honest = split_entries(ratings, random_state=0)
    assert cross_validate(Memoriser(), ratings, cv=honest).mean("rmse") > 50
    leaky = Split(ratings, honest.test)
    model = Memoriser().fit(leaky.train)
    assert get_scorer("rmse")(model, leaky) == 0.0  # what the leak would have claimed
    row, col = leaky.test.rows[0], leaky.test.indices[0]
    with pytest.raises(
        InvalidDataError, match=rf"leaks: {leaky.test.nnz} test cells .* row {row}, column {col}"
    ):
        cross_validate(Memoriser(), ratings, cv=leaky)
    with pytest.raises(InvalidDataError, match="leaks"):
        GridSearch(Memoriser(), {"reg": [0.0]}, cv=[(ratings, honest.test)]).fit(ratings)


def test_a_single_leaking_cell_is_found(ratings):
    train, test = split_entries(ratings, random_state=0)
    keep = np.zeros(ratings.nnz, dtype=bool)
    keep[(ratings.rows == test.rows[-1]) & (ratings.indices == test.indices[-1])] = True
    in_train = np.array([(r, c) in set(zip(train.rows, train.indices, strict=True)) for r, c in
                         zip(ratings.rows, ratings.indices, strict=True)])  # fmt: skip
    with pytest.raises(InvalidDataError, match="leaks: 1 test cells"):
        cross_validate(ShrunkMean(), ratings, cv=[(ratings.select(in_train | keep), test)])


def test_a_symmetric_matrix_does_not_leak_through_its_mirror():
    rng = np.random.default_rng(0)
    upper = np.triu(rng.random((20, 20)) < 0.4, 1)
    links = Observations.from_any(sparse.csr_array((upper | upper.T).astype(float)))
    seen = []

    def mirrored_cells(model, split):
        train = set(zip(split.train.indices, split.train.rows, strict=True))
        seen.append(len(train & set(zip(split.test.rows, split.test.indices, strict=True))))
        return 0.0

    cross_validate(ShrunkMean(), links, cv=3, scoring=mirrored_cells)
    assert seen == [0, 0, 0]


def test_features_reach_the_estimator_only_when_given(ratings):
    seen = []

    def remember(model, split):
        seen.append(model.features_)
        return 0.0

    features = np.ones((30, 2))
    cross_validate(ShrunkMean(), ratings, cv=2, scoring=remember, row_features=features)
    assert all(row is features and col is None for row, col in seen)


def test_cold_rows_through_a_list_of_splits(ratings):
    splits = [split_rows(ratings, random_state=seed) for seed in range(2)]
    assert len(cross_validate(ShrunkMean(), ratings, cv=splits)) == 2


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (1, "n_splits"),
        ([], "gives no split"),
        (["a"], "split 0 is a str"),
        (None, "cv=None"),
        (True, "cv=True"),
    ],
)
def test_bad_cv(ratings, cv, message):
    with pytest.raises(ParameterError, match=message):
        cross_validate(ShrunkMean(), ratings, cv=cv)


def test_parts_of_another_shape_are_refused(ratings):
    other = split_entries(np.arange(12.0).reshape(3, 4), random_state=0)
    with pytest.raises(InvalidDataError, match=r"parts of shape \(3, 4\)"):
        cross_validate(ShrunkMean(), ratings, cv=other)


# --- scoring --------------------------------------------------------------------------------


def test_ranking_scores_exclude_training_cells():
    X = Observations.from_triples([0, 0, 1, 1, 2], [0, 1, 0, 2, 0], shape=(3, 4))
    split = Split(
        Observations.from_triples([0, 1, 2], [0, 0, 0], shape=(3, 4)),
        Observations.from_triples([0, 1], [1, 2], shape=(3, 4)),
    )
    model = ShrunkMean().fit(split.train)
    # Column 0 is everybody's favourite but known; next come 1, 2, 3 in order.
    assert get_scorer("precision@1")(model, split) == 0.5
    assert get_scorer("recall@2")(model, split) == 1.0
    assert get_scorer("ndcg@1")(model, split) == 0.5
    assert X.nnz == split.train.nnz + split.test.nnz


@pytest.mark.parametrize("scoring", ["r2", "precision@0", "precision", "ndcg@x", 7, None])
def test_unknown_scoring_is_refused(scoring):
    with pytest.raises(ParameterError, match="scoring"):
        get_scorer(scoring)


def test_auc_of_held_out_zeros_and_ones():
    values = np.tile([0.0, 1.0], (6, 5))
    split = split_entries(values, random_state=0)

    class Oracle(ShrunkMean):
        def predict_entries(self, rows, cols):
            return values[rows, cols]

    assert get_scorer("auc")(Oracle().fit(split.train), split) == 1.0
    assert get_scorer("auc")(ShrunkMean().fit(split.train), split) == 0.5


def test_direction_of_own_scorers(ratings):
    grid = {"shift": [-1.0, 0.0, 1.0]}

    def prediction(model, split):
        return float(model.mean_)

    assert GridSearch(ShrunkMean(), grid, cv=2, scoring=prediction).fit(ratings).best_params_ == {
        "shift": 1.0
    }
    smaller = make_scorer(prediction, greater_is_better=False)
    assert GridSearch(ShrunkMean(), grid, cv=2, scoring=smaller).fit(ratings).best_params_ == {"shift": -1.0}


# --- GridSearch -----------------------------------------------------------------------------


def test_search_agrees_with_cross_validation(ratings):
    grid = {"reg": [0.0, 0.5], "shift": [0.0, 1.0]}
    search = GridSearch(ShrunkMean(), grid, cv=KFoldEntries(3, random_state=1)).fit(ratings)
    assert len(search.results_) == 4
    for row in search.results_:
        direct = cross_validate(ShrunkMean(**row["params"]), ratings, cv=KFoldEntries(3, random_state=1))
        assert row["fold_scores"] == direct.column("rmse")
        assert row["score"] == pytest.approx(direct.mean("rmse"))
    assert search.best_params_ == {"reg": 0.0, "shift": 0.0}
    assert search.best_score_ == min(search.results_.column("score"))
    assert search.results_[search.best_index_]["place"] == 1
    assert search.n_splits_ == 3
    assert search.best_estimator_.seen_ is ratings  # refitted on all cells


def test_selection_sees_only_the_training_part(ratings):
    fitted_on = []

    class Spy(ShrunkMean):
        def fit(self, X, y=None):
            fitted_on.append(X.nnz)
            return super().fit(X)

    split = split_entries(ratings, test_fraction=0.25, random_state=0)
    GridSearch(Spy(), {"reg": [0.0, 1.0]}, cv=split).fit(ratings)
    assert fitted_on == [split.train.nnz, split.train.nnz, ratings.nnz]


def test_threads_change_nothing(ratings):
    grid = {"reg": [0.0, 0.1, 1.0], "shift": [0.0, 0.2]}
    one, two = (GridSearch(ShrunkMean(), grid, cv=3, n_jobs=n).fit(ratings) for n in (1, 2))
    assert one.results_.column("fold_scores") == two.results_.column("fold_scores")


def test_regularisation_path_runs_from_large_to_small(ratings):
    WarmMean.log = []
    grid = {"reg": [0.1, 10.0, 1.0], "shift": [0.0, 5.0]}
    search = GridSearch(WarmMean(), grid, cv=KFoldEntries(2, random_state=0)).fit(ratings)
    chain = [(10.0, False), (1.0, True), (0.1, True)]
    expected = [(reg, shift, True, warm) for _ in range(2) for shift in (0.0, 5.0) for reg, warm in chain]
    # The refit starts cold and with the user's own warm_start.
    assert WarmMean.log == [*expected, (0.1, 0.0, False, False)]
    assert search.results_.column("params")[0] == {"reg": 0.1, "shift": 0.0}  # results keep the grid's order
    assert search.best_params_ == {"reg": 0.1, "shift": 0.0}


def test_failed_candidates_are_recorded_and_never_chosen(ratings):
    search = GridSearch(ShrunkMean(fail_above=2.0), {"reg": [5.0, 1.0, 0.5]}, cv=2)
    with pytest.warns(FitFailedWarning, match="1 of 3 candidates failed"):
        search.fit(ratings)
    assert search.results_[0]["error"] == "ValueError: reg 5.0 is too large"
    assert np.isnan(search.results_[0]["score"])
    assert search.results_[1]["error"] is None
    assert search.best_params_ == {"reg": 0.5}
    assert search.results_.column("place") == [3, 2, 1]


def test_all_failed_raises_with_the_reason(ratings):
    with pytest.raises(ParameterError, match=r"all 2 candidates failed.*too large") as caught:
        GridSearch(ShrunkMean(fail_above=0.0), {"reg": [1.0, 2.0]}, cv=2).fit(ratings)
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_failure_in_the_middle_of_a_path_restarts_it(ratings):
    class Brittle(WarmMean):
        def fit(self, X, y=None):
            if self.reg == 1.0:
                raise ValueError("no")
            return super().fit(X)

    WarmMean.log = []
    with pytest.warns(FitFailedWarning):
        GridSearch(Brittle(), {"reg": [0.1, 1.0, 10.0]}, cv=split_entries(ratings, random_state=0)).fit(
            ratings
        )
    assert WarmMean.log[:2] == [(10.0, 0.0, True, False), (0.1, 0.0, True, False)]


def test_a_score_that_is_nan_counts_as_failure(ratings):
    def nan_for_small(model, split):
        return np.nan if model.reg == 0.0 else 1.0

    with pytest.warns(FitFailedWarning, match="nan_for_small is nan"):
        search = GridSearch(ShrunkMean(), {"reg": [0.0, 1.0]}, cv=2, scoring=nan_for_small).fit(ratings)
    assert search.best_params_ == {"reg": 1.0}


def test_values_that_are_all_equal_cannot_be_scored_by_rmse():
    positives = sparse.csr_array((np.random.default_rng(0).random((20, 15)) < 0.3).astype(float))
    with pytest.warns(DataWarning, match="recall@10"):
        GridSearch(ShrunkMean(), {"reg": [0.0, 1.0]}, cv=2).fit(positives)
    GridSearch(ShrunkMean(), {"reg": [0.0, 1.0]}, cv=2, scoring="recall@5").fit(positives)


def test_unknown_parameter_is_named(ratings):
    with pytest.raises(ParameterError, match=r"'rank'.*fail_above, reg, shift"):
        GridSearch(ShrunkMean(), {"rank": [1]}).fit(ratings)


def test_scikit_learn_habits(ratings):
    search = GridSearch(ShrunkMean(), {"reg": [0.0, 1.0]}, cv=2)
    assert search.get_params()["estimator__reg"] == 0.0
    copy = clone(search.set_params(estimator__shift=2.0, scoring="mae"))
    assert copy.estimator is not search.estimator
    assert (copy.estimator.shift, copy.scoring) == (2.0, "mae")
    assert not hasattr(copy, "best_params_")
    with pytest.raises(NotFittedError, match="call fit before predict_entries"):
        copy.predict_entries([0], [0])
    assert "GridSearch" in repr(search)
    before = search.estimator.get_params()
    search.fit(ratings)
    assert search.estimator.get_params() == before
    assert not hasattr(search.estimator, "mean_")


def test_search_forwards_and_nests(ratings):
    search = GridSearch(ShrunkMean(), {"reg": [0.0, 1.0]}, cv=2).fit(ratings)
    np.testing.assert_array_equal(
        search.predict_entries([0, 1], [2, 3]), search.best_estimator_.predict_entries([0, 1], [2, 3])
    )
    assert search.recommend([0], k=3, exclude=ratings)[0].shape == (1, 3)
    with pytest.raises(AttributeError, match="predict_new"):
        search.predict_new()
    nested = cross_validate(GridSearch(ShrunkMean(), {"reg": [0.0, 1.0]}, cv=2), ratings, cv=3)
    assert len(nested) == 3


def test_without_refit_there_is_no_model(ratings):
    search = GridSearch(ShrunkMean(), {"reg": [0.0, 1.0]}, cv=2).fit(ratings)
    search.set_params(refit=False).fit(ratings)
    assert search.best_params_ == {"reg": 0.0}
    with pytest.raises(NotFittedError, match="refit=False"):
        search.predict_entries([0], [0])


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_results_as_a_frame(ratings, backend):
    pytest.importorskip(backend)
    grid = [{"reg": [0.0, 1.0]}, {"shift": [0.5]}]
    frame = GridSearch(ShrunkMean(), grid, cv=2).fit(ratings).results_.to_frame(backend)
    names = list(frame.column_names if backend == "pyarrow" else frame.columns)
    assert {"param_reg", "param_shift", "score", "fold0", "fold1", "place", "error"} <= set(names)
    assert frame.shape[0] == 3


def test_progress_bar_only_when_asked(ratings, capsys):
    cross_validate(ShrunkMean(), ratings, cv=2)
    GridSearch(ShrunkMean(), {"reg": [0.0]}, cv=2).fit(ratings)
    assert capsys.readouterr().err == ""
    GridSearch(ShrunkMean(), {"reg": [0.0]}, cv=2, verbose=1).fit(ratings)
    assert "2/2" in capsys.readouterr().err
