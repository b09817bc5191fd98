"""Neighbours among columns, against their formula in full matrices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import unseen
from tests.estimators.test_spectral_filter import M, N, positives
from tests.peaks import LIMIT, peak_of, target
from unseen import ItemNeighbors
from unseen.exceptions import InvalidDataError, ParameterError


def similarities(
    R: np.ndarray, powers: tuple[float, float], shrinkage: float = 0.0, power: float = 1.0
) -> np.ndarray:
    """Those of all pairs of columns."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rows, cols = (
            np.where(R.sum(axis) > 0, R.sum(axis) ** -p, 0.0) for axis, p in zip((1, 0), powers, strict=True)
        )
        normal = rows[:, None] * R * cols
        found = (normal.T @ normal) / (1 + shrinkage / (R.T @ R)) if shrinkage else normal.T @ normal
    found = np.nan_to_num(found)
    np.fill_diagonal(found, 0.0)
    return found**power


def nearest(found: np.ndarray, k: int) -> np.ndarray:
    """The k largest of each column, ties by the smaller number."""
    kept = np.zeros_like(found)
    for j, column in enumerate(found.T):
        best = np.argsort(-column, kind="stable")[:k]
        kept[best, j] = column[best]
    return kept


@pytest.mark.parametrize(
    ("options", "others"),
    [
        ({"degree_power": (0.0, 0.5)}, {"powers": (0.1, 0.5)}),
        ({"degree_power": (0.4, 0.4), "power": 2.0}, {"powers": (0.4, 0.4)}),
        ({"degree_power": (0.0, 0.5), "shrinkage": 3.0}, {"powers": (0.0, 0.5)}),
        ({"degree_power": 0.0}, {"powers": (0.0, 0.0), "k": 6}),  # counts, with many ties
    ],
)
def test_scores_are_those_of_the_formula(options: dict, others: dict) -> None:
    cells = positives()
    R = cells.toarray()
    powers = options["degree_power"]
    pair = powers if isinstance(powers, tuple) else (powers, powers)
    rest = {name: value for name, value in options.items() if name != "degree_power"}
    wanted = R @ nearest(similarities(R, pair, **rest), 5)
    model = ItemNeighbors(5, **options).fit(cells)
    rows, cols = np.divmod(np.arange(N * M), M)
    np.testing.assert_allclose(model.predict_entries(rows, cols), wanted.ravel(), atol=1e-12)
    np.testing.assert_allclose(model.transform(cells), wanted, atol=1e-12)
    assert np.diff(sparse.csc_array(model.similarity_).indptr).max() <= 5
    # Planted: one setting differs, and the comparison must see it.
    changed = R @ nearest(similarities(R, others["powers"]), others.get("k", 5))
    assert np.abs(changed - wanted).max() > 1e-3


def test_bm25_weighs_positives_as_words_of_documents() -> None:
    cells = positives()
    R = cells.toarray()
    with np.errstate(divide="ignore"):
        rare = np.maximum(np.log(M) - np.log1p(R.sum(1)), 0)
    longer = 1 - 0.75 + 0.75 * R.sum(0) / R.sum(0).mean()
    weighed = R * 2.2 / (1.2 * longer + R) * rare[:, None]
    found = weighed.T @ weighed
    np.fill_diagonal(found, 0.0)
    model = ItemNeighbors(7, weighting="bm25").fit(cells)
    np.testing.assert_allclose(model.transform(cells), R @ nearest(found, 7), atol=1e-12)


def test_lists_new_rows_and_saved_models(tmp_path: Path) -> None:
    cells = positives()
    model = ItemNeighbors(10).fit(cells)
    ids, scores = model.recommend(np.arange(N), k=6, exclude=cells)
    open_cells = np.where(cells.toarray() > 0, -np.inf, model.transform(cells))
    np.testing.assert_allclose(scores, -np.sort(-open_cells, axis=1)[:, :6])
    assert not (cells.toarray()[np.arange(N)[:, None], ids] > 0).any()
    assert np.array_equal(model.fold_in(cells[[2, 11]]), model.score_rows([2, 11]))
    model.save(tmp_path / "model")
    again = unseen.load(tmp_path / "model")
    assert np.array_equal(again.recommend(np.arange(N), k=6, exclude=cells)[1], scores)


def test_ids_go_in_and_come_out() -> None:
    import pandas as pd

    cells = sparse.coo_array(positives())
    frame = pd.DataFrame({"who": [f"p{i}" for i in cells.row], "what": [f"q{j}" for j in cells.col]})
    model = ItemNeighbors(10).fit(unseen.Observations.from_frame(frame, row="who", col="what"))
    found, _ = model.recommend(["p3"], k=4)
    assert all(isinstance(item, str) and item.startswith("q") for item in found.ravel().tolist())
    own = set(frame.loc[frame.who == "p3", "what"])
    assert not own & set(found.ravel().tolist())


def test_wrong_settings_are_named() -> None:
    cells = positives()
    wrong = {"n_neighbors": 0, "power": 0.0, "shrinkage": -1.0, "weighting": "tf", "weights": 3}
    for name, value in wrong.items():
        with pytest.raises(ParameterError, match=name):
            ItemNeighbors(**{name: value}).fit(cells)
    with pytest.raises(InvalidDataError, match="no observed cell"):
        ItemNeighbors().fit(sparse.csr_array((4, 3)))
    with pytest.raises(ParameterError, match="row_features"):
        ItemNeighbors().fit(cells, row_features=np.ones((N, 2)))


def test_nothing_as_large_as_the_matrix_exists() -> None:
    cells = target(positive=True)

    def work() -> None:
        ItemNeighbors(5).fit(cells).recommend(np.arange(256), k=10, exclude=cells)

    assert peak_of(work) < LIMIT
