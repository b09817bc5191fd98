"""Tasks of the demonstration on generated data; settings are chosen on training cells only."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unseen import (
    IMC,
    Biased,
    BiasModel,
    Completion,
    Identity,
    LowRank,
    MatrixFactorization,
    Ridge,
    Term,
    WithOnes,
    metrics,
)
from unseen.data import Observations
from unseen.datasets import Synthetic, make_positives, make_ratings
from unseen.model_selection import GridSearch, split_entries, split_rows
from unseen.typing import Array, FloatArray

__all__ = [
    "FULL",
    "NOISE_FLOOR",
    "QUICK",
    "Outcome",
    "Scale",
    "Search",
    "TaskResult",
    "cold_rows",
    "hidden_positives",
    "missing_cells",
    "model_to_look_into",
]

LIST_LENGTH = 10
NOISE_FLOOR = "noise floor (error of the truth before noise and rounding)"


@dataclass(frozen=True)
class Scale:
    """How large the demonstration is."""

    n_rows: int
    n_cols: int
    density: float
    folds: int
    taste_regs: tuple[float, ...]
    feature_regs: tuple[float, ...]
    alphas: tuple[float, ...]
    every: int
    picture_regs: tuple[float, ...]
    n_digits: int
    n_patients: int


FULL = Scale(
    800,
    500,
    0.06,
    3,
    (2.0, 3.0, 4.0, 6.0),
    (1.0, 10.0, 50.0),
    (0.5, 0.8, 0.9, 0.95),
    3,
    (0.5, 1.0, 2.0),
    400,
    569,
)
QUICK = Scale(160, 120, 0.12, 2, (2.0, 4.0), (1.0, 10.0), (0.5, 0.9), 8, (1.0,), 120, 200)


@dataclass(frozen=True)
class Outcome:
    """What one method did.

    Attributes
    ----------
    method : str
        As the report calls it.
    scores : dict
        Measures on the held-out part.
    settings : str
        What was chosen, and how.
    seconds : float
        Search and fit together.
    predicted : ndarray
        Predictions of held-out cells, or ranked lists.
    model : estimator or None
        The fitted model, where there is one.
    """

    method: str
    scores: dict[str, float]
    settings: str
    seconds: float
    predicted: Array
    model: Any = None


@dataclass(frozen=True)
class TaskResult:
    """One task: the data and what each method did, the simplest first."""

    name: str
    question: str
    data: str
    measure: str
    outcomes: list[Outcome]
    truth: Any
    facts: dict[str, float] = field(default_factory=dict)
    pictures: list[tuple[Any, str]] = field(default_factory=list)

    def best(self) -> Outcome:
        """The outcome with the best score."""
        sign = -1.0 if self.measure == "RMSE" else 1.0
        return max(self.outcomes, key=lambda outcome: sign * outcome.scores[self.measure])


def missing_cells(scale: Scale, seed: int) -> TaskResult:
    """Ratings, a fifth of them held out; the same with and without features of rows and columns."""
    data = make_ratings(scale.n_rows, scale.n_cols, density=scale.density, random_state=seed)
    train, test = split_entries(data.observations, test_fraction=0.2, random_state=seed)
    features = _features(data)
    plain = MatrixFactorization(4, center="biases", **_common(seed))
    inductive = IMC(6, center="biases", **_common(seed))
    both = Completion(center="biases", **_common(seed))
    by_reg = {"reg": scale.taste_regs}
    search = Search(train, test, scale.folds)
    outcomes = [
        search.constant("Mean of all ratings"),
        search.run("Biases", BiasModel(), {"reg": (2.0, 5.0, 10.0)}, {}),
        search.run("Low rank", plain, by_reg, {}),
        search.run("Features (IMC)", inductive, {"reg": scale.feature_regs}, features),
        search.run("Features and low rank", both, {"terms": _two_terms(scale)}, features),
    ]
    return TaskResult(
        "Missing cells",
        "What would this row have said about that column? One rating in five is held out.",
        _told(data.observations, "ratings from 1 to 5"),
        "RMSE",
        outcomes,
        test.values,
        {NOISE_FLOOR: metrics.rmse(test.values, data.truth(test.rows, test.indices))},
    )


def model_to_look_into(scale: Scale, seed: int) -> MatrixFactorization:
    """A model of all ratings of the first task."""
    data = make_ratings(scale.n_rows, scale.n_cols, density=scale.density, random_state=seed)
    model = MatrixFactorization(4, reg=scale.taste_regs[0], center="biases", **_common(seed))
    return model.fit(data.observations)


def cold_rows(scale: Scale, seed: int) -> TaskResult:
    """Rows that are not in the training matrix at all, predicted from their features."""
    data = make_ratings(scale.n_rows, scale.n_cols, density=scale.density, random_state=seed + 1)
    parts = split_rows(data.observations, test_fraction=0.2, random_state=seed)
    assert parts.rows is not None
    warm = np.setdiff1d(np.arange(scale.n_rows), parts.rows)
    assert data.row_features is not None
    train = Observations.from_sparse(data.observations.csr[warm])
    test = Observations.from_sparse(data.observations.csr[parts.rows])
    features = {"row_features": data.row_features[warm], "col_features": data.col_features}
    new_rows = data.row_features[parts.rows]
    # Whole rows are held out here as well, so that settings are chosen for the task at hand.
    inner = [split_rows(train, test_fraction=0.2, random_state=seed + fold) for fold in range(scale.folds)]

    def from_features(model: Any) -> FloatArray:
        block: FloatArray = model.predict_new(row_features=new_rows)
        return block[test.rows, test.indices]

    def from_columns(model: Any) -> FloatArray:
        predicted: FloatArray = model.mean_ + model.col_bias_[test.indices]
        return predicted

    inductive = IMC(6, **_common(seed))
    search = Search(train, test, inner)
    grid = {"reg": scale.feature_regs, "center": ["mean", "biases"]}
    outcomes = [
        search.constant("Mean of all ratings"),
        search.run("Mean of the column", BiasModel(), {"reg": (2.0, 5.0, 10.0)}, {}, from_columns),
        search.run("Features (IMC)", inductive, grid, features, from_features),
    ]
    return TaskResult(
        "Cold rows",
        "What will a row want of which nothing but its features is known? One row in five is held out.",
        f"{_told(train, 'ratings')}; {len(parts.rows)} more rows to predict, {test.nnz:,} ratings",
        "RMSE",
        outcomes,
        test.values,
    )


def hidden_positives(scale: Scale, seed: int) -> TaskResult:
    """Positives of which half are hidden; a blank is unlabelled, neither missing nor zero."""
    data = make_positives(scale.n_rows, scale.n_cols, rank=5, class_prior=0.08, rho=0.5, random_state=seed)
    seen, hidden = data.observations, data.hidden
    missing = MatrixFactorization(10, reg=1.0, center="none", **_common(seed))
    term = Term(Identity(), Identity(), LowRank(10), Ridge(1.0))
    biased = Completion([term], **_common(seed))
    everyone = np.arange(seen.shape[0])

    def lists(model: Any) -> Array:
        ids: Array = model.recommend(everyone, k=LIST_LENGTH, exclude=seen)[0]
        return ids

    def outcome(method: str, ids: Array, settings: str, seconds: float, model: Any = None) -> Outcome:
        scores = {
            "Precision at 10": metrics.precision_at_k(hidden, ids, LIST_LENGTH),
            "Recall at 10": metrics.recall_at_k(hidden, ids, LIST_LENGTH),
        }
        return Outcome(method, scores, settings, seconds, ids, model)

    start = time.perf_counter()
    popular = outcome("Popularity", _most_popular(seen), "", time.perf_counter() - start)
    start = time.perf_counter()
    missing.fit(seen)
    as_missing = outcome("Blank = missing", lists(missing), "reg=1", time.perf_counter() - start, missing)
    start = time.perf_counter()
    grid = {"loss": [Biased(alpha) for alpha in scale.alphas]}
    search = GridSearch(biased, grid, cv=scale.folds, scoring=f"recall@{LIST_LENGTH}").fit(seen)
    found = outcome(
        "Blank = unlabelled (biased loss)",
        lists(search),
        f"alpha={search.best_params_['loss'].alpha:g} ({len(scale.alphas)} tried)",
        time.perf_counter() - start,
        search.best_estimator_,
    )
    return TaskResult(
        "Hidden positives",
        "Which blanks are positives that nobody has recorded? Half of the true positives are hidden.",
        _told(seen, "positives seen") + f", {hidden.nnz:,} hidden",
        "Precision at 10",
        [popular, as_missing, found],
        hidden,
        {"share of hidden positives among blanks": hidden.nnz / (seen.shape[0] * seen.shape[1] - seen.nnz)},
    )


@dataclass(frozen=True)
class Search:
    """Chooses settings inside the training part, then looks at the test part once.

    Attributes
    ----------
    train, test : Observations
        The two parts.
    cv : int or list of splits
        How the training part is split.
    """

    train: Observations
    test: Observations
    cv: Any

    def constant(self, method: str) -> Outcome:
        """The mean of the training cells."""
        start = time.perf_counter()
        predicted = np.full(self.test.nnz, self.train.values.mean())
        return self.outcome(method, predicted, "", time.perf_counter() - start)

    def run(
        self,
        method: str,
        estimator: Any,
        grid: Mapping[str, Sequence[Any]],
        features: dict[str, Any],
        predict: Callable[[Any], FloatArray] | None = None,
    ) -> Outcome:
        """A model with the settings that are best in the training part."""
        start = time.perf_counter()
        search = GridSearch(estimator, grid, cv=self.cv, scoring="rmse").fit(self.train, **features)
        model = search.best_estimator_
        if predict is None:
            predicted = model.predict_entries(self.test.rows, self.test.indices)
        else:
            predicted = predict(model)
        seconds = time.perf_counter() - start
        settings = _settings(search.best_params_) + f" ({len(search.results_)} tried)"
        return self.outcome(method, predicted, settings, seconds, model)

    def outcome(
        self, method: str, predicted: FloatArray, settings: str, seconds: float, model: Any = None
    ) -> Outcome:
        """Scores of predictions of the test part."""
        scores = {
            "RMSE": metrics.rmse(self.test.values, predicted),
            "MAE": metrics.mae(self.test.values, predicted),
        }
        return Outcome(method, scores, settings, seconds, predicted, model)


def _two_terms(scale: Scale) -> list[list[Term]]:
    """What features explain, and beside it a low-rank part for what they do not."""
    return [
        [
            Term(WithOnes(True), WithOnes(True), LowRank(6), Ridge(5.0)),
            Term(Identity(), Identity(), LowRank(4), Ridge(reg)),
        ]
        for reg in scale.taste_regs
    ]


def _settings(params: dict[str, Any]) -> str:
    shown = dict(params)
    if "terms" in shown:
        shown = {"reg of the low-rank term": shown["terms"][1].reg.reg}
    told = (f"{value:g}" if isinstance(value, float) else str(value) for value in shown.values())
    return ", ".join(f"{name}={value}" for name, value in zip(shown, told, strict=True))


def _common(seed: int) -> dict[str, Any]:
    """Options of all models; one thread, because the data is too small for threads to pay."""
    return {"tol": 3e-4, "max_iter": 200, "random_state": seed, "n_jobs": 1}


def _features(data: Synthetic) -> dict[str, Any]:
    return {"row_features": data.row_features, "col_features": data.col_features}


def _most_popular(seen: Observations) -> Array:
    """The columns with the most positives that a row does not have yet."""
    from unseen import kernels

    counts = np.bincount(seen.indices, minlength=seen.shape[1]).astype(np.float64)
    ones = np.ones((seen.shape[0], 1))
    ids, _ = kernels.topk(ones, counts[:, None], LIST_LENGTH, exclude=(seen.indptr, seen.indices))
    return ids


def _told(cells: Observations, what: str) -> str:
    share = cells.nnz / (cells.shape[0] * cells.shape[1])
    size = f"{cells.shape[0]:,} rows x {cells.shape[1]:,} columns"
    return f"{size}, {cells.nnz:,} {what} ({share:.1%} of the cells)"
