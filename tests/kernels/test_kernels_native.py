"""The kernels under the address and undefined-behaviour sanitisers, compiled on the spot."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "cpp"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="flags are for x86-64")
@pytest.mark.parametrize("flags", [[], ["-mavx2", "-mfma"]], ids=["baseline", "avx2"])
def test_no_access_outside_memory(flags, tmp_path):
    if flags and "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this machine has no AVX2")
    program = tmp_path / "kernels_test"
    command = [
        "g++",
        "-std=c++20",
        "-fopenmp",
        "-Wno-psabi",
        "-DUNSEEN_ISA=checked",
        f"-I{SOURCES}/include",
        *flags,
    ]
    command += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    built = subprocess.run(
        [*command, str(SOURCES / "tests" / "kernels_test.cpp"), "-o", str(program)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "cannot find" in built.stderr and "san" in built.stderr:
        pytest.skip("this g++ has no sanitisers")
    assert built.returncode == 0, built.stderr
    environment = os.environ | {"OMP_WAIT_POLICY": "passive"}
    done = subprocess.run([program], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
