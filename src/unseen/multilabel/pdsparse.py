"""Linear classifiers of labels whose weights and dual variables are both sparse."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from unseen import kernels
from unseen.exceptions import ConvergenceWarning, TooLargeError
from unseen.multilabel.kinds import WeightedClassifier
from unseen.multilabel.linear import LinearLabels, kept_weights
from unseen.multilabel.scaling import scaled_rows, with_ones
from unseen.typing import CSR, Array, Features, FloatArray, IndexArray
from unseen.validation import check_count, check_fraction, check_positive, check_rng

__all__ = ["PDSparse", "PPDSparse"]

MOST_WEIGHTS = 1 << 28
"""Features times labels whose sums PDSparse holds."""
AVERAGED = 8
"""Times in a pass that weights are taken into their average."""
BLOCK_WEIGHTS = 1 << 22
"""Weights of the labels that PPDSparse learns at a time."""
FEWEST_NEW = 10
"""Rows that a label may take into its active set at a time, however few it has."""


class PDSparse(WeightedClassifier, LinearLabels):
    """Weights of all labels by one margin between the labels of a row and the others, with an L1 penalty.

    With z = Wx, P the labels of a row and N the others, minimises::

        sum_k (1/2 ||w_k||^2 + l1 ||w_k||_1) + C sum_i max(0, 1 + max_{k in N_i} z_ik - min_{k in P_i} z_ik)

    in the dual by block-coordinate Frank-Wolfe steps that are corrected fully: a visit of a row looks for the
    label of N with the largest score, adds it to those that the row has used so far, and solves for the dual
    variables of these. Most of them, and most weights, are zero in the end. Stops when the gap between primal
    and dual, summed over the visits of a pass, is below ``tol`` times the loss at zero.

    The search for that label is over all labels and features, or draws both ("bi-stochastic"): with
    `feature_share` features in proportion to their size, with `label_share` one part of the labels. The gap
    is then of what was looked at.

    The loss of a row hangs on its worst label alone. With many labels a row its minimum says little, and
    weights swing from visit to visit on the way there, so their average over the visits predicts far
    better than the last ones: with `average`, that is what is kept. ``average=False`` is the paper's.

    Rows without labels, or with all, say nothing here.

    Parameters
    ----------
    l1 : float, default=0.01
        Weight of the absolute weights.
    max_active : int, default=100
        Labels, besides its own, whose dual variables a row may use.
    n_candidates : int, default=20
        Labels that a visit may add to them; the paper adds one.
    average : bool, default=True
        Keep the average of the weights over the visits, taken eight times a pass, instead of the last.
    feature_share, label_share : float, default=1.0
        Shares that the search draws.
    normalize : bool, default=True
        Whether rows of features are scaled to length one, before a constant is added, whose weight is
        penalised like the others.
    tol : float, default=0.01
        Gap at which the passes end.
    max_iter : int, default=100
        Limit of passes over the rows.
    random_state : int, Generator, RandomState or None
        Order of the rows, and draws of the search.
    n_jobs : int, optional
        Threads of predictions; rows share the weights, so one thread learns.

    Attributes
    ----------
    coef_ : csr_array of shape (n_labels, n_features)
        Weights.
    intercept_ : array of shape (n_labels,)
        Weights of the constant.
    history_ : list of dict
        Gap and dual objective of each pass.
    converged_ : bool
        Whether the gap was closed.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import PDSparse
    >>> X = np.repeat(np.eye(3), 5, axis=0)
    >>> Y = np.repeat(np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]]), 5, axis=0)
    >>> model = PDSparse(random_state=0).fit(X, Y)
    >>> [sorted(labels) for labels in model.predict_topk(np.eye(3), k=2)[0].tolist()][0]
    [0, 1]
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        l1: float = 0.01,
        max_active: int = 100,
        n_candidates: int = 20,
        average: bool = True,
        feature_share: float = 1.0,
        label_share: float = 1.0,
        normalize: bool = True,
        tol: float = 0.01,
        max_iter: int = 100,
        calibrate: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.l1 = l1
        self.max_active = max_active
        self.n_candidates = n_candidates
        self.average = average
        self.feature_share = feature_share
        self.label_share = label_share
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter
        self.calibrate = calibrate
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, X: Features, Y: CSR, weights: FloatArray | None = None) -> None:
        room, max_iter = check_count("max_active", self.max_active), check_count("max_iter", self.max_iter)
        tol = check_positive("tol", self.tol)
        settings: dict[str, Any] = {
            "l1": check_positive("l1", self.l1, strict=False),
            "n_candidates": check_count("n_candidates", self.n_candidates),
            "feature_share": check_fraction("feature_share", self.feature_share, include_high=True),
            "label_share": check_fraction("label_share", self.label_share, include_high=True),
        }
        costs = np.full(Y.shape[0], check_positive("C", self.C))
        if weights is not None:
            costs *= weights
        rng = check_rng(self.random_state)
        rows = _with_constant(X, self.normalize)
        cells = rows.shape[1] * Y.shape[1]
        if cells > MOST_WEIGHTS:
            raise TooLargeError(
                f"PDSparse holds sums of {rows.shape[1]:,} features x {Y.shape[1]:,} labels = {cells:,}, "
                f"more than {MOST_WEIGHTS:,}; PPDSparse and LabelTree learn a part of the labels at a time"
            )
        Y.sort_indices()
        state = kernels.MarginDual.start(rows, Y, min(room, Y.shape[1]))
        own = np.arange(Y.nnz) + np.repeat(state.slots[:-1] - Y.indptr[:-1], np.diff(Y.indptr))
        said = costs[(np.diff(Y.indptr) > 0) & (np.diff(Y.indptr) < Y.shape[1])].sum()
        self.history_, self.converged_ = [], False
        total, n_parts = np.zeros_like(state.sums), AVERAGED if self.average else 1
        for _ in range(max_iter):
            visits, seed, gap = rng.permutation(Y.shape[0]), int(rng.integers(1 << 31)), 0.0
            for part, some in enumerate(np.array_split(visits, n_parts)):
                found = kernels.margin_sweep(rows, Y, some, state, costs, seed=seed + part, **settings)
                gap += float(found.sum())
                if self.average:
                    total += _shrunk(state.sums, self.l1)
            squares = np.square(_shrunk(state.sums, self.l1), dtype=np.float64).sum()
            self.history_.append({"gap": gap, "dual": float(state.alpha[own].sum() - 0.5 * squares)})
            self.converged_ = gap <= tol * said
            if self.converged_:
                break
        self.n_iter_ = len(self.history_)
        if not self.converged_:
            warnings.warn(
                f"max_iter={max_iter} passes left a gap of {gap / said:.3g} of the loss at zero; tol={tol:g}",
                ConvergenceWarning,
                stacklevel=3,
            )
        weights = total / (AVERAGED * self.n_iter_) if self.average else _shrunk(state.sums, self.l1)
        self.coef_, self.intercept_ = _apart(sparse.csr_array(weights.T))


