"""Tasks of the demonstration on real data that comes with scikit-learn: a photograph, digits, a table."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from unseen import IMC, BiasModel, Imputer, MatrixFactorization
from unseen.cli.demo_tasks import Outcome, Scale, Search, TaskResult
from unseen.data import Observations
from unseen.metrics import mae, rmse
from unseen.typing import Array, FloatArray

__all__ = ["digits", "photograph", "table_of_measurements"]

KNOWN_PIXELS = 0.25
HIDDEN_PIXELS = 0.5
HIDDEN_CELLS = 0.3
SMOOTHNESS = 4.0
"""Cosines of this frequency weigh half as much as the slowest."""
SHOWN_DIGITS = 8


def photograph(scale: Scale, seed: int) -> TaskResult:
    """A photograph with three quarters of its pixels gone."""
    from sklearn.datasets import load_sample_image

    picture = load_sample_image("china.jpg")[:: scale.every, :: scale.every] / 255.0
    height, width, n_colours = picture.shape
    known = np.random.default_rng(seed).random((height, width)) < KNOWN_PIXELS
    # A matrix with a row for each line of the picture, and the columns of each colour side by side.
    flat = picture.transpose(0, 2, 1).reshape(height, -1)
    seen = np.tile(known, n_colours)
    train = Observations.from_any(np.where(seen, flat, np.nan))
    test = Observations.from_any(np.where(seen, np.nan, flat))
    n_waves = min(height, width) // 2
    waves = np.column_stack([np.ones(width), _waves(width, n_waves)])
    positions = {"row_features": _waves(height, n_waves), "col_features": np.kron(np.eye(n_colours), waves)}
    search = Search(train, test, scale.folds)
    common: dict[str, Any] = {
        "center": "biases",
        "max_iter": 15,
        "tol": 1e-3,
        "random_state": seed,
        "n_jobs": 1,
    }

    def between_pixels(model: Any) -> FloatArray:
        inside: FloatArray = np.clip(model.predict_entries(test.rows, test.indices), 0.0, 1.0)
        return inside

    def searched(method: str, model: Any, regs: tuple[float, ...], sides: dict[str, Any]) -> Outcome:
        return search.run(method, model, {"reg": regs}, sides, between_pixels)

    start = time.perf_counter()
    filled = _interpolated(picture, known).transpose(0, 2, 1).reshape(height, -1)
    interpolated = search.outcome(
        "Straight lines between known pixels",
        filled[test.rows, test.indices],
        "",
        time.perf_counter() - start,
    )
    inductive = IMC(40, standardize=False, **common)
    outcomes = [
        search.constant("Mean of all pixels"),
        searched("Row and column means", BiasModel(), (1.0, 5.0), {}),
        searched("Low rank, no positions", MatrixFactorization(10, **common), scale.picture_regs, {}),
        interpolated,
        searched(
            "Low rank in smooth features of the position (IMC)", inductive, scale.picture_regs, positions
        ),
    ]

    def shown(outcome: Outcome) -> Array:
        matrix = flat.copy()
        matrix[test.rows, test.indices] = outcome.predicted
        turned: Array = matrix.reshape(height, n_colours, width).transpose(0, 2, 1)
        return turned

    panels = {
        f"Known: {KNOWN_PIXELS:.0%} of the pixels": np.where(known[:, :, None], picture, 1.0),
        "Low rank": shown(outcomes[2]),
        "With features of the position": shown(outcomes[4]),
        "The photograph": picture,
    }
    caption = "Before and after. Both models know nothing but the pixels of the first picture."
    return TaskResult(
        "A photograph",
        f"Which colours did the missing pixels have? {1 - KNOWN_PIXELS:.0%} of all are gone, at random.",
        f"china.jpg of scikit-learn, {height} x {width} pixels in {n_colours} colours from 0 to 1",
        "RMSE",
        outcomes,
        test.values,
        pictures=[(_panels(panels, 2), caption)],
    )


def digits(scale: Scale, seed: int) -> TaskResult:
    """Handwritten digits with half of their pixels hidden, filled in and then recognised."""
    from sklearn.datasets import load_digits
    from sklearn.impute import KNNImputer
    from sklearn.neighbors import KNeighborsClassifier

    X, y = load_digits(return_X_y=True)
    X, y = X[: scale.n_digits], y[: scale.n_digits]
    rng = np.random.default_rng(seed)
    hidden = rng.random(X.shape) < HIDDEN_PIXELS
    training = rng.random(len(X)) < 0.7

    def recognised(pixels: FloatArray) -> float:
        classifier = KNeighborsClassifier(3).fit(pixels[training], y[training])
        return float(classifier.score(pixels[~training], y[~training]))

    table = np.where(hidden, np.nan, X)
    fillers = {
        "Mean of each pixel": None,
        "Nearest digits (KNNImputer)": KNNImputer(keep_empty_features=True),
        "Imputer": Imputer(random_state=seed, n_jobs=1),
    }
    outcomes, tables = _filled(table, X, hidden, fillers)
    outcomes = [
        Outcome(o.method, {**o.scores, "recognised": recognised(filled)}, o.settings, o.seconds, o.predicted)
        for o, filled in zip(outcomes, tables, strict=True)
    ]
    pick = np.flatnonzero(~training)[:SHOWN_DIGITS]
    strips = {"hidden pixels white": table, "means": tables[0], "Imputer": tables[2], "truth": X}
    panels = {name: np.hstack(_images(rows[pick])) for name, rows in strips.items()}
    caption = (
        "Digits with half of their pixels hidden, filled in by the mean of each pixel and by the imputer."
    )
    return TaskResult(
        "Handwritten digits",
        "Can a digit be recognised when half of its pixels are hidden? They are filled in first; then its "
        "three nearest neighbours vote.",
        f"digits of scikit-learn, {len(X):,} of them with 64 pixels from 0 to 16",
        "RMSE",
        outcomes,
        X[hidden],
        {"share recognised with all pixels": recognised(X)},
        pictures=[(_panels(panels, 1), caption)],
    )


def table_of_measurements(scale: Scale, seed: int) -> TaskResult:
    """Measurements of tumours, three in ten of them missing."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.impute import KNNImputer

    data = load_breast_cancer()
    X = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    X = X[: scale.n_patients]
    hidden = np.random.default_rng(seed).random(X.shape) < HIDDEN_CELLS
    fillers = {
        "Mean of each column": None,
        "Nearest rows (KNNImputer)": KNNImputer(keep_empty_features=True),
        "Imputer": Imputer(random_state=seed, n_jobs=1),
    }
    outcomes, _ = _filled(np.where(hidden, np.nan, X), X, hidden, fillers)
    return TaskResult(
        "A table with NaN",
        f"What would the missing measurements have been? {HIDDEN_CELLS:.0%} of them were taken out.",
        f"breast cancer data of scikit-learn, {X.shape[0]} patients x {X.shape[1]} measurements, in standard "
        "deviations of each",
        "RMSE",
        outcomes,
        X[hidden],
    )


