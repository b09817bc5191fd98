"""The methods that the command knows by name. A new one is one line in `METHODS`."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unseen.cli.errors import UsageError

__all__ = ["DEFAULTS", "MEASURES", "METHODS", "Method", "build", "task_of"]


@dataclass(frozen=True)
class Method:
    """A name on the command line and the estimator behind it.

    Attributes
    ----------
    estimator : str
        Name of the class; loaded when it is used.
    task : {"explicit", "positive", "links", "multilabel", "clustering"}
        What cells mean to it: values that are known or missing, positives among the unlabelled,
        links of one graph, labels of rows of features, or pairs of items that belong together.
    other_tasks : tuple of str
        What else cells can mean to it, when ``--task`` says so.
    module : str
        Where the class is.
    """

    estimator: str
    task: str
    other_tasks: tuple[str, ...] = ()
    module: str = "unseen"

    @property
    def tasks(self) -> tuple[str, ...]:
        """All tasks that it is for, its own first."""
        return (self.task, *self.other_tasks)

    def load(self) -> Any:
        """The class."""
        return getattr(importlib.import_module(self.module), self.estimator)


METHODS = {
    "bias": Method("BiasModel", "explicit"),
    "mf": Method("MatrixFactorization", "explicit"),
    "soft-impute": Method("SoftImpute", "explicit"),
    "augmented-mf": Method("AugmentedMF", "explicit"),
    "nmf": Method("NMF", "explicit", module="unseen.baselines"),
    "pmf": Method("PMF", "explicit", module="unseen.baselines"),
    "mmmf": Method("MMMF", "explicit", module="unseen.baselines"),
    "imc": Method("IMC", "explicit"),
    "gimc": Method("GIMC", "explicit"),
    "maxide": Method("Maxide", "explicit"),
    "dirty-imc": Method("DirtyIMC", "explicit"),
    "mixed-linear": Method("MixedLinear", "explicit"),
    "sparse-bilinear": Method("SparseBilinear", "explicit"),
    "bias-mc": Method("BiasMC", "positive", ("links",)),
    "shift-mc": Method("ShiftMC", "positive", ("links",)),
    "spectral-filter": Method("SpectralFilter", "positive"),
    "item-neighbors": Method("ItemNeighbors", "positive"),
    "bias-imc": Method("BiasIMC", "positive"),
    "shift-imc": Method("ShiftIMC", "positive"),
    "common-neighbors": Method("CommonNeighbors", "links", module="unseen.links"),
    "katz": Method("Katz", "links", module="unseen.links"),
    "svd-katz": Method("SVDKatz", "links", module="unseen.links"),
    "svd-links": Method("TruncatedSVDLinks", "links", module="unseen.links"),
    "exmlds": Method("ExMLDS", "multilabel"),
    "sleec": Method("SLEEC", "multilabel"),
    "linear-ova": Method("LinearOvA", "multilabel"),
    "ridge-ova": Method("RidgeOvA", "multilabel"),
    "leml": Method("LEML", "multilabel"),
    "annexml": Method("AnnexML", "multilabel"),
    "dxml": Method("DXML", "multilabel"),
    "label-tree": Method("LabelTree", "multilabel"),
    "pdsparse": Method("PDSparse", "multilabel"),
    "ppdsparse": Method("PPDSparse", "multilabel"),
    "fastxml": Method("FastXML", "multilabel"),
    "pfastrexml": Method("PfastreXML", "multilabel"),
    "gimc-classifier": Method("GIMCClassifier", "multilabel"),
    "gimc-clustering": Method("GIMCClustering", "clustering"),
    "mccc": Method("MCCC", "clustering"),
    "pu-clustering": Method("PUClustering", "clustering"),
}

MEASURES = {"explicit": ("rmse", "mae"), "positive": ("precision@10", "recall@10")}
"""What to measure when nothing else is asked for, by task; links are measured along one list of pairs."""

DEFAULTS = {"multilabel": "exmlds", "clustering": "gimc-clustering"}
"""Method of a task that is asked for without one; of all others it is "mf"."""

HARMLESS = ("random_state", "n_jobs", "verbose")
"""Options that change nothing for a method that does not know them."""


def build(name: str, task: str | None, options: dict[str, Any], settings: Sequence[str]) -> Any:
    """Make the estimator that a command line asks for.

    Parameters
    ----------
    name : str
        Key of `METHODS`.
    task : str or None
        Refused unless the method is for it.
    options : dict
        Hyper-parameters by the estimator's names; None stands for not given.
    settings : sequence of str
        More of them as ``name=value``, the value a JSON literal or plain text.

    Returns
    -------
    estimator
        Not fitted.
    """
    if name not in METHODS:
        raise UsageError(f"--method {name}: the methods are {', '.join(METHODS)}")
    method = METHODS[name]
    if task is not None and task not in method.tasks:
        fitting = [other for other, entry in METHODS.items() if task in entry.tasks]
        known = f"for it there are {', '.join(fitting)}" if fitting else "no method is for it"
        raise UsageError(
            f"--task {task}: {name} is a method for the task {' or '.join(method.tasks)}; {known}"
        )
    cls = method.load()
    accepted = [key for key in inspect.signature(cls).parameters if key != "verbose"]
    given = {key: value for key, value in options.items() if value is not None}
    for key in list(given):
        if key in HARMLESS and key not in inspect.signature(cls).parameters:
            del given[key]
        elif key not in accepted and key not in HARMLESS:
            option = f"--{key.replace('_', '-')}"
            raise UsageError(f"{option}: {name} has no such setting; it has {', '.join(accepted)}")
    if isinstance(given.get("reg"), str):
        given["reg"] = _literal(given["reg"])
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise UsageError(f"--set {setting}: expected name=value")
        if key not in accepted:
            raise UsageError(f"--set {setting}: {name} has no setting {key!r}; it has {', '.join(accepted)}")
        given[key] = _literal(text)
    return cls(**given)


def task_of(method: str | None, asked: str | None = None) -> str:
    """The task that is asked for, else that of a method; explicit for a model that came from elsewhere."""
    if asked is not None:
        return asked
    return METHODS[method].task if method in METHODS else "explicit"


def _literal(text: str) -> Any:
    """The value of a JSON literal; what is not JSON is text, so quotes are not needed."""
    try:
        return json.loads(text)
    except ValueError:
        return text
