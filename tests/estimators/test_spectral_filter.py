"""The linear filter of positives, against its formula in full matrices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import unseen
from tests.peaks import LIMIT, peak_of, target
from unseen import Observations, SpectralFilter
from unseen.exceptions import InvalidDataError, NotInductiveError, ParameterError

N, M = 60, 45


def positives(seed: int = 0, density: float = 0.12) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    cells = (rng.random((N, M)) < density * (1 + np.arange(M) / M)).astype(float)
    cells[7] = 0  # a row and a column without positives
    cells[:, 5] = 0
    return sparse.csr_array(cells)


def by_formula(
    R: np.ndarray,
    a: float = 0.35,
    b: float = 0.4,
    rank: int = 6,
    low_pass: float = 0.1,
    power: float = 0.0,
    neighbor_power: float = 1.0,
    list_power: float | None = None,
) -> np.ndarray:
    """Scores of all cells, with every matrix written out."""
    with np.errstate(divide="ignore"):
        rows, cols = (np.where(R.sum(axis) > 0, R.sum(axis) ** -p, 0.0) for axis, p in ((1, a), (0, b)))
    last = cols if list_power is None else np.where(cols > 0, np.maximum(R.sum(0), 1.0) ** -list_power, 0.0)
    normal = rows[:, None] * R * last
    _, s, vt = np.linalg.svd(normal)
    near = (R * cols) @ R.T
    most = np.maximum(near.max(axis=1, keepdims=True), 1e-300)
    neighbours = most * (near / most) ** neighbor_power @ (rows[:, None] ** 2 * R * last) / s[0] ** 2
    v, gain = vt[:rank].T, (s[:rank] / s[0]) ** power
    back = np.divide(1.0, last, out=np.zeros_like(last), where=last > 0)
    return neighbours + low_pass * ((R * last) @ v * gain) @ (v * back[:, None]).T


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"low_pass": 0.0},
        {"degree_power": (0.5, 0.5), "low_pass": 0.3},
        {"spectrum_power": 1.5, "low_pass": 2.0, "rank": 9},
        {"neighbor_power": 1.6, "list_power": 0.1},
        {"neighbor_power": 0.5, "low_pass": 0.0},
    ],
)
def test_scores_are_those_of_the_formula(options: dict) -> None:
    cells = positives()
    model = SpectralFilter(**{"rank": 6, **options}).fit(cells)
    a, b = options.get("degree_power", (0.35, 0.4))
    wanted = by_formula(
        cells.toarray(),
        a,
        b,
        options.get("rank", 6),
        options.get("low_pass", 0.1),
        options.get("spectrum_power", 0.0),
        options.get("neighbor_power", 1.0),
        options.get("list_power"),
    )
    rows, cols = np.divmod(np.arange(N * M), M)
    assert np.allclose(model.predict_entries(rows, cols), wanted.ravel(), atol=1e-10)
    assert np.allclose(model.predict_new(), wanted, atol=1e-10)
    assert np.allclose(model.transform(cells), wanted, atol=1e-10)
    # Planted mistakes that the comparison must see.
    assert not np.allclose(by_formula(cells.toarray(), a, b + 0.1, low_pass=0.1), wanted, atol=1e-3)


def test_lists_are_exact_and_leave_out_what_they_should() -> None:
    cells = positives()
    scores = by_formula(cells.toarray())
    model = SpectralFilter(rank=6).fit(cells)
    ids, found = model.recommend(np.arange(N), k=8, exclude=cells)
    open_cells = np.where(cells.toarray() > 0, -np.inf, scores)
    assert np.allclose(found, -np.sort(-open_cells, axis=1)[:, :8], atol=1e-10)
    assert not (cells.toarray()[np.arange(N)[:, None], ids] > 0).any()
    few = model.recommend([3, 50], k=8, exclude=cells, candidates=[1, 4, 9, 30])
    assert set(few[0].ravel().tolist()) <= {-1, 1, 4, 9, 30}
    assert np.isnan(few[1][few[0] == -1]).all()


def test_new_rows_get_what_training_rows_with_their_cells_have() -> None:
    cells = positives()
    model = SpectralFilter(rank=6).fit(cells)
    assert np.array_equal(model.fold_in(cells[[2, 11]]), model.score_rows([2, 11]))
    with pytest.raises(NotInductiveError):
        model.predict_new(row_features=np.ones((2, 3)))


def test_bits_do_not_depend_on_threads_and_saved_models_are_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    cells = Observations.from_sparse(
        sparse.random_array((900, 700), density=0.03, rng=rng, data_sampler=lambda size: np.ones(size))
    )
    models = [SpectralFilter(rank=8, random_state=0, n_jobs=n_jobs).fit(cells) for n_jobs in (1, 3)]
    lists = [model.recommend(np.arange(900), k=10, exclude=cells) for model in models]
    assert np.array_equal(lists[0][1], lists[1][1])
    models[0].save(tmp_path / "model")
    again = unseen.load(tmp_path / "model")
    assert np.array_equal(again.recommend(np.arange(900), k=10, exclude=cells)[1], lists[0][1])


def test_weights_count_and_have_to_be_asked_for() -> None:
    cells = positives()
    heavy = cells.copy()
    heavy.data[:20] = 3.0
    with pytest.raises(InvalidDataError, match="weights=True"):
        SpectralFilter().fit(heavy)
    weighed = SpectralFilter(rank=6, weights=True).fit(heavy)
    assert np.allclose(weighed.predict_new(), by_formula(heavy.toarray()), atol=1e-10)
    plain = SpectralFilter(rank=6, weights=False).fit(heavy)
    assert np.allclose(plain.predict_new(), by_formula(cells.toarray()), atol=1e-10)
    # A weight of a cell multiplies; one of weight zero is not there.
    silent = Observations.from_sparse(cells)
    silent = silent.with_weights(np.where(np.arange(silent.nnz) % 5, 1.0, 0.0))
    without = silent.select(silent.weights > 0).csr.toarray()
    assert np.allclose(SpectralFilter(rank=6).fit(silent).predict_new(), by_formula(without), atol=1e-10)


def test_wrong_settings_are_named() -> None:
    cells = positives()
    for options in (
        {"rank": 0},
        {"low_pass": -1},
        {"degree_power": (1, 2, 3)},
        {"spectrum_power": "a"},
        {"neighbor_power": 0},
        {"list_power": -0.1},
        {"weights": 3},
    ):
        with pytest.raises(ParameterError, match=next(iter(options))):
            SpectralFilter(**options).fit(cells)
    with pytest.raises(InvalidDataError, match="no observed cell"):
        SpectralFilter().fit(sparse.csr_array((4, 3)))
    with pytest.raises(ParameterError, match="row_features"):
        SpectralFilter().fit(cells, row_features=np.ones((N, 2)))


def test_nothing_as_large_as_the_matrix_exists() -> None:
    cells = target(positive=True)

    def work() -> None:
        SpectralFilter(rank=4).fit(cells).recommend(np.arange(256), k=10, exclude=cells)

    assert peak_of(work) < LIMIT
