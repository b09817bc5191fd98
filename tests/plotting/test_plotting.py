"""Displays draw what they are given; pictures are bounded whatever the data's size."""

from __future__ import annotations

import doctest
import importlib
import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import spearmanr

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from unseen import BiasModel  # noqa: E402
from unseen.data import Observations  # noqa: E402
from unseen.diagnostics import identifiability  # noqa: E402
from unseen.exceptions import InvalidDataError, ParameterError  # noqa: E402
from unseen.metrics import fpr_fnr_curve, precision_at_k  # noqa: E402
from unseen.plotting import (  # noqa: E402
    BlockStructureDisplay,
    ConvergenceDisplay,
    DiagnosisDisplay,
    FprFnrDisplay,
    InteractionDisplay,
    PrecisionCurveDisplay,
    PredictionDisplay,
    SpectrumDisplay,
    SpreadDisplay,
)

HISTORY = [{"objective": 100.0 / (i + 1), "time_s": 0.5 * (i + 1), "rank": 3} for i in range(10)]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize("name", ["_convergence", "_curves", "_matrices", "_blocks", "_predictions"])
def test_examples_run(name):
    result = doctest.testmod(importlib.import_module(f"unseen.plotting.{name}"))
    assert result.attempted > 0
    assert result.failed == 0


def all_displays(ax):
    model = SimpleNamespace(
        history_=HISTORY,
        interactions_=np.eye(2, 3),
        row_factors_=np.ones((4, 1)),
        col_factors_=np.ones((3, 1)),
        predict_entries=lambda rows, cols: np.asarray(rows, dtype=float),
    )
    cells = sparse.csr_array(np.arange(12.0).reshape(4, 3))
    yield ConvergenceDisplay.from_estimator(model, ax=ax())
    yield InteractionDisplay.from_estimator(model, ax=ax())
    yield SpectrumDisplay.from_estimator(model, ax=ax())
    yield PredictionDisplay.from_estimator(model, cells, ax=ax())
    yield BlockStructureDisplay.from_observations(cells, ax=ax())
    yield FprFnrDisplay.from_predictions([1, 0, 1, 0], [0.9, 0.8, 0.3, 0.1], ax=ax())
    yield PrecisionCurveDisplay.from_predictions(cells, np.ones((4, 3)), ks=(1, 2), ax=ax())


def test_every_display_draws_and_renders():
    for display in all_displays(lambda: None):
        assert display.ax_.figure is display.figure_
        assert display.ax_.get_xlabel() or display.ax_.get_xticklabels()
        buffer = io.BytesIO()
        display.figure_.savefig(buffer, format="png", dpi=40)
        assert buffer.tell() > 500


def test_every_display_keeps_to_given_axes():
    given = []

    def fresh():
        given.append(plt.subplots()[1])
        return given[-1]

    for number, display in enumerate(all_displays(fresh), start=1):
        assert display.ax_ is given[-1]
        assert len(plt.get_fignums()) == number


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"unseen\[plot\]"):
        ConvergenceDisplay({"a": HISTORY}).plot()


def test_convergence_values_and_axes():
    display = ConvergenceDisplay({"ALS": HISTORY, "CCD": HISTORY[:4]}).plot()
    assert [len(line.get_xdata()) for line in display.lines_] == [10, 4]
    np.testing.assert_allclose(display.lines_[0].get_ydata(), [entry["objective"] for entry in HISTORY])
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["ALS", "CCD"]
    seconds = ConvergenceDisplay({"": HISTORY}).plot(x="seconds", gap=True)
    np.testing.assert_allclose(seconds.lines_[0].get_xdata(), [entry["time_s"] for entry in HISTORY])
    assert seconds.lines_[0].get_ydata()[0] == pytest.approx(90.0)
    assert np.isnan(seconds.lines_[0].get_ydata()[-1])
    assert seconds.ax_.get_yscale() == "log"
    assert seconds.ax_.get_legend() is None


