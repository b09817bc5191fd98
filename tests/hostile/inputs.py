"""Estimators fitted to input and settings that do not fit: numbers or an error of the library."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from tests.hostile import questions, zoo
from tests.hostile.forge import SHOWN, limit_memory, shown, watched
from unseen.learned import LIBRARY_ERRORS

VALUES: list[Any] = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e160, -1e160, 1e-320, 0.0, -0.0, 1e9, -3.0]
SETTINGS: list[Any] = [
    *(None, True, False, -1, 0, 1, 2, 10**6, 2**31, 2**62, 2**63, 2**70, 0.0, 0.5, -1.5, 1e308, 1e-320),
    *(np.nan, np.inf, "auto", "loud", "", [], (), {}, (1, 2), [1.0], np.eye(2), object(), "biases", "mean"),
]
TYPES = ("f4", "f2", "i8", "u1", "?", "c16", "O", "U")


def index_of(array: Any, rng: np.random.Generator) -> tuple[int, ...]:
    """Some place of an array."""
    return tuple(int(rng.integers(length)) for length in array.shape)


def other_numbers(array: Any, rng: np.random.Generator) -> Any:
    """A few numbers, a row or a column changed."""
    out = np.array(array, dtype=float)
    value = VALUES[int(rng.integers(len(VALUES)))]
    kind = int(rng.integers(4))
    if not out.size:
        return out
    if kind == 0 or out.ndim < 2:
        out[index_of(out, rng)] = value
    elif kind == 1:
        out[int(rng.integers(len(out)))] = value
    elif kind == 2:
        out[:, int(rng.integers(out.shape[1]))] = value
    else:
        with np.errstate(all="ignore"):
            out *= value
    return out


def broken_sparse(array: Any, rng: np.random.Generator) -> Any:
    """A sparse matrix that points elsewhere, or has parts that do not fit."""
    form = str(rng.choice(["csr", "csc", "coo", "lil", "dok", "bsr"]))
    out = sparse.csr_array(np.nan_to_num(np.atleast_2d(np.array(array, dtype=float)))).asformat(form)
    index = int(rng.choice([-1, 10**6, 2**31 - 1, -(2**31)]))
    kind = int(rng.integers(3))
    if form == "coo" and out.nnz:
        out.coords[kind % 2][0] = index
    elif form == "lil":
        out.rows[0] = [index] if kind else [0] * 3
        out.data[0] = [1.0] * len(out.rows[0])
    elif form == "dok":
        out._dict[(0, index)] = 1.0
    elif out.nnz:
        part = (out.indices, out.indptr)[kind % 2]
        part[int(rng.integers(len(part)))] = index
    return out


WAYS: list[Callable[[Any, np.random.Generator], Any]] = [
    other_numbers,
    other_numbers,
    other_numbers,
    broken_sparse,
    lambda array, rng: sparse.csr_array(np.nan_to_num(other_numbers(array, rng), posinf=1e300)),
    lambda array, rng: array[: int(rng.integers(len(array) + 1))],
    lambda array, rng: array[:, : int(rng.integers(array.shape[1] + 1))] if array.ndim > 1 else array[None],
    lambda array, rng: array.T,
    lambda array, rng: array[..., None],
    lambda array, rng: np.asarray(array).astype(TYPES[int(rng.integers(len(TYPES)))]),
    lambda array, rng: np.matrix(array),
    lambda array, rng: np.ma.masked_array(array, mask=rng.random(array.shape) < 0.2),
    lambda array, rng: np.asarray(array).tolist(),
    lambda array, rng: np.full(array.shape, VALUES[int(rng.integers(len(VALUES)))]),
    lambda array, rng: np.broadcast_to(np.asarray(array)[:1], array.shape),
    lambda array, rng: None,
    lambda array, rng: "text",
    lambda array, rng: np.empty((0, 0)),
]


def arguments(model: Any) -> tuple[list[Any], dict[str, Any]]:
    """What a model of the zoo was fitted to, in arrays."""
    name = type(model).__name__
    if hasattr(model, "n_labels_"):
        return [zoo.ROWS, zoo.LABELS.toarray()], {}
    if name == "SPPMIEmbedding":
        return [zoo.LABELS.toarray()], {}
    if hasattr(model, "labels_"):
        return [zoo.ROWS, zoo.PAIRS], {}
    if getattr(model, "symmetric_scores", False):
        return [zoo.GRAPH.toarray()], {}
    kinds = {"OneBitMC": zoo.CLASSES, "MMMF": zoo.LEVELS, "NMF": np.abs(zoo.RATINGS)}
    positive = hasattr(model, "class_prior_") or name in (
        "CellBlend",
        "SpectralFilter",
        "ItemNeighbors",
        "Popularity",
        "Blend",
    )
    target = zoo.POSITIVES.toarray() if positive else kinds.get(name, zoo.RATINGS)
    sides = {
        f"{side}_features": {"row": zoo.ROWS, "col": zoo.COLS}[side]
        for side in ("row", "col")
        if getattr(model, f"n_{side}_features_in_", None)
    }
    return [target], sides


def spoil(model: Any, given: list[Any], sides: dict[str, Any], rng: np.random.Generator) -> Any:
    """One thing changed: a setting, or an argument."""
    names = sorted(model.get_params(deep=False))
    if names and rng.random() < 0.4:
        name = names[int(rng.integers(len(names)))]
        value = SETTINGS[int(rng.integers(len(SETTINGS)))]
        if not (name in questions.LONG_FITS and isinstance(value, int) and value > questions.MOST):
            model.set_params(**{name: value})
        return
    place = int(rng.integers(len(given) + len(sides)))
    way = WAYS[int(rng.integers(len(WAYS)))]
    holder: Any = given if place < len(given) else sides
    key = place if place < len(given) else sorted(sides)[place - len(given)]
    if not sparse.issparse(holder[key]):  # a broken one would fault in SciPy before the library sees it
        holder[key] = way(holder[key], rng)


ODD: list[Any] = [
    *([0], [0, 1], -1, 10**9, [], "x", None, [0.5], np.array([2**63], dtype=np.uint64), [True], [[0]], {}),
    *(
        {0: 1.0},
        {10**9: np.nan},
        [np.nan],
        {"seen"},
        np.ma.masked_array([0, 1], mask=[0, 1]),
        ["a", 0],
        "seen",
    ),
]


def asked(model: Any, first: Any, rng: np.random.Generator) -> list[Any]:
    """Answers of a fitted model to right questions, after it was asked odd ones."""
    given = questions.arguments(model) | {"return_std": rng.random() < 0.1}  # some fit again for it
    for name in rng.choice(sorted(given), 2, replace=False).tolist():
        kind = int(rng.integers(3))
        if kind == 0:
            given[name] = ODD[int(rng.integers(len(ODD)))]
        elif kind == 1:
            given[name] = SETTINGS[int(rng.integers(len(SETTINGS)))]
        elif isinstance(given[name], np.ndarray) or sparse.issparse(given[name]):
            whole = given[name] if isinstance(given[name], np.ndarray) else given[name].toarray()
            with contextlib.suppress(IndexError, AttributeError, ValueError, TypeError, OverflowError):
                given[name] = WAYS[int(rng.integers(len(WAYS)))](whole, rng)
    numbers: list[Any] = []
    tasks = questions.of(model, given)
    if hasattr(model, "predict_entries"):
        tasks.append(lambda: numbers.append(model.predict_entries([0], [0], positions=True)))
        tasks.append(lambda: numbers.append(model.transform(first)))
    elif hasattr(model, "predict_topk"):
        tasks.append(lambda: numbers.append(model.decision_function(zoo.ROWS)))
    elif hasattr(model, "labels_"):
        tasks.append(lambda: numbers.append(model.embedding_))
    for task in tasks:
        with contextlib.suppress(LIBRARY_ERRORS):
            task()
    return numbers


def _quick(fitted: Any) -> dict[str, Any]:
    """The penalties that a search found, and one thread."""
    settings = fitted.get_params(deep=False)
    regs = [name for name, value in settings.items() if name.startswith("reg") and value == "auto"]
    found = {name: getattr(fitted, f"{name}_") for name in regs if hasattr(fitted, f"{name}_")}
    return found | ({"n_jobs": 1} if "n_jobs" in settings else {})


def trial(seed: int) -> str:
    """Fit a model of the zoo with something wrong, and ask it."""
    rng = np.random.default_rng(seed)
    fitted = zoo.fitted(list(zoo.MODELS)[seed % len(zoo.MODELS)])
    given, sides = arguments(fitted)
    model = clone(fitted)
    if rng.random() < 0.9:  # a search for a penalty is twenty fits, and threads wait for each other
        model.set_params(**_quick(fitted))
    for _ in range(int(rng.integers(1, 3))):
        with contextlib.suppress(
            IndexError, AttributeError, ValueError, TypeError, OverflowError, np.ma.MaskError
        ):
            spoil(model, given, sides, rng)  # twice spoiled may not go together
    accepted = inspect.signature(model.fit).parameters
    try:
        model.fit(*given, **{key: value for key, value in sides.items() if key in accepted})
    except LIBRARY_ERRORS:
        return "refused"
    found = asked(model, given[0], rng)
    for numbers in found:
        values = numbers.data if sparse.issparse(numbers) else np.asarray(numbers)
        if values.dtype.kind == "f" and not np.all(np.isfinite(values)):
            raise FloatingPointError("answers with NaN or infinity")
    return "answered"


def attack(directory: Path, *, first: int, count: int) -> Counter[str]:
    """Try many; run in a process of its own, whose memory it limits."""
    warnings.simplefilter("ignore")
    for name in zoo.MODELS:
        zoo.fitted(name)
    limit_memory()
    found: Counter[str] = Counter()
    for seed in range(first, first + count):
        (directory / "current").write_text(f"{seed}")
        try:
            with watched(), np.errstate(all="ignore"):
                found[trial(seed)] += 1
        except MemoryError:
            found["no memory"] += 1
        except BaseException as error:
            found["foreign"] += 1
            if found["foreign"] <= SHOWN:
                name = list(zoo.MODELS)[seed % len(zoo.MODELS)]
                found[f"seed {seed}, {name}: {shown(error)}"] += 1
    return found
