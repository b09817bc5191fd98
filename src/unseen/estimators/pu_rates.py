"""How many positives are hidden: what the user says, or what held-out positives say."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone

from unseen.data import Observations
from unseen.exceptions import ConvergenceWarning, DataWarning, ParameterError
from unseen.typing import BoolArray, Features
from unseen.validation import check_count, check_fraction

if TYPE_CHECKING:
    from unseen.estimators.pu_base import PositiveCompleter

__all__ = ["Rates", "alpha_grid", "choose_rates", "given_rates", "hidden_share", "n_positives"]

HELD_OUT = 0.2
"""Share of the positives that is hidden to compare settings."""
PROBE_SWEEPS = 15
"""Enough to rank settings; the final fit runs to its own tolerance."""
MAX_PROBE_ROWS = 20_000
"""Rows whose lists are looked at; more would not change the choice."""


class Rates(NamedTuple):
    """Weight of positives, share of hidden ones, share of all cells that are positive."""

    alpha: float
    rho: float
    class_prior: float

    @property
    def level(self) -> float:
        """Value that the weighted loss alone gives a positive, seen or hidden (PU, section 2)."""
        seen = self.alpha * (1.0 - self.rho)
        return seen / (seen + (1.0 - self.alpha) * self.rho)


def density(cells: Observations) -> float:
    """Share of cells that are seen as positive; one cell at least, so that nothing divides by zero."""
    return max(n_positives(cells), 1) / max(cells.shape[0] * cells.shape[1], 1)


def n_positives(cells: Observations) -> int:
    """Stored cells that count; those of weight zero do not."""
    return cells.nnz if cells.weights is None else int(np.count_nonzero(cells.weights))


def given_rates(alpha: Any, rho: Any, class_prior: Any, seen: float) -> Rates | None:
    """What follows from the one of three that was given; None if it is to be chosen from the data.

    alpha = (1 + rho)/2 weights both kinds of error as on fully labelled data, and
    1 - rho = seen / class_prior.
    """
    given = {"alpha": None if isinstance(alpha, str) else alpha, "rho": rho, "class_prior": class_prior}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise ParameterError(
            f"{' and '.join(named)} were given; they say the same thing in different words: pass exactly one"
        )
    if isinstance(alpha, str) and alpha != "auto":
        raise ParameterError(f'alpha must be "auto" or a number in (0, 1), got {alpha!r}.')
    if class_prior is not None:
        prior = check_fraction("class_prior", class_prior, include_high=True)
        if prior < seen:
            raise ParameterError(
                f"class_prior={prior:g} is below the share of cells that are already seen as positive, "
                f"{seen:g}; the prior counts seen and hidden positives together"
            )
        rho = 1.0 - seen / prior
    if rho is not None:
        hidden = check_fraction("rho", rho, include_low=True)
        return Rates(0.5 * (1.0 + hidden), hidden, min(seen / (1.0 - hidden), 1.0))
    if given["alpha"] is None:
        return None
    weight = check_fraction("alpha", alpha)
    hidden = max(2.0 * weight - 1.0, 0.0)
    return Rates(weight, hidden, min(seen / (1.0 - hidden), 1.0))


def alpha_grid(seen: float) -> list[float]:
    """Weights for class priors of 1/2, 1/20, 1/200, ... down to the seen share: alpha = 1 - seen 10^j."""
    lighter = seen * 10.0 ** np.arange(4)
    return [0.5, *(float(1.0 - weight) for weight in lighter[lighter < 0.5][::-1])]


def choose_rates(
    model: PositiveCompleter,
    cells: Observations,
    features: dict[str, Features | None],
    list_length: Any,
    rng: np.random.Generator,
) -> tuple[Rates, list[dict[str, float]]]:
    """Weight whose lists find most of the positives that were hidden from it, and the hidden share.

    A fifth of the positives is taken away (both directions of a link in a symmetric matrix).
    For each weight of the grid a model is fitted to the rest, and every row (of a sample of rows)
    gets a list of ``list_length`` unlabelled columns. The share of the held-out positives on these
    lists decides between the weights. No unlabelled cell is ever called negative: hidden true
    positives push down all weights alike. How dense the held-out positives are at the very top of
    the lists says how many positives were hidden from the start, see :func:`hidden_share`.
    """
    k = check_count("list_length", list_length)
    mask = held_out_positives(cells, rng)
    count, total = int(mask.sum()), n_positives(cells)
    seen = density(cells)
    if count == 0 or count == total:
        warnings.warn(
            f'alpha="auto" needs positives to hold out and there are {total}; alpha=0.5 is used',
            DataWarning,
            stacklevel=2,
        )
        return Rates(0.5, 0.0, seen), []
    training, hidden = cells.select(~mask), cells.select(mask)
    seed = int(rng.integers(2**31))
    path = []
    for alpha in alpha_grid(seen):
        probe = clone(model).set_params(
            alpha=alpha,
            rho=None,
            class_prior=None,
            max_iter=min(check_count("max_iter", model.max_iter), PROBE_SWEEPS),
            random_state=seed,
            verbose=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            probe._fit_validated(training, features)
        hits, wanted = listed_hits(probe, training, hidden, k)
        share = hidden_share(hits, count / total)
        path.append({"alpha": alpha, "recall": float(hits.sum() / max(wanted, 1)), "rho": share})
    best = max(entry["recall"] for entry in path)
    # Weights within one standard error cannot be told apart; of these the heaviest, since positives
    # are known to be hidden and the lightest weight of the grid says that none are.
    margin = np.sqrt(best * (1.0 - best) / count)
    chosen = max(entry["alpha"] for entry in path if entry["recall"] >= best - margin)
    # Each model gives an upper bound, so the lowest is the closest; the prior cannot exceed one.
    rho = min(min(entry["rho"] for entry in path), 1.0 - seen)
    return Rates(chosen, rho, seen / (1.0 - rho)), path


def held_out_positives(cells: Observations, rng: np.random.Generator) -> BoolArray:
    """Mask over the stored cells; in a symmetric pattern both directions go together."""
    draw = rng.random(cells.nnz)
    n, m = cells.shape
    csc = cells.csc
    symmetric = (
        n == m and np.array_equal(cells.indptr, csc.indptr) and np.array_equal(cells.indices, csc.indices)
    )
    if symmetric:
        # Cell t of the transpose is cell t of the pattern, so csc.order pairs (i, j) with (j, i).
        draw = np.where(cells.rows <= cells.indices, draw, draw[csc.order])
    held: BoolArray = draw < HELD_OUT
    return held if cells.weights is None else held & (cells.weights > 0)


def listed_hits(
    model: PositiveCompleter, training: Observations, hidden: Observations, k: int
) -> tuple[BoolArray, int]:
    """Whether each listed cell, best first over all lists, is a held-out positive; and how many there are."""
    # All rows, also those that lost nothing: lists of the others alone would look too good.
    rows = np.arange(0, hidden.shape[0], -(-hidden.shape[0] // MAX_PROBE_ROWS))
    known, wanted = training.csr[rows], hidden.csr[rows]
    left = np.ascontiguousarray(model.row_factors_[rows])
    ids, scores = model._provider().topk(left, model.col_factors_, k, exclude=(known.indptr, known.indices))
    n_cols = model.col_factors_.shape[0]
    listed = np.arange(rows.size)[:, None] * n_cols + ids
    truth = np.repeat(np.arange(rows.size), np.diff(wanted.indptr)) * n_cols + wanted.indices
    filled = ids >= 0
    order = np.argsort(-scores[filled], kind="stable")
    return np.isin(listed[filled][order], truth), int(wanted.nnz)


def hidden_share(hits: BoolArray, held_out: float) -> float:
    """Share of the true positives that nobody sees, from how often held-out ones top the lists.

    Where a list holds true positives only, a share ``p = c h / (1 - c (1 - h))`` of it was held out, with
    c = 1 - rho and h the held-out share; so c = p / (h + p (1 - h)). Lists that hold negatives
    as well have a smaller p: every length gives a bound from one side, and the length with the highest
    p the closest. It is looked for with a margin of three standard errors, or short lists would win by luck.
    """
    if not hits.any():
        return 1.0
    length = np.arange(1, hits.size + 1)
    found = np.cumsum(hits) / length
    margin = 3.0 * np.sqrt((found * (1.0 - found) + 1.0 / length) / length)
    p = float(found[np.argmax(found - margin)])
    return 1.0 - p / (held_out + p * (1.0 - held_out))