def _filled(
    table: FloatArray, truth: FloatArray, hidden: Array, fillers: dict[str, Any]
) -> tuple[list[Outcome], list[FloatArray]]:
    """Fill the table in by each method; None takes the means of columns."""
    outcomes, tables = [], []
    for method, filler in fillers.items():
        start = time.perf_counter()
        if filler is None:
            filled = np.where(hidden, np.nanmean(table, axis=0), table)
        else:
            filled = filler.fit_transform(table)
        seconds = time.perf_counter() - start
        found = filled[hidden]
        scores = {"RMSE": rmse(truth[hidden], found), "MAE": mae(truth[hidden], found)}
        settings = f"shrinkage={filler.shrinkage_:g}" if isinstance(filler, Imputer) else ""
        outcomes.append(Outcome(method, scores, settings, seconds, found, None))
        tables.append(filled)
    return outcomes, tables


def _waves(n: int, n_waves: int) -> FloatArray:
    """Cosines over n places from slow to quick, the quicker the smaller: a penalty then smooths."""
    frequencies = np.arange(1, n_waves)
    waves: FloatArray = np.cos(np.pi * np.outer((np.arange(n) + 0.5) / n, frequencies))
    return waves / (1 + frequencies / SMOOTHNESS)


def _interpolated(picture: FloatArray, known: Array) -> FloatArray:
    from scipy.interpolate import LinearNDInterpolator, NearestNDInterpolator

    places = np.argwhere(known)
    everywhere = np.indices(known.shape)
    linear = LinearNDInterpolator(places, picture[known])(*everywhere)
    outside: FloatArray = NearestNDInterpolator(places, picture[known])(*everywhere)
    return np.where(np.isnan(linear), outside, linear)


def _images(rows: FloatArray) -> list[FloatArray]:
    """Digits as pictures with a margin; hidden pixels are white."""
    return [np.pad(np.where(np.isnan(row), 0, row).reshape(8, 8), 1) for row in rows]


def _panels(panels: dict[str, Array], n_cols: int) -> Any:
    """Pictures beside and below each other, each with its name."""
    from matplotlib.figure import Figure

    n_lines = -(-len(panels) // n_cols)
    aspect = next(iter(panels.values())).shape
    wide = 8.0
    tall = n_lines * (wide / n_cols * aspect[0] / aspect[1] + 0.35)
    figure = Figure(figsize=(wide, tall), layout="constrained", dpi=110)
    for axes, (name, pixels) in zip(np.ravel(figure.subplots(n_lines, n_cols)), panels.items(), strict=True):
        axes.imshow(pixels, cmap="gray_r", vmin=0.0, interpolation="nearest")
        axes.set_title(name, fontsize=10)
        axes.set_axis_off()
    return figure
