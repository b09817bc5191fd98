"""Hyper-parameters: ``name`` is the argument as the user knows it, ``value`` what the user passed."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Collection, Sequence
from typing import Any, TypeVar

import numpy as np

from unseen.exceptions import ParameterError

__all__ = [
    "check_choice",
    "check_count",
    "check_fraction",
    "check_list_length",
    "check_n_jobs",
    "check_pair",
    "check_positive",
    "check_rng",
    "check_several",
    "check_verbose",
]

LARGEST_COUNT = (1 << 31) - 1
"""Ranks, sweeps, samples and the like: more of them than this is a mistake."""

_T = TypeVar("_T")


def _real(name: str, value: Any, wanted: str) -> float:
    """Turn a real number into a float; anything else, NaN included, is refused."""
    if not isinstance(value, numbers.Real) or isinstance(value, (bool, np.bool_)):
        raise ParameterError(f"{name} must be {wanted}, got {value!r} of type {type(value).__name__}.")
    if math.isnan(value):
        raise ParameterError(f"{name} must be {wanted}, got NaN.")
    return float(value)


def check_positive(name: str, value: Any, *, strict: bool = True, allow_inf: bool = False) -> float:
    """Check a number that must be positive, or non-negative when not `strict`.

    Parameters
    ----------
    strict : bool, default=True
        Refuse zero.
    allow_inf : bool, default=False
        Accept infinity.

    Examples
    --------
    >>> check_positive("reg", 2)
    2.0
    >>> check_positive("reg", -1)
    Traceback (most recent call last):
        ...
    unseen.exceptions.ParameterError: reg must be a finite number > 0, got -1.
    """
    wanted = f"a{'' if allow_inf else ' finite'} number {'>' if strict else '>='} 0"
    number = _real(name, value, wanted)
    if number < 0 or (strict and number == 0) or (math.isinf(number) and not allow_inf):
        raise ParameterError(f"{name} must be {wanted}, got {value!r}.")
    return number


def check_pair(name: str, value: Any) -> tuple[float, float]:
    """Validate one number for both sides, or one for rows and one for columns.

    Parameters
    ----------
    value : object
        A number of zero or more, or two of them.

    Examples
    --------
    >>> from unseen.validation import check_pair
    >>> check_pair("reg", 2), check_pair("reg", (7, 3))
    ((2.0, 2.0), (7.0, 3.0))
    """
    pair = value if isinstance(value, (tuple, list)) else (value, value)
    if len(pair) != 2:
        raise ParameterError(f"{name} must be one number or two, found {value!r}")
    return check_positive(name, pair[0], strict=False), check_positive(name, pair[1], strict=False)


def check_fraction(
    name: str,
    value: Any,
    *,
    low: float = 0.0,
    high: float = 1.0,
    include_low: bool = False,
    include_high: bool = False,
) -> float:
    """Check a number in an interval, open at both ends unless told otherwise.

    Parameters
    ----------
    low, high : float
        Ends of the interval.
    include_low, include_high : bool, default=False
        Whether the ends themselves are accepted.

    Examples
    --------
    >>> check_fraction("alpha", 0.9)
    0.9
    """
    wanted = f"a number in {'[' if include_low else '('}{low:g}, {high:g}{']' if include_high else ')'}"
    number = _real(name, value, wanted)
    too_low = number < low or (number == low and not include_low)
    too_high = number > high or (number == high and not include_high)
    if too_low or too_high:
        raise ParameterError(f"{name} must be {wanted}, got {value!r}.")
    return number


def check_count(name: str, value: Any, *, minimum: int = 1, maximum: int | None = LARGEST_COUNT) -> int:
    """Check a whole number from `minimum` to `maximum`.

    Parameters
    ----------
    value : object
        What the user passed; floats and booleans are refused.
    minimum : int, default=1
        Smallest value that is accepted.
    maximum : int or None, default=2**31 - 1
        Largest value that is accepted; None for any.

    Examples
    --------
    >>> check_count("rank", 10)
    10
    """
    if not isinstance(value, numbers.Integral) or isinstance(value, (bool, np.bool_)) or value < minimum:
        raise ParameterError(
            f"{name} must be an integer >= {minimum}, got {value!r} of type {type(value).__name__}."
        )
    if maximum is not None and int(value) > maximum:
        raise ParameterError(f"{name} must be at most {maximum}, got {value!r}.")
    return int(value)


def check_list_length(k: Any, length: int) -> int:
    """Check how many places a list is to have: never more than there is to list.

    Parameters
    ----------
    length : int
        What there is to list.

    Examples
    --------
    >>> check_list_length(10, 3)
    3
    """
    return min(check_count("k", k, maximum=None), length)


def check_verbose(value: Any) -> bool:
    """Check whether a progress bar is wanted: 0 or False for none, 1 or True (or a larger number) for one.

    Examples
    --------
    >>> check_verbose(1)
    True
    """
    if not isinstance(value, (numbers.Integral, np.bool_)) or value < 0:
        raise ParameterError(f"verbose must be 0 (silent) or 1 (a progress bar), got {value!r}.")
    return bool(value)


def check_several(name: str, value: Any, wanted: str) -> list[Any]:
    """Check that a value is a sequence of things, as a list.

    Parameters
    ----------
    wanted : str
        What would be accepted, in words.

    Examples
    --------
    >>> check_several("weights", (1.0, 2.0), "two numbers")
    [1.0, 2.0]
    """
    # Not any iterable: some never end, and others are empty when they are read again.
    if isinstance(value, (str, bytes, dict)) or not isinstance(value, Collection):
        raise ParameterError(f"{name} must be {wanted}, got {value!r}.")
    return list(value)


def check_choice(name: str, value: _T, options: Sequence[_T]) -> _T:
    """Check that a value is one of a few options.

    Parameters
    ----------
    options : sequence
        What is accepted.

    Returns
    -------
    object
        The value itself.

    Examples
    --------
    >>> check_choice("solver", "als", ("als", "ccd"))
    'als'
    """
    # Comparing types as well keeps 1 from passing for True, and arrays from answering with arrays.
    if not any(type(value) is type(option) and value == option for option in options):
        listed = ", ".join(repr(option) for option in options)
        raise ParameterError(f"{name} must be one of {listed}; got {value!r}.")
    return value


def check_n_jobs(n_jobs: Any) -> int:
    """Turn `n_jobs` into a number of threads.

    Parameters
    ----------
    n_jobs : int or None
        A number of threads; None or -1 means every core that this process may use.

    Examples
    --------
    >>> check_n_jobs(2)
    2
    """
    if n_jobs is None or (type(n_jobs) is not bool and isinstance(n_jobs, numbers.Integral) and n_jobs == -1):
        if hasattr(os, "sched_getaffinity"):
            return max(1, len(os.sched_getaffinity(0)))
        return os.cpu_count() or 1
    if not isinstance(n_jobs, numbers.Integral) or isinstance(n_jobs, (bool, np.bool_)) or n_jobs < 1:
        raise ParameterError(f"n_jobs must be an integer >= 1, or None or -1 for all cores; got {n_jobs!r}.")
    return int(n_jobs)


def check_rng(random_state: Any) -> np.random.Generator:
    """Turn `random_state` into a generator.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
        A seed, or a source of random numbers. A `Generator` is used as it is, so its state moves on;
        a `RandomState` gives the seed; None takes fresh entropy.

    Examples
    --------
    >>> int(check_rng(0).integers(100)) == int(check_rng(0).integers(100))
    True
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1, size=4))
    is_seed = isinstance(random_state, numbers.Integral) and not isinstance(random_state, (bool, np.bool_))
    if random_state is None or (is_seed and random_state >= 0):
        return np.random.default_rng(random_state)
    raise ParameterError(
        "random_state must be None, an integer >= 0, a numpy Generator or a RandomState; "
        f"got {random_state!r}."
    )
