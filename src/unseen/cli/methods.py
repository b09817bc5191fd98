"""The methods that the command knows by name. A new one is one line in `METHODS`."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import unseen
from unseen.cli.errors import UsageError

__all__ = ["MEASURES", "METHODS", "Method", "build", "task_of"]


@dataclass(frozen=True)
class Method:
    """A name on the command line and the estimator behind it.

    Attributes
    ----------
    estimator : str
        Name of the class in ``unseen``; loaded when it is used.
    task : {"explicit", "positive"}
        What cells mean to it: values that are known or missing, or positives among the unlabelled.
    """

    estimator: str
    task: str

    def load(self) -> Any:
        """The class."""
        return getattr(unseen, self.estimator)


METHODS = {
    "bias": Method("BiasModel", "explicit"),
    "mf": Method("MatrixFactorization", "explicit"),
    "soft-impute": Method("SoftImpute", "explicit"),
    "imc": Method("IMC", "explicit"),
    "maxide": Method("Maxide", "explicit"),
    "dirty-imc": Method("DirtyIMC", "explicit"),
    "mixed-linear": Method("MixedLinear", "explicit"),
    "sparse-bilinear": Method("SparseBilinear", "explicit"),
    "bias-mc": Method("BiasMC", "positive"),
    "shift-mc": Method("ShiftMC", "positive"),
    "bias-imc": Method("BiasIMC", "positive"),
    "shift-imc": Method("ShiftIMC", "positive"),
}

MEASURES = {"explicit": ("rmse", "mae"), "positive": ("precision@10", "recall@10")}
"""What to measure when nothing else is asked for, by task."""

HARMLESS = ("random_state", "n_jobs", "verbose")
"""Options that change nothing for a method that does not know them."""


def build(name: str, task: str | None, options: dict[str, Any], settings: Sequence[str]) -> Any:
    """Make the estimator that a command line asks for.

    Parameters
    ----------
    name : str
        Key of `METHODS`.
    task : str or None
        Refused unless it is the method's own.
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
    if task is not None and task != method.task:
        fitting = [other for other, entry in METHODS.items() if entry.task == task]
        known = f"for it there are {', '.join(fitting)}" if fitting else "no method is for it"
        raise UsageError(f"--task {task}: {name} is a method for the task {method.task}; {known}")
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


def task_of(method: str | None) -> str:
    """The task of a method by its name; explicit for a model that came from elsewhere."""
    return METHODS[method].task if method in METHODS else "explicit"


def _literal(text: str) -> Any:
    """The value of a JSON literal; what is not JSON is text, so quotes are not needed."""
    try:
        return json.loads(text)
    except ValueError:
        return text
