"""Writers, readers and kills in one directory: the old model or the new one is there, always."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import unseen
from unseen import BiasModel, MatrixFactorization

ROWS = 20_000


def stamped(stamp: float) -> BiasModel:
    """A model of some size that says in each of its numbers which one it is."""
    model = BiasModel(reg=stamp).fit(np.array([[1.0, 2.0], [3.0, np.nan]]))
    model.row_factors_ = np.full((ROWS, model.row_factors_.shape[1]), stamp)
    model.row_bias_ = np.full(ROWS, stamp)
    model.offsets_ = replace(model.offsets_, row=model.row_bias_)
    model.seen_ = None
    return model


def stamp_of(path: Path) -> float:
    """Stamp of the model in a directory; an error if it is a mixture of two."""
    model = unseen.load(path)
    if not np.all(model.row_factors_ == model.reg):
        raise AssertionError(f"a mixture: reg {model.reg}, factors {np.unique(model.row_factors_)}")
    return float(model.reg)


def debris(path: Path) -> list[str]:
    """Files in a directory that are no part of its model."""
    files = sorted(file.name for file in path.iterdir())
    return files if len(files) != 2 else []


def in_a_fork(task: Callable[[], Any]) -> int:
    """Run a task in a copy of this process; its number."""
    child = os.fork()
    if child:
        return child
    try:
        task()
        os._exit(0)
    except BaseException:
        os._exit(1)


def killed_after(seconds: float, task: Callable[[], Any]) -> None:
    """Run a task in a copy of this process and kill it."""
    child = in_a_fork(task)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def duration_of(task: Callable[[], Any]) -> float:
    """Seconds that a task takes in a copy of this process, on the machine as it is now."""
    start = time.monotonic()
    os.waitpid(in_a_fork(task), 0)
    return time.monotonic() - start


def kills(directory: Path, first: int, count: int) -> Counter[str]:
    """Kill writers at any moment; after each kill a model must load, and the next save must work."""
    rng = np.random.default_rng(first)
    found: Counter[str] = Counter()
    models = [stamped(1.0), stamped(2.0)]
    for trial in range(count):
        place = directory / ("fresh" if trial % 4 == 0 else "old") / str(trial if trial % 4 == 0 else 0)
        held = place.exists()
        if not held and trial % 4:
            models[0].save(place)
            held = True

        def save_until_killed(place: Path = place, trial: int = trial) -> None:
            while True:
                models[trial % 2].save(place)

        killed_after(float(rng.uniform(0, 0.03)), save_until_killed)
        found["kills"] += 1
        if held:
            try:
                stamp_of(place)
            except Exception:
                found["lost"] += 1
        if trial % 7 == 0 or not held:
            try:
                models[1].save(place)
                found["lost"] += stamp_of(place) != 2.0
                found["with debris"] += bool(debris(place))
            except Exception:
                found["blocked"] += 1
    return found


def kills_in_update(directory: Path, first: int, count: int) -> Counter[str]:
    """Kill whoever loads a model, adds a row and saves it; model and cells must have each row or lack it."""
    rng = np.random.default_rng(first)
    place = directory / "updated"
    found: Counter[str] = Counter()
    cells = np.where(rng.random((60, 40)) < 0.3, rng.standard_normal((60, 40)), np.nan)
    warnings.simplefilter("ignore")
    model = MatrixFactorization(2, reg=1.0, max_iter=3, random_state=0, n_jobs=1)
    model.fit(cells).save(place, cells=True)

    def update() -> None:
        mine = unseen.load(place)
        more = np.full((len(mine.row_factors_) + 1, 40), np.nan)
        more[-1, :3] = [2.0, 3.0, 4.0]
        mine.partial_fit(more).save(place, cells=True)

    def update_until_killed() -> None:
        while True:
            update()

    whole = duration_of(update)
    before = len(unseen.load(place).row_factors_)
    for _ in range(count):
        killed_after(float(rng.uniform(0, 3 * whole)), update_until_killed)
        found["kills"] += 1
        try:
            held = unseen.load(place)
            held.recommend([0], 3)
            rows = len(held.row_factors_)
            found["lost"] += rows < before or held._training_data().cells.shape[0] != rows
            found["updates"] += rows - before
            before = rows
        except Exception:
            found["lost"] += 1
    unseen.load(place).save(place)
    found["with debris"] += bool(debris(place))
    return found


def crowd(directory: Path, *, writers: int, loads: int) -> Counter[str]:
    """Several writers at once, and a reader that looks ``loads`` times."""
    models = [stamped(float(number)) for number in range(1, writers + 1)]
    models[0].save(directory)

    def save_for_ever(number: int) -> None:
        while True:
            models[number].save(directory)

    children = [in_a_fork(lambda number=number: save_for_ever(number)) for number in range(writers)]
    found: Counter[str] = Counter()
    try:
        for _ in range(loads):
            try:
                stamp_of(directory)
            except Exception:
                found["failed loads"] += 1
            found["loads"] += 1
        for child in children:
            if os.waitpid(child, os.WNOHANG) != (0, 0):
                found["failed writers"] += 1
                children.remove(child)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    stamp_of(directory)
    models[0].save(directory)
    found["with debris"] += bool(debris(directory))
    return found


def in_a_process(name: str, directory: Path, module: str = "saving", **options: int | str) -> Counter[str]:
    """Run a function of these modules in a process without other threads."""
    call = (
        f"import json, pathlib; from tests.hostile import {module}; "
        f"print(json.dumps({module}.{name}(pathlib.Path({str(directory)!r}), **{options!r})))"
    )
    done = subprocess.run([sys.executable, "-c", call], check=False, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{module}.{name} ended with {done.returncode}: {done.stderr[-2000:]}")
    return Counter(json.loads(done.stdout))
