"""Kernels called directly with anything, and after a fork."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.hostile.saving import in_a_process
from unseen import kernels
from unseen.exceptions import ParameterError
from unseen.kernels import _arguments as args


@pytest.mark.parametrize("seed", [906, 5313])  # an array for True or False, a number for an array
def test_calls_that_were_answered_in_foreign_words(tmp_path: Path, seed: int) -> None:
    assert in_a_process("attack", tmp_path, "calls", first=seed, count=1) == {"refused": 1}


def test_kernels_refuse_or_answer(tmp_path: Path) -> None:
    found = in_a_process("attack", tmp_path, "calls", first=0, count=400)
    assert found["answered"] > 50
    assert found["refused"] > 50
    assert found["answered"] + found["refused"] + found["no memory"] == 400, found


CELLS = np.array([0, 2, 3]), np.array([0, 1, 1])
TWO, THREE = np.ones((2, 1)), np.ones((3, 1))


@pytest.mark.parametrize(
    ("indptr", "indices", "message"),
    [
        ([0, 2, 3], [0, 1, 3], "indices must be in 0..2, got 3"),
        ([0, 2, 3], [0, -1, 1], "indices must be in 0..2, got -1"),
        ([0, 5, 3], [0, 1, 1], "must not decrease"),
        ([0, 2, 3], [0.0, 1.0, 1.0], "integers"),
        ([0, 2, 3], np.array([0, 1, 2**63], dtype=np.uint64), "2\\*\\*63|0..2"),
    ],
)
def test_patterns_outside_of_the_matrix_are_refused(
    indptr: list[int], indices: list[int], message: str
) -> None:
    for call in (
        lambda: kernels.sddmm(np.array(indptr), np.array(indices), TWO, THREE),
        lambda: kernels.spmm(np.array(indptr), np.array(indices), 1.0, THREE),
        lambda: kernels.spmm_t(np.array(indptr), np.array(indices), 1.0, TWO, 3),
    ):
        with pytest.raises(ParameterError, match=message):
            call()


def test_only_patterns_that_nobody_can_write_to_are_remembered() -> None:
    indptr, indices = (array.copy() for array in CELLS)
    kernels.sddmm(indptr, indices, TWO, THREE)
    indices[0] = 9
    with pytest.raises(ParameterError, match="got 9"):
        kernels.sddmm(indptr, indices, TWO, THREE)
    indices[0] = 2
    for array in (indptr, indices):
        array.flags.writeable = False
    kernels.sddmm(indptr, indices, TWO, THREE)
    assert args._Known.holds(indptr, indices, 3)
    with pytest.raises(ParameterError, match="got 2"):  # in order for three columns, not for two
        kernels.sddmm(indptr, indices, TWO, TWO)
    key = id(indices)
    assert key in args._Known.patterns
    del indices, array
    assert key not in args._Known.patterns


@pytest.mark.parametrize("k", [2**31, 2**62, 2**63, -1, 1.5])
def test_lists_of_any_length_are_refused(k: object) -> None:
    with pytest.raises(ParameterError, match="k must be"):
        kernels.topk(TWO, THREE, k)  # type: ignore[arg-type]


FORKED = """
import os, signal, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
from unseen import MatrixFactorization, kernels
from unseen.linalg.blocked import gram
rng = np.random.default_rng(0)
X = np.where(rng.random((1500, 200)) < 0.3, rng.standard_normal((1500, 200)), np.nan)
tall = rng.standard_normal((40_000, 20))
fit = lambda: MatrixFactorization(10, max_iter=2, n_jobs=2, random_state=0).fit(X).row_factors_.tobytes()
before = fit(), gram(tall, n_threads=2).tobytes()
child = os.fork()
if not child:
    signal.alarm(60)
    os._exit(0 if (fit(), gram(tall, n_threads=2).tobytes()) == before else 3)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fit_in_a_fork_after_a_threaded_fit_has_the_same_bits() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
