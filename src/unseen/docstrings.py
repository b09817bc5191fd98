"""What many classes and functions share, described once.

A class or function leaves shared parameters out of its docstring; :func:`share_options` and
:func:`described_by` write them in when it is made, in the order and with the defaults of its own signature.
What it describes itself stays as it is.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

__all__ = ["ATTRIBUTES", "CLASSIFIERS", "PARAMETERS", "Descriptions", "described_by", "share_options"]

Descriptions: TypeAlias = Mapping[str, tuple[str, str]]
"""Type and meaning by name."""
F = TypeVar("F", bound=Callable[..., Any])

PARAMETERS: Descriptions = {
    "rank": ("int", "Columns of the factors."),
    "intercept": ("bool", "Append a constant to the features of each side."),
    "standardize": ("bool", "Centre features and scale them to unit variance."),
    "n_clusters": ("int", "Number of clusters."),
    "n_init": ("int", "Restarts of k-means."),
    "bias_reg": ("float", "Ridge of the biases."),
    "max_iter": ("int", "Limit of sweeps."),
    "tol": ("float", "Stop when a sweep lowers the objective by less than this share."),
    "validation_fraction": (
        "float, optional",
        "Share of the cells held out for early stopping by the loss's own measure; the best sweep is kept.",
    ),
    "patience": ("int", "Sweeps without improvement on held-out cells before stopping."),
    "warm_start": ("bool", "Start from the previous fit."),
    "random_state": ("int or Generator, optional", "Seed of the start."),
    "clip": (
        'None, "observed" or (float, float)',
        "Keep predictions within these limits, or within those of the training values. Factors and "
        "``raw=True`` are not touched.",
    ),
    "n_jobs": ("int, optional", "Threads; None takes all cores. The result does not depend on it."),
    "device": (
        "str, optional",
        "'cpu', 'cuda', 'cuda:N' or 'auto', a GPU if there is one. None asks UNSEEN_DEVICE, else the CPU.",
    ),
    "verbose": ("int", "1 shows a progress bar."),
}
"""Parameters of estimators and solvers."""
CLASSIFIERS: Descriptions = {
    "C": ("float", "Weight of the losses."),
    "prune": ("float", "Weights of a smaller size are dropped."),
    "n_components": ("int", "Size of the embeddings."),
    "k": ("int", "Neighbours that vote."),
    "metric": ('{"cosine", "l2", "dot"}', "How near they are."),
    "neighbor_power": ("float", "A vote weighs ``max(cosine, 0) ** neighbor_power``."),
    "search": (
        '{"exact", "usearch"}',
        "Compare with all training rows, or walk an approximate index (package usearch).",
    ),
    "normalize": ("bool", "Whether rows of features are scaled to length one."),
    "threshold": ("float", "Score above which ``predict`` gives a label."),
    "calibrate": (
        "bool",
        "Hold out a fifth of the rows from a first fit, and calibrate ``predict_proba`` on them.",
    ),
    "n_jobs": PARAMETERS["n_jobs"],
    "verbose": PARAMETERS["verbose"],
}
"""Parameters of multi-label classifiers."""
ATTRIBUTES: Descriptions = {
    "history_": ("list of dict", "``objective`` and ``time_s`` of each sweep."),
    "n_iter_": ("int", "Sweeps done."),
    "converged_": ("bool", "Whether the objective settled before ``max_iter``."),
}
"""Learned attributes of estimators."""
ENTRY = re.compile(r"(\w+(?:, \w+)*) : ")
HEADINGS = ("Returns", "Attributes", "Raises", "Notes", "Examples")
"""What may follow the parameters."""


def share_options(
    cls: type, parameters: Descriptions = PARAMETERS, attributes: Descriptions | None = ATTRIBUTES
) -> None:
    """Complete the docstring of a class, if it tells of parameters; without attributes for None."""
    text = inspect.cleandoc(cls.__dict__.get("__doc__") or "")
    if "\nParameters\n" not in text:
        return
    text = _with_parameters(text, inspect.signature(cls), parameters)
    if attributes is not None:
        own, entries, rest = _section(text, "Attributes")
        entries |= {name: _entry(name, *about) for name, about in attributes.items() if name not in entries}
        text = _joined(own, "Attributes", entries.values(), rest)
    cls.__doc__ = text


def described_by(parameters: Descriptions) -> Callable[[F], F]:
    """Complete the docstring of a function.

    Examples
    --------
    >>> from unseen.docstrings import described_by
    >>> @described_by({"k": ("int", "Places that count.")})
    ... def best(scores, k=5):
    ...     '''Find the best.'''
    >>> best.__doc__.splitlines()[2:]
    ['Parameters', '----------', 'k : int, default=5', '    Places that count.']
    """

    def completed(function: F) -> F:
        text = inspect.cleandoc(function.__doc__ or "")
        function.__doc__ = _with_parameters(text, inspect.signature(function), parameters)
        return function

    return completed


def _with_parameters(text: str, signature: inspect.Signature, parameters: Descriptions) -> str:
    own, entries, rest = _section(text, "Parameters")
    order = list(signature.parameters)
    for name, parameter in signature.parameters.items():
        if name in parameters and name not in entries:
            kind, meaning = parameters[name]
            given = parameter.default is not inspect.Parameter.empty and not kind.endswith("optional")
            default = parameter.default
            kind += (
                (f', default="{default}"' if type(default) is str else f", default={default!r}")
                if given
                else ""
            )
            entries[name] = _entry(name, kind, meaning)
    if not entries:
        return text
    place = {name: order.index(name) if name in order else len(order) for name in entries}
    in_order = (entries[name] for name in sorted(entries, key=lambda name: place[name]))
    return _joined(own, "Parameters", in_order, rest)


def _entry(name: str, kind: str, meaning: str) -> str:
    return f"{name} : {kind}\n    {meaning}"


def _section(text: str, heading: str) -> tuple[str, dict[str, str], str]:
    """What stands before a section, its entries by name, and what stands behind it."""
    before, found, body = text.partition(f"\n{heading}\n{'-' * len(heading)}\n")
    if not found:
        ends = [at for other in HEADINGS if (at := text.find(f"\n{other}\n---")) >= 0]
        end = min(ends, default=len(text))
        return text[:end].rstrip("\n") + "\n", {}, text[end:].strip("\n")
    body, rest = [*re.split(r"\n\n(?=\S)", body, maxsplit=1), ""][:2]
    entries: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", body):
        names = match[1].split(", ") if (match := ENTRY.match(entry)) else [entry]
        entries |= dict.fromkeys(names, entry)
    return before, entries, rest


def _joined(before: str, heading: str, entries: Iterable[str], rest: str) -> str:
    lines = [before, heading, "-" * len(heading), *dict.fromkeys(entries)]  # several names share an entry
    return "\n".join(lines) + (f"\n\n{rest}" if rest else "")
