"""Kernels called directly with anything, and after a fork."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tests.hostile import calls
from tests.hostile.saving import in_a_process
from unseen import kernels
from unseen.exceptions import ParameterError
from unseen.kernels import _arguments as args


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


SQUARE = sparse.csr_array(np.eye(3))
ALL = kernels.RowGroups(np.array([0, 3]), np.arange(3))


def sides() -> Any:
    return np.array([1, -1, 1], dtype=np.int8)


def without_values() -> Any:
    matrix = SQUARE.copy()
    matrix.data = matrix.data[:1]
    return matrix


def draw(**changed: Any) -> Any:
    given = {"indptr": CELLS[0], "indices": CELLS[1], "curvature": 1.0, "linear": 1.0, "other": THREE}
    given |= {"precision": np.eye(1), "noise": np.zeros((2, 1)), "out": np.zeros((2, 1))}
    return kernels.als_draw(**{**given, **changed})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: draw(indices=np.array([0, 1, 3])), "indices must be in 0..2"),
        (lambda: draw(indices=np.array([0, -1, 1])), "indices must be in 0..2"),
        (lambda: draw(precision=np.eye(2)), "precision must have shape"),
        (lambda: draw(noise=np.zeros((1, 1))), "noise must have shape"),
        (lambda: draw(offset=np.zeros((3, 1))), "offset must have shape"),
        (lambda: draw(shift=np.zeros(2)), "shift must have shape"),
        (lambda: draw(out=None), "out"),
        (lambda: kernels.normals((-1, 2), 0, 0, 0), "shape must be"),
        (lambda: kernels.normals((2, 2), 2**64, 0, 0), "seed must be below"),
        (lambda: kernels.normals((2, 2), 0, 2**32, 0), "sweep must be below"),
        (lambda: kernels.normals((2, 2), 0, 0, 0, dtype=str), "dtype must be"),
        (lambda: kernels.normals((2**30, 2**24), 0, 0, 0), "2[*][*]40 numbers"),
        (lambda: kernels.label_splits(without_values(), SQUARE, ALL, sides()), "3 cells and 1 values"),
        (lambda: kernels.label_splits(SQUARE, np.eye(3), ALL, sides()), "gains must be a CSR"),
        (lambda: kernels.linear_duals(without_values(), ALL, sides()), "3 cells and 1 values"),
        (lambda: kernels.linear_duals(SQUARE, 3, sides()), "groups must be RowGroups"),
        (lambda: kernels.linear_duals(SQUARE, ALL, sides(), C=1.0), "C must be a pair"),
        (lambda: kernels.linear_duals(SQUARE, ALL, sides(), squared=np.eye(2)), "squared must be"),
        (lambda: kernels.linear_duals(SQUARE, ALL, sides(), max_passes=2**30), "max_passes must be at most"),
        (lambda: margins(visits=np.array([3])), "visits must be in 0..2"),
        (lambda: margins(costs=np.ones(1)), "costs must have 3 values"),
        (lambda: margins(state=None), "state must be"),
        (lambda: margins(state=STARTED._replace(slots=np.array([0, 9, 1, 6]))), "not started with this Y"),
        (lambda: margins(state=STARTED._replace(slots=None)), "slots must be"),
        (lambda: kernels.topk(TWO, TWO, 1, exclude=3), "exclude must be the pair"),
        (lambda: kernels.cooccurrence(*CELLS, True, 1), "index must be the pair"),
        (lambda: kernels.cooccurrence(*CELLS, CELLS, 1, recount=np.eye(2)), "recount must be"),
    ],
)
def test_bad_arguments_of_the_newer_kernels_are_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()


STARTED = kernels.MarginDual.start(SQUARE, SQUARE, 1)


def margins(**changed: Any) -> Any:
    given = {"X": SQUARE, "Y": SQUARE, "visits": np.arange(3), "state": STARTED, "costs": np.ones(3)}
    return kernels.margin_sweep(**{**given, **changed})


def test_every_kernel_is_attacked() -> None:
    computing = {name for name in kernels.__all__ if name.islower()}
    others = {
        "check_device",
        "check_memory",
        "get_provider",
        "isa",
        "plan",
        "programs",
        "provider",
        "provider_for",
    }
    assert computing - others == set(calls.arguments(np.random.default_rng(0)))


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
