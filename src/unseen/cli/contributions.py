"""What a prediction is made of: parts with names that add up to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from unseen.baselines import MMMF
from unseen.baselines._observed import ObservedCompleter
from unseen.cli.sources import some_rows
from unseen.data import Observations
from unseen.estimators.pu_base import PositiveCompleter
from unseen.exceptions import UnsupportedComposition
from unseen.typing import FloatArray

__all__ = ["by_cells", "by_factors"]

Parts = list[tuple[str, float]]
MAX_CELLS = 5000
"""Cells of a row that are told apart; each is a row of a fold-in."""


def by_factors(model: Any, row: int, col: int) -> Parts:
    """Mean, biases and the products of the factors, for one score.

    Parameters
    ----------
    model : completer
        With factors.
    row, col : int
        Positions.

    Returns
    -------
    list of (str, float)
        They add up to the score.
    """
    total = _score(model, row, col)
    if isinstance(model, MMMF):
        raise UnsupportedComposition("MMMF predicts a level, which thresholds choose: it is no sum of parts")
    if isinstance(model, ObservedCompleter):
        parts, width = _of_observed(model, row, col)
    else:
        parts = _offsets(model, row, col)
        width = sum(getattr(model, "widths_", [] if parts else [model.row_factors_.shape[1]]))
    left, right = (
        factors[place, :width].astype(np.float64)
        for factors, place in ((model.row_factors_, row), (model.col_factors_, col))
    )
    products = left * right
    parts += [(f"factor {number + 1}", float(product)) for number, product in enumerate(products)]
    return _with_rest(parts, total)


def by_cells(model: Any, cells: Observations, row: int, col: int, names: Any) -> Parts:
    """What each known cell of a row adds to a score, for models whose rows follow from their cells.

    A row's factors are those that its cells call for. Where that is a linear function of the values, as with
    squared losses, a score is a constant, what a row with the values of the mean and the column biases would
    get, plus a multiple of each cell's deviation from that.

    Parameters
    ----------
    model : completer
        Fitted without row features.
    cells : Observations
        Training cells, in the order of the model.
    row, col : int
        Positions.
    names : sequence of str
        Of the columns.

    Returns
    -------
    list of (str, float)
        They add up to the score.
    """
    mine = some_rows(cells, np.array([row]))
    if isinstance(model, PositiveCompleter):
        cols, shares = model.explain(mine, 0, col, positions=True)
        each = [(str(names[j]), float(share)) for j, share in zip(cols, shares, strict=True)]
        return _with_rest(each, _score(model, row, col))
    n = mine.nnz
    if n > MAX_CELLS:
        raise UnsupportedComposition(f"the row has {n} cells; more than {MAX_CELLS} are not told apart")
    offsets = getattr(model, "offsets_", None)
    usual: FloatArray = np.full(n, 0.0 if offsets is None else offsets.mean, dtype=np.float64)
    if offsets is not None and offsets.col is not None:
        usual = usual + offsets.col[mine.indices]
    # One row with the usual values, and one more for each cell with its own value in its place.
    values = np.tile(usual, (n + 1, 1))
    values[np.arange(1, n + 1), np.arange(n)] = mine.values
    rows, cols = np.repeat(np.arange(n + 1), n), np.tile(mine.indices, n + 1)
    weights = None if mine.weights is None else np.tile(mine.weights, n + 1)
    variants = Observations.from_triples(rows, cols, values.ravel(), (n + 1, cells.shape[1]), weights=weights)
    factors = model.fold_in(variants, positions=True).astype(np.float64)
    scores = factors @ model.col_factors_[col].astype(np.float64)
    own = float(
        model.fold_in(mine, positions=True)[0].astype(np.float64) @ model.col_factors_[col].astype(np.float64)
    )
    added = scores[1:] - scores[0]
    scale = max(1.0, abs(own))
    if abs(scores[0] + added.sum() - own) > 1e-3 * scale:
        raise UnsupportedComposition(
            f"{type(model).__name__} has no linear rule from the cells of a row to its factors, so what each "
            "cell adds cannot be told; without --train the parts are factors"
        )
    parts = [("without this row's own cells", float(scores[0]))]
    parts += [
        (f"{names[j]}: {value:g}", float(gain))
        for j, value, gain in zip(mine.indices, mine.values, added, strict=True)
    ]
    return _with_rest(parts, _score(model, row, col))


def _offsets(model: Any, row: int, col: int) -> Parts:
    offsets = getattr(model, "offsets_", None)
    if offsets is None:
        return []
    parts = [("mean of all cells", float(offsets.mean))] if offsets.mean else []
    for name, bias, place in (("this row", offsets.row, row), ("this column", offsets.col, col)):
        if bias is not None:
            parts.append((f"{name}, on average", float(bias[place])))
    return parts


def _of_observed(model: ObservedCompleter, row: int, col: int) -> tuple[Parts, int]:
    """Parts beside the factors, and how many of these count: none for a row or column without a cell."""
    cold_row, cold_col = model.row_factors_[row, -3], model.col_factors_[col, -2]
    if cold_row or cold_col:
        return _offsets(model, row, col), 0
    mean = [("mean of all cells", float(model.center_))] if model.center_ else []
    return mean, model.row_factors_.shape[1] - 3


def _score(model: Any, row: int, col: int) -> float:
    return float(model.predict_entries([row], [col], raw=True, positions=True)[0])


def _with_rest(parts: Parts, total: float) -> Parts:
    """Largest first; what the parts lack of the score is a part too, where it is more than rounding."""
    rest = total - sum(value for _, value in parts)
    told = sorted(parts, key=lambda part: -abs(part[1]))
    return [*told, ("not told apart", rest)] if abs(rest) > 1e-6 * max(1.0, abs(total)) else told
