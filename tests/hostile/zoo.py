"""One small fitted model of every estimator that can be saved."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse

from unseen import (
    DXML,
    GIMC,
    IMC,
    LEML,
    MCCC,
    SLEEC,
    AnnexML,
    AugmentedMF,
    BayesianMF,
    BiasIMC,
    BiasMC,
    BiasModel,
    Blend,
    Completion,
    Constant,
    DirtyIMC,
    ExMLDS,
    FastXML,
    Fourier,
    Full,
    GIMCClassifier,
    GIMCClustering,
    Given,
    Identity,
    ItemNeighbors,
    LabelTree,
    LinearOvA,
    LowRank,
    MatrixFactorization,
    Maxide,
    MixedLinear,
    Nystrom,
    Observations,
    PDSparse,
    PfastreXML,
    PPDSparse,
    PUClustering,
    Ridge,
    RidgeOvA,
    ShiftIMC,
    ShiftMC,
    SoftImpute,
    SparseBilinear,
    SpectralFilter,
    SPPMIEmbedding,
    Tanh,
    Term,
    Vocabulary,
    Whitened,
)
from unseen.baselines import MMMF, NMF, PMF, LowDensityNMF, OneBitMC, Popularity, SpectralPairs
from unseen.links import BlendedLinks, CommonNeighbors, Katz, SVDKatz, TruncatedSVDLinks
from unseen.solvers import Gibbs

SCALE = int(os.environ.get("UNSEEN_ZOO", "1"))
"""How many times as long the sides are as usual: threads have nothing to share in small targets."""
N, M, D, E, L = 24 * SCALE, 18 * SCALE, 5, 4, 7
RNG = np.random.default_rng(7)
ROWS, COLS = RNG.standard_normal((N, D)), RNG.standard_normal((M, E))
TRUTH = ROWS[:, :2] @ COLS[:, :2].T
RATINGS = np.where(RNG.random((N, M)) < 0.5, TRUTH, np.nan)
CLASSES = np.where(RNG.random((N, M)) < 0.6, np.where(TRUTH > 0, 1.0, -1.0), np.nan)
LEVELS = np.where(np.isnan(RATINGS), np.nan, np.clip(np.round(TRUTH) + 3, 1, 5))
POSITIVES = sparse.csr_array((TRUTH > 0.3).astype(float))
LABELS = sparse.csr_array((ROWS @ RNG.standard_normal((D, L)) > 0.5).astype(float))
FRIENDS = RNG.random((N, N)) < 0.2
GRAPH = sparse.csr_array(np.triu(FRIENDS, 1) + np.triu(FRIENDS, 1).T, dtype=float)
GROUPS = np.arange(N) % 3
PAIRS = np.where(RNG.random((N, N)) < 0.5, np.where(GROUPS[:, None] == GROUPS, 1.0, -1.0), np.nan)
PAIRS = np.triu(PAIRS, 1) + np.triu(PAIRS, 1).T
SIDES = {"row_features": ROWS, "col_features": COLS}


def named() -> Observations:
    """Ratings with ids."""
    cells = Observations.from_any(RATINGS)
    rows, cols = Vocabulary([f"u{i}" for i in range(N)]), Vocabulary(np.arange(M) * 10)
    return Observations(cells._pattern, cells.values, rows, cols)


MODELS: dict[str, Callable[[], Any]] = {
    "BiasModel": lambda: BiasModel().fit(named()),
    "MatrixFactorization": lambda: MatrixFactorization(2, random_state=0, max_iter=3).fit(named()),
    "MatrixFactorization joint": lambda: MatrixFactorization(
        2, center="joint", random_state=0, max_iter=3
    ).fit(RATINGS),
    "MatrixFactorization ccd": lambda: MatrixFactorization(
        2, solver="ccd", center="biases", random_state=0, max_iter=3
    ).fit(RATINGS),
    "BayesianMF": lambda: BayesianMF(2, n_samples=4, burn_in=2, random_state=0).fit(RATINGS),
    "BayesianMF history": lambda: BayesianMF(2, history=True, n_samples=4, burn_in=2, random_state=0).fit(
        RATINGS, **SIDES
    ),
    "BayesianMF ordinal": lambda: BayesianMF(
        2, likelihood="ordinal", n_samples=4, burn_in=2, random_state=0
    ).fit(LEVELS),
    "BayesianMF compressed": lambda: (
        BayesianMF(2, n_samples=4, burn_in=2, random_state=0).fit(RATINGS).compressed(2)
    ),
    "Completion averaged": lambda: Completion(
        [Term(Given(standardize=True), Identity(), LowRank(2)), Term(Identity(), Constant(), Full())],
        solver=Gibbs(4, 2),
        random_state=0,
    ).fit(RATINGS, row_features=ROWS),
    "SpectralFilter": lambda: SpectralFilter(3, random_state=0).fit(POSITIVES),
    "ItemNeighbors": lambda: ItemNeighbors(3).fit(POSITIVES),
    "CellBlend": lambda: Blend(
        [SpectralFilter(3, random_state=0), BiasMC(2, random_state=0, max_iter=3)], random_state=0
    ).fit(POSITIVES),
    "LabelBlend": lambda: Blend([RidgeOvA(), LEML(3, random_state=0, max_iter=3)], random_state=0).fit(
        ROWS, LABELS
    ),
    "SoftImpute": lambda: SoftImpute(random_state=0, max_iter=3).fit(RATINGS),
    "AugmentedMF": lambda: AugmentedMF(2, random_state=0, max_iter=3).fit(RATINGS),
    "AugmentedMF rank_one": lambda: AugmentedMF(2, augmentation="rank_one", random_state=0, max_iter=3).fit(
        RATINGS
    ),
    "IMC": lambda: IMC(2, random_state=0, max_iter=3).fit(RATINGS, **SIDES),
    "GIMC": lambda: GIMC(2, random_state=0, max_iter=2).fit(RATINGS, **SIDES),
    "GIMC learned": lambda: GIMC(
        2,
        row_map=Fourier(4, learnable=True),
        col_map=Nystrom(4, learnable=True),
        start_sweeps=1,
        random_state=0,
        max_iter=2,
    ).fit(RATINGS, **SIDES),
    "Completion": lambda: Completion(
        [Term(Whitened(), Tanh(3), LowRank(2)), Term(Identity(), Identity(), LowRank(2), Ridge(0.1))],
        random_state=0,
        max_iter=3,
    ).fit(RATINGS, **SIDES),
    "Completion full": lambda: Completion(
        [Term(Given(standardize=True), Identity(), Full(), Ridge(0.1))], random_state=0, max_iter=3
    ).fit(RATINGS, row_features=ROWS),
    "Maxide": lambda: (
        Maxide(random_state=0, max_iter=3).fit(RATINGS, **SIDES)
        if "random_state" in Maxide().get_params()
        else Maxide(max_iter=3).fit(RATINGS, **SIDES)
    ),
    "DirtyIMC": lambda: DirtyIMC(random_state=0, max_iter=3).fit(RATINGS, **SIDES),
    "SparseBilinear": lambda: SparseBilinear(max_iter=3).fit(RATINGS, **SIDES),
    "MixedLinear": lambda: MixedLinear(max_iter=5).fit(RATINGS, **SIDES),
    "BiasMC": lambda: BiasMC(2, random_state=0, max_iter=3).fit(POSITIVES),
    "ShiftMC": lambda: ShiftMC(2, rho=0.3, random_state=0, max_iter=3).fit(POSITIVES),
    "BiasIMC": lambda: BiasIMC(2, random_state=0, max_iter=3).fit(POSITIVES, **SIDES),
    "ShiftIMC": lambda: ShiftIMC(2, rho=0.3, random_state=0, max_iter=3).fit(POSITIVES, **SIDES),
    "PUClustering": lambda: PUClustering(3, random_state=0).fit(ROWS, PAIRS),
    "GIMCClustering": lambda: GIMCClustering(3, n_components=4, random_state=0, max_iter=2).fit(ROWS, PAIRS),
    "MCCC": lambda: MCCC(3, random_state=0).fit(ROWS, PAIRS),
    "SpectralPairs": lambda: SpectralPairs(3, random_state=0).fit(ROWS, PAIRS),
    "RidgeOvA": lambda: RidgeOvA().fit(ROWS, LABELS),
    "LEML": lambda: LEML(3, random_state=0, max_iter=3).fit(ROWS, LABELS),
    "GIMCClassifier": lambda: GIMCClassifier(3, random_state=0, max_iter=3).fit(ROWS, LABELS),
    "LinearOvA": lambda: LinearOvA().fit(ROWS, LABELS),
    "ExMLDS": lambda: ExMLDS(n_components=3, n_neighbors=4, k=3, random_state=0).fit(ROWS, LABELS),
    "SLEEC": lambda: SLEEC(n_components=3, n_neighbors=4, k=3, random_state=0).fit(ROWS, LABELS),
    "AnnexML": lambda: AnnexML(
        3, n_clusters=2, n_learners=2, n_neighbors=3, l1=0.1, k=3, max_iter=2, random_state=0
    ).fit(ROWS, LABELS),
    "LabelTree": lambda: LabelTree(2, max_leaf=2, random_state=0).fit(ROWS, LABELS),
    "PDSparse": lambda: PDSparse(tol=0.5, random_state=0).fit(ROWS, LABELS),
    "PPDSparse": lambda: PPDSparse(random_state=0).fit(ROWS, LABELS),
    "FastXML": lambda: FastXML(3, max_leaf=4, C=5.0, random_state=0).fit(ROWS, LABELS),
    "PfastreXML": lambda: PfastreXML(3, max_leaf=4, C=5.0, random_state=0).fit(ROWS, LABELS),
    "SPPMIEmbedding": lambda: SPPMIEmbedding(2, random_state=0).fit(LABELS),
    "CommonNeighbors": lambda: CommonNeighbors().fit(GRAPH),
    "Katz": lambda: Katz().fit(GRAPH),
    "SVDKatz": lambda: SVDKatz(2).fit(GRAPH),
    "TruncatedSVDLinks": lambda: TruncatedSVDLinks(2).fit(GRAPH),
    "BlendedLinks": lambda: BlendedLinks().fit(GRAPH),
    "OneBitMC": lambda: OneBitMC(2, max_iter=3).fit(CLASSES),
    "Popularity": lambda: Popularity().fit(POSITIVES),
    "LowDensityNMF": lambda: LowDensityNMF(2, max_iter=3, random_state=0).fit(POSITIVES),
    "NMF": lambda: NMF(2, max_iter=3, random_state=0).fit(np.abs(RATINGS)),
    "PMF": lambda: PMF(2, max_iter=3, random_state=0).fit(RATINGS),
    "MMMF": lambda: MMMF(2, max_iter=3, random_state=0).fit(LEVELS),
}
if find_spec("torch"):
    MODELS["DXML"] = lambda: DXML(3, hidden=4, k=3, max_iter=2, random_state=0).fit(ROWS, LABELS)


@cache
def fitted(name: str) -> Any:
    """One of the models; not to be changed."""
    return MODELS[name]()