class PPDSparse(LinearLabels):
    """One sparse linear classifier for each label, over the rows that matter to it.

    For each label, with t_i = 1 where row i has it and -1 elsewhere, minimises::

        1/2 ||w||^2 + l1 ||w||_1 + C sum_i max(0, 1 - t_i w.x_i)^2

    in the dual, on an active set: the label's rows and as many others to start with. In turns, coordinate
    descent solves for the dual variables of the set, rows whose variable is zero leave it, and of the others
    those come in whose margin the weights violate most, no more at a time than the set has rows. It ends
    when no row outside violates its margin by more than `tol`. Labels are independent, so they are learned
    in parallel; it is the form of PDSparse whose loss is separable.

    Parameters
    ----------
    l1 : float, default=0.01
        Weight of the absolute weights.
    normalize : bool, default=True
        Whether rows of features are scaled to length one, before a constant is added, whose weight is
        penalised like the others.
    tol : float, default=0.1
        Largest violation that is accepted, of a margin outside and of optimality inside the active set.
    inner_iter : int, default=20
        Limit of passes over the active set in a turn.
    max_iter : int, default=100
        Limit of turns.
    random_state : int, Generator, RandomState or None
        Draws the rows to start from.
    n_jobs : int, optional
        Threads, each on one label at a time. Results do not depend on it.

    Attributes
    ----------
    coef_ : csr_array of shape (n_labels, n_features)
        Weights.
    intercept_ : array of shape (n_labels,)
        Weights of the constant.
    converged_ : bool
        Whether all labels got there within `max_iter` turns.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import PPDSparse
    >>> X = np.repeat(np.eye(3), 5, axis=0)
    >>> Y = np.repeat(np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]]), 5, axis=0)
    >>> PPDSparse(C=10.0, random_state=0).fit(X, Y).predict(np.eye(3)).toarray()
    array([[1, 1, 0],
           [0, 1, 0],
           [0, 0, 1]])
    """

    _why_no_weights = "its classifiers share one weight of the losses"

    def __init__(
        self,
        *,
        C: float = 1.0,
        l1: float = 0.01,
        prune: float = 0.0,
        normalize: bool = True,
        tol: float = 0.1,
        inner_iter: int = 20,
        max_iter: int = 100,
        calibrate: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.l1 = l1
        self.prune = prune
        self.normalize = normalize
        self.tol = tol
        self.inner_iter = inner_iter
        self.max_iter = max_iter
        self.calibrate = calibrate
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, X: Features, Y: CSR) -> None:
        check_positive("C", self.C)
        check_positive("l1", self.l1, strict=False)
        check_positive("prune", self.prune, strict=False)
        check_positive("tol", self.tol)
        check_count("inner_iter", self.inner_iter)
        check_count("max_iter", self.max_iter)
        rng = check_rng(self.random_state)
        rows, by_label = _with_constant(X, self.normalize), sparse.csc_array(Y)
        found, self.n_iter_, left = [], 1, 0
        for labels in _label_blocks(rows.shape, Y.shape[1]):
            own = [by_label.indices[by_label.indptr[k] : by_label.indptr[k + 1]] for k in labels]
            weights, turns, open_labels = self._learn_labels(rows, own, rng)
            found.append(kept_weights(weights, self.prune))
            self.n_iter_, left = max(self.n_iter_, turns), left + open_labels
        self.converged_, self.history_ = left == 0, []
        if left:
            warnings.warn(
                f"{left} of {Y.shape[1]} labels took max_iter={self.max_iter} turns and still violate "
                f"tol={self.tol:g}",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.coef_, self.intercept_ = _apart(sparse.csr_array(sparse.vstack(found, format="csr")))

    def _learn_labels(
        self, X: CSR, own: Sequence[IndexArray], rng: np.random.Generator
    ) -> tuple[FloatArray, int, int]:
        """Weights of some labels, the turns that they took, and how many are not done."""
        n_rows = X.shape[0]
        sets = []
        for rows in own:
            others = np.setdiff1d(rng.integers(0, n_rows, max(len(rows), FEWEST_NEW)), rows)
            sets.append(np.concatenate([rows, others]))
        alphas = [np.zeros(len(rows)) for rows in sets]
        weights = np.zeros((len(own), X.shape[1]), dtype=X.dtype)
        going, turns = np.arange(len(own)), 0
        while going.size and turns < self.max_iter:
            turns += 1
            sizes = np.array([len(sets[k]) for k in going])
            starts = np.concatenate([[0], np.cumsum(sizes)])
            signs = np.full(starts[-1], -1, dtype=np.int8)
            for at, k in zip(starts, going.tolist(), strict=False):
                signs[at : at + len(own[k])] = 1  # a label's own rows come first
            alpha = np.concatenate([alphas[k] for k in going])
            weights[going] = kernels.linear_duals(
                X,
                kernels.RowGroups(starts, np.concatenate([sets[k] for k in going])),
                signs,
                alpha=alpha,
                C=(self.C, self.C),
                l1=self.l1,
                tol=self.tol,
                max_passes=self.inner_iter,
                seed=turns * len(own),
                n_threads=self._n_threads(),
            )
            scores = (X @ sparse.csr_array(weights[going]).T).toarray()
            done = []
            for place, k in enumerate(going.tolist()):
                values = alpha[starts[place] : starts[place + 1]]
                sign = signs[starts[place] : starts[place + 1]]
                slopes = sign * scores[sets[k], place] - 1.0 + values / (2.0 * self.C)
                inside = np.where(values > 0, np.abs(slopes), np.maximum(-slopes, 0.0)).max()
                kept = (values > 0) | (np.arange(len(values)) < len(own[k]))
                sets[k], alphas[k] = sets[k][kept], values[kept]
                wrong = 1.0 + scores[:, place]
                wrong[sets[k]] = 0.0
                most = min(max(len(sets[k]), FEWEST_NEW), n_rows)
                worst = np.argsort(-wrong, kind="stable")[:most]
                new = worst[wrong[worst] > 0.0]
                done.append(max(float(wrong[worst[0]]), float(inside)) <= self.tol)
                sets[k] = np.concatenate([sets[k], new])
                alphas[k] = np.concatenate([alphas[k], np.zeros(len(new))])
            going = going[~np.array(done)]
        return weights, turns, len(going)


def _with_constant(X: Features, normalize: bool) -> CSR:
    rows: CSR = sparse.csr_array(X)  # first, so that dense features give the same bits
    rows = sparse.csr_array(with_ones(scaled_rows(rows) if normalize else rows))
    rows.sort_indices()
    return rows


def _shrunk(values: Array, by: float) -> Array:
    shrunk: Array = values - np.clip(values, -by, by)
    return shrunk


def _apart(weights: CSR) -> tuple[CSR, FloatArray]:
    """Weights of the features and of the constant, which comes last."""
    return sparse.csr_array(weights[:, :-1]), weights[:, [-1]].toarray().ravel()


def _label_blocks(shape: tuple[int, int], n_labels: int) -> Iterator[range]:
    """Labels whose weights and scores of all rows fit into a block."""
    step = max(1, BLOCK_WEIGHTS // max(shape))
    for first in range(0, n_labels, step):
        yield range(first, min(first + step, n_labels))
