"""What does not go by blocks, and why: the one list that fits ask and the guide shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from unseen.cores import LowRank
from unseen.distributed.engine import SIDES
from unseen.distributed.features import FeatureSource
from unseen.estimators.augmented import AugmentedMF
from unseen.estimators.composed import ComposedCompleter
from unseen.estimators.pu_base import PositiveCompleter
from unseen.exceptions import ParameterError, UnsupportedComposition
from unseen.losses import Quadratic, blank_of
from unseen.maps import Given, Identity, Whitened, WithOnes
from unseen.regularisers import Separable, parse_reg
from unseen.solvers import ALS, AlternatingCG

__all__ = ["REFUSED", "Asked", "Refusal", "refuse"]


@dataclass
class Asked:
    """An estimator and the side features that it is to be fitted with."""

    model: Any
    features: dict[str, FeatureSource]

    @cached_property
    def parts(self) -> tuple[list[Any], Any, Any]:
        """Terms, loss (None before positives are counted) and solver (None if the data choose it)."""
        model, (rows, cols) = self.model, (side in self.features for side in SIDES)
        if isinstance(model, PositiveCompleter):
            return model._terms(rows, cols, parse_reg(model.reg)[0]), None, model._solver()
        composition = model._compose(rows, cols)
        return composition.terms, composition.loss, composition.solver

    @property
    def maps(self) -> dict[str, Any]:
        """Map of each side of the first term."""
        return dict(zip(SIDES, self.parts[0][0].parts()[:2], strict=True))

    def get(self, name: str, default: Any = None) -> Any:
        """A hyper-parameter, where the estimator has it."""
        return getattr(self.model, name, default)

    def where(self, wrong: Callable[[str, Any], bool]) -> str | None:
        """The first side whose map is wrong."""
        return next((side for side, a_map in self.maps.items() if wrong(side, a_map)), None)


class Refusal(NamedTuple):
    """Why something is refused, and what of it was given; None where it was not."""

    why: str
    given: Callable[[Asked], str | None]
    error: type[Exception] = UnsupportedComposition


def _unless(name: str, wanted: Any) -> Callable[[Asked], str | None]:
    def given(asked: Asked) -> str | None:
        found = asked.get(name, wanted)
        return None if found is wanted or found == wanted else f"{name} is {found!r}"

    return given


def _of_augmented(name: str, wanted: Any) -> Callable[[Asked], str | None]:
    unless = _unless(name, wanted)
    return lambda asked: unless(asked) if isinstance(asked.model, AugmentedMF) else None


def _if(condition: Callable[[Asked], Any], text: str) -> Callable[[Asked], str | None]:
    return lambda asked: text if condition(asked) else None


def _chooses_alpha(asked: Asked) -> bool:
    given = (asked.get("rho"), asked.get("class_prior"))
    return asked.get("alpha") == "auto" and given == (None, None)


def _solver_name(asked: Asked) -> str | None:
    solver = asked.parts[2]
    return None if isinstance(solver, (ALS, AlternatingCG)) else f"it is solved by {type(solver).__name__}"


def _map_name(asked: Asked, wrong: Callable[[str, Any], bool]) -> str | None:
    side = asked.where(wrong)
    return None if side is None else f"its {side} features go through {type(asked.maps[side]).__name__}"


def _uncentred(asked: Asked) -> str | None:
    loss = asked.parts[1]
    found = loss is not None and asked.get("center") != "none" and loss.why_not_centred() is not None
    return f"center is {asked.get('center')!r} with {type(loss).__name__}" if found else None


def _odd_penalty(asked: Asked) -> bool:
    rule = asked.parts[0][0].parts()[3].factored()
    return not (isinstance(rule, Separable) and rule.quadratic)


def _missing(asked: Asked) -> str | None:
    side = asked.where(lambda side, a_map: a_map.needs_features and side not in asked.features)
    return None if side is None else f"it needs {side}_features"


def _superfluous(asked: Asked) -> str | None:
    by_rows = isinstance(asked.parts[2], ALS)
    side = asked.where(lambda side, a_map: side in asked.features and (by_rows or not a_map.needs_features))
    return None if side is None else f"it takes no {side}_features"


REFUSED: dict[str, Refusal] = {
    "a model that is no composition (`BiasModel`, classifiers)": Refusal(
        "MatrixFactorization, BiasMC, IMC and other completers with one low-rank term, solved by ALS or "
        "AlternatingCG, can",
        lambda a: (
            None if isinstance(a.model, ComposedCompleter) else "it is no composition of terms and a loss"
        ),
    ),
    "`validation_fraction`": Refusal(
        "validation_fraction must be None for a fit by blocks: held-out cells are not kept apart there; "
        "choose max_iter on a sample instead",
        _unless("validation_fraction", None),
        ParameterError,
    ),
    "`warm_start=True`": Refusal(
        "warm_start must be False for a fit by blocks; checkpoint= and resume=True go on instead",
        _if(lambda a: a.get("warm_start", False), "warm_start is True"),
        ParameterError,
    ),
    '`init` other than `"random"`': Refusal(
        "init must be 'random' for a fit by blocks: a spectral start needs all cells at once",
        _unless("init", "random"),
        ParameterError,
    ),
    '`center="joint"` or `"informed"`': Refusal(
        "center must be 'none', 'mean' or 'biases' for a fit by blocks: biases beside the factors are "
        "terms of their own",
        lambda a: f"center is {a.get('center')!r}" if a.get("center") in ("joint", "informed") else None,
        ParameterError,
    ),
    "`ShiftMC`, `ShiftIMC`": Refusal(
        "its factors are bounded; of the models for positives BiasMC and BiasIMC can",
        _if(
            lambda a: isinstance(a.model, PositiveCompleter) and not hasattr(a.model, "alpha"),
            "it has bounds on scores or factors",
        ),
    ),
    '`alpha="auto"` without `rho` or `class_prior`': Refusal(
        'alpha="auto" fits several models to choose; for a fit by blocks choose alpha on a sample in memory '
        "and pass the number, or pass rho or class_prior",
        _if(_chooses_alpha, "alpha is to be chosen"),
        ParameterError,
    ),
    '`reg="auto"`': Refusal(
        "reg must be a number for a fit by blocks: held-out cells choose it from several fits; choose it "
        "on a sample in memory and pass its reg_",
        _if(lambda a: isinstance(a.get("reg"), str) and a.get("reg") == "auto", "reg is to be chosen"),
        ParameterError,
    ),
    '`reg` as a share (`"0.1max"`)': Refusal(
        "reg must be a number for a fit by blocks: the largest useful one needs all cells at once",
        _if(
            lambda a: isinstance(a.model, PositiveCompleter) and parse_reg(a.model.reg)[1],
            "reg is a share of its largest useful value",
        ),
        ParameterError,
    ),
    "`AugmentedMF` with an `augmentation` that is drawn": Refusal(
        "augmentation must be 'expected' for a fit by blocks: a measurement is a sum over all blocks",
        _of_augmented("augmentation", "expected"),
        ParameterError,
    ),
    '`AugmentedMF(cross_component="baseline")`': Refusal(
        "cross_component must be 'model' for a fit by blocks: who is connected with whom is known when all "
        "cells were seen",
        _of_augmented("cross_component", "model"),
        ParameterError,
    ),
    "`AugmentedMF(eps_abs=)`": Refusal(
        "eps_abs must be None for a fit by blocks: factors of the sweep before are not kept to be compared",
        _of_augmented("eps_abs", None),
        ParameterError,
    ),
    "a solver that the data choose": Refusal(
        "name one, solver=ALS() or AlternatingCG()",
        _if(lambda a: a.parts[2] is None, "its solver is chosen by the data"),
    ),
    "other solvers than ALS and AlternatingCG, and so learned maps, L1, bounds and full cores": Refusal(
        "only solver='als' goes by blocks, and with side features AlternatingCG", _solver_name
    ),
    "several terms, or a core that is not `LowRank`": Refusal(
        "exactly one term with a LowRank core goes by blocks",
        _if(
            lambda a: len(a.parts[0]) != 1 or not isinstance(a.parts[0][0].parts()[2], LowRank),
            "it has other terms",
        ),
    ),
    "a loss that is not quadratic, or blank cells that are pulled to another target than zero": Refusal(
        "the loss must be quadratic, with blank cells missing or pulled to zero",
        _if(
            lambda a: (
                a.parts[1] is not None
                and not (isinstance(a.parts[1], Quadratic) and blank_of(a.parts[1]).target == 0.0)
            ),
            "it has another loss",
        ),
    ),
    "`center` with a loss that depends on the values themselves": Refusal(
        "nothing can be subtracted from the values of this loss; use center='none'",
        _uncentred,
        ParameterError,
    ),
    "a penalty that is no ridge": Refusal(
        "the penalty must be a ridge (or nuclear norm) of the factors",
        _if(_odd_penalty, "it has another penalty"),
    ),
    "`whiten=True`": Refusal(
        "only Given and WithOnes go by blocks: whitening needs a covariance of all features; pass "
        "whiten=False",
        lambda a: _map_name(a, lambda side, a_map: isinstance(a_map, Whitened)),
    ),
    "other maps (`Fourier`, `Nystrom`, `Tanh`, `Standardized`, ...)": Refusal(
        "only Given and WithOnes go by blocks: widths, landmarks and projections are found from all features "
        "at once; apply the map to the features first",
        lambda a: _map_name(a, lambda side, a_map: type(a_map) not in (Identity, Given, WithOnes)),
    ),
    "a map without the features that it needs": Refusal("pass a table with one line for each id", _missing),
    "features for a side that takes none": Refusal("IMC and BiasIMC do", _superfluous),
}
"""What is asked for, in words: why it is refused. The first that applies is the one that is said."""


def refuse(model: Any, features: dict[str, FeatureSource]) -> Asked:
    """Refuse what does not go by blocks, before anything is read."""
    asked = Asked(model, features)
    for refusal in REFUSED.values():
        given = refusal.given(asked)
        if given is not None:
            raise refusal.error(f"{type(model).__name__} cannot be fitted by blocks: {given}; {refusal.why}")
    return asked
