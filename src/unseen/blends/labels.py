"""Blends of multi-label classifiers."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from scipy import sparse

from unseen.blends.base import Blend, candidates_of
from unseen.blends.weights import Lists, chosen_weights, standardised
from unseen.exceptions import InvalidDataError
from unseen.multilabel.base import MultiLabelClassifier
from unseen.multilabel.calibration import fit_chances
from unseen.typing import CSR, Features, FloatArray
from unseen.validation import check_rng

__all__ = ["LabelBlend"]


class LabelBlend(Blend, MultiLabelClassifier):
    """Blend of multi-label classifiers; see :class:`Blend`, which makes it.

    The scores of each model are divided by their standard deviation over the labels of the row, then added
    with weights. The rows that choose the weights also calibrate ``predict_proba``.

    Parameters
    ----------
    models : sequence of multi-label classifiers
        Models to blend.
    weights, scoring, validation_fraction, random_state, n_jobs
        See :class:`Blend`.

    Attributes
    ----------
    models_ : list of classifiers
        Fitted to all rows.
    weights_ : ndarray
        Weights.
    validation_scores_ : ndarray or None
        Measure of each model alone and, last, of the blend, on the held-out rows.
    threshold_ : float
        Score above which ``predict`` gives a label: as many labels as the rows have that it was found on
        (the held-out ones; for given weights the training rows).
    n_labels_ : int
        Number of labels.
    classes_ : ndarray
        Class names for a one-dimensional target, else the label numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import Blend, RidgeOvA
    >>> X = np.tile(np.eye(4), (10, 1))
    >>> blend = Blend([RidgeOvA(0.1), RidgeOvA(10.0)], random_state=0).fit(X, X)
    >>> blend.predict_topk(np.eye(4), k=1)[0].ravel()
    array([0, 1, 2, 3])
    """

    _door = "decision_function"
    _why_no_weights = "the models are chosen by lists in which every row counts once"

    def _fit(self, X: Features, Y: CSR) -> None:
        weights, models = self._given_weights(), self._copies()
        measure = self._list_measure("precision@1,3,5")
        self.validation_scores_ = None
        judged: tuple[Features, CSR] = (X, Y)
        if weights is None:
            n = X.shape[0]
            held_out = max(1, round(self.validation_fraction * n))
            if n - held_out < 1:
                raise InvalidDataError(
                    f"{n} rows (n_samples = {n}) are too few to hold out some for the weights"
                )
            order = check_rng(self.random_state).permutation(n)
            test, train = np.sort(order[:held_out]), np.sort(order[held_out:])
            judged = (X[test], Y[test])
            for model in models:
                model.fit(X[train], Y[train])
            lists = Lists(measure)
            for start in range(0, held_out, self._block_rows()):
                part = test[start : start + self._block_rows()]
                scores = [scaled(model, X[part]) for model in models]
                lists.add(scores, None, Y[part], candidates_of(measure))
            weights, self.validation_scores_ = chosen_weights(lists.close(), len(models))
            self.weights_, self.models_ = weights, models
            self.threshold_ = self._level(*judged)
            self.calibration_ = fit_chances(self._all_scores(judged[0]), judged[1], self.multi_class_)
        self.weights_ = weights
        self.models_ = [model.fit(X, Y) for model in self._copies()]
        if self.validation_scores_ is None:
            self.threshold_ = self._level(*judged)

    def _level(self, X: Features, Y: CSR) -> float:
        """Score that as many cells exceed as there are labels."""
        scores = self._all_scores(X).ravel()
        place = min(int(Y.nnz), scores.size - 1)
        return float(-np.partition(-scores, place)[place])

    def _may_calibrate(self) -> bool:
        return isinstance(self.weights, str)

    def _way_to_chances(self) -> str:
        return "scores of a blend become probabilities on the rows that choose its weights: weights='auto'"

    def _threshold(self) -> float:
        return self.threshold_

    def _scores(self, X: Features) -> FloatArray:
        total: FloatArray | None = None
        for weight, model in zip(self.weights_, self.models_, strict=True):
            if weight:
                part = weight * scaled(model, X)
                total = part if total is None else total + part
        assert total is not None
        return total


def scaled(model: Any, X: Features) -> FloatArray:
    """Scores of all labels for a block of rows, on a scale that models share."""
    found: Any = model._scores(X)
    return standardised(np.asarray(cast(Any, found).toarray() if sparse.issparse(found) else found))
