"""One name for blends of completers and of classifiers."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Sequence
from typing import Any, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier

from unseen.blends.weights import SHORTEST, Measure
from unseen.exceptions import ParameterError
from unseen.typing import FloatArray
from unseen.validation import check_fraction, check_positive, check_several

__all__ = ["Blend"]


class Blend(BaseEstimator):  # type: ignore[misc]
    """Weighted sum of the scores of several models, with weights chosen on held-out cells or rows.

    Models that err in different ways order better together than each alone. With ``weights="auto"`` a part
    of the training cells (of the rows, for classifiers) is held out, the models are fitted to the rest, the
    weights that do best on the held-out part are taken, and the models are fitted to everything. For errors
    of values these are the weights on the simplex of least squared error; for lists, models are added one at
    a time, repeatedly, as long as the lists get better, then weights are refined one by one. On the held-out
    part the blend is never worse than the best of its models.

    Lists need one scale: the scores of each model are divided by their standard deviation over the columns of
    the row. Values have a scale, and stay as they are.

    ``Blend(models)`` is a :class:`CellBlend` of completers, with their methods, or a :class:`LabelBlend` of
    multi-label classifiers, with theirs.

    Parameters
    ----------
    models : sequence of estimators
        All completers or all multi-label classifiers; fitted as copies.
    weights : "auto" or sequence of float, default="auto"
        One for each model, zero or larger, used as they are.
    scoring : str, default="auto"
        What weights are chosen by: ``"rmse"``, ``"precision@k"``, ``"recall@k"`` or ``"ndcg@k"`` with a
        number for k. "auto" is ``"ndcg@10"`` for positives, ``"rmse"`` for values, and for classifiers the
        mean of ``"precision@k"`` at 1, 3 and 5. Also decides whether completers are blended as lists or
        as values.
    validation_fraction : float, default=0.1
        Share that is held out to choose weights.
    random_state : int or Generator, optional
        Source of the draw.
    n_jobs : int, optional
        Threads for products; all cores by default. Models use threads of their own.

    Attributes
    ----------
    models_ : list of estimators
        Fitted to everything.
    weights_ : ndarray
        Weights.
    validation_scores_ : ndarray or None
        Measure of each model alone and, last, of the blend, on the held-out part; None for given weights.

    Examples
    --------
    >>> from unseen import BiasMC, Blend, SpectralFilter
    >>> from unseen.datasets import make_positives
    >>> data = make_positives(200, 100, n_groups=4, inside=1.0, across=0.0, rho=0.5, random_state=0)
    >>> models = [BiasMC(4, alpha=0.9, random_state=0), SpectralFilter(4, random_state=0)]
    >>> blend = Blend(models, random_state=0).fit(data.observations)
    >>> type(blend).__name__, blend.recommend([0], k=3, exclude=data.observations)[0].shape
    ('CellBlend', (1, 3))
    """

    models_: list[Any]
    weights_: FloatArray
    validation_scores_: FloatArray | None

    def __new__(
        cls,
        models: Sequence[Any] = (),
        *,
        weights: str | Sequence[float] = "auto",
        scoring: str = "auto",
        validation_fraction: float = 0.1,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> Self:
        """Make the blend for the kind of the models."""
        if cls is not Blend:
            return cast(Self, super().__new__(cls))
        first = next(iter(models), None) if isinstance(models, Collection) else None
        kind = "LabelBlend" if first is not None and is_classifier(first) else "CellBlend"
        return cast(Self, super().__new__(getattr(importlib.import_module("unseen.blends"), kind)))

    def __init__(
        self,
        models: Sequence[Any] = (),
        *,
        weights: str | Sequence[float] = "auto",
        scoring: str = "auto",
        validation_fraction: float = 0.1,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.models = models
        self.weights = weights
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.n_jobs = n_jobs

    # -- what both kinds share -------------------------------------------------------

    def _copies(self) -> list[Any]:
        """Models to fit, all of the kind that this blend is for."""
        models = check_several("models", self.models, "a list of models")
        if not models:
            raise ParameterError("models is empty; a blend needs at least one model")
        for model in models:
            if not hasattr(model, self._door):
                raise ParameterError(
                    f"models holds a {type(model).__name__}, which has no {self._door}; "
                    f"{type(self).__name__} blends models that have it. Make a new Blend for another kind"
                )
        return [clone(model) for model in models]

    _door = "fit"
    """Method that every model of this kind has."""

    def _given_weights(self) -> FloatArray | None:
        if isinstance(self.weights, str):
            if self.weights != "auto":
                raise ParameterError(
                    f"weights={self.weights!r}; expected 'auto' or one number for each model"
                )
            check_fraction("validation_fraction", self.validation_fraction)
            return None
        given = check_several("weights", self.weights, "'auto' or one number for each model")
        if len(given) != len(self.models):
            raise ParameterError(f"weights has {len(given)} numbers for {len(self.models)} models")
        weights = np.array([check_positive("weights", weight, strict=False) for weight in given])
        if not weights.any():
            raise ParameterError("weights are all zero; at least one must be above zero")
        return weights

    def _list_measure(self, default: str) -> Measure:
        return Measure.of(default if self.scoring == "auto" else self.scoring)


def candidates_of(measure: Measure) -> int:
    """Columns of each model from which the blend's list is made while weights are chosen."""
    return max(SHORTEST, 5 * measure.k)
