"""Which estimators can be fitted by blocks, and what becomes of them when they are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from unseen.cores import LowRank
from unseen.data import Vocabulary
from unseen.distributed.blocks import Merge
from unseen.distributed.driver import StartSize, Totals
from unseen.distributed.features import FeatureSource
from unseen.distributed.sources import Columns
from unseen.distributed.steps import Settings
from unseen.estimators.augmented import AugmentedMF
from unseen.estimators.composed import ComposedCompleter
from unseen.estimators.pu_base import PositiveCompleter
from unseen.estimators.pu_rates import given_rates
from unseen.exceptions import ParameterError, UnsupportedComposition
from unseen.losses import Background, Quadratic, Squared, blank_of
from unseen.maps import FeatureMap, Given, Identity, Whitened, WithOnes
from unseen.offsets import Offsets
from unseen.regularisers import parse_reg
from unseen.sensing import Law, expected_weights, n_constraints
from unseen.solvers import ALS, AlternatingCG
from unseen.state import State
from unseen.typing import FloatArray
from unseen.validation import check_choice, check_count, check_fraction, check_positive, check_rng

__all__ = ["Recipe"]

SIDES = ("row", "col")


@dataclass
class Recipe:
    """An estimator seen as alternating least squares over blocks.

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
        model = self.estimator
        if not isinstance(model, ComposedCompleter):
            raise UnsupportedComposition(
                f"{type(model).__name__} cannot be fitted by blocks; MatrixFactorization, BiasMC, IMC and "
                "other completers with one low-rank term, solved by ALS or AlternatingCG, can"
            )
        self.model = clone(model)
        self.state: State = {}
        """What embeds new rows and columns, once it is known."""
        self.positive = isinstance(model, PositiveCompleter)
        if getattr(model, "validation_fraction", None) is not None:
            raise ParameterError(
                "validation_fraction must be None for a fit by blocks; choose max_iter instead"
            )
        if getattr(model, "warm_start", False):
            raise ParameterError("warm_start must be False for a fit by blocks; resume=True goes on instead")
        if getattr(model, "init", "random") != "random":
            raise ParameterError(f"init must be 'random' for a fit by blocks, got {model.init!r}")
        self.center = check_choice("center", model.center, model.centers)
        if self.center in ("biases", "joint"):
            raise ParameterError(f"center must be 'none' or 'mean' for a fit by blocks, got {self.center!r}")
        self.augmented = isinstance(model, AugmentedMF)
        if self.positive:
            self._check_positive()
        if self.augmented:
            self._check_augmented()
        term = self.estimator_parts()[0][0]  # refuses before anything is read
        self.rank = check_count("rank", term.parts()[2].rank)

    def _check_positive(self) -> None:
        model: Any = self.model
        if not hasattr(model, "alpha"):
            raise UnsupportedComposition(
                f"{type(model).__name__} cannot be fitted by blocks; BiasMC and BiasIMC can"
            )
        given_rates(model.alpha, model.rho, model.class_prior, 0.0)  # refuses two at once
        if model.alpha == "auto" and model.rho is None and model.class_prior is None:
            raise ParameterError(
                'alpha="auto" fits several models to choose; for a fit by blocks choose alpha on a sample in '
                "memory and pass the number, or pass rho or class_prior"
            )
        if parse_reg(model.reg)[1]:
            raise ParameterError(f"reg must be a number for a fit by blocks, got {model.reg!r}")
        model.alpha_, model.rho_, model.reg_ = 0.5, 0.5, parse_reg(model.reg)[0]  # until cells are counted

    def _check_augmented(self) -> None:
        model: Any = self.model
        for name, wanted in (
            ("augmentation", "expected"),
            ("cross_component", "model"),
            ("eps_abs", None),
        ):
            if getattr(model, name) != wanted:
                raise ParameterError(
                    f"{name} must be {wanted!r} for a fit by blocks, got {getattr(model, name)!r}"
                )

    def columns(self, row: str, col: str, value: str | None) -> Columns:
        """Which columns are read, and what values mean."""
        weights = getattr(self.model, "weights", None)
        return Columns(row, col, value, self.positive, weights)

    def merge(self, value: str | None) -> Merge:
        """What becomes of repeated cells."""
        if self.positive:
            return "sum" if getattr(self.model, "weights", None) else "mean"
        return "sum" if value is None else "mean"

    def first_settings(self, dtype: str, n_threads: int) -> Settings:
        """Enough to count the cells."""
        return Settings(Squared(), 0.0, self.rank, dtype, n_threads=n_threads)

    def settings(self, counted: Totals, shape: tuple[int, int], dtype: str, n_threads: int) -> Settings:
        """Loss, penalty and solver, from the hyper-parameters and the number of cells."""
        model: Any = self.model
        if self.positive:
            seen = max(counted.n_cells, 1) / (shape[0] * shape[1])
            rates = given_rates(model.alpha, model.rho, model.class_prior, seen)
            assert rates is not None
            self.rates = rates
            model.alpha_, model.rho_, model.class_prior_ = (float(value) for value in self.rates)
            model.reg_ = parse_reg(model.reg)[0]
            if hasattr(model, "list_length"):
                model.alpha_path_ = []
        terms, loss, solver = self.estimator_parts()
        if self.augmented:
            self._weigh(loss, counted, shape)
        solver.set_params(max_iter=check_count("max_iter", model.max_iter), tol=float(model.tol))
        model.terms_, model.loss_, model.solver_ = terms, loss, solver
        ridge = terms[0].parts()[3].factored().ridge
        settings = Settings(loss, ridge, self.rank, dtype, n_threads=n_threads, cg_steps=solver.cg_steps)
        if isinstance(solver, AlternatingCG):
            return replace(settings, method="cg", cg_tol=solver.cg_tol)
        return replace(settings, method=solver.method)

    def _weigh(self, loss: Quadratic, counted: Totals, shape: tuple[int, int]) -> None:
        """Weights of the mean over all draws of measurements (AMF, equation E)."""
        model: Any = self.model
        law = Law(
            n_constraints(shape, counted.n_cells, self.rank, check_positive("c0", model.c0)),
            check_positive("weight", model.weight, strict=False),
            check_fraction("gamma", model.gamma, high=0.5),
            bool(model.resample_original),
        )
        model.n_constraints_, model.weights_ = law.n_rows, expected_weights(law, counted.n_cells)
        observed, others = model.weights_
        loss.set_params(weight=2.0 * observed, background=Background(2.0 * others))

    def start_size(self, counted: Totals) -> StartSize:
        """How large random factors start, as in a fit in memory."""
        if not self.augmented:
            return StartSize(float(np.sqrt(min(max(counted.size, 1e-3), 1e3) / self.rank)))
        if self.center != "none":
            return StartSize(0.1, only_seen=True)
        mean = abs(counted.total / counted.n_cells)
        return StartSize(max(float(np.sqrt(mean / self.rank)), 0.1), only_seen=True)

    @property
    def by_coefficients(self) -> bool:
        """Whether factors are features times coefficients, solved for by conjugate gradients."""
        return isinstance(self.estimator_parts()[2], AlternatingCG)

    def side_map(self, side: str) -> FeatureMap:
        """What turns the features of one side into its design."""
        found: FeatureMap = self.estimator_parts()[0][0].parts()[SIDES.index(side)]
        return found

    def widths(self) -> dict[str, int | None]:
        """Columns of the designs; None for sides without features."""
        return {
            side: self.features[side].n_features + isinstance(self.side_map(side), WithOnes)
            if side in self.features
            else None
            for side in SIDES
        }

    def n_features(self) -> tuple[int, int]:
        """Columns of the designs, for the need of memory."""
        row, col = (self.widths()[side] or 0 for side in SIDES)
        return row, col

    def estimator_parts(self) -> tuple[list[Any], Quadratic, ALS | AlternatingCG]:
        """Copies of the parts of the composition, or a refusal."""
        terms, loss, solver = self.model._compose("row" in self.features, "col" in self.features)
        reason = None
        if solver is None:
            reason = "its solver is chosen by the data; name one, solver=ALS() or AlternatingCG()"
        elif not isinstance(solver, (ALS, AlternatingCG)):
            reason = (
                f"it is solved by {type(solver).__name__}, only solver='als' goes by blocks, and with side "
                "features AlternatingCG"
            )
        elif len(terms) != 1 or not isinstance(terms[0].parts()[2], LowRank):
            reason = "it needs exactly one term with a LowRank core"
        elif not isinstance(loss, Quadratic) or blank_of(loss).target != 0.0:
            reason = "the loss must be quadratic, with blank cells missing or pulled to zero"
        elif not terms[0].parts()[3].factored().smooth:
            reason = "the penalty must be a ridge"
        else:
            reason = self._why_not_maps(terms[0].parts()[:2], solver)
        if reason is not None:
            raise UnsupportedComposition(f"{type(self.model).__name__} cannot be fitted by blocks: {reason}")
        return [clone(term) for term in terms], clone(loss), clone(solver)

    def _why_not_maps(self, maps: tuple[FeatureMap, FeatureMap], solver: ALS | AlternatingCG) -> str | None:
        for side, a_map in zip(SIDES, maps, strict=True):
            # Others need all features at once, or are learned.
            if type(a_map) not in (Identity, Given, WithOnes):
                hint = "; pass whiten=False" if isinstance(a_map, Whitened) else ""
                name = type(a_map).__name__
                return f"its {side} features go through {name}; only Given and WithOnes go by blocks{hint}"
            if a_map.needs_features and side not in self.features:
                return f"it needs {side}_features"
            if side in self.features and not (a_map.needs_features and isinstance(solver, AlternatingCG)):
                return f"it takes no {side}_features; IMC and BiasIMC do"
        return None

    def fitted(
        self,
        rows: FloatArray,
        cols: FloatArray,
        settings: Settings,
        ids: tuple[Vocabulary | None, Vocabulary | None],
        facts: dict[str, Any],
    ) -> Any:
        """The estimator as if it had been fitted in memory."""
        model: Any = self.model
        model.offsets_ = Offsets(mean=settings.mean)
        model.row_factors_ = with_mean(rows, "row", settings.mean)
        model.col_factors_ = with_mean(cols, "col", settings.mean)
        model.widths_, model.state_, model.certificate_ = [self.rank], dict(self.state), None
        model.row_ids_, model.col_ids_ = ids
        model.n_features_in_ = len(cols)
        for side in SIDES:
            source = self.features.get(side)
            setattr(model, f"n_{side}_features_in_", None if source is None else source.n_features)
            setattr(model, f"{side}_feature_names_", None if source is None else source.names)
        for name, value in facts.items():
            setattr(model, name, value)
        if self.augmented:  # nothing is asked of blocks where the model speaks everywhere
            model.row_block_, model.col_block_ = (
                np.zeros(len(factors), dtype=np.int32) for factors in (rows, cols)
            )
        if self.positive:
            model.threshold_ = model._choose_threshold(self.rates, check_rng(model.random_state))
        return model


def with_mean(factors: FloatArray, side: str, mean: float) -> FloatArray:
    """Factors with the mean as an extra coordinate, so that products are predictions."""
    if mean == 0.0:
        return factors
    extra = np.full((len(factors), 1), mean if side == "row" else 1.0, dtype=factors.dtype)
    return np.hstack([factors, extra])
