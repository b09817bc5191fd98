"""Updates of composed models: some are solved again in part, the others start where they stand."""

from __future__ import annotations

import time
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from unseen.cores import LowRank
from unseen.data.merging import Merged
from unseen.exceptions import NotInductiveError
from unseen.losses import Loss, blank_of
from unseen.maps import Identity
from unseen.offsets import Offsets
from unseen.solvers import ALS, Posterior
from unseen.solvers.refresh import Pace, refresh
from unseen.terms import Term
from unseen.typing import Features, FloatArray
from unseen.validation import check_rng

if TYPE_CHECKING:
    from unseen.estimators.composed import ComposedCompleter
    from unseen.estimators.factored import FactoredCompleter

__all__ = ["absorb", "as_cols", "mirrored"]


def absorb(model: ComposedCompleter, merged: Merged, features: dict[str, Features | None]) -> None:
    """Take in an update: solve for what changed, or fit again from where the model stands."""
    posterior = model._posterior
    if posterior is None:
        _grow(model, *merged.cells.shape)
    elif isinstance(posterior, Posterior):  # other chains begin again
        model._draws = posterior.last(model.row_factors_, model.col_factors_)
    if _can_refresh(model):
        _refresh(model, merged)
        return
    model.warm_start, started = posterior is None, model.warm_start
    try:
        model._fit_validated(merged.cells, features)
    finally:
        model.warm_start, model._draws = started, None
    model._name(merged.cells)
    model.drift_ = 0.0


def _can_refresh(model: ComposedCompleter) -> bool:
    """Whether rows and columns are solved one by one with the others fixed."""
    free = [term for term in model.terms_ if isinstance(term.parts()[2], LowRank)]
    return isinstance(model.solver_, ALS) and len(free) == 1


def _refresh(model: ComposedCompleter, merged: Merged) -> None:
    clock = time.perf_counter()
    rng = check_rng(model.random_state)
    model.validation_fraction, share = None, model.validation_fraction
    try:
        bound = model._bind(merged.cells, {"row": None, "col": None}, rng)
    finally:
        model.validation_fraction = share
    done = refresh(
        bound.problem,
        model._full_state(bound.problem),
        bound.solver,
        merged,
        pace=Pace.of([entry["objective"] for entry in model.history_ if "drift" not in entry]),
    )
    model.terms_, model.loss_, model.offsets_ = bound.terms, bound.problem.loss, bound.offsets
    model._keep(bound.problem, done.state)
    model._name(merged.cells)
    model.drift_ = done.drift
    entry: dict[str, Any] = {"objective": done.objective, "time_s": time.perf_counter() - clock}
    model.history_ = [*model.history_, entry | {"drift": done.drift, "full_sweeps": done.n_sweeps}]


def _grow(model: ComposedCompleter, n_rows: int, n_cols: int) -> None:
    """Room for new rows and columns: zeros, which the solver replaces."""
    state = dict(model.state_)
    for index, term in enumerate(model.terms_):
        core = state.get(f"{index}.core")
        if core is None:
            continue
        maps = term.parts()[:2]
        missing = [
            max(length - size, 0) if isinstance(a_map, Identity) else 0
            for length, size, a_map in zip((n_rows, n_cols), core.shape, maps, strict=True)
        ]
        if any(missing):
            state[f"{index}.core"] = np.pad(core, [(0, missing[0]), (0, missing[1])])
    model.state_ = state
    for side, length in (("row", n_rows), ("col", n_cols)):
        factors = getattr(model, f"{side}_factors_")
        if length > len(factors):
            setattr(model, f"{side}_factors_", np.pad(factors, [(0, length - len(factors)), (0, 0)]))


def mirrored(model: FactoredCompleter) -> Any:
    """The same model of the transposed matrix: its rows are the columns."""
    if getattr(getattr(model, "solver_", None), "averages", False):
        raise NotInductiveError("a mean over samples cannot place columns by their cells; fit it again")
    twin = copy(model)
    twin.terms_ = [_transposed_term(model, index) for index in range(len(model.terms_))]
    twin.loss_ = _transposed_loss(model.loss_)
    names = {"row": "col", "col": "row", "row_map": "col_map", "col_map": "row_map"}
    twin.state_ = {}
    for key, value in model.state_.items():
        index, name = key.split(".", 1)
        first, *rest = name.split(".", 1)
        moved = ".".join([index, names.get(first, first), *rest])
        twin.state_[moved] = np.ascontiguousarray(value.T) if first == "core" else value
    old = model.offsets_
    twin.offsets_ = Offsets(old.mean, old.col, old.row, old.reg_col, old.reg_row)
    twin.row_factors_ = _with_offsets(model.col_factors_, twin.offsets_, "row")
    twin.col_factors_ = _with_offsets(model.row_factors_, twin.offsets_, "col")
    for name in ("{}_ids_", "n_{}_features_in_", "{}_feature_names_"):
        row, col = (getattr(model, name.format(side), None) for side in ("row", "col"))
        setattr(twin, name.format("row"), col)
        setattr(twin, name.format("col"), row)
    twin.n_features_in_ = model.row_factors_.shape[0]
    twin.seen_ = None
    return twin


def _with_offsets(factors: FloatArray, offsets: Offsets, side: str) -> FloatArray:
    """Factors whose last coordinates are those that offsets have on the given side."""
    width, n = offsets.width, len(factors)
    extra = (
        offsets.row_coordinates(n, offsets.row) if side == "row" else offsets.col_coordinates(n, offsets.col)
    )
    out = factors.copy()
    out[:, factors.shape[1] - width :] = extra
    return out


def as_cols(factors: FloatArray, offsets: Offsets) -> FloatArray:
    """Factors of columns of a mirrored model's rows: ``[1, c_j]`` in place of ``[mean + c_j, 1]``."""
    out = factors.copy()
    if offsets.width:
        first = out.shape[1] - offsets.width
        bias = factors[:, first] - offsets.mean
        out[:, first] = 1.0
        if offsets.width > 1:
            out[:, first + 1] = bias
    return out


def _transposed_term(model: FactoredCompleter, index: int) -> Term:
    row_map, col_map, core, reg = model.terms_[index].parts()
    if f"{index}.core" in model.state_ and reg.separable() is None and not reg.on_core().spectral:
        raise NotInductiveError(
            f"{type(reg).__name__} on a full core treats rows and columns differently; fit the "
            "transposed matrix"
        )
    return Term(col_map, row_map, core, reg)


def _transposed_loss(loss: Loss) -> Loss:
    blank = blank_of(loss)
    if blank.col_weights is not None:
        raise NotInductiveError("the background has col_weights, and none are known for new columns")
    if blank.row_weights is None:
        return loss
    twin: Loss = clone(loss)
    twin.get_params()["background"].set_params(row_weights=None, col_weights=blank.row_weights)
    return twin
