"""What becomes of an estimator when it is fitted by blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from unseen.data import Vocabulary
from unseen.distributed.blocks import Merge
from unseen.distributed.driver import StartSize
from unseen.distributed.engine import SIDES
from unseen.distributed.features import FeatureSource
from unseen.distributed.preparation import Totals
from unseen.distributed.refusals import refuse
from unseen.distributed.sources import Columns
from unseen.distributed.steps import Settings
from unseen.estimators.augmented import AugmentedMF
from unseen.estimators.composed import ComposedCompleter
from unseen.estimators.pu_base import PositiveCompleter
from unseen.estimators.pu_rates import given_rates
from unseen.exceptions import InvalidDataError
from unseen.losses import Background, Squared, blank_of
from unseen.maps import FeatureMap, WithOnes
from unseen.offsets import Offsets
from unseen.regularisers import parse_reg
from unseen.solvers import ALS
from unseen.state import State
from unseen.typing import FloatArray
from unseen.validation import check_choice, check_count, check_pair, check_positive, check_rng

__all__ = ["Recipe", "with_offsets"]


class _Counted(NamedTuple):
    """All that estimators ask of a target to find weights that were given by rules."""

    nnz: int
    shape: tuple[int, int]
    weights: None = None


@dataclass
class Recipe:
    """An estimator seen as alternating minimisation over blocks.

    Parameters
    ----------
    estimator : ComposedCompleter
        Not fitted; a copy is fitted.
    features : dict
        Side features by ``"row"`` and ``"col"``, for the sides that have any.
    """

    estimator: ComposedCompleter
    features: dict[str, FeatureSource] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.model: Any = clone(self.estimator)
        asked = refuse(self.model, self.features)
        model = self.model
        self.positive = isinstance(model, PositiveCompleter)
        self.augmented = isinstance(model, AugmentedMF)
        if self.positive:
            # Refuses two at once; a prior is judged when positives are counted.
            given_rates(model.alpha, model.rho, model.class_prior, model.class_prior or 0.0)
        self.center = check_choice("center", model.center, model.centers)
        self.bias_reg = check_pair("bias_reg", model.bias_reg)
        self.rank = check_count("rank", asked.parts[0][0].parts()[2].rank)
        self.maps: dict[str, FeatureMap] = asked.maps
        self.blank_weights: tuple[FloatArray | None, FloatArray | None] = (None, None)
        """Weights of the background by row and by column."""
        self.state: State = {}
        """What embeds new rows and columns, once it is known."""

    def columns(self, row: str, col: str, value: str | None, weight: str | None) -> Columns:
        """Which columns are read, and what values mean."""
        return Columns(row, col, value, self.positive, getattr(self.model, "weights", None), weight)

    def merge(self, value: str | None) -> Merge:
        """What becomes of repeated cells."""
        if self.positive:
            return "sum" if getattr(self.model, "weights", None) else "mean"
        return "sum" if value is None else "mean"

    def settings(self, counted: Totals, shape: tuple[int, int], dtype: str, n_threads: int) -> Settings:
        """Loss, penalty and solver, from the hyper-parameters and the number of cells."""
        model, cells = self.model, _Counted(counted.n_counting, shape)
        if self.positive:
            self.rates = model._set_rates(cells, dict.fromkeys(SIDES), check_rng(model.random_state))
            model.reg_ = parse_reg(model.reg)[0]
        composed = model._compose(*(side in self.features for side in SIDES))
        terms = [clone(term) for term in composed.terms]
        loss, solver = clone(composed.loss), clone(composed.solver)
        if self.augmented:
            model._weigh(loss, shape, counted.n_counting)
        solver.set_params(
            max_iter=check_count("max_iter", model.max_iter),
            tol=check_positive("tol", model.tol, strict=False),
        )
        model.terms_, model.loss_, model.solver_ = terms, loss, solver
        rule = terms[0].parts()[3].factored()
        return Settings(
            self._plain_loss(loss, shape),
            rule.ridge,
            self.rank,
            dtype,
            by_rows=isinstance(solver, ALS),
            method=getattr(solver, "method", "cg"),
            cg_steps=solver.cg_steps,
            cg_tol=getattr(solver, "cg_tol", 0.0),
            degree_power=rule.degree_power,
            n_threads=n_threads,
        )

    def _plain_loss(self, loss: Any, shape: tuple[int, int]) -> Any:
        """The loss without the background's weights by row and column, which go to the blocks."""
        blank = blank_of(loss)
        if not blank.separable:
            return loss
        for side, length in zip(SIDES, shape, strict=True):
            weights = blank.of(side)
            if weights is not None and len(weights) != length:
                raise InvalidDataError(
                    f"the background has {len(weights)} {side}_weights; the target has {length} {side}s"
                )
        assert isinstance(loss, Squared)
        self.blank_weights = blank.row_weights, blank.col_weights
        return clone(loss).set_params(background=Background(blank.weight, blank.target))

    def start_size(self, size: float, counted: Totals) -> StartSize:
        """How large random factors start, as in a fit in memory; ``size`` is the scale of the targets."""
        if self.augmented:
            return StartSize(self.model._start_spread(counted.mean), only_seen=True)
        return StartSize(float(np.sqrt(size / self.rank)))

    def widths(self) -> dict[str, int | None]:
        """Columns of the designs; None for sides without features."""
        return {
            side: self.features[side].n_features + isinstance(self.maps[side], WithOnes)
            if side in self.features
            else None
            for side in SIDES
        }

    def n_features(self) -> tuple[int, int]:
        """Numbers in a line of the designs, for the need of memory."""
        row, col = (self.features[side].numbers_a_line + 1 if side in self.features else 0 for side in SIDES)
        return row, col

    def fitted(
        self,
        factors: dict[str, FloatArray],
        offsets: Offsets,
        ids: tuple[Vocabulary | None, Vocabulary | None],
        facts: dict[str, Any],
    ) -> Any:
        """The estimator as if it had been fitted in memory."""
        model = self.model
        model.offsets_ = offsets
        model.row_factors_ = with_offsets(factors["row"], "row", offsets.mean, offsets.row)
        model.col_factors_ = with_offsets(factors["col"], "col", offsets.mean, offsets.col)
        model.widths_, model.state_, model.certificate_ = [self.rank], dict(self.state), None
        model.row_ids_, model.col_ids_ = ids
        model.clip_ = getattr(model, "clip", None)
        model.device_, model.informed_ = "cpu", {}
        if hasattr(model, "reg") and not self.positive:
            model.reg_, model.reg_path_ = model.reg, []
        model.n_features_in_ = len(factors["col"])
        for side in SIDES:
            source = self.features.get(side)
            setattr(model, f"n_{side}_features_in_", None if source is None else source.n_features)
            setattr(model, f"{side}_feature_names_", None if source is None else source.names)
        for name, value in facts.items():
            setattr(model, name, value)
        if self.augmented:  # nothing is asked of blocks where the model speaks everywhere
            model.row_block_, model.col_block_ = (
                np.zeros(len(factors[side]), dtype=np.int32) for side in SIDES
            )
        if self.positive:
            model.threshold_ = model._choose_threshold(self.rates, check_rng(model.random_state))
        return model


def with_offsets(factors: FloatArray, side: str, mean: float, bias: FloatArray | None) -> FloatArray:
    """Factors with offsets as extra coordinates, so that products are predictions."""
    offsets = Offsets(mean, *((bias, None) if side == "row" else (None, bias)))
    if not offsets.width:
        return factors
    make = offsets.row_coordinates if side == "row" else offsets.col_coordinates
    extra = make(len(factors), bias)
    return np.hstack([factors, extra.astype(factors.dtype, copy=False)])
