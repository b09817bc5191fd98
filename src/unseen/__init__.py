"""Complete matrices and predict for what has not been seen.

Names are loaded when they are first used, so ``import unseen`` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unseen import (
        baselines as baselines,
    )
    from unseen import (
        blends as blends,
    )
    from unseen import (
        datasets as datasets,
    )
    from unseen import (
        diagnostics as diagnostics,
    )
    from unseen import (
        distributed as distributed,
    )
    from unseen import (
        embeddings as embeddings,
    )
    from unseen import (
        exceptions as exceptions,
    )
    from unseen import (
        links as links,
    )
    from unseen import (
        metrics as metrics,
    )
    from unseen import (
        model_selection as model_selection,
    )
    from unseen import (
        multilabel as multilabel,
    )
    from unseen import (
        plotting as plotting,
    )
    from unseen.blends import Blend
    from unseen.cores import Full, LowRank
    from unseen.data import Observations, Vocabulary
    from unseen.embeddings import SPPMIEmbedding
    from unseen.estimators import (
        GIMC,
        IMC,
        MCCC,
        AugmentedMF,
        BayesianMF,
        BiasIMC,
        BiasMC,
        BiasModel,
        Completion,
        DirtyIMC,
        GIMCClustering,
        ItemNeighbors,
        MatrixFactorization,
        Maxide,
        MixedLinear,
        PUClustering,
        ShiftIMC,
        ShiftMC,
        SoftImpute,
        SparseBilinear,
        SpectralFilter,
    )
    from unseen.imputation import Imputer
    from unseen.io import load
    from unseen.levels import Ordinal, Probit
    from unseen.losses import Background, Biased, Logistic, Shifted, Squared
    from unseen.maps import (
        Constant,
        Fourier,
        Given,
        History,
        Identity,
        Joined,
        Nystrom,
        Standardized,
        Tanh,
        Whitened,
        WithOnes,
    )
    from unseen.memory import memory_estimate
    from unseen.multilabel import (
        DXML,
        LEML,
        SLEEC,
        AnnexML,
        ExMLDS,
        FastXML,
        GIMCClassifier,
        LabelTree,
        LinearOvA,
        PDSparse,
        PfastreXML,
        PPDSparse,
        RidgeOvA,
    )
    from unseen.regularisers import L1, Box, NonNegative, Nuclear, Ridge
    from unseen.terms import Term

__version__ = "0.1.0"

_HOME = {
    "AugmentedMF": "estimators",
    "BayesianMF": "estimators",
    "BiasIMC": "estimators",
    "BiasMC": "estimators",
    "BiasModel": "estimators",
    "Blend": "blends",
    "DirtyIMC": "estimators",
    "Maxide": "estimators",
    "MixedLinear": "estimators",
    "SparseBilinear": "estimators",
    "SpectralFilter": "estimators",
    "Completion": "estimators",
    "GIMC": "estimators",
    "GIMCClustering": "estimators",
    "MCCC": "estimators",
    "IMC": "estimators",
    "Imputer": "imputation",
    "ItemNeighbors": "estimators",
    "MatrixFactorization": "estimators",
    "PUClustering": "estimators",
    "ShiftIMC": "estimators",
    "ShiftMC": "estimators",
    "SPPMIEmbedding": "embeddings",
    "SoftImpute": "estimators",
    "Observations": "data",
    "Vocabulary": "data",
    "Full": "cores",
    "LowRank": "cores",
    "Background": "losses",
    "Biased": "losses",
    "Logistic": "losses",
    "Ordinal": "levels",
    "Probit": "levels",
    "Shifted": "losses",
    "Squared": "losses",
    "Constant": "maps",
    "Fourier": "maps",
    "Given": "maps",
    "History": "maps",
    "Joined": "maps",
    "Identity": "maps",
    "Nystrom": "maps",
    "Standardized": "maps",
    "Tanh": "maps",
    "Whitened": "maps",
    "WithOnes": "maps",
    "GIMCClassifier": "multilabel",
    "LEML": "multilabel",
    "AnnexML": "multilabel",
    "DXML": "multilabel",
    "ExMLDS": "multilabel",
    "FastXML": "multilabel",
    "PfastreXML": "multilabel",
    "LabelTree": "multilabel",
    "LinearOvA": "multilabel",
    "PDSparse": "multilabel",
    "PPDSparse": "multilabel",
    "RidgeOvA": "multilabel",
    "SLEEC": "multilabel",
    "Box": "regularisers",
    "L1": "regularisers",
    "NonNegative": "regularisers",
    "Nuclear": "regularisers",
    "Ridge": "regularisers",
    "Term": "terms",
    "load": "io",
    "memory_estimate": "memory",
}
_MODULES = (
    "baselines",
    "blends",
    "data",
    "datasets",
    "diagnostics",
    "distributed",
    "embeddings",
    "exceptions",
    "links",
    "metrics",
    "model_selection",
    "multilabel",
    "plotting",
    "solvers",
)

__all__ = [
    "DXML",
    "GIMC",
    "IMC",
    "L1",
    "LEML",
    "MCCC",
    "SLEEC",
    "AnnexML",
    "AugmentedMF",
    "Background",
    "BayesianMF",
    "BiasIMC",
    "BiasMC",
    "BiasModel",
    "Biased",
    "Blend",
    "Box",
    "Completion",
    "Constant",
    "DirtyIMC",
    "ExMLDS",
    "FastXML",
    "Fourier",
    "Full",
    "GIMCClassifier",
    "GIMCClustering",
    "Given",
    "History",
    "Identity",
    "Imputer",
    "ItemNeighbors",
    "Joined",
    "LabelTree",
    "LinearOvA",
    "Logistic",
    "LowRank",
    "MatrixFactorization",
    "Maxide",
    "MixedLinear",
    "NonNegative",
    "Nuclear",
    "Nystrom",
    "Observations",
    "Ordinal",
    "PDSparse",
    "PPDSparse",
    "PUClustering",
    "PfastreXML",
    "Probit",
    "Ridge",
    "RidgeOvA",
    "SPPMIEmbedding",
    "ShiftIMC",
    "ShiftMC",
    "Shifted",
    "SoftImpute",
    "SparseBilinear",
    "SpectralFilter",
    "Squared",
    "Standardized",
    "Tanh",
    "Term",
    "Vocabulary",
    "Whitened",
    "WithOnes",
    "baselines",
    "blends",
    "datasets",
    "diagnostics",
    "distributed",
    "embeddings",
    "exceptions",
    "links",
    "load",
    "memory_estimate",
    "metrics",
    "model_selection",
    "multilabel",
    "plotting",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME and name not in _MODULES:
        raise AttributeError(f"module 'unseen' has no attribute {name!r}")
    if name in _MODULES:
        return importlib.import_module(f"unseen.{name}")
    value = getattr(importlib.import_module(f"unseen.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
