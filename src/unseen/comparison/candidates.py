"""Methods that are compared, and the settings among which the training part chooses."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unseen.exceptions import ParameterError

__all__ = ["CANDIDATES", "TITLES", "Candidate", "applicable"]


@dataclass(frozen=True)
class Candidate:
    """One method of a comparison.

    Attributes
    ----------
    estimator : str
        Name of the class.
    tasks : tuple of str
        What it is for: explicit, positive, links or multilabel.
    grid : mapping
        Values of settings that are tried on a part of the training cells.
    fixed : mapping
        Settings that differ from the estimator's own.
    module : str
        Where the class is.
    features : {"none", "either", "row", "col"}
        Side features that it needs; "none" also means that it is not given any.
    simple : bool
        Whether it is one of the baselines that the others have to beat.
    """

    estimator: str
    tasks: tuple[str, ...]
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    module: str = "unseen"
    features: str = "none"
    simple: bool = False

    def make(self, seed: int, n_jobs: int | None) -> Any:
        """The estimator, not fitted."""
        cls = getattr(importlib.import_module(self.module), self.estimator)
        known = inspect.signature(cls).parameters
        common = {"random_state": seed, "n_jobs": n_jobs}
        return cls(**{name: value for name, value in common.items() if name in known}, **self.fixed)

    def why_not(self, task: str, sides: set[str]) -> str | None:
        """Why it does not apply to a task with features of some sides, or None."""
        if task not in self.tasks:
            return f"it is for the task {' or '.join(self.tasks)}"
        if self.features == "either" and not sides:
            return "it needs features of rows or columns"
        if self.features in ("row", "col") and self.features not in sides:
            return f"it needs features of {self.features}s"
        return None


REG = (1.0, 3.0, 10.0, 30.0)
WIDE_REG = (6.0, 12.0, 25.0, 50.0)
"""Of nuclear norms: what is smaller keeps noise, and takes long to."""
EXPLICIT, POSITIVE = ("explicit",), ("positive",)
LABELS = ("multilabel",)
LINKS = "unseen.links"

CANDIDATES: dict[str, Candidate] = {
    "mean": Candidate("BiasModel", EXPLICIT, fixed={"reg": 1e12}, simple=True),
    "bias": Candidate("BiasModel", EXPLICIT, {"reg": [1.0, 3.0, (7.0, 3.0), 10.0, 30.0]}, simple=True),
    "mf": Candidate("MatrixFactorization", EXPLICIT, {"rank": [5, 15], "reg": REG}, {"center": "joint"}),
    "soft-impute": Candidate(
        "SoftImpute", EXPLICIT, {"reg": WIDE_REG}, {"center": "biases", "max_rank": 50, "max_iter": 50}
    ),
    "augmented-mf": Candidate(
        "AugmentedMF", EXPLICIT, {"weight": [0.01, 0.1], "reg": [1.0, 10.0]}, {"center": "biases"}
    ),
    "imc": Candidate("IMC", EXPLICIT, {"rank": [5, 15], "reg": REG}, {"center": "biases"}, features="either"),
    "maxide": Candidate("Maxide", EXPLICIT, {"reg": WIDE_REG}, {"center": "biases"}, features="either"),
    "dirty-imc": Candidate(
        "DirtyIMC",
        EXPLICIT,
        {"reg_features": [3.0, 10.0, 30.0], "reg_rest": [10.0, 20.0]},
        {"center": "biases", "max_rank": 50},
        features="either",
    ),
    "mixed": Candidate(
        "MixedLinear",
        EXPLICIT,
        fixed={"reg_e": "spectral", "center": "biases", "max_rank": 50, "max_iter": 100},
        features="either",
    ),
    "gimc": Candidate(
        "GIMC", EXPLICIT, {"reg": [0.1, 1.0, 10.0]}, {"center": "biases", "max_iter": 20}, features="either"
    ),
    "nmf": Candidate("NMF", EXPLICIT, {"rank": [5, 15]}, module="unseen.baselines"),
    "pmf": Candidate("PMF", EXPLICIT, {"rank": [5, 15]}, module="unseen.baselines"),
    "popular": Candidate("Popularity", POSITIVE, module="unseen.baselines", simple=True),
    "bias-mc": Candidate(
        "BiasMC", POSITIVE, {"alpha": [0.9, 0.99], "reg": [0.3, 3.0], "rank": [20, 60]}, {"max_iter": 20}
    ),
    "spectral-filter": Candidate(
        "SpectralFilter",
        POSITIVE,
        {
            "rank": [32, 128],
            "low_pass": [0.05, 0.3],
            "degree_power": [(0.35, 0.4), (0.5, 0.5)],
            "neighbor_power": [1.0, 1.5],
        },
    ),
    "item-neighbors": Candidate(
        "ItemNeighbors",
        POSITIVE,
        {"n_neighbors": [50, 200], "degree_power": [(0.0, 0.5), (0.4, 0.4)], "power": [1.0, 2.0]},
    ),
    "shift-mc": Candidate("ShiftMC", POSITIVE, {"reg": ["0.1max", "0.2max"]}, {"rho": 0.5, "rank": 30}),
    "bias-imc": Candidate(
        "BiasIMC", POSITIVE, {"alpha": [0.9, 0.99], "reg": ["0.01max", "0.05max"]}, features="either"
    ),
    "common-neighbors": Candidate(
        "CommonNeighbors", ("links",), {"degree_power": [0.0, 0.5]}, module=LINKS, simple=True
    ),
    "katz": Candidate("Katz", ("links",), module=LINKS),
    "svd-katz": Candidate("SVDKatz", ("links",), {"rank": [30, 100]}, module=LINKS),
    "svd-links": Candidate("TruncatedSVDLinks", ("links",), {"rank": [30, 100]}, module=LINKS),
    "bias-mc-links": Candidate(
        "BiasMC", ("links",), {"alpha": [0.8, 0.95], "reg": [0.3, 1.0], "rank": [100]}, {"max_iter": 20}
    ),
    "ridge": Candidate("RidgeOvA", LABELS, {"reg": [0.3, 1.0, 3.0, 10.0]}, simple=True),
    "linear-ova": Candidate("LinearOvA", LABELS),
    "leml": Candidate("LEML", LABELS, {"reg": [1.0, 3.0]}, {"rank": 100}),
    "exmlds": Candidate("ExMLDS", LABELS, {"neighbor_power": [0.0, 4.0], "reg": [1.0, 5.0]}),
    "sleec": Candidate("SLEEC", LABELS),
    "annexml": Candidate("AnnexML", LABELS, {"k": [10, 25]}, {"n_learners": 3}),
    "label-tree": Candidate("LabelTree", LABELS, {"C": [0.3, 1.0]}),
    "pdsparse": Candidate("PDSparse", LABELS, {"C": [0.1, 1.0], "l1": [0.01, 0.1]}),
    "ppdsparse": Candidate("PPDSparse", LABELS, {"C": [0.3, 1.0], "l1": [0.01, 0.1]}),
    "fastxml": Candidate("FastXML", LABELS, {"C": [1.0, 3.0]}),
    "pfastrexml": Candidate("PfastreXML", LABELS),
    "gimc-classifier": Candidate("GIMCClassifier", LABELS, fixed={"n_components": 100}),
}
"""Every method of a comparison by its name."""

TITLES = {
    "mean": "the global mean",
    "bias": "biases of rows and columns",
    "mf": "matrix factorization",
    "augmented-mf": "augmented matrix factorization",
    "imc": "inductive matrix completion",
    "dirty-imc": "dirty inductive matrix completion",
    "mixed": "the mixed linear model",
    "gimc": "goal-directed inductive matrix completion",
    "nmf": "non-negative matrix factorization",
    "pmf": "probabilistic matrix factorization",
    "popular": "popularity",
    "bias-mc": "biased matrix completion",
    "shift-mc": "shifted matrix completion",
    "item-neighbors": "neighbours among columns",
    "bias-imc": "biased inductive matrix completion",
    "common-neighbors": "common neighbours",
    "katz": "the Katz index",
    "svd-katz": "the Katz index of low rank",
    "svd-links": "a truncated singular value decomposition",
    "bias-mc-links": "biased matrix completion",
    "ridge": "ridge regression of each label",
    "linear-ova": "a linear classifier of each label",
    "exmlds": "label embeddings and neighbours",
    "annexml": "embeddings that keep the graph of neighbours",
    "label-tree": "a tree of labels",
    "pdsparse": "sparse weights with one margin for all labels",
    "ppdsparse": "a sparse classifier of each label",
    "fastxml": "trees that rank labels",
    "pfastrexml": "trees that rank rare labels",
    "gimc-classifier": "learned features of rows",
}
"""What methods are called in a sentence, where that is not the name of the class."""


def applicable(
    task: str, sides: set[str], asked: Sequence[str] | None = None
) -> tuple[dict[str, Candidate], dict[str, str]]:
    """Candidates for a task, and why others of it are left out.

    Parameters
    ----------
    task : str
        What the cells mean.
    sides : set of {"row", "col"}
        Sides with features.
    asked : sequence of str, optional
        Names to choose from; all by default. The simple baselines are always there.

    Returns
    -------
    chosen : dict
        Candidates by name.
    left_out : dict
        Reasons by name.
    """
    unknown = [name for name in asked or () if name not in CANDIDATES]
    if unknown:
        raise ParameterError(f"methods names {unknown[0]!r}; there are {', '.join(CANDIDATES)}")
    chosen, left_out = {}, {}
    for name, candidate in CANDIDATES.items():
        if asked is not None and name not in asked and not candidate.simple:
            continue
        reason = candidate.why_not(task, sides)
        if reason is None:
            chosen[name] = candidate
        elif task in candidate.tasks or name in (asked or ()):
            left_out[name] = reason
    if not chosen:
        raise ParameterError(f"no method is left for the task {task!r}: {left_out}")
    return chosen, left_out
