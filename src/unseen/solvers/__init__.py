"""Solvers: each states what it can solve and refuses the rest with a reason."""

from unseen.solvers.als import ALS
from unseen.solvers.auto import choose_solver
from unseen.solvers.base import Monitor, Solver, Sweep
from unseen.solvers.boxed import BoxedADMM
from unseen.solvers.ccd import CCD
from unseen.solvers.cg import AlternatingCG
from unseen.solvers.lbfgs import LBFGS
from unseen.solvers.lowrank_prox import LowRankProx
from unseen.solvers.prox import ProxGradient

__all__ = [
    "ALS",
    "CCD",
    "LBFGS",
    "AlternatingCG",
    "BoxedADMM",
    "LowRankProx",
    "Monitor",
    "ProxGradient",
    "Solver",
    "Sweep",
    "choose_solver",
]
