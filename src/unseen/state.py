"""The learned arrays of a model, by name.

A state is a plain dict. ``"0.row"`` and ``"0.col"`` are the factors of term 0, ``"0.core"``
its full core, ``"0.row_map.landmarks"`` a parameter of its row map. Solvers take a state and
return a new one; models keep one; files store one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from unseen.typing import Array, FloatArray

__all__ = ["State", "copy_state", "map_params", "pack", "unpack"]

State: TypeAlias = dict[str, Array]


def copy_state(state: State) -> State:
    """Copy of all arrays; those that nobody can write to are shared."""
    return {key: np.array(value) if value.flags.writeable else value for key, value in state.items()}


def map_params(state: State, term: int, side: str) -> State:
    """Parameters of the map on one side (``"row"`` or ``"col"``) of a term."""
    prefix = f"{term}.{side}_map."
    return {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}


def pack(state: State, keys: Iterable[str]) -> FloatArray:
    """Arrays of ``keys`` as one float64 vector."""
    return np.concatenate([np.asarray(state[key], dtype=np.float64).ravel() for key in keys])


def unpack(vector: FloatArray, state: State, keys: Iterable[str]) -> State:
    """A new state in which ``keys`` are read from ``vector``; shapes and types from ``state``."""
    out = dict(state)
    start = 0
    for key in keys:
        old = state[key]
        out[key] = vector[start : start + old.size].reshape(old.shape).astype(old.dtype, copy=False)
        start += old.size
    return out
