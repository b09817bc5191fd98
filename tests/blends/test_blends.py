"""Blends: sums of scores, weights from held-out parts, lists, saving, and no way for test cells to leak."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import unseen
from unseen import BiasMC, BiasModel, Blend, MatrixFactorization, Observations, RidgeOvA, SpectralFilter
from unseen.baselines import Popularity
from unseen.blends.weights import chosen_weights, simplex_weights
from unseen.datasets import make_positives, make_ratings
from unseen.exceptions import ParameterError
from unseen.metrics import ndcg_at_k, precision_at_k, rmse
from unseen.model_selection import split_entries


@pytest.fixture(scope="module")
def positives() -> Any:
    return make_positives(150, 90, n_groups=5, inside=0.8, across=0.05, rho=0.4, random_state=1)


def lists_of(blend: Any, cells: Observations) -> tuple[Any, Any]:
    return blend.recommend(np.arange(cells.shape[0]), k=7, exclude=cells)


def test_scores_are_the_weighted_sum_of_scaled_scores(positives: Any) -> None:
    cells = positives.observations
    models = [BiasMC(4, alpha=0.9, random_state=0, cg_steps=None), SpectralFilter(4, random_state=0)]
    blend = Blend(models, weights=[0.3, 2.0]).fit(cells)
    mf, spectral = (clone(model).fit(cells) for model in models)
    parts = [mf.row_factors_ @ mf.col_factors_.T, spectral.predict_new()]
    wanted = sum(
        w * part / part.std(axis=1, keepdims=True) for w, part in zip([0.3, 2.0], parts, strict=True)
    )
    assert np.allclose(blend.predict_new(), wanted)
    assert np.allclose(blend.predict_entries([3, 9], [1, 80]), wanted[[3, 9], [1, 80]])
    ids, scores = lists_of(blend, cells)
    open_cells = np.where(cells.csr.toarray() > 0, -np.inf, wanted)
    assert np.allclose(scores, -np.sort(-open_cells, axis=1)[:, :7])
    assert np.allclose(np.take_along_axis(open_cells, ids, axis=1), scores)
    assert not np.allclose(sum(parts), wanted)  # without one scale it would be another blend


def test_chosen_weights_are_never_worse_than_the_best_model_on_what_was_held_out(positives: Any) -> None:
    models = [
        BiasMC(4, alpha=0.9, random_state=0, cg_steps=None),
        SpectralFilter(4, random_state=0),
        Popularity(),
    ]
    blend = Blend(models, random_state=0).fit(positives.observations)
    assert blend.validation_scores_[-1] >= max(blend.validation_scores_[:-1])
    assert blend.weights_.sum() == pytest.approx(1.0)
    again = Blend(models, random_state=0).fit(positives.observations)
    assert np.array_equal(blend.weights_, again.weights_)


def test_two_halves_of_the_truth_beat_each_alone() -> None:
    rng = np.random.default_rng(0)
    truth = sparse.csr_array((rng.random((300, 40)) < 0.2).astype(float))
    halves = [truth.toarray() * (np.arange(40) % 2 == side) + 0.1 * rng.random((300, 40)) for side in (0, 1)]

    def quality(weights: np.ndarray) -> float:
        return ndcg_at_k(truth, sum(w * half for w, half in zip(weights, halves, strict=True)), 10)

    weights, scores = chosen_weights(quality, 2)
    assert scores[-1] > scores[:2].max() + 0.1
    assert 0.2 < weights[0] < 0.8
    # One that is noise alone gets nothing.
    noise = rng.random((300, 40))
    weights, scores = chosen_weights(lambda w: ndcg_at_k(truth, w[0] * truth.toarray() + w[1] * noise, 10), 2)
    assert weights[1] == 0


def test_weights_of_values_are_those_of_least_squares_on_the_simplex() -> None:
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(5000)
    predictions = np.column_stack([truth + s * rng.standard_normal(5000) for s in (0.5, 1.0)])
    found = simplex_weights(predictions, truth, None)
    grid = np.linspace(0, 1, 2001)
    errors = [np.mean((predictions @ [w, 1 - w] - truth) ** 2) for w in grid]
    assert abs(found[0] - grid[int(np.argmin(errors))]) < 1e-3
    assert found[0] == pytest.approx(0.8, abs=0.03)  # weights go as one over the variance
    # Silent cells do not count, whatever they say.
    loud = np.vstack([predictions, np.full((10, 2), 1e6)])
    silent = simplex_weights(loud, np.append(truth, np.zeros(10)), np.append(np.ones(5000), np.zeros(10)))
    assert np.allclose(silent, found)


def test_values_stay_on_their_scale() -> None:
    data = make_ratings(80, 60, random_state=0)
    train, test = split_entries(data.observations, random_state=0)
    models = [BiasModel(), MatrixFactorization(4, reg=5.0, center="biases", random_state=0)]
    blend = Blend(models, random_state=0).fit(train)
    assert not blend.as_lists_
    singles = [clone(model).fit(train).predict_entries(test.rows, test.indices) for model in models]
    wanted = np.column_stack(singles) @ blend.weights_
    assert np.allclose(blend.predict_entries(test.rows, test.indices), wanted)
    assert rmse(test, wanted) <= max(rmse(test, single) for single in singles)
    ids, scores = blend.recommend([0, 5], k=3)
    assert np.allclose(scores, np.take_along_axis(blend.predict_new()[[0, 5]], ids, axis=1))


def test_labels(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 12))
    Y = sparse.csr_array(
        (X @ rng.standard_normal((12, 20)) + rng.standard_normal((300, 20)) > 1.5).astype(float)
    )
    blend = Blend(
        [RidgeOvA(0.1), unseen.ExMLDS(n_components=5, n_neighbors=10, k=5, neighbor_power=0.0)],
        random_state=0,
    ).fit(X, Y)
    assert type(blend).__name__ == "LabelBlend"
    ids, scores = blend.predict_topk(X[:50], k=5)
    dense = blend.decision_function(X[:50])
    assert np.allclose(scores, -np.sort(-dense, axis=1)[:, :5])
    # As many labels as there were on the held-out rows, about.
    assert 0.5 < blend.predict(X).nnz / Y.nnz < 2
    blend.save(tmp_path / "labels")
    assert np.array_equal(unseen.load(tmp_path / "labels").predict_topk(X[:50], k=5)[0], ids)
    classes = Blend([RidgeOvA(0.1), RidgeOvA(9.0)], random_state=0).fit(X, np.where(X[:, 0] > 0, "a", "b"))
    assert set(classes.predict(X)) == {"a", "b"}


def test_new_rows_saving_and_pickling(positives: Any, tmp_path: Path) -> None:
    cells = positives.observations
    blend = Blend([SpectralFilter(4, random_state=0), Popularity()], weights=[1.0, 0.2]).fit(cells)
    few = cells.csr[[3, 4]]
    assert np.allclose(blend.fold_in(few), blend.score_rows([3, 4]))
    blend.save(tmp_path / "blend")
    for again in (unseen.load(tmp_path / "blend"), pickle.loads(pickle.dumps(blend))):
        assert type(again).__name__ == "CellBlend"
        assert np.array_equal(lists_of(again, cells)[1], lists_of(blend, cells)[1])


def test_bits_do_not_depend_on_threads(positives: Any) -> None:
    found = []
    for n_jobs in (1, 3):
        models = [
            BiasMC(4, alpha=0.9, random_state=0, n_jobs=n_jobs, cg_steps=None),
            SpectralFilter(4, random_state=0, n_jobs=n_jobs),
        ]
        blend = Blend(models, random_state=0, n_jobs=n_jobs).fit(positives.observations)
        found.append((blend.weights_, lists_of(blend, positives.observations)[1]))
    assert np.array_equal(found[0][0], found[1][0])
    assert np.array_equal(found[0][1], found[1][1])


class Memoriser(Popularity):
    """Scores what it was fitted to above all else: on cells that leak it would be perfect."""

    def _fold_in(self, cells: Any, row_features: Any) -> Any:
        raise NotImplementedError

    def fit(self, X: Any, y: None = None, **features: Any) -> Memoriser:
        super().fit(X)
        cells = Observations.from_any(X)
        self.row_factors_ = cells.csr.toarray()
        self.col_factors_ = np.eye(cells.shape[1])
        self.cells_ = cells
        return self


def test_held_out_cells_do_not_leak_into_the_weights(positives: Any) -> None:
    cells = positives.observations
    blend = Blend([Memoriser(), SpectralFilter(4, random_state=0)], random_state=0).fit(cells)
    # Lists leave out training cells, so what was learned by heart is worth nothing on cells never seen.
    assert blend.weights_[0] < 0.05
    assert blend.validation_scores_[0] < 0.5 * blend.validation_scores_[1]
    # The planted leak: judged on cells it was fitted to, it would have been the best.
    scores = Memoriser().fit(cells).row_factors_
    assert ndcg_at_k(cells, scores, 10) > 0.99


def test_held_out_rows_do_not_leak_into_the_weights_of_classifiers() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 600))
    Y = sparse.csr_array((rng.random((300, 12)) < np.repeat([0.1, 0.7], [9, 3])).astype(float))
    by_heart, by_share = RidgeOvA(1e-6), RidgeOvA(1e6, fit_intercept=True)
    blend = Blend([by_heart, by_share], scoring="precision@3", validation_fraction=0.3, random_state=0).fit(
        X, Y
    )
    # Features say nothing about labels, so on new rows the shares of labels are all there is.
    assert blend.validation_scores_[0] < 0.7 * blend.validation_scores_[1]
    assert blend.weights_[0] < 0.5
    # The planted leak: judged on rows it was fitted to, the other one would have been the best.
    found = [precision_at_k(Y, model.predict_topk(X, k=3)[0], 3) for model in blend.models_]
    assert found[0] > 1.2 * found[1]


def test_mirrored_cells_are_held_out_together() -> None:
    rng = np.random.default_rng(0)
    upper = np.triu(rng.random((60, 60)) < 0.1, 1)
    graph = Observations.from_sparse(sparse.csr_array((upper | upper.T).astype(float)))
    seen = []

    class Spy(Popularity):
        def fit(self, X: Any, y: None = None, **features: Any) -> Spy:
            seen.append(Observations.from_any(X).csr.toarray())
            return super().fit(X)

    Blend([Spy(), Popularity()], random_state=0).fit(graph)
    assert seen[0].sum() < graph.nnz
    assert np.array_equal(seen[0], seen[0].T)


def test_wrong_arguments_are_named(positives: Any) -> None:
    cells = positives.observations
    two = [Popularity(), Popularity()]
    for models, options, word in (
        ([], {}, "models"),
        ([Popularity(), RidgeOvA()], {}, "RidgeOvA"),
        (two, {"weights": [1.0]}, "weights"),
        (two, {"weights": [0.0, 0.0]}, "weights"),
        (two, {"weights": "best"}, "weights"),
        (two, {"scoring": "auc"}, "scoring"),
        (two, {"validation_fraction": 1.5}, "validation_fraction"),
    ):
        with pytest.raises(ParameterError, match=word):
            Blend(models, **options).fit(cells, None)


def test_models_with_ids_speak_ids() -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "user": [f"u{i}" for i in rng.integers(30, size=300)],
            "item": [f"i{j}" for j in rng.integers(20, size=300)],
        }
    ).drop_duplicates()
    cells = Observations.from_frame(frame, row="user", col="item")
    models = [SpectralFilter(3, random_state=0), BiasMC(3, alpha=0.9, random_state=0, cg_steps=None)]
    blend = Blend(models, weights=[1.0, 1.0]).fit(cells)
    ids, scores = blend.recommend(["u3", "u7"], k=4)
    again = [blend.predict_entries(["u3"] * 4, ids[0]), blend.predict_entries(["u7"] * 4, ids[1])]
    assert np.allclose(again, scores)
    assert not set(ids[0]) & set(frame.item[frame.user == "u3"])
