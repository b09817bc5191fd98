"""Every model has the same bits at any number of threads, and in whichever Python thread it is fitted."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

os.environ.setdefault("UNSEEN_ZOO", "20")

from sklearn.base import clone

from tests.hostile import inputs, zoo
from tests.hostile.forge import SHOWN
from unseen.encoding import encode
from unseen.kernels import _arguments

THREADS = (2, 4, 8)


def without_times(tree: Any) -> Any:
    """The same without the seconds that were taken."""
    if isinstance(tree, dict):
        return {key: without_times(value) for key, value in tree.items() if not key.startswith("time")}
    return [without_times(value) for value in tree] if isinstance(tree, list) else tree


def bits(model: Any, n_jobs: int) -> str:
    """Digest of all that a model learned on so many threads."""
    given, sides = inputs.arguments(model)
    fresh = clone(model)
    several = "n_jobs" in fresh.get_params(deep=False)
    if several:
        fresh.set_params(n_jobs=n_jobs)
    accepted = inspect.signature(fresh.fit).parameters
    fresh.fit(*given, **{key: value for key, value in sides.items() if key in accepted})
    if several:
        fresh.set_params(n_jobs=None)
    arrays: dict[str, Any] = {}
    content = json.dumps(without_times(encode(fresh, arrays)), sort_keys=True)
    parts = [content.encode(), *(arrays[name].tobytes() for name in sorted(arrays))]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def attack(directory: Path, *, first: int, count: int) -> Counter[str]:
    """Fit model after model on one thread, on several, and in two other Python threads at once."""
    warnings.simplefilter("ignore")
    _arguments.WORK_A_THREAD = 1  # threads wake for the smallest work
    found: Counter[str] = Counter()
    for seed in range(first, first + count):
        name = list(zoo.MODELS)[seed % len(zoo.MODELS)]
        (directory / "current").write_text(f"{seed} {name}")
        model = zoo.MODELS[name]()
        expected = bits(model, 1)
        with ThreadPoolExecutor(2) as pool:
            others = list(pool.map(lambda n_jobs, model=model: bits(model, n_jobs), (1, 2)))
        same = [bits(model, n_jobs) == expected for n_jobs in THREADS] + [one == expected for one in others]
        found["same bits" if all(same) else "other bits"] += 1
        if not all(same) and found["other bits"] <= SHOWN:
            found[f"seed {seed}, {name}: at 2, 4, 8 threads and in two Python threads {same}"] += 1
    return found
