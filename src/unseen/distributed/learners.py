"""Ensembles whose parts are learned apart, as tasks on a cluster."""

from __future__ import annotations

import secrets
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import clone

from unseen.distributed.cluster import Cluster, connect, run_aligned
from unseen.exceptions import UnsupportedComposition
from unseen.multilabel.learners import Learner, Part
from unseen.multilabel.neighbour_base import NeighbourClassifier
from unseen.typing import CSR, Features, IndexArray
from unseen.validation import check_positive

__all__ = ["fit_learners"]


def fit_learners(
    estimator: Any, X: Any, Y: Any, *, client: Any = None, patience: float = 30.0
) -> NeighbourClassifier:
    """Fit `ExMLDS` or `SLEEC` with every part of every learner as a task of its own.

    The partition is made here, what is learned inside of a part on the workers. The model is the one
    that ``estimator.fit(X, Y)`` gives, to the last bit, for any number of workers.

    Parameters
    ----------
    estimator : ExMLDS or SLEEC
        With ``n_learners`` or ``n_clusters`` above one there is something to share; not changed.
    X, Y : array or sparse matrix
        Features and labels, as for ``fit``; workers are sent both.
    client : distributed.Client, optional
        Connection to the cluster; by default the current one.
    patience : float, default=30.0
        Seconds without scheduler or workers before :class:`unseen.exceptions.ClusterError` is raised.

    Returns
    -------
    estimator
        A fitted copy.

    Examples
    --------
    >>> import numpy as np
    >>> from distributed import Client
    >>> from unseen import SLEEC
    >>> from unseen.distributed import fit_learners
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 5))
    >>> Y = (X @ rng.standard_normal((5, 8)) > 1).astype(float)
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     start = SLEEC(n_components=4, n_learners=2, random_state=0)
    ...     model = fit_learners(start, X, Y, client=client)
    >>> len(model.learners_)
    2
    """
    if not isinstance(estimator, NeighbourClassifier):
        raise UnsupportedComposition(
            f"{type(estimator).__name__} has no learners of their own; ExMLDS and SLEEC have"
        )
    cluster = Cluster(connect(client), check_positive("patience", patience))
    cluster.check_workers()
    model: NeighbourClassifier = clone(estimator)
    shared = _SharedFit(cluster, model)
    replaced = {"_fit": shared.fit, "_fit_part": shared.submit}
    model.__dict__.update(replaced)
    try:
        model.fit(X, Y)
    finally:
        for name in replaced:
            model.__dict__.pop(name, None)
    return model


class _SharedFit:
    """Stands in for two methods of an estimator while it is fitted."""

    def __init__(self, cluster: Cluster, model: NeighbourClassifier) -> None:
        self._cluster = cluster
        self._model = model
        self._token = secrets.token_hex(6)
        self._data: Any = None
        self._tasks: list[Any] = []

    def fit(self, X: Features, Y: CSR) -> None:
        """Fit with parts that are still to come, then put them in."""
        model = self._model
        type(model)._fit(model, X, Y)
        found = iter(self._cluster.collect(self._tasks))
        learners = []
        for learner in model.learners_:
            done = [next(found) for _ in learner.parts]
            learners.append(Learner(learner.directions, [part for part, _ in done]))
            for _, notes in done:
                model.n_iter_ = max(model.n_iter_, notes["n_iter_"])
                model.history_ = [*model.history_, *notes["history_"]]
                if "converged_" in notes:
                    model.converged_ = notes["converged_"] and getattr(model, "converged_", True)
        model.learners_ = learners

    def submit(self, X: Features, Y: CSR, rows: IndexArray, rng: np.random.Generator, n_threads: int) -> Any:
        """Send a part to the workers; the features and labels of all rows go there once."""
        if self._data is None:
            # What the fit has prepared goes along; labels are sent once, on their own.
            plain = copy(self._model)
            for name in ("_fit", "_fit_part", "labels_"):
                plain.__dict__.pop(name, None)
            self._data = self._cluster.client.scatter([plain, X, Y], hash=False)
        task = self._cluster.client.submit(
            run_aligned,
            _fit_part,
            *self._data,
            rows,
            rng,
            key=f"unseen_part-{self._token}-{len(self._tasks)}",
            pure=False,
        )
        self._tasks.append(task)
        return task


def _fit_part(
    estimator: NeighbourClassifier, X: Features, Y: CSR, rows: IndexArray, rng: np.random.Generator
) -> tuple[Part, dict[str, Any]]:
    model = copy(estimator)  # workers may run several parts of one estimator at a time
    model.n_iter_ = 1
    part = model._fit_part(X, Y, rows, rng, 1)
    noted = ("n_iter_", "history_", "converged_")
    return part, {name: value for name, value in vars(model).items() if name in noted}
