"""``identifiability``: how far predictions can move while the model fits as well as it does."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from unseen.data import Observations
from unseen.diagnostics.blocks import Blocks, find_blocks
from unseen.diagnostics.curvature import Curvature, curvature_of, why_no_curvature
from unseen.diagnostics.noise import Noise, noise_of
from unseen.diagnostics.refits import refit_predictions
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.losses import cells_that_count
from unseen.parallel import one_blas_thread
from unseen.typing import BoolArray, Features, FloatArray, IndexArray
from unseen.validation import check_choice, check_count, check_fraction, check_rng

__all__ = ["Identifiability", "Spread", "TrainingData", "identifiability"]

Method = Literal["auto", "curvature", "restarts", "resample"]


class TrainingData(NamedTuple):
    """What a model was fitted to."""

    cells: Observations
    row_features: Features | None = None
    col_features: Features | None = None


@dataclass(frozen=True)
class Identifiability:
    """Predictions and how far the data determines them.

    Attributes
    ----------
    prediction : ndarray
        As from ``predict_entries``.
    std : ndarray
        How far the prediction moves over solutions that fit as well.
    noise : ndarray
        Standard deviation of the part of the values that no model of this kind explains, for cells of
        weight one; a cell of weight w has 1/sqrt(w) of it.
    determined : ndarray of bool
        False where no chain of known cells connects row and column, so that only the baseline is
        known there. Always True for models with features.
    method : {"curvature", "restarts", "resample"}
        How ``std`` was found.
    """

    prediction: FloatArray
    std: FloatArray
    noise: FloatArray
    determined: BoolArray
    method: str

    @property
    def error(self) -> FloatArray:
        """Expected error of the prediction, sqrt(std^2 + noise^2)."""
        return np.hypot(self.std, self.noise)


class Spread:
    """Curvature, noise and blocks of one fitted model; each is computed when first asked for.

    Parameters
    ----------
    model : completer
        Fitted.
    data : TrainingData
        What it was fitted to.
    """

    def __init__(self, model: Any, data: TrainingData) -> None:
        # A model keeps its spread: a strong reference back would hold the training data of models
        # that are no longer used until the garbage collector happens to come by.
        self._model = weakref.ref(model)
        self.data = data

    @property
    def model(self) -> Any:
        """The model, which must still be in use."""
        model = self._model()
        assert model is not None
        return model

    @cached_property
    def blocks(self) -> Blocks:
        """Connected blocks of the training cells."""
        return find_blocks(self.data.cells)

    @cached_property
    def curvature(self) -> Curvature:
        """Second derivatives at the fit."""
        return curvature_of(self.model, self.data.cells)

    @cached_property
    def noise(self) -> Noise:
        """Variance of the residuals by row and column."""
        return noise_of(self.model, self.curvature)

    @property
    def blocks_matter(self) -> bool:
        """Whether rows and columns are related by known cells alone, not by features."""
        return self.data.row_features is None and self.data.col_features is None

    def connected(self, rows: IndexArray, cols: IndexArray) -> BoolArray:
        """Say which cells the data says something about.

        Parameters
        ----------
        rows, cols : array of int
            Row and column numbers.

        Returns
        -------
        ndarray of bool
            False between blocks.
        """
        if not self.blocks_matter:
            return np.ones(len(rows), dtype=bool)
        return self.blocks.connected(rows, cols)

    def by_curvature(self, rows: IndexArray, cols: IndexArray) -> tuple[FloatArray, FloatArray]:
        """Spread and noise of predictions from the curvature of the objective.

        Parameters
        ----------
        rows, cols : array of int
            Row and column numbers.

        Returns
        -------
        std, noise : ndarray of float64
            Standard deviations.
        """
        variance = self.noise.at(rows, cols)
        # Noise zero and no stiffness at all: nothing is known, and that is what infinity says.
        leverage = self.curvature.leverage(rows, cols)
        across = ~self.connected(rows, cols)
        if getattr(self.model, "cross_component", "model") == "baseline":
            # Such models predict offsets alone between blocks, and those are not turned by rotations.
            leverage[across] = self.curvature.bias_leverage(rows[across], cols[across])
            across[:] = False
        known = np.where(np.isinf(leverage), 0.0, leverage)
        moved = np.where(np.isinf(leverage), np.inf, variance * known)
        moved = moved + np.where(across, self.curvature.rotation(rows, cols), 0.0)
        return np.sqrt(moved), np.sqrt(variance)


def identifiability(
    model: Any,
    rows: Any,
    cols: Any,
    X: Any = None,
    *,
    row_features: Any = None,
    col_features: Any = None,
    method: Method = "auto",
    n_refits: int = 8,
    share: float = 0.8,
    random_state: Any = 0,
    positions: bool = False,
) -> Identifiability:
    """Say how far predictions can move over solutions that fit as well as the model does.

    ``"curvature"`` perturbs the fit along the soft directions of its objective: with the matrix
    A_i = ridge I + sum_j q_j q_j' of a row's system and B_j of a column's, and the residual variance
    s_ij^2 of that row and column,

    std_ij^2 = s_ij^2 (q_j' A_i^-1 q_j + p_i' B_j^-1 p_i + bias terms).

    Between blocks, where the factors of one block can be rotated freely, the variance over all
    rotations is added. ``"restarts"`` fits again from other random starts. ``"resample"`` fits again to
    random parts of the cells and scales the spread up to the whole (delete-d jackknife); it works for
    every model.

    Parameters
    ----------
    model : completer
        Fitted.
    rows, cols : array-like of ids, of equal length
        Cells to ask about; positions where the model was fitted without ids.
    X : array with NaN, sparse matrix or Observations, optional
        What the model was fitted to; needed for a model that was loaded from a file, else what
        ``fit`` saw is used.
    row_features, col_features : array or sparse matrix, optional
        Features that the model was fitted with, where ``X`` is given.
    method : {"auto", "curvature", "restarts", "resample"}, default="auto"
        ``"auto"`` takes the curvature of models that are factors with a quadratic loss and smooth
        penalty and no features, and resampling for all others.
    n_refits : int, default=8
        Fits for restarts and resampling.
    share : float, default=0.8
        Share of the cells in each fit of resampling.
    random_state : int or Generator, default=0
        Seed of restarts and resampling.
    positions : bool, default=False
        Take rows, columns and ``X`` by position, whatever the ids.

    Returns
    -------
    Identifiability
        Predictions with their spread.

    Examples
    --------
    Two blocks that share nothing: the first cell is inside one, the second between them.

    >>> import numpy as np
    >>> from unseen import MatrixFactorization
    >>> from unseen.diagnostics import identifiability
    >>> rng = np.random.default_rng(0)
    >>> X = np.full((20, 20), np.nan)
    >>> X[:10, :10] = np.outer(rng.random(10), rng.random(10)) + 0.01 * rng.random((10, 10))
    >>> X[10:, 10:] = np.outer(rng.random(10), rng.random(10)) + 0.01 * rng.random((10, 10))
    >>> model = MatrixFactorization(1, reg=0.1, center="none", max_iter=500, tol=1e-4, random_state=0).fit(X)
    >>> found = identifiability(model, [0, 0], [1, 11])
    >>> found.determined
    array([ True, False])
    >>> bool(found.std[1] > 10 * found.std[0])
    True
    """
    model = getattr(model, "best_estimator_", model)
    check_is_fitted(model)
    method = check_choice("method", method, ("auto", "curvature", "restarts", "resample"))
    n_refits = check_count("n_refits", n_refits, minimum=2)
    share = check_fraction("share", share)
    spread = spread_of(model, X, row_features, col_features, positions=positions)
    i, j = model._pairs(rows, cols, positions)
    reason = why_no_curvature(model)
    if method == "curvature" and reason is not None:
        raise ParameterError(f"method='curvature' is not for this model: {reason}; 'resample' is")
    if method == "auto":
        method = "curvature" if reason is None else "resample"
    prediction = model.predict_entries(i, j, positions=True)
    if method == "curvature":
        with one_blas_thread():
            std, noise = spread.by_curvature(i, j)
    else:
        data = spread.data
        kept = share if method == "resample" else None
        std = refit_predictions(model, data, (i, j), prediction, n_refits, kept, check_rng(random_state))
        cells = cells_that_count(data.cells)
        fitted = model.predict_entries(cells.rows, cells.indices, positions=True)
        known = np.square(fitted - cells.values, dtype=np.float64)
        known = known if cells.weights is None else cells.weights * known
        noise = np.full(len(i), float(np.sqrt(np.mean(known))))
    dtype = prediction.dtype
    return Identifiability(
        prediction,
        np.asarray(std, dtype=dtype),
        np.asarray(noise, dtype=dtype),
        spread.connected(i, j),
        method,
    )


def spread_of(
    model: Any, X: Any = None, row_features: Any = None, col_features: Any = None, *, positions: bool = False
) -> Spread:
    """Spread of a model, for its own training data or for data that is given again.

    Parameters
    ----------
    model : completer
        Fitted.
    X : matrix or Observations, optional
        What it was fitted to.
    row_features, col_features : array or sparse matrix, optional
        What it was fitted with, where ``X`` is given.
    positions : bool, default=False
        Take ``X`` by position, whatever the ids.

    Returns
    -------
    Spread
        Kept with the model where its own training data is used.
    """
    if X is not None:
        cells = model._read_matched(X, "X", positions, new_rows=False)
        shape = (model._n_rows(), model.n_features_in_)
        if cells.shape != shape:
            raise InvalidDataError(f"X has shape {cells.shape}; the model was fitted to {shape}")
        for side, given in (("row", row_features), ("col", col_features)):
            if given is None and getattr(model, f"n_{side}_features_in_", None) is not None:
                raise ParameterError(f"{side}_features are needed: the model was fitted with them")
        return Spread(model, TrainingData(cells, row_features, col_features))
    own: Spread | None = getattr(model, "_spread", None)
    if own is None:
        raise InvalidDataError(
            f"this {type(model).__name__} does not hold its training cells (saved models do not); pass them: "
            "identifiability(model, rows, cols, X)"
        )
    return own
