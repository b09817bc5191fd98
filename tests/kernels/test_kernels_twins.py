"""Native kernels against their NumPy twins: dtypes, index widths, shapes, threads, instruction sets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from twins import CHECKS, DTYPES, INDEX_TYPES, RANKS, SHAPES, make_case, relative_error, tolerance

from unseen import kernels
from unseen.exceptions import ParameterError
from unseen.kernels import _arguments

native_only = pytest.mark.skipif(kernels.provider() != "native", reason="the native module is not built")


def run_python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("name", CHECKS)
def test_agrees_with_twin(name, rank):
    for dtype in DTYPES:
        for index in INDEX_TYPES:
            for shape in SHAPES if index is np.int32 else SHAPES[:1]:
                error = relative_error(*CHECKS[name](make_case(shape, rank, dtype, index), 1))
                assert error <= tolerance(name, dtype), (dtype, index, shape)


@pytest.mark.parametrize("name", CHECKS)
def test_twin_comparison_can_fail(name):
    case = make_case((23, 31), 8, np.float32, np.int32)
    _, expected = CHECKS[name](case, 1)
    case = make_case((23, 31), 8, np.float32, np.int32)
    case.left[3] *= 1.5
    case.right[4] *= 1.5
    case.data *= 1.5
    found, _ = CHECKS[name](case, 1)
    assert relative_error(found, expected) > 20 * tolerance(name, np.float32)


@native_only
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CHECKS)
def test_same_bits_for_any_number_of_threads(name, dtype, monkeypatch):
    monkeypatch.setattr(_arguments, "WORK_A_THREAD", 1)  # small problems would stay on one thread
    # Enough rows and cells for several chunks, or there would be nothing to share out.
    results = [CHECKS[name](make_case((250, 90), 17, dtype, np.int32), n)[0] for n in (1, 2, 3)]
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            assert one.tobytes() == two.tobytes()


@native_only
@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_every_instruction_set(isa):
    script = str(Path(__file__).with_name("twins.py"))
    done = run_python(script, UNSEEN_ISA=isa, OPENBLAS_NUM_THREADS="1")
    if "is not an instruction set that" in done.stderr:
        pytest.skip(f"this machine has no {isa}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n", 1) == [f"native {isa}", ""]


def test_unknown_instruction_set_is_refused_with_a_warning():
    done = run_python("-W", "error", "-c", "import unseen.kernels", UNSEEN_ISA="mmx", UNSEEN_KERNELS="")
    assert done.returncode != 0
    assert "UNSEEN_ISA=mmx" in done.stderr or kernels.provider() == "reference"


def test_twins_on_request_without_a_warning():
    code = "from unseen import kernels as k; print(k.provider(), k.isa())"
    done = run_python("-W", "error", "-c", code, UNSEEN_KERNELS="reference")
    assert done.stdout == "reference numpy\n", done.stderr


def test_mixed_widths_and_dtypes_are_unified():
    case = make_case((23, 31), 8, np.float32, np.int32)
    expected = kernels.sddmm(case.indptr, case.indices, case.left, case.right)
    assert expected.dtype == np.float32
    found = kernels.sddmm(
        case.indptr.astype(np.int64), case.indices, case.left, np.asfortranarray(case.right)
    )
    np.testing.assert_array_equal(found, expected)
    wide = kernels.sddmm(case.indptr, case.indices, case.left, case.right.astype(np.float64))
    assert wide.dtype == np.float64
    np.testing.assert_allclose(wide, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"out": np.zeros((23, 8), dtype=np.float16)}, "out is written in place"),
        ({"out": np.zeros((8, 23), dtype=np.float32).T}, "C-contiguous"),
        ({"gram": np.eye(7, dtype=np.float32)}, r"gram must have shape \(8, 8\)"),
        ({"offset": np.zeros((2, 8), dtype=np.float32)}, "offset must have shape"),
        ({"ridge": np.zeros(3, dtype=np.float32)}, "ridge must have 23 values"),
        ({"shift": np.zeros(3, dtype=np.float32)}, "shift must have 31 values"),
        ({"method": "qr"}, "method must be"),
        ({"curvature": np.ones(2, dtype=np.float32)}, "curvature must be a scalar or have"),
        ({"indptr": np.zeros(24, dtype=np.int32)}, "indptr must start at 0"),
        ({"indptr": np.zeros(4, dtype=np.int32), "indices": np.zeros(0, np.int32)}, "indptr must have 24"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    case = make_case((23, 31), 8, np.float32, np.int32)
    arguments = {
        "indptr": case.indptr, "indices": case.indices, "curvature": 1.0, "linear": 1.0, "other": case.right,
        "gram": np.eye(8, dtype=np.float32), "offset": None, "out": case.left,
    }  # fmt: skip
    kernels.als_solve(**arguments)
    with pytest.raises(ParameterError, match=message):
        kernels.als_solve(**(arguments | change))
