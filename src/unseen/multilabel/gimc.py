"""Goal-directed classification: a feature map learned for the labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from unseen import kernels
from unseen.cores import Full
from unseen.data import Observations
from unseen.data.pattern import Pattern
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.linalg.blocked import inner, matmul
from unseen.losses import Background, Squared
from unseen.maps import Constant, FeatureMap, Fourier, Identity, Nystrom
from unseen.maps.base import MapParams
from unseen.maps.kernel_width import resolve_gamma
from unseen.metrics import precision_at_k
from unseen.multilabel.base import FEWEST_HELD_OUT
from unseen.multilabel.calibration import Calibration, fit_chances
from unseen.multilabel.kinds import FactoredClassifier
from unseen.multilabel.scaling import FeatureScaling, learn_scaling, with_ones
from unseen.problem import Pair, Problem
from unseen.regularisers import Ridge
from unseen.solvers import Monitor
from unseen.solvers.projection import VariableProjection
from unseen.state import State, map_params
from unseen.terms import Term
from unseen.typing import CSR, Features, FloatArray, IndexArray
from unseen.validation import check_choice, check_count, check_fraction, check_positive, check_rng

__all__ = ["GIMCClassifier"]

AUTO_REG = 0.01
"""``reg="auto"`` as a share of the mean squared length of a column of mapped features."""


class GIMCClassifier(FactoredClassifier):
    """Labels or classes through nonlinear features that are learned with the model (GIMC eq. 12).

    min over U, W   1/2 ||Y - phi_U(X) W||_F^2 + reg/2 ||W||_F^2

    over all entries of the 0/1 matrix Y. phi_U are Fourier features (eq. 6) or Nystrom features
    (eqs. 7 and 8) with parameters U: frequencies or landmarks. ``learn_map=False`` keeps the random
    ones of the start (IMC-RFF, IMC-NYS). W is the exact ridge solution at each U: the core's term of a
    learned map, a full core and Identity columns, where every cell weighs the same. No array has rows
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
        Columns of mean zero and variance one, or, where at most a tenth of the numbers is not zero, rows of
        length one.
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
    max_tile_bytes : int, default=2**28
        Mapped features that exist at a time; with less than all, they are computed twice a step.
    random_state : int or Generator, optional
        Seed of the start and of the validation rows.

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
        rng = check_rng(self.random_state)
        self.scaling_ = learn_scaling(X, bool(self.standardize))
        X = self.scaling_.apply(X)
        training, held = self._split(X.shape[0], rng)
        whole = held is None
        X_train, Y_train = (X, Y) if whole else (X[training], Y[training])
        self.map_ = self._make_map(X_train, rng)
        params = self.map_.init(X_train, X_train.shape[0], rng)
        self.reg_ = self._resolve_reg(X_train, params)
        start = {f"0.row_map.{name}": value for name, value in params.items()}
        judge = (
            None if held is None else _HeldOut(self._problem(X[held], Y[held]), Y[held], self.multi_class_)
        )
        monitor = Monitor(
            check_count("max_iter", self.max_iter),
            check_positive("tol", self.tol, strict=False),
            verbose=self.verbose,
            label="GIMC",
            validate=judge,
            patience=check_count("patience", self.patience),
            notes_start=True,
        )
        solver = VariableProjection(step=self.solver if self.learn_map else "none", max_tile_bytes=tile)
        state = solver.solve(self._problem(X_train, Y_train), start, rng, monitor)
        self._keep_history(monitor)
        self.calibration_ = None if judge is None or not self.calibrate else judge.calibration(state)
        if not whole:  # the map is chosen: its weights may learn from every row
            once = Monitor(1, 0.0, warn=False)
            state = solver.set_params(step="none").solve(self._problem(X, Y), state, rng, once)
        self.map_params_ = map_params(state, 0, "row")
        self.label_factors_ = _label_factors(state, X.dtype)

    def _calibration(self, X: Features, Y: CSR, given: Any) -> None:
        """Nothing: the rows that choose the map calibrate, too."""

    def _problem(self, X: Features, Y: CSR) -> Problem:
        """The model as a composition: a full core between the map and the labels, all cells alike."""
        terms = [Term(self.map_, Identity(), Full(), Ridge(self.reg_))]
        if self.fit_intercept:
            terms.append(Term(Constant(), Identity(), Full(), Ridge(self.reg_)))
        cells = Observations(Pattern(Y.indptr, Y.indices, Y.shape), Y.data)
        loss = Squared(background=Background())
        return Problem(cells, terms, loss, row_features=X, n_threads=self._n_threads())

    def _keep_history(self, monitor: Monitor) -> None:
        self.history_, self.converged_ = monitor.history, monitor.converged
        for record in self.history_:
            if "validation" in record:
                record["validation"] = -record["validation"][0]
        self.n_iter_ = max(1, len(self.history_) - 1)
        self.best_iter_ = monitor.best_entry

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
        phi = self.map_.apply(X, X.shape[0], self.map_params_, self._n_threads()).toarray()
        return np.asarray(with_ones(phi)) if self.fit_intercept else phi


def _label_factors(state: State, dtype: Any) -> FloatArray:
    """W', with the intercepts in the last column."""
    factors = [state[key].T.astype(dtype) for key in sorted(state) if key.endswith(".core")]
    return np.ascontiguousarray(factors[0]) if len(factors) == 1 else np.hstack(factors)


class _HeldOut:
    """Rows that judge states: accuracy for classes, the mean of P@1, P@3 and P@5 for labels.

    Parameters
    ----------
    problem : Problem
        The composition on these rows.
    Y : csr_array
        Their labels.
    multi_class : bool
        Whether each row has one class.
    """

    def __init__(self, problem: Problem, Y: CSR, multi_class: bool) -> None:
        self.problem, self.Y, self.multi_class = problem, Y, multi_class
        self.places = sorted({1} if multi_class else {min(k, Y.shape[1]) for k in (1, 3, 5)})

    def __call__(self, state: State) -> tuple[float, float]:
        """Minus the score, and the squared error, which decides between equal scores."""
        pair = self._pair(state)
        ids, _ = kernels.topk(*pair, max(self.places), n_threads=self.problem.n_threads)
        score = float(np.mean([precision_at_k(self.Y, ids, k) for k in self.places]))
        return -score, self.problem.data_value_of(pair)

    def calibration(self, state: State) -> Calibration:
        """How scores become probabilities."""
        pair = self._pair(state)
        scores = matmul(pair.left, pair.right.T, n_threads=self.problem.n_threads)
        return fit_chances(scores, self.Y, self.multi_class)

    def _pair(self, state: State) -> Pair:
        dtype = self.Y.dtype
        return self.problem.stacked({key: value.astype(dtype, copy=False) for key, value in state.items()})
