"""scikit-learn's own checks for every public estimator.

The tags count: NaN means missing, sparse input is welcome, and MMMF takes levels. Exceptions are listed with
their reasons. Not here: ``DiskCompleter`` and ``DaskCompleter``, which take lists of cells in tables and no
arrays.
"""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

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
    DirtyIMC,
    ExMLDS,
    FastXML,
    GIMCClassifier,
    GIMCClustering,
    ItemNeighbors,
    LabelTree,
    LinearOvA,
    MatrixFactorization,
    Maxide,
    MixedLinear,
    PDSparse,
    PfastreXML,
    PPDSparse,
    PUClustering,
    RidgeOvA,
    ShiftIMC,
    ShiftMC,
    SoftImpute,
    SparseBilinear,
    SpectralFilter,
    SPPMIEmbedding,
)
from unseen.baselines import MMMF, NMF, PMF, LowDensityNMF, OneBitMC, Popularity, SpectralPairs
from unseen.links import BlendedLinks, CommonNeighbors, Katz, SVDKatz, TruncatedSVDLinks

LABELS = {
    "check_classifier_multioutput": "labels are given above a threshold of 0.5, as a sparse matrix",
    "check_classifiers_multilabel_representation_invariance": "labels come as a sparse matrix",
    "check_classifiers_multilabel_output_format_predict": "labels come as a sparse matrix",
    "check_supervised_y_2d": "a matrix with one column is one label, not a column of classes",
}
NEIGHBOURS = {
    **LABELS,
    "check_classifiers_multilabel_output_format_decision_function": "votes come as a sparse matrix",
}
ONE_BIT = dict.fromkeys(
    (
        "check_n_features_in_after_fitting",
        "check_estimators_dtypes",
        "check_estimator_sparse_array",
        "check_estimator_sparse_matrix",
        "check_estimators_pickle",
        "check_estimators_pickle(readonly_memmap=True)",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_dict_unchanged",
        "check_fit2d_predict1d",
        "check_fit_idempotent",
    ),
    "predict_proba of a completer takes rows and columns, not a matrix",
)
EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    "OneBitMC": ONE_BIT,
    "GIMCClassifier": LABELS,
    "LEML": LABELS,
    "RidgeOvA": LABELS,
    "LabelBlend": LABELS,
    "SpectralPairs": {
        "check_clustering": "it looks at pairs alone, and the check gives none",
        "check_clustering(readonly_memmap=True)": "it looks at pairs alone, and the check gives none",
    },
    "LinearOvA": LABELS,
    "ExMLDS": NEIGHBOURS,
    "SLEEC": NEIGHBOURS,
    "AnnexML": NEIGHBOURS,
    "DXML": NEIGHBOURS,
    "LabelTree": NEIGHBOURS,
    "PDSparse": LABELS,
    "PPDSparse": LABELS,
    "FastXML": NEIGHBOURS,
    "PfastreXML": NEIGHBOURS,
}


def reasons(estimator: Any) -> dict[str, str]:
    return EXPECTED_FAILURES.get(type(estimator).__name__, {})


@parametrize_with_checks(
    [
        BiasModel(),
        MatrixFactorization(2),
        MatrixFactorization(2, solver="ccd"),
        MatrixFactorization(2, center="joint", init="svd"),
        BayesianMF(2, n_samples=4, burn_in=2),
        SoftImpute(),
        AugmentedMF(2),
        AugmentedMF(2, augmentation="rank_one", max_iter=20),
        IMC(2),
        GIMC(2),
        Completion(),
        Maxide(),
        DirtyIMC(),
        SparseBilinear(),
        MixedLinear(max_iter=30),
        MixedLinear(constraint="soft", max_iter=30),
        # Positives are ones; scikit-learn's numbers pass only where every non-zero counts as one.
        BiasMC(2, weights=False),
        BiasMC(2, alpha=0.9, solver="prox", weights=False),
        ShiftMC(2, rho=0.5, weights=False),
        BiasIMC(2, alpha=0.9, weights=False),
        ShiftIMC(2, rho=0.5, weights=False),
        SpectralFilter(2, weights=False),
        ItemNeighbors(5, weights=False),
        Blend([BiasModel(), MatrixFactorization(2, random_state=0)], random_state=0),
        Blend([SpectralFilter(2, weights=False), Popularity()], weights=[1.0, 0.5]),
        Blend([RidgeOvA(), RidgeOvA(10.0)], random_state=0),
        PUClustering(3),
        GIMCClustering(3, n_components=8, max_iter=3),
        MCCC(3),
        RidgeOvA(),
        SPPMIEmbedding(2),
        LEML(10, reg=0.1, tol=1e-12, max_iter=500),
        GIMCClassifier(10, max_iter=5),
        GIMCClassifier(10, map="nystrom", solver="armijo", max_iter=5),
        LinearOvA(),
        ExMLDS(n_components=3, n_neighbors=10, k=5),
        SLEEC(n_components=3, n_neighbors=10, k=5),
        AnnexML(4, n_learners=2, k=5, random_state=0),
        *([DXML(4, hidden=32, k=5, max_iter=60, random_state=0)] if find_spec("torch") else []),
        LabelTree(2, max_leaf=2, random_state=0),
        PDSparse(tol=1e-9, max_iter=20_000, average=False, n_candidates=1, random_state=0),
        PPDSparse(random_state=0),
        FastXML(10, random_state=0),
        PfastreXML(10, random_state=0),
        CommonNeighbors(),
        Katz(),
        SVDKatz(2),
        TruncatedSVDLinks(2),
        BlendedLinks(),
        OneBitMC(2),
        Popularity(),
        SpectralPairs(2),
        LowDensityNMF(2),
        NMF(2),
        MMMF(2, max_iter=10),
        PMF(2, learning_rate=1e-4, max_iter=5),
        PMF(2, solver="als", reg=0.1),
    ],
    expected_failed_checks=reasons,
)
def test_sklearn(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)
