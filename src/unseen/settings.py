"""Hyper-parameters against what their annotations say, before anything is done with them.

Ranges and options are the business of whoever uses a setting; here is only told apart what is of another
kind: text where a number belongs, an array where an option is compared with a name.
"""

from __future__ import annotations

import inspect
import numbers
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from unseen.exceptions import ParameterError
from unseen.validation import check_n_jobs, check_verbose

__all__ = ["check_settings"]


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def _is_pair(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and len(value) == 2 and all(map(_is_number, value))


def _is_triple(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and len(value) == 3 and all(map(_is_number, value))


KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "bool": ("True or False", lambda value: isinstance(value, (bool, np.bool_))),
    "int": ("an integer", _is_whole),
    "float": ("a number", _is_number),
    "tuple[float, float]": ("a pair of numbers", _is_pair),
    "tuple[float, float, float]": ("three numbers", _is_triple),
    "str": ("text", lambda value: isinstance(value, str)),
    "None": ("None", lambda value: value is None),
}
"""What an annotation calls a kind, in words, and whether a value is of it."""
LISTS = re.compile(r"\b(Any|Sequence|list|tuple|Array\w*|\w+Array|\w+Map)\b")
"""Annotations that arrays may hide behind."""


def _annotated(cls: type) -> list[tuple[str, list[str], bool]]:
    """Name, kinds and whether arrays are meant, of each hyper-parameter of a class."""
    found = []
    for name, parameter in inspect.signature(cls).parameters.items():
        if parameter.annotation is inspect.Parameter.empty:
            continue
        given = parameter.annotation
        text = given if isinstance(given, str) else getattr(given, "__name__", str(given))
        options = [re.sub(r"Literal\[.*\]", "str", option.strip()) for option in text.split("|")]
        known = list(dict.fromkeys(options)) if all(option in KINDS for option in options) else []
        found.append((name, known, bool(LISTS.search(text))))
    return found


def check_settings(estimator: Any) -> None:
    """Check that all hyper-parameters are of the kinds that their annotations name.

    Parameters
    ----------
    estimator : object
        With hyper-parameters as attributes.

    Raises
    ------
    ParameterError
        That names the first one that is not.

    Examples
    --------
    >>> from unseen import BiasMC
    >>> check_settings(BiasMC(rank=2))
    >>> check_settings(BiasMC(max_iter="many"))
    Traceback (most recent call last):
        ...
    unseen.exceptions.ParameterError: max_iter must be an integer, got 'many'.
    """
    for name, kinds, arrays in _annotated(type(estimator)):
        if not hasattr(estimator, name):
            continue
        value = getattr(estimator, name)
        if name == "n_jobs":
            check_n_jobs(value)
        elif name == "verbose":
            check_verbose(value)
        elif kinds and not any(KINDS[kind][1](value) for kind in kinds):
            words = " or ".join(KINDS[kind][0] for kind in kinds if kind != "None")
            if "None" in kinds:
                words = f"None, {words}" if " or " in words else f"None or {words}"
            raise ParameterError(f"{name} must be {words}, got {value!r}.")
        elif isinstance(value, np.ndarray) and value.ndim and not arrays:
            raise ParameterError(f"{name} cannot be an array, got one of shape {value.shape}.")
