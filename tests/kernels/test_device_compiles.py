"""The device code compiles for all architectures without a GPU, and keeps everything in registers."""

from __future__ import annotations

import ctypes
import importlib.util
import re
from pathlib import Path

import pytest

from unseen import kernels
from unseen.kernels.cuda.programs import ARCHITECTURES, cell_program, frame_program, list_program, row_program

FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")

FEW_BYTES = 32
"""What a kernel may leave outside of registers.

Which kernels leave a few bytes there, and how many, differs from one release of the compiler to
the next (8 bytes in one program or another); a spill that costs time is hundreds.
"""


@pytest.fixture(scope="module")
def nvrtc():
    """NVRTC from its wheel, or skip."""
    found = importlib.util.find_spec("nvidia")
    places = [] if found is None else list(found.submodule_search_locations or [])
    libraries = [path for place in places for path in Path(place).glob("**/libnvrtc.so.*")]
    if not libraries:
        pytest.skip("the wheel nvidia-cuda-nvrtc is not installed")
    return ctypes.CDLL(str(libraries[0]))


def compiled(nvrtc, source, options):
    """Return code and log of a compilation."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"unseen.cu", 0, None, None) == 0
    given = [option.encode() for option in options]
    code = nvrtc.nvrtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*given))
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return code, log.value.decode()


def build(nvrtc, program, arch, *more):
    options = (*program.options, f"-arch=sm_{arch}", "--ptxas-options=-v", *more)
    return compiled(nvrtc, program.source, options)


def check(nvrtc, program, arch):
    code, log = build(nvrtc, program, arch)
    assert code == 0, (program.name, arch, log)
    frames = FRAME.findall(log)
    assert len(frames) >= len(program.kernels) or not frames
    assert len(re.findall(r"Used \d+ registers", log)) == len(program.kernels), log
    left = [int(number) for numbers in frames for number in numbers]
    assert max(left, default=0) <= FEW_BYTES, (program.name, arch, log)


@pytest.mark.parametrize(
    "program", [row_program(64, "float32"), cell_program(64), frame_program(64)], ids=lambda p: p.file
)
def test_kernels_compile_without_spills(nvrtc, program):
    check(nvrtc, program, 90)


@pytest.mark.slow
@pytest.mark.parametrize("program", kernels.programs(), ids=lambda program: program.name)
def test_all_programs_compile_without_spills(nvrtc, program):
    check(nvrtc, program, 90)


@pytest.mark.slow
@pytest.mark.parametrize("arch", [arch for arch in ARCHITECTURES if arch != 90])
def test_all_architectures(nvrtc, arch):
    for program in (row_program(64, "float32"), cell_program(64), frame_program(64), list_program(64, 32)):
        check(nvrtc, program, arch)


def test_a_mistake_in_a_kernel_and_a_spill_are_caught(nvrtc):
    program = cell_program(64)
    code, log = compiled(nvrtc, program.source + "\nint wrong = ;", (*program.options, "-arch=sm_90"))
    assert code != 0
    assert "error" in log
    with pytest.raises(AssertionError):
        check(nvrtc, _Spilling(cell_program(100, wide=True)), 90)


class _Spilling:
    """A program whose kernels are given too few registers."""

    def __init__(self, program):
        self.options, self.kernels, self.name = program.options, program.kernels, program.name
        few = "__launch_bounds__(1024, 2)"
        self.source = program.source.replace("__launch_bounds__(ITEM_WARPS * 32)", few)


def test_every_kernel_is_in_its_source_and_no_file_is_included():
    for program in kernels.programs():
        assert "#include" not in program.source
        for kernel in program.kernels:
            assert re.search(rf"\b{kernel}\(const Args a", program.source), (program.name, kernel)
