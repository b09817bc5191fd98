"""Arrays that refuse to be NumPy: the twin of the device code behind a wall, as a GPU stands behind one.

Whoever forgets to bring an array to the device, or home from it, gets the TypeError that CuPy would raise.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from unseen.kernels.twin import TwinProvider


class Strict(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of the device."""

    __module__ = "cupy.strict"
    device = SimpleNamespace(id=0)

    def __init__(self, held):
        self.held = held

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def get(self):
        return self.held.copy()

    def __array_ufunc__(self, ufunc, method, *args, **kwargs):
        out = kwargs.pop("out", None)
        kwargs = {name: bare(value) for name, value in kwargs.items()}
        if out is not None:
            kwargs["out"] = tuple(bare(one) for one in out)
        found = getattr(ufunc, method)(*map(bare, args), **kwargs)
        if out is not None:
            return out[0]
        return wrapped(found)

    def __array_function__(self, function, types, args, kwargs):
        return wrapped(function(*map(bare, args), **{k: bare(v) for k, v in kwargs.items()}))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self.held, name)
        if callable(found):
            return lambda *args, **kwargs: wrapped(
                found(*map(bare, args), **{k: bare(v) for k, v in kwargs.items()})
            )
        return wrapped(found)

    def __getitem__(self, key):
        return wrapped(self.held[bare(key)])

    def __setitem__(self, key, value):
        self.held[bare(key)] = bare(value)

    def __len__(self):
        return len(self.held)

    def __float__(self):
        return float(self.held)

    def __int__(self):
        return int(self.held)

    def __bool__(self):
        return bool(self.held)

    def __iter__(self):
        raise TypeError("an array of the device is not iterated")

    def __copy__(self):
        return Strict(self.held.copy())


def bare(given):
    """What NumPy computes with; arrays of the host are refused."""
    if isinstance(given, Strict):
        return given.held
    if isinstance(given, np.ndarray):
        raise TypeError(f"Unsupported type {type(given)}: an array of the host among those of the device")
    if isinstance(given, (tuple, list)):
        return type(given)(map(bare, given))
    return given


def wrapped(found):
    if isinstance(found, (np.ndarray, np.generic)):
        return Strict(np.asarray(found))
    if isinstance(found, tuple):
        return tuple(map(wrapped, found))
    return found


class StrictModule:
    """NumPy for arrays of the device."""

    linalg: StrictModule

    def __init__(self, module=np):
        self.module = module

    def __getattr__(self, name):
        found = getattr(self.module, name)
        if isinstance(found, type) or not callable(found):
            return StrictModule(found) if name == "linalg" else found
        return lambda *args, **kwargs: wrapped(
            found(*map(bare, args), **{key: bare(value) for key, value in kwargs.items()})
        )


class StrictProvider(TwinProvider):
    """The twin, with arrays that are its own."""

    name = "strict"
    device = "cuda:0"
    xp = StrictModule()

    def asarray(self, array, dtype=None):
        held = array.held if isinstance(array, Strict) else np.array(array)
        return Strict(np.ascontiguousarray(held, dtype=dtype))

    def copy(self, array):
        return Strict(np.array(array, order="C"))

    def to_host(self, array):
        if isinstance(array, Strict):
            return array.get()
        return np.asarray(array)

    def launch(self, program, kernel, grid, threads, arguments, *extra, shared=0):
        own = {name: bare(value) for name, value in arguments.items()}
        for value in own.values():
            assert not isinstance(value, np.ndarray) or value.flags.c_contiguous
        super().launch(program, kernel, grid, threads, own, *map(bare, extra), shared=shared)
