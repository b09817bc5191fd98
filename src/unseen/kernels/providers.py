"""What a provider of kernels offers to solvers, and the one of the CPU.

A provider owns where arrays live. Solvers bring patterns and factors to it once, call the same functions on
what they get back, and bring results home at the end; on the CPU all of that is the arrays themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse

from unseen.exceptions import ParameterError
from unseen.kernels import _arguments as args
from unseen.kernels import _provider, reference
from unseen.kernels.plan import Plan, plan
from unseen.typing import Array, FloatArray, IndexArray

__all__ = ["Cells", "HostProvider", "Provider"]

ByCell = float | FloatArray
Exclude = tuple[IndexArray, IndexArray]


CACHE_LINE = 64
"""Bytes."""


class Cells(ABC):
    """A pattern at its provider, with curvature and linear part of its cells."""

    shape: tuple[int, int]
    curvature: Any
    linear: Any

    @property
    @abstractmethod
    def transposed(self) -> Any:
        """The same cells by columns; made once."""


class Provider(ABC):
    """Kernels on the arrays of one place."""

    name: ClassVar[str]
    device: str = "cpu"
    xp: Any = np
    """NumPy, or what takes its place for the arrays here."""
    copies_tables: ClassVar[bool] = False
    """Whether ``als_solve`` copies its table unless the Gram matrix is diagonal: turn the factors instead."""

    @abstractmethod
    def asarray(self, array: Any, dtype: Any = None) -> Any:
        """The array at this provider; a copy only where it lives elsewhere or has another type."""

    @abstractmethod
    def to_host(self, array: Any) -> Array:
        """The array as NumPy."""

    def copy(self, array: Any) -> Any:
        """A copy of a NumPy array at this provider."""
        return self.xp.array(array, order="C")

    @property
    def label(self) -> str:
        """Provider and device in a few words, for fitted models."""
        return (
            self.device if self.device == "cpu" else f"{self.device} ({self.facts().get('name', self.name)})"
        )

    @abstractmethod
    def pattern(
        self,
        indptr: IndexArray,
        indices: IndexArray,
        curvature: ByCell = 1.0,
        linear: ByCell = 0.0,
        *,
        n_cols: int,
        by_column: Callable[[], tuple[Any, ...]] | None = None,
    ) -> Any:
        """A handle of a CSR pattern; ``by_column`` makes its other order where the caller knows how."""

    @abstractmethod
    def als_solve(
        self,
        cells: Any,
        other: Any,
        gram: Any,
        offset: Any,
        out: Any,
        *,
        ridge: Any = None,
        gram_scale: Any = None,
        shift: Any = None,
        row_values: Any = None,
        method: Literal["cholesky", "cg"] = "cholesky",
        cg_steps: int = 3,
        definite: bool = False,
    ) -> Any:
        """As :func:`unseen.kernels.als_solve`; ``definite`` promises a shared matrix that is positive."""

    @abstractmethod
    def als_draw(
        self,
        cells: Any,
        other: Any,
        precision: Any,
        noise: Any,
        out: Any,
        *,
        scale: float = 1.0,
        offset: Any = None,
        shift: Any = None,
        means: Any = None,
        sizes: FloatArray | None = None,
    ) -> Any:
        """As :func:`unseen.kernels.als_draw`, curvature and linear part of the cells times ``scale``."""

    @abstractmethod
    def normals(self, shape: tuple[int, int], seed: int, sweep: int, block: int, dtype: Any) -> Any:
        """As :func:`unseen.kernels.normals`."""

    @abstractmethod
    def gram(self, left: Any, right: Any = None) -> Any:
        """``left' right`` with float64 sums."""

    @abstractmethod
    def sddmm(self, cells: Any, left: Any, right: Any) -> Any:
        """Scores of the stored cells."""

    @abstractmethod
    def spmm(self, cells: Any, data: Any, dense: Any) -> Any:
        """The pattern with these values times a tall matrix."""

    @abstractmethod
    def spmm_t(self, cells: Any, data: Any, dense: Any) -> Any:
        """Its transpose times a tall matrix."""

    @abstractmethod
    def topk(
        self,
        left: Any,
        right: Any,
        k: int,
        *,
        exclude: Exclude | None = None,
        col_ids: IndexArray | None = None,
    ) -> tuple[IndexArray, FloatArray]:
        """As :func:`unseen.kernels.topk`; the lists are NumPy arrays."""

    def facts(self) -> dict[str, Any]:
        """Name of the device and what else ``unseen info`` tells."""
        return {"provider": self.name, "device": self.device}

    def reserve(self, needed: float) -> None:  # noqa: B027 - nothing to do on the CPU
        """Refuse work that needs more bytes than are free."""

    @staticmethod
    def plan(indptr: IndexArray, **limits: int) -> Plan:
        """How a device would deal out the rows."""
        return plan(indptr, **limits)

    @staticmethod
    def programs() -> list[Any]:
        """Sources and options of the device code."""
        from unseen.kernels.cuda.programs import programs

        return programs()

    @staticmethod
    def check_memory(needed: float, free: float, device: str = "cuda:0") -> None:
        """See :func:`unseen.kernels.check_memory`."""
        from unseen.kernels.devices import check_memory

        check_memory(needed, free, device)


