"""The provider that runs the device code on a GPU, through CuPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from unseen.exceptions import DeviceError
from unseen.kernels.cuda.programs import FIELDS, Program
from unseen.kernels.devices import check_memory
from unseen.kernels.on_device import DeviceProvider
from unseen.typing import Array

__all__ = ["CudaProvider", "cuda_provider"]

EXTRAS = "pip install 'unseen[cuda12]' or 'unseen[cuda13]', by the version of the driver"
N_STREAMS = 4
OLDEST = 75
PACKED = "packed"
"""Where a dictionary of arguments keeps them as the structure that kernels take."""
TENSOR_CORES = 80


@cache
def cuda_provider(number: int, table: str = "float32") -> CudaProvider:
    """The provider of one GPU; made once."""
    return CudaProvider(number, table)


class CudaProvider(DeviceProvider):
    """Kernels on one NVIDIA GPU.

    Parameters
    ----------
    number : int
        Number of the GPU.
    table : {"float32", "float16", "bfloat16"}, default="float32"
        Type of the gathered factors in float32 fits.
    """

    name = "cuda"

    def __init__(self, number: int = 0, table: str = "float32") -> None:
        super().__init__(table)
        self.xp = _cupy()
        runtime = self.xp.cuda.runtime
        try:
            count = runtime.getDeviceCount()
        except runtime.CUDARuntimeError as error:
            raise DeviceError(f"device='cuda:{number}': no CUDA device: {error}") from error
        if number >= count:
            raise DeviceError(
                f"device='cuda:{number}': this machine has {count} CUDA device(s), counted from 0"
            )
        self.device, self._device = f"cuda:{number}", self.xp.cuda.Device(number)
        self._facts = runtime.getDeviceProperties(number)
        self.arch = 10 * self._facts["major"] + self._facts["minor"]
        if self.arch < OLDEST:
            raise DeviceError(
                f"device='cuda:{number}' has compute capability {self.arch / 10}; {OLDEST / 10} is needed"
            )
        whole = int(self._facts["sharedMemPerBlockOptin"])
        self.block_bytes = whole - 1024
        # Two blocks on a multiprocessor: one computes while the factors of the other are on their way.
        self.shared_bytes = min(whole, int(self._facts["sharedMemPerMultiprocessor"]) // 2 - 2048)
        self.fast_float64 = self._device.attributes.get("SingleToDoublePrecisionPerfRatio", 32) <= 4
        self.tensor_cores = self.arch >= TENSOR_CORES
        with self._device:
            self._streams = [self.xp.cuda.Stream(non_blocking=True) for _ in range(N_STREAMS)]
        self._functions: dict[tuple[Program, str], Any] = {}
        self._modules: dict[Program, Any] = {}
        self._dtypes = {
            file: np.dtype(
                [(m.partition(":")[0], np.float64 if m.endswith(":f") else np.int64) for m in members]
            )
            for file, members in FIELDS.items()
        }

    def asarray(self, array: Any, dtype: Any = None) -> Any:
        if isinstance(array, np.ndarray):
            self.reserve(array.nbytes)
        with self._device:
            return self.xp.asarray(array, dtype=dtype, order="C")

    def copy(self, array: Any) -> Any:
        return self.asarray(array)  # never the same memory

    def to_host(self, array: Any) -> Array:
        return np.asarray(array if isinstance(array, np.ndarray) else array.get())

    def reserve(self, needed: float) -> None:
        if needed > 1 << 28:
            check_memory(needed, self.free(), self.device)

    def free(self) -> float:
        """Bytes that can still be taken: free on the card, and given back to the pool."""
        with self._device:
            pool = self.xp.get_default_memory_pool()
            return float(self.xp.cuda.runtime.memGetInfo()[0] + pool.free_bytes())

    def facts(self) -> dict[str, Any]:
        runtime = self.xp.cuda.runtime
        with self._device:
            free, total = runtime.memGetInfo()
        return {
            "provider": self.name,
            "device": self.device,
            "name": self._facts["name"].decode(),
            "compute_capability": self.arch / 10,
            "memory_gb": round(total / 1e9, 1),
            "free_gb": round(free / 1e9, 1),
            "driver": runtime.driverGetVersion(),
            "cuda": runtime.runtimeGetVersion(),
            "cupy": self.xp.__version__,
        }

    def at_once(self, tasks: Sequence[Callable[[], None]]) -> None:
        if len(tasks) < 2:
            for task in tasks:
                task()
            return
        main = self.xp.cuda.get_current_stream()
        ready = main.record()
        used = self._streams[: len(tasks)]
        for place, stream in enumerate(used):
            with stream:
                stream.wait_event(ready)
                for task in tasks[place::N_STREAMS]:
                    task()
        for stream in used:
            main.wait_event(stream.record())

    def launch(
        self,
        program: Program,
        kernel: str,
        grid: int | tuple[int, int],
        threads: int,
        arguments: dict[str, Any],
        *extra: Any,
        shared: int = 0,
    ) -> None:
        function = self._functions.get((program, kernel))
        if function is None:
            function = self._functions[program, kernel] = self._build(program, kernel)
        blocks = grid if isinstance(grid, tuple) else (grid,)
        function(blocks, (threads,), (self._packed(program.file, arguments), *extra), shared_mem=shared)

    def _packed(self, file: str, arguments: dict[str, Any]) -> Array:
        """The members as the structure that kernels take; made once for all launches of a dictionary."""
        owner, made = arguments.get(PACKED, (None, None))
        if owner != id(arguments):  # a copy of a dictionary has members of its own
            packed = np.zeros(1, dtype=self._dtypes[file])
            for name, value in arguments.items():
                if value is not None and name != PACKED:
                    packed[name] = value.data.ptr if isinstance(value, self.xp.ndarray) else value
            # As plain bytes: at each launch CuPy asks for a description of the members otherwise.
            made = packed.view(f"V{packed.itemsize}")
            arguments[PACKED] = id(arguments), made
        found: Array = made
        return found

    def _build(self, program: Program, kernel: str) -> Any:
        with self._device:
            if program not in self._modules:
                _say_compiling()
                self._modules[program] = self.xp.RawModule(code=program.source, options=program.options)
            function = self._modules[program].get_function(kernel)
            room = int(self._facts["sharedMemPerBlockOptin"]) - function.shared_size_bytes
            function.max_dynamic_shared_size_bytes = room
            return function


def _cupy() -> Any:
    try:
        import cupy
    except ImportError as error:
        raise DeviceError(
            f"device='cuda' needs CuPy, which cannot be imported ({error}): {EXTRAS}"
        ) from error
    return cupy


@cache
def _say_compiling() -> None:
    warnings.warn(
        "compiling the kernels for this GPU; they are kept in CuPy's cache (CUPY_CACHE_DIR)",
        RuntimeWarning,
        stacklevel=6,
    )
