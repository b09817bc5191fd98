"""Goal-directed classification: a feature map learned for the labels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from unseen.exceptions import ConvergenceWarning, InvalidDataError, ParameterError
from unseen.linalg.blocked import inner
from unseen.maps import FeatureMap, Fourier, Nystrom
from unseen.maps.base import MapParams
from unseen.maps.kernel_width import resolve_gamma
from unseen.multilabel.base import FactoredClassifier
from unseen.multilabel.calibration import fit_sigmoid, fit_temperature, sigmoid, tempered
from unseen.multilabel.gimc_arrays import LabelRows
from unseen.multilabel.gimc_rows import mapped_rows
from unseen.multilabel.gimc_search import HeldOut, Search, mapped
from unseen.multilabel.gimc_solvers import Iterate, armijo, lbfgs
from unseen.multilabel.scaling import FeatureScaling, learn_scaling
from unseen.parallel import one_blas_thread
from unseen.typing import CSR, Features, FloatArray, IndexArray
from unseen.validation import check_choice, check_count, check_fraction, check_positive, check_rng

__all__ = ["GIMCClassifier"]

AUTO_REG = 0.01
"""``reg="auto"`` as a share of the mean squared length of a column of mapped features."""
FEWEST_HELD_OUT = 10
"""Below this many rows a validation score says nothing; all rows are then used for training."""


def _calibrates(model: GIMCClassifier) -> bool:
    return bool(model.calibrate)


class GIMCClassifier(FactoredClassifier):
    """Labels or classes through nonlinear features that are learned with the model (GIMC eq. 12).

    min over U, W   1/2 ||Y - phi_U(X) W||_F^2 + reg/2 ||W||_F^2

    over all entries of the 0/1 matrix Y. phi_U are Fourier features (eq. 6) or Nystrom features
    (eqs. 7 and 8) with parameters U: frequencies or landmarks. ``learn_map=False`` keeps the random
    ones of the start (IMC-RFF, IMC-NYS). W is the exact ridge solution at each U. No array has rows
    x labels entries; a step costs p^2 (rows + labels) + p nnz(Y) + m nnz(X) for p mapped features.

    Parameters
    ----------
    n_components : int, default=100
        Number m of frequencies (then p = 2 m) or landmarks (p = m).
    map : {"fourier", "nystrom"} or FeatureMap, default="fourier"
        The map; with a map object, the parameters that describe one are not used.
    gamma : float or str, default="median"
        Kernel width at the start; "median" is one over the median squared distance of rows,
        "0.3median" that times 0.3.
    reg : float or "auto", default="auto"
        Weight of the penalty. "auto" is 0.01 times the mean squared length of a column of the
        starting features, which grows with the rows as the loss does.
    solver : {"lbfgs", "armijo"}, default="lbfgs"
        L-BFGS on the objective with W eliminated, or gradient steps by Armijo's rule as in the paper.
    learn_map : bool, default=True
        Move U; otherwise only W is learned. A map object must be learnable itself.
    landmarks : {"random", "kmeans"}, default="random"
        Where Nystrom landmarks start.
    whiten : bool, default=True
        Mix Nystrom features by the inverse root of the kernel matrix of the starting landmarks; that
        matrix then stays. False is the paper's choice, which starts and often ends at a worse point.
    standardize : bool, default=True
        Columns of mean zero and variance one for dense features, rows of length one for sparse ones.
    fit_intercept : bool, default=False
        Append a constant to the mapped features. Fourier features contain one, nearly.
    validation_fraction : float or None, default=0.1
        Share of the rows that choose the iterate; None takes the last. W is at last solved on all
        rows. With fewer than 10 such rows all rows are used for training.
    patience : int, default=10
        Stop after this many steps without a better validation score.
    max_iter : int, default=50
        Limit of steps.
    tol : float, default=1e-5
        Stop when a step lowers the objective by less than this share.
    calibrate : bool, default=False
        Fit ``predict_proba`` on the validation rows: a softmax with a temperature for classes, one
        logistic curve for labels.
    threshold : float, default=0.5
        Score above which ``predict`` gives a label.
    max_tile_bytes : int, default=2**28
        Mapped features that exist at a time; with less than all, they are computed twice a step.
    random_state : int or Generator, optional
        Seed of the start and of the validation rows.
    n_jobs : int, optional
        Threads; None takes all cores. The result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    map_ : FeatureMap
        The map, with ``gamma`` as a number.
    map_params_ : dict of ndarray
        Its parameters: ``projections`` or ``landmarks``.
    label_factors_ : ndarray of shape (n_labels, p)
        W', one row for each label.
    reg_ : float
        Weight of the penalty that was used.
    history_ : list of dict
        ``objective``, ``time_s``, ``trials`` (passes over the rows) and, with validation rows,
        ``validation`` of the start and of each step: accuracy, or the mean of P@1, P@3 and P@5.
    best_iter_ : int
        Step whose map was kept.
    n_iter_ : int
        Steps done; at least 1.
    converged_ : bool
        Whether the search ended before ``max_iter``.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import GIMCClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = np.where(np.hypot(X[:, 0], X[:, 1]) < 1.1, "inside", "outside")
    >>> model = GIMCClassifier(10, random_state=0).fit(X, y)
    >>> model.predict([[0.0, 0.1], [2.0, 2.0]])
    array(['inside', 'outside'], dtype='<U7')
    """

    map_: FeatureMap
    map_params_: MapParams
    reg_: float
    best_iter_: int
    n_iter_: int
    converged_: bool
    scaling_: FeatureScaling
    calibration_: tuple[float, ...] | None

    def __init__(
        self,
        n_components: int = 100,
        *,
        map: str | FeatureMap = "fourier",
        gamma: float | str = "median",
        reg: float | str = "auto",
        solver: str = "lbfgs",
        learn_map: bool = True,
        landmarks: str = "random",
        whiten: bool = True,
        standardize: bool = True,
        fit_intercept: bool = False,
        validation_fraction: float | None = 0.1,
        patience: int = 10,
        max_iter: int = 50,
        tol: float = 1e-5,
        calibrate: bool = False,
        threshold: float = 0.5,
        max_tile_bytes: int = 2**28,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.map = map
        self.gamma = gamma
        self.reg = reg
        self.solver = solver
        self.learn_map = learn_map
        self.landmarks = landmarks
        self.whiten = whiten
        self.standardize = standardize
        self.fit_intercept = fit_intercept
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.max_iter = max_iter
        self.tol = tol
        self.calibrate = calibrate
        self.threshold = threshold
        self.max_tile_bytes = max_tile_bytes
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, X: Features, Y: CSR) -> None:
        check_choice("solver", self.solver, ("lbfgs", "armijo"))
        tile = check_count("max_tile_bytes", self.max_tile_bytes)
        n_threads, rng = self._n_threads(), check_rng(self.random_state)
        self.scaling_ = learn_scaling(X, bool(self.standardize))
        X = self.scaling_.apply(X)
        training, held = self._split(X.shape[0], rng)
        whole = held is None
        X_train, Y_train = (X, Y) if whole else (X[training], Y[training])
        self.map_ = self._make_map(X_train, rng)
        params = self.map_.init(X_train, X_train.shape[0], rng)
        intercept = bool(self.fit_intercept)
        self.reg_ = self._resolve_reg(X_train, params)
        rows = mapped_rows(X_train, self.map_, params, n_threads)
        problem = LabelRows(rows, Y_train, self.reg_, intercept, tile, n_threads)
        judge = None
        if held is not None:
            judge = HeldOut(X[held], Y[held], self.map_, intercept, self.multi_class_, n_threads)
        best = self._search(problem, judge)
        self.calibration_ = None
        if self.calibrate:
            self._fit_calibration(judge, best, Y[held] if held is not None else None)
        if not whole:  # the map is chosen: its weights may learn from every row
            del problem, rows
            rows = mapped_rows(X, self.map_, best.params, n_threads)
            problem = LabelRows(rows, Y, self.reg_, intercept, tile, n_threads)
            best.weights = problem.best_weights(problem.moments())
        self.map_params_ = best.params
        self.label_factors_ = np.ascontiguousarray(best.weights.label_factors, dtype=X.dtype)

    def _search(self, problem: LabelRows, judge: HeldOut | None) -> Iterate:
        max_iter = check_count("max_iter", self.max_iter)
        search = Search(
            judge,
            max_iter,
            check_positive("tol", self.tol, strict=False),
            check_count("patience", self.patience),
            self.verbose,
        )
        learned = self.map_.learned if self.learn_map else ()
        if not learned:
            moments = problem.moments()
            weights = problem.best_weights(moments)
            search(Iterate(problem.rows.params, weights, problem.reduced_value(moments, weights), 1))
            search.converged = True
        elif self.solver == "armijo":
            for iterate in armijo(problem, learned):
                if not search(iterate):
                    break
            else:
                search.converged = True
        else:
            ended = lbfgs(problem, learned, max_iter, search)
            search.converged = search.converged or ended
        assert search.best is not None
        self.history_ = search.history
        self.n_iter_ = max(1, len(search.history) - 1)
        self.best_iter_ = search.best_iter
        self.converged_ = search.converged
        if not search.converged and judge is None:
            warnings.warn(
                f"GIMCClassifier did {max_iter} steps and the objective still falls; raise max_iter, or pass "
                "validation_fraction so that held-out rows choose the iterate",
                ConvergenceWarning,
                stacklevel=4,
            )
        return search.best

    # -- parts -------------------------------------------------------------------------

    def _split(self, n_rows: int, rng: np.random.Generator) -> tuple[IndexArray, IndexArray | None]:
        every: IndexArray = np.arange(n_rows)
        needed = self.learn_map or self.calibrate
        if self.validation_fraction is None or not needed:
            if self.calibrate:
                raise ParameterError("calibrate=True needs validation_fraction, and it is None")
            return every, None
        share = check_fraction("validation_fraction", self.validation_fraction)
        count = round(share * n_rows)
        if count < FEWEST_HELD_OUT:
            if self.calibrate:
                raise InvalidDataError(
                    f"calibrate=True needs at least {FEWEST_HELD_OUT} validation rows; "
                    f"validation_fraction={share} of {n_rows} rows gives {count}"
                )
            return every, None
        order = rng.permutation(n_rows)
        return np.sort(order[count:]), np.sort(order[:count])

    def _make_map(self, X: Features, rng: np.random.Generator) -> FeatureMap:
        if isinstance(self.map, FeatureMap):
            if not self.map.inductive:
                raise ParameterError(f"map={self.map!r} cannot be applied to new rows")
            return self.map
        kind = check_choice("map", self.map, ("fourier", "nystrom"))
        count = check_count("n_components", self.n_components)
        gamma = self._resolve_gamma(X, rng)
        learn = bool(self.learn_map)
        if kind == "fourier":
            return Fourier(count, gamma, learnable=learn)
        return Nystrom(count, gamma, learnable=learn, whiten=bool(self.whiten), landmarks=self.landmarks)

    def _resolve_gamma(self, X: Features, rng: np.random.Generator) -> float:
        if not isinstance(self.gamma, str):
            return check_positive("gamma", self.gamma)
        share = self.gamma.removesuffix("median")
        try:
            factor = float(share or 1.0)
        except ValueError:
            factor = -1.0
        if not self.gamma.endswith("median") or not 0 < factor < np.inf:
            raise ParameterError(
                f"gamma must be a number > 0, 'median' or like '0.3median'; got {self.gamma!r}"
            )
        return float(factor * resolve_gamma("median", X, rng))

    def _resolve_reg(self, X: Features, params: MapParams) -> float:
        if self.reg != "auto":
            return check_positive("reg", self.reg, strict=False)
        n = X.shape[0]
        phi = self.map_.apply(X[:2000], min(n, 2000), params).toarray()
        # Never zero, also where every mapped feature vanishes.
        return float(max(AUTO_REG * n * inner(phi, phi) / phi.size, 1e-12))

    def _embed(self, X: Features) -> FloatArray:
        X = self.scaling_.apply(X)
        return mapped(self.map_, self.map_params_, X, bool(self.fit_intercept), self._n_threads())

    # -- probabilities -----------------------------------------------------------------

    def _fit_calibration(self, judge: HeldOut | None, best: Iterate, Y: CSR | None) -> None:
        assert judge is not None
        assert Y is not None
        if self.multi_class_:
            self.calibration_ = (fit_temperature(judge.scores(best), Y.indices),)
        else:
            self.calibration_ = fit_sigmoid(judge.scores(best), Y)

    @available_if(_calibrates)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Calibrated probabilities; there if ``calibrate`` is set.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n, n_labels)
            Of the classes, with rows that sum to one; or of each label by itself.
        """
        features = self._read_new(X)
        self._refuse_large(features.shape[0])
        with one_blas_thread():
            scores = np.concatenate([self._scores(block) for block in self._blocks(features)])
        assert self.calibration_ is not None
        if self.multi_class_:
            return tempered(scores, *self.calibration_)
        return sigmoid(scores, *self.calibration_)
