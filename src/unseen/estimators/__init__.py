"""Estimators, by the name users type."""

from unseen.estimators.augmented import AugmentedMF
from unseen.estimators.base import Completer
from unseen.estimators.bayesian import BayesianMF
from unseen.estimators.bias import BiasModel
from unseen.estimators.completion import Completion
from unseen.estimators.composed import ComposedCompleter, Composition
from unseen.estimators.explained import Explanation, Interaction, Interactions
from unseen.estimators.factorization import MatrixFactorization, SoftImpute
from unseen.estimators.gimc_clustering import MCCC, GIMCClustering
from unseen.estimators.goal_directed import GIMC
from unseen.estimators.inductive import IMC
from unseen.estimators.item_neighbors import ItemNeighbors
from unseen.estimators.mixed_linear import MixedLinear
from unseen.estimators.pair_clustering import PairClusterer, PlacingClusterer, PUClustering
from unseen.estimators.pu import BiasMC, ShiftMC
from unseen.estimators.pu_inductive import BiasIMC, ShiftIMC
from unseen.estimators.side_information import DirtyIMC, Maxide
from unseen.estimators.sparse_bilinear import SparseBilinear
from unseen.estimators.spectral_filter import SpectralFilter

__all__ = [
    "GIMC",
    "IMC",
    "MCCC",
    "AugmentedMF",
    "BayesianMF",
    "BiasIMC",
    "BiasMC",
    "BiasModel",
    "Completer",
    "Completion",
    "ComposedCompleter",
    "Composition",
    "DirtyIMC",
    "Explanation",
    "GIMCClustering",
    "Interaction",
    "Interactions",
    "ItemNeighbors",
    "MatrixFactorization",
    "Maxide",
    "MixedLinear",
    "PUClustering",
    "PairClusterer",
    "PlacingClusterer",
    "ShiftIMC",
    "ShiftMC",
    "SoftImpute",
    "SparseBilinear",
    "SpectralFilter",
]