def test_convergence_errors():
    with pytest.raises(InvalidDataError, match=r"has \['objective', 'rank', 'time_s'\], not 'loss'"):
        ConvergenceDisplay({"a": HISTORY}, quantity="loss").plot()
    with pytest.raises(InvalidDataError, match="empty"):
        ConvergenceDisplay({"a": []}).plot()
    with pytest.raises(ParameterError, match="x"):
        ConvergenceDisplay({"a": HISTORY}).plot(x="hours")


def test_long_curves_are_thinned_but_keep_their_ends():
    hits = np.random.default_rng(0).random(300_000) < 0.01
    hits[0] = False
    curve = fpr_fnr_curve(hits)
    line = FprFnrDisplay({"a": curve}).plot().lines_[0]
    assert len(line.get_xdata()) <= 2000
    assert line.get_xdata()[0] == curve.fpr[0]
    assert line.get_xdata()[-1] == curve.fpr[-1]
    drawn = np.searchsorted(curve.fpr, line.get_xdata())
    assert np.all(np.isin(line.get_ydata(), curve.fnr[drawn]) | (line.get_ydata() <= curve.fnr[drawn]))


def test_precision_curve_agrees_with_the_metric():
    rng = np.random.default_rng(0)
    Y = sparse.csr_array((rng.random((20, 10)) < 0.3).astype(float))
    scores = rng.random((20, 10))
    line = PrecisionCurveDisplay.from_predictions(Y, {"a": scores}, ks=(1, 3, 5)).lines_[0]
    np.testing.assert_allclose(line.get_ydata(), [precision_at_k(Y, scores, k) for k in (1, 3, 5)])


def test_precision_repeats_become_mean_and_band():
    repeats = np.array([[0.2, 0.4], [0.4, 0.6]])
    display = PrecisionCurveDisplay([1, 2], {"a": repeats}).plot()
    np.testing.assert_allclose(display.lines_[0].get_ydata(), [0.3, 0.5])
    assert len(display.ax_.collections) == 1
    with pytest.raises(InvalidDataError, match="expected 2 points"):
        PrecisionCurveDisplay([1, 2], {"a": [0.1, 0.2, 0.3]}).plot()


def test_interactions_show_the_strongest_features_with_their_names():
    weights = np.zeros((50, 4))
    weights[7, 2], weights[31, 1] = 3.0, -5.0
    names = [f"feature {i}" for i in range(50)]
    display = InteractionDisplay(weights, row_names=names).plot(max_features=2)
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["feature 7", "feature 31"]
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == [
        "column feature 1",
        "column feature 2",
    ]
    np.testing.assert_array_equal(display.im_.get_array(), [[0.0, 3.0], [-5.0, 0.0]])
    assert display.im_.get_clim() == (-5.0, 5.0)
    with pytest.raises(InvalidDataError, match="row_names has 1 names; expected 50"):
        InteractionDisplay(weights, row_names=["a"]).plot()
    with pytest.raises(InvalidDataError, match="interactions_"):
        InteractionDisplay.from_estimator(object())


def test_spectrum_is_that_of_the_product():
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((30, 4)), rng.standard_normal((20, 4))
    drawn = SpectrumDisplay.from_factors(left, right).lines_[0].get_ydata()
    np.testing.assert_allclose(drawn, np.linalg.svd(left @ right.T, compute_uv=False)[:4], rtol=1e-10)
    wrong = np.linalg.svd(left, compute_uv=False)  # negative control: not the spectrum of a factor
    assert not np.allclose(drawn, wrong, rtol=0.01)
    with pytest.raises(InvalidDataError, match="all zero"):
        SpectrumDisplay(np.zeros(3)).plot()


def test_blocks_are_found_and_sorted():
    rng = np.random.default_rng(0)
    dense = np.full((12, 11), np.nan)
    dense[:3, :2] = 1.0  # 6 cells
    dense[3:8, 2:7] = 2.0  # 25 cells
    dense[8, 7] = 3.0  # 1 cell; the rest is empty
    shuffled = dense[rng.permutation(12)][:, rng.permutation(11)]
    display = BlockStructureDisplay.from_observations(shuffled)
    assert display.block_cells.tolist() == [25, 6, 1]
    assert display.block_ends.tolist() == [[5, 5], [8, 7], [9, 8]]
    expected = np.zeros((12, 11))
    expected[:5, :5] = expected[5:8, 5:7] = expected[8, 7] = 1.0
    np.testing.assert_array_equal(display.density, expected)


