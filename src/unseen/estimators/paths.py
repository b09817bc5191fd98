"""Paths of models along a penalty, each fit started from the one before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self

from sklearn.base import clone
from tqdm import tqdm

from unseen.estimators.composed import ComposedCompleter
from unseen.validation import check_several, check_verbose

__all__ = ["PathMixin"]


class PathMixin(ComposedCompleter):
    """Completers that can be fitted along a path of penalties."""

    path_parameter: ClassVar[str] = "reg"
    """Name of the penalty that a path varies."""

    def path(
        self, X: Any, regs: Sequence[float], *, row_features: Any = None, col_features: Any = None
    ) -> Iterator[Self]:
        """Fit a path of decreasing penalties, each fit started from the one before.

        Parameters
        ----------
        X : array with NaN, sparse matrix or Observations
            Target.
        regs : sequence of float
            Values of the penalty; visited from large to small.
        row_features, col_features : array or sparse matrix, optional
            Side features.

        Yields
        ------
        estimator
            A fitted model for each value. With ``verbose=1`` a progress bar counts them.
        """
        values = check_several("regs", regs, "a sequence of numbers")
        cells = self._read_target(X)
        model = clone(self).set_params(warm_start=True, verbose=0)
        for reg in tqdm(
            sorted(values, reverse=True), desc="path", disable=not check_verbose(self.verbose), leave=False
        ):
            model.set_params(**{self.path_parameter: reg})
            model.fit(cells, row_features=row_features, col_features=col_features)
            fitted = clone(model)
            fitted.__dict__.update({k: v for k, v in vars(model).items() if k.endswith("_")})
            yield fitted
