"""Fits that go on from checkpoints: after damage to the files, and after a kill at any moment."""

from __future__ import annotations

import shutil
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from tests.hostile.forge import SHOWN, damage, shown
from tests.hostile.saving import duration_of, killed_after
from unseen import MatrixFactorization
from unseen.distributed import DiskCompleter
from unseen.exceptions import ModelFileError


def cells() -> Any:
    """Lines of a table of cells."""
    import pandas

    rng = np.random.default_rng(0)
    table = {"row": rng.integers(0, 60, 500), "col": rng.integers(0, 40, 500)}
    return pandas.DataFrame({**table, "value": rng.standard_normal(500)}).drop_duplicates(["row", "col"])


def going_on(place: Path, *, max_iter: int, resume: bool = True) -> Any:
    """Factors of a fit that writes checkpoints, and goes on from one that is there."""
    model = MatrixFactorization(3, reg=1.0, random_state=0, max_iter=max_iter, tol=0, n_jobs=1)
    completer = DiskCompleter(model, n_blocks=2, checkpoint=str(place), resume=resume, n_jobs=1)
    try:
        return completer.fit(cells()).to_local().row_factors_
    finally:
        completer.close()


def attack(directory: Path, *, first: int, count: int) -> Counter[str]:
    """Damage one file of a checkpoint; the fit must refuse it, or end in the same bits."""
    warnings.simplefilter("ignore")
    place, target = directory / "whole", directory / "damaged"
    shutil.rmtree(place, ignore_errors=True)
    going_on(place, max_iter=2, resume=False)
    expected = going_on(directory / "calm", max_iter=3, resume=False)
    found: Counter[str] = Counter()
    for seed in range(first, first + count):
        (directory / "current").write_text(str(seed))
        damage(place, target, np.random.default_rng(seed))
        try:
            same = np.array_equal(going_on(target, max_iter=3), expected)
            found["the same bits" if same else "other bits"] += 1
        except ModelFileError:
            found["refused"] += 1
        except Exception as error:
            found["foreign"] += 1
            if found["foreign"] <= SHOWN:
                found[f"seed {seed}: {shown(error)}"] += 1
    return found


def kills(directory: Path, *, first: int, count: int) -> Counter[str]:
    """Kill fits at any moment; the next one goes on and ends in the bits of one that nobody disturbed."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(first)
    expected = going_on(directory / "calm", max_iter=6, resume=False)
    whole = duration_of(lambda: going_on(directory / "calm", max_iter=6, resume=False))
    place = directory / "killed"
    found: Counter[str] = Counter()

    def fit() -> None:
        going_on(place, max_iter=6, resume=(place / "checkpoint.json").exists())

    for _ in range(0, count, 2):
        shutil.rmtree(place, ignore_errors=True)
        for _ in range(2):
            killed_after(float(rng.uniform(0, whole)), fit)
            found["kills"] += 1
        try:
            resume = (place / "checkpoint.json").exists()
            same = np.array_equal(going_on(place, max_iter=6, resume=resume), expected)
            found["lost"] += not same
            found["went on"] += resume
        except Exception as error:
            found["lost"] += 1
            found[f"seed {first}: {shown(error)}"] += 1
    return found
