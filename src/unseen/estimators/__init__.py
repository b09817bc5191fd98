"""Estimators, by the name users type."""

from unseen.estimators.base import Completer
from unseen.estimators.bias import BiasModel
from unseen.estimators.completion import Completion
from unseen.estimators.composed import ComposedCompleter, Composition
from unseen.estimators.factorization import MatrixFactorization, SoftImpute
from unseen.estimators.inductive import IMC
from unseen.estimators.pair_clustering import PairClusterer, PUClustering
from unseen.estimators.pu import BiasMC, ShiftMC
from unseen.estimators.pu_inductive import BiasIMC, ShiftIMC

__all__ = [
    "IMC",
    "BiasIMC",
    "BiasMC",
    "BiasModel",
    "Completer",
    "Completion",
    "ComposedCompleter",
    "Composition",
    "MatrixFactorization",
    "PUClustering",
    "PairClusterer",
    "ShiftIMC",
    "ShiftMC",
    "SoftImpute",
]