def test_a_huge_matrix_becomes_a_small_image():
    rng = np.random.default_rng(0)
    n, m, nnz = 2_000_000, 1_000_000, 50_000
    cells = Observations.from_triples(
        rng.integers(0, n, nnz), rng.integers(0, m, nnz), np.ones(nnz), shape=(n, m)
    )
    display = BlockStructureDisplay.from_observations(cells, max_pixels=100)
    assert display.density.shape == (100, 100)
    assert display.block_cells.sum() == cells.nnz
    np.testing.assert_allclose(display.density.sum() * (n // 100) * (m // 100), cells.nnz)
    with pytest.raises(InvalidDataError, match="no known cells"):
        BlockStructureDisplay.from_observations(sparse.csr_array((3, 3)))


def test_predictions_show_all_cells_and_the_mean_truth():
    rng = np.random.default_rng(0)
    truth = rng.integers(1, 6, 1000).astype(float)
    predicted = 3.0 + 0.5 * (truth - 3.0) + 0.1 * rng.standard_normal(1000)
    display = PredictionDisplay.from_predictions(truth, predicted)
    assert display.im_.get_array().sum() == 1000
    x, y = display.line_.get_data()
    assert np.all(np.diff(x) > 0)
    assert np.mean(y) == pytest.approx(truth.mean(), abs=0.02)
    slope = np.polyfit(x, y, 1)[0]
    assert slope == pytest.approx(2.0, abs=0.2)  # predictions are shrunk by half
    with pytest.raises(InvalidDataError, match="shape"):
        PredictionDisplay.from_predictions([1.0], [1.0, 2.0])
    PredictionDisplay.from_predictions([2.0, 2.0], [1.0, 1.0])  # a single level must not fail


# --- diagnosis ------------------------------------------------------------------------------------


def test_a_diagnosis_is_drawn_with_blocks_and_degrees():
    X = sparse.block_diag([sparse.random_array((30, 20), density=0.5, rng=0), [[1.0]]])
    display = DiagnosisDisplay.from_observations(X, rank=2)
    assert display.axes_[0] is display.ax_ is display.blocks.ax_
    assert display.blocks.block_cells.tolist() == display.diagnosis.blocks.n_cells.tolist()
    rows, columns, rank_line = display.axes_[1].get_lines()
    assert rows.get_label() == "rows"
    assert columns.get_label() == "columns"
    assert rank_line.get_xdata()[0] == 2
    # Share of rows with at least the smallest and the largest number of cells.
    assert rows.get_ydata()[0] == 1.0
    assert rows.get_xdata()[-1] == np.diff(X.tocsr().indptr).max()
    _, axes = plt.subplots(1, 2)
    assert display.plot(axes).figure_ is axes[0].figure


def test_error_is_drawn_against_the_spread():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 1)) + rng.standard_normal(40) + 0.5 * rng.standard_normal((60, 40))
    hidden = rng.random(X.shape) < 0.4
    model = BiasModel().fit(np.where(hidden, np.nan, X))
    test = np.where(hidden, X, np.nan)
    display = SpreadDisplay.from_estimator(model, test, n_bins=4)
    found = identifiability(model, *np.nonzero(hidden))
    error = np.abs(found.prediction - X[hidden])
    np.testing.assert_allclose(np.mean(display.actual**2), np.mean(error**2), rtol=0.01)
    np.testing.assert_allclose(display.correlation, spearmanr(found.std, error).statistic, atol=1e-12)
    line, diagonal = display.ax_.get_lines()
    np.testing.assert_array_equal(line.get_ydata(), display.actual)
    assert diagonal.get_xdata()[0] == diagonal.get_ydata()[0]
    with pytest.raises(InvalidDataError, match="bins"):
        SpreadDisplay.from_estimator(model, test, n_bins=10_000)
