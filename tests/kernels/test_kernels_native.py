"""The kernels under the address, undefined-behaviour and thread sanitisers, compiled on the spot."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "cpp"


CHECKS = {
    "address": ["-fopenmp", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "threads": ["-DUNSEEN_PLAIN_THREADS", "-O1", "-g", "-fsanitize=thread"],
}


def checked(check: str, flags: list[str], place: Path, source: Path | None = None) -> str:
    """Compile the native test under a sanitiser and run it; what it complains of."""
    program = place / "kernels_test"
    command = ["g++", "-std=c++20", "-Wno-psabi", "-DUNSEEN_ISA=checked", f"-I{SOURCES}/include", *flags]
    built = subprocess.run(
        [*command, *CHECKS[check], str(source or SOURCES / "tests" / "kernels_test.cpp"), "-o", str(program)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "cannot find" in built.stderr and "san" in built.stderr:
        pytest.skip("this g++ has no sanitisers")
    assert built.returncode == 0, built.stderr
    # Without a fixed address space, where the thread sanitiser of older compilers loses its way.
    fixed = ["setarch", platform.machine(), "-R"] if check == "threads" and shutil.which("setarch") else []
    environment = os.environ | {"OMP_WAIT_POLICY": "passive"}
    done = subprocess.run([*fixed, program], capture_output=True, text=True, check=False, env=environment)
    if "unexpected memory mapping" in done.stderr or "setarch" in done.stderr:
        pytest.skip("the thread sanitiser does not run here")
    return "" if done.returncode == 0 else done.stderr or f"ended with {done.returncode}"


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("g++") is None, reason="no g++"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="flags are for x86-64"),
]


@pytest.mark.parametrize(
    ("check", "flags"),
    [("address", []), ("address", ["-mavx2", "-mfma"]), ("threads", [])],
    ids=["address baseline", "address avx2", "threads"],
)
def test_no_access_outside_memory_and_no_races(check: str, flags: list[str], tmp_path: Path) -> None:
    if flags and "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this machine has no AVX2")
    assert checked(check, flags, tmp_path) == ""


MISTAKES = {
    "address": "std::vector<int> v(3); volatile int* p = v.data(); return p[3];",
    "threads": "volatile int sum = 0;"
    "parallel_for(64, 4, [&](Size, int) { for (int i = 0; i < 99999; ++i) sum = sum + i; });",
}


@pytest.mark.parametrize("check", CHECKS)
def test_a_planted_mistake_is_found(check: str, tmp_path: Path) -> None:
    source = tmp_path / "mistake.cpp"
    source.write_text(
        '#include <vector>\n#include "unseen/parallel.hpp"\nusing unseen::Size;\n'
        f"using namespace unseen::checked;\nint main() {{ {MISTAKES[check]} }}\n"
    )
    assert {"address": "heap-buffer-overflow", "threads": "data race"}[check] in checked(
        check, [], tmp_path, source
    )
