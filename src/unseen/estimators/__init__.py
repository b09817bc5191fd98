"""Estimators, by the name users type."""

from unseen.estimators.base import Completer
from unseen.estimators.bias import BiasModel
from unseen.estimators.completion import Completion
from unseen.estimators.composed import ComposedCompleter, Composition
from unseen.estimators.factorization import MatrixFactorization, SoftImpute
from unseen.estimators.inductive import IMC

__all__ = [
    "IMC",
    "BiasModel",
    "Completer",
    "Completion",
    "ComposedCompleter",
    "Composition",
    "MatrixFactorization",
    "SoftImpute",
]