@dataclass(eq=False)
class HostCells(Cells):
    """The arrays themselves."""

    indptr: IndexArray
    indices: IndexArray
    curvature: ByCell
    linear: ByCell
    shape: tuple[int, int]
    by_column: Callable[[], tuple[Any, ...]] | None = None

    @cached_property
    def transposed(self) -> HostCells:
        """The same cells by columns."""
        shape = (self.shape[1], self.shape[0])
        if self.by_column is not None:
            indptr, indices, c, d = self.by_column()
            return HostCells(indptr, indices, c, d, shape)
        places = np.arange(len(self.indices))
        moved = sparse.csr_array((places, self.indices, self.indptr), shape=self.shape).tocsc()
        c, d = (
            part if np.ndim(part) == 0 else np.asarray(part)[moved.data]
            for part in (self.curvature, self.linear)
        )
        return HostCells(moved.indptr, moved.indices, c, d, shape)


class HostProvider(Provider):
    """The kernels of :mod:`unseen.kernels`, native or in NumPy, on NumPy arrays.

    Parameters
    ----------
    name : {"native", "reference"}, optional
        Which of the two; by default the one that this process uses.
    n_threads : int
        Threads; results do not depend on them.
    """

    name: str  # type: ignore[misc]
    copies_tables = True

    def __init__(self, name: str | None = None, n_threads: int = 1) -> None:
        self.name = _provider.NAME if name is None else name
        if self.name == "native" and _provider.NAME != "native":
            raise ParameterError("provider='native' is not there: the compiled module is not loaded")
        self.n_threads = n_threads
        self._module: Any = _provider.MODULE if self.name == _provider.NAME else reference

    def asarray(self, array: Any, dtype: Any = None) -> Array:
        return np.asarray(array, dtype=dtype)

    def to_host(self, array: Any) -> Array:
        return np.asarray(array)

    def copy(self, array: Any) -> Array:
        """A copy that begins with a line of the cache, so that rows lie on as few lines as they fill."""
        given = np.asarray(array)
        room = np.empty(given.nbytes + CACHE_LINE, dtype=np.uint8)
        start = -room.ctypes.data % CACHE_LINE
        out: Array = room[start : start + given.nbytes].view(given.dtype).reshape(given.shape)
        out[...] = given
        return out

    def pattern(
        self,
        indptr: IndexArray,
        indices: IndexArray,
        curvature: ByCell = 1.0,
        linear: ByCell = 0.0,
        *,
        n_cols: int,
        by_column: Callable[[], tuple[Any, ...]] | None = None,
    ) -> HostCells:
        return HostCells(indptr, indices, curvature, linear, (len(indptr) - 1, n_cols), by_column)

    def als_solve(
        self, cells: HostCells, other: Any, gram: Any, offset: Any, out: Any, **options: Any
    ) -> FloatArray:
        from unseen import kernels

        options.pop("definite", None)
        return kernels.als_solve(
            cells.indptr,
            cells.indices,
            cells.curvature,
            cells.linear,
            other,
            gram,
            offset,
            out,
            n_threads=self.n_threads,
            module=self._module,
            **options,
        )

    def als_draw(
        self,
        cells: HostCells,
        other: Any,
        precision: Any,
        noise: Any,
        out: Any,
        *,
        scale: float = 1.0,
        offset: Any = None,
        shift: Any = None,
        means: Any = None,
        sizes: FloatArray | None = None,
    ) -> FloatArray:
        from unseen import kernels

        kind = out.dtype.type
        return kernels.als_draw(
            cells.indptr,
            cells.indices,
            kind(scale) * cells.curvature,
            kind(scale) * cells.linear,
            other,
            precision,
            noise,
            out,
            offset=offset,
            shift=shift,
            means=means,
            sizes=sizes,
            n_threads=self.n_threads,
        )

    def normals(self, shape: tuple[int, int], seed: int, sweep: int, block: int, dtype: Any) -> FloatArray:
        from unseen import kernels

        return kernels.normals(shape, seed, sweep, block, dtype=dtype, n_threads=self.n_threads)

    def gram(self, left: Any, right: Any = None) -> FloatArray:
        if right is None:
            found: FloatArray = self._module.gram(
                args.dense("dense", left, args.common_float(left)), self.n_threads
            )
            return found
        product: FloatArray = left.astype(np.float64).T @ right.astype(np.float64)
        return product

    def sddmm(self, cells: HostCells, left: Any, right: Any) -> FloatArray:
        dtype = args.common_float(left, right)
        left, right = args.dense("left", left, dtype), args.dense("right", right, dtype)
        args.same_rank(left=left, right=right)
        indptr, indices = args.pattern(cells.indptr, cells.indices, len(left))
        found: FloatArray = self._module.sddmm(indptr, indices, left, right, self.n_threads)
        return found

    def spmm(self, cells: HostCells, data: ByCell, dense: Any) -> FloatArray:
        dtype = args.common_float(data, dense)
        indptr, indices = args.pattern(cells.indptr, cells.indices)
        values = args.on_cells("data", data, len(indices), dtype)
        found: FloatArray = self._module.spmm(
            indptr, indices, values, args.dense("dense", dense, dtype), self.n_threads
        )
        return found

    def spmm_t(self, cells: HostCells, data: ByCell, dense: Any) -> FloatArray:
        dtype = args.common_float(data, dense)
        dense = args.dense("dense", dense, dtype)
        indptr, indices = args.pattern(cells.indptr, cells.indices, len(dense))
        values = args.on_cells("data", data, len(indices), dtype)
        found: FloatArray = self._module.spmm_t(
            indptr, indices, values, dense, cells.shape[1], self.n_threads
        )
        return found

    def topk(
        self,
        left: Any,
        right: Any,
        k: int,
        *,
        exclude: Exclude | None = None,
        col_ids: IndexArray | None = None,
    ) -> tuple[IndexArray, FloatArray]:
        from unseen import kernels

        return kernels.topk(
            left, right, k, exclude=exclude, col_ids=col_ids, n_threads=self.n_threads, module=self._module
        )
