"""Methods side by side: nothing is chosen on test cells, and the words fit the numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unseen import Observations
from unseen.comparison import CANDIDATES, Comparison, Entry, compare
from unseen.comparison.candidates import TITLES, Candidate
from unseen.comparison.outer_splits import Splitter, splitter
from unseen.datasets import make_power_law
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.model_selection import Split


@pytest.fixture
def ratings() -> Observations:
    rng = np.random.default_rng(0)
    X = 3 + rng.standard_normal((50, 2)) @ rng.standard_normal((2, 30))
    X[rng.random(X.shape) < 0.4] = np.nan
    return Observations.from_any(X)


def keys(cells: Observations) -> set[tuple[int, int]]:
    return set(zip(cells.rows.tolist(), cells.indices.tolist(), strict=True))


@pytest.mark.parametrize("kind", ["entries", "rows", "cols", "both", "time"])
def test_settings_are_chosen_without_the_test_cells(
    kind: str, ratings: Observations, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[set[tuple[int, int]]] = []
    scored: list[set[tuple[int, int]]] = []
    from unseen import BiasModel
    from unseen.comparison import tasks

    fit, score = BiasModel.fit, tasks.CellTask.score

    def spy(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(keys(X))
        return fit(self, X, *args, **kwargs)

    def watch(self: Any, model: Any, parts: Any) -> Any:
        for cells in seen:
            assert not cells & keys(parts[0].test), "a fit has seen test cells"
        seen.clear()
        scored.append(keys(parts[0].test))
        return score(self, model, parts)

    monkeypatch.setattr(BiasModel, "fit", spy)
    monkeypatch.setattr(tasks.CellTask, "score", watch)
    timed = ratings.with_times(np.arange(ratings.nnz)[::-1])
    found = compare(timed, methods=["bias"], split=kind, repeats=3)
    assert len(scored) == 3 * len(found.entries)
    assert all(len(entry.scores["rmse"]) == 3 for entry in found.entries)


def test_a_planted_leak_is_caught(ratings: Observations, monkeypatch: pytest.MonkeyPatch) -> None:
    from unseen.comparison import outer_splits, tasks

    def leaking(*args: Any, **kwargs: Any) -> Splitter:
        honest = outer_splits.splitter(*args, **kwargs)

        def outer(number: int) -> Split:
            split = honest.outer(number)
            mask = np.zeros(ratings.nnz, dtype=bool)
            mask[:] = True  # the training part holds the test cells too
            return Split(ratings.select(mask), split.test)

        return Splitter(outer, honest.inner)

    monkeypatch.setattr(tasks, "splitter", leaking)
    with pytest.raises(InvalidDataError, match="leaks"):
        compare(ratings, methods=["bias"], repeats=1)


def test_a_leak_into_the_choice_of_settings_is_caught(
    ratings: Observations, monkeypatch: pytest.MonkeyPatch
) -> None:
    from unseen.comparison import outer_splits, tasks

    def leaking(*args: Any, **kwargs: Any) -> Splitter:
        honest = outer_splits.splitter(*args, **kwargs)
        return Splitter(honest.outer, lambda split, number: Split(split.train, split.test))

    monkeypatch.setattr(tasks, "splitter", leaking)
    with pytest.raises(InvalidDataError, match="leaks"):
        compare(ratings, methods=["bias"], repeats=1)


def test_low_rank_data_get_a_low_rank_model(ratings: Observations) -> None:
    found = compare(ratings, methods=["mf"], repeats=3, n_jobs=1)
    chosen = found.recommended()
    assert chosen is not None
    assert chosen.method == "mf"
    assert "better than the best simple baseline" in found.recommendation()
    head, lines = found.rows()
    assert lines[0][0] == "mf"
    assert all(len(line) == len(head) for line in lines)


def test_additive_data_get_the_simple_baseline() -> None:
    rng = np.random.default_rng(1)
    X = np.add.outer(rng.standard_normal(40), rng.standard_normal(30)) + rng.standard_normal((40, 30))
    X[rng.random(X.shape) < 0.5] = np.nan
    found = compare(X, methods=["mf"], repeats=4, n_jobs=1)
    chosen = found.recommended()
    assert chosen is not None
    assert chosen.simple
    assert "Nothing here is clearly better" in found.recommendation()


def test_the_intervals_are_those_of_a_paired_t_test() -> None:
    from scipy import stats

    a, b = [0.5, 0.6, 0.55, 0.52], [0.6, 0.65, 0.7, 0.61]
    entries = [
        Entry("a", "A", scores={"rmse": a}, fit_s=[1.0]),
        Entry("b", "B", scores={"rmse": b}, fit_s=[1.0]),
    ]
    found = Comparison("explicit", "entries", ["rmse"], False, entries, {}, {})
    lead, half = found.lead(entries[0], entries[1])
    interval = stats.ttest_rel(b, a).confidence_interval(0.95)
    assert lead - half == pytest.approx(interval.low)
    assert lead + half == pytest.approx(interval.high)
    assert found.is_ahead(*entries)
    assert not found.is_ahead(*entries[::-1])


def comparison(**scores: list[float]) -> Comparison:
    entries = [
        Entry(name, name.upper(), name in ("mean", "bias"), {"rmse": values}, fit_s=[1.0] * len(values))
        for name, values in scores.items()
    ]
    return Comparison("explicit", "time", ["rmse"], False, entries, {}, {})


@pytest.mark.parametrize(
    "scores",
    [
        {"mean": [1.10, 1.152], "bias": [1.05, 1.07], "mf": [1.035, 1.047]},  # 1.126 against 1.041
        {"mean": [1.05, 1.20, 1.128], "bias": [1.01, 1.07, 1.06], "mf": [1.00, 1.08, 1.043]},
        {"mean": [1.2], "bias": [1.1], "mf": [1.0]},
    ],
)
def test_few_test_parts_do_not_recommend_what_loses_on_each(scores: dict[str, list[float]]) -> None:
    found = comparison(**scores)
    chosen = found.recommended()
    assert chosen is not None
    assert chosen.method != "mean"
    for other in found.entries:
        lead, doubt = found.lead(other, chosen)[0], found.doubt(other, chosen)
        assert lead <= doubt


def test_the_simple_one_is_recommended_where_it_wins_as_often() -> None:
    found = comparison(mean=[1.2, 1.3, 1.2], bias=[1.00, 1.02, 1.01], mf=[0.99, 1.03, 1.005])
    chosen = found.recommended()
    assert chosen is not None
    assert chosen.method == "bias"
    assert "within one standard error" in found.recommendation()


def test_every_title_is_that_of_a_candidate() -> None:
    assert set(TITLES) <= set(CANDIDATES)
    assert compare(np.arange(20.0).reshape(4, 5), methods=[], repeats=1).recommendation().startswith("Use ")


def test_positives_links_and_labels() -> None:
    cells = make_power_law(200, 60, 3000, random_state=0).observations
    found = compare(cells, task="positive", methods=["shift-mc"], repeats=2, n_jobs=1)
    assert {entry.method for entry in found.entries} == {"popular", "shift-mc"}
    assert not [entry.error for entry in found.entries if entry.error]
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 5, 60)
    A = np.triu((groups[:, None] == groups) & (rng.random((60, 60)) < 0.6), 1)
    graph = np.where(A | A.T, 1.0, np.nan)
    found = compare(graph, task="links", methods=["katz"], repeats=2, n_jobs=1)
    assert not [entry.error for entry in found.entries if entry.error]
    assert found.ranked[0].mean("links found") > 0.2
    X = rng.standard_normal((80, 6))
    Y = (X @ rng.standard_normal((6, 9)) > 1).astype(float)
    found = compare(X, Y, task="multilabel", methods=["ridge"], repeats=2, n_jobs=1)
    assert found.ranked[0].mean("precision@1") > 0.5


def test_a_failing_method_is_told_and_the_others_go_on(
    ratings: Observations, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Candidate("MatrixFactorization", ("explicit",), fixed={"rank": -1})
    monkeypatch.setitem(CANDIDATES, "broken", broken)
    found = compare(ratings, methods=["broken"], repeats=2)
    entry = next(entry for entry in found.entries if entry.method == "broken")
    assert entry.error is not None
    assert "rank" in entry.error
    assert found.recommended() is not None
    assert found.rows()[1][-1][1] == "failed"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"methods": ["nope"]}, "nope"),
        ({"task": "nope"}, "task"),
        ({"split": "nope"}, "split"),
        ({"split": "time"}, "times"),
        ({"repeats": 0}, "repeats"),
        ({"test_fraction": 1.5}, "test_fraction"),
        ({"task": "multilabel"}, "needs y"),
        ({"task": "links", "split": "rows"}, "links"),
        ({"times": [1.0]}, "split='time'"),
        ({"times": [1.0], "split": "time"}, "nobody can check"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], words: str, ratings: Observations) -> None:
    with pytest.raises((ParameterError, ValueError), match=words):
        compare(ratings, **arguments)


def test_a_method_without_its_features_is_left_out_with_the_reason(ratings: Observations) -> None:
    found = compare(ratings, methods=["imc"], repeats=1)
    assert "features" in found.left_out["imc"]


def test_forward_splits_never_train_on_the_future(ratings: Observations) -> None:
    times = np.random.default_rng(0).permutation(ratings.nnz).astype(float)
    at = dict(zip(zip(ratings.rows.tolist(), ratings.indices.tolist(), strict=True), times, strict=True))
    timed = ratings.with_times(times)
    made = splitter("time", timed, repeats=4, test_fraction=0.4, seed=0, symmetric=False)
    tested: list[tuple[int, int]] = []
    for outer, inner in made.repeats(4):
        latest = max(at[key] for key in keys(outer.train))
        assert latest < min(at[key] for key in keys(outer.test))
        assert max(at[key] for key in keys(inner.train)) < min(at[key] for key in keys(inner.test))
        assert max(at[key] for key in keys(inner.test)) <= latest
        tested += keys(outer.test)
    assert len(tested) == len(set(tested))


def test_every_candidate_can_be_made_and_knows_its_settings() -> None:
    for candidate in CANDIDATES.values():
        known = candidate.make(0, 1).get_params()
        assert set(candidate.grid) <= set(known)


def test_a_lead_whose_interval_holds_zero_is_called_so() -> None:
    unsure = comparison(bias=[1.0, 1.02], mf=[0.98, 0.96])
    assert unsure.recommended().method == "mf"  # type: ignore[union-attr]
    assert "may be chance" in unsure.recommendation()
    sure = comparison(bias=[1.0, 1.02, 1.01], mf=[0.8, 0.81, 0.82])
    assert "may be chance" not in sure.recommendation()


def test_values_are_no_positives(ratings: Observations) -> None:
    with pytest.raises(InvalidDataError, match=r"the value .* in row .*positives are ones.*--no-value"):
        compare(ratings, task="positive", methods=["bias-mc"], repeats=1)
