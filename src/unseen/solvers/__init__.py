"""Solvers: each states what it can solve and refuses the rest with a reason."""

from unseen.solvers.als import ALS
from unseen.solvers.auto import choose_solver
from unseen.solvers.base import Monitor, Solver, Sweep
from unseen.solvers.block_prox import BlockProx
from unseen.solvers.boxed import BoxedADMM
from unseen.solvers.ccd import CCD
from unseen.solvers.certificates import Certificate
from unseen.solvers.cg import AlternatingCG
from unseen.solvers.davis_yin import DavisYin
from unseen.solvers.gibbs import Gibbs
from unseen.solvers.gibbs_noise import NoiseSamples
from unseen.solvers.goal_directed import GoalDirected
from unseen.solvers.lbfgs import LBFGS
from unseen.solvers.line_search import AlternatingLineSearch, AugmentedALS, Sensing
from unseen.solvers.lowrank_prox import LowRankProx
from unseen.solvers.mixed_admm import MixedADMM
from unseen.solvers.mixed_soft import MixedSoft
from unseen.solvers.posterior import Posterior, SideSamples
from unseen.solvers.prox import ProxGradient
from unseen.solvers.term_posterior import TermPosterior

__all__ = [
    "ALS",
    "CCD",
    "LBFGS",
    "AlternatingCG",
    "AlternatingLineSearch",
    "AugmentedALS",
    "BlockProx",
    "BoxedADMM",
    "Certificate",
    "DavisYin",
    "Gibbs",
    "GoalDirected",
    "LowRankProx",
    "MixedADMM",
    "MixedSoft",
    "Monitor",
    "NoiseSamples",
    "Posterior",
    "ProxGradient",
    "Sensing",
    "SideSamples",
    "Solver",
    "Sweep",
    "TermPosterior",
    "choose_solver",
]
