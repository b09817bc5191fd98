"""Score matrices as products of two tall factors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unseen.linalg.designs import Design
from unseen.typing import FloatArray

__all__ = ["Pair", "core_pair"]


class Pair(NamedTuple):
    """Factors of a score matrix ``left @ right.T``."""

    left: FloatArray
    right: FloatArray


def core_pair(row: Design, col: Design, core: FloatArray) -> Pair:
    """Factors of ``A Z B'`` with the core on its narrower side.

    The other side is just as correct, but as wide as the target where one map is the identity.
    """
    if row.shape[1] <= col.shape[1]:
        return Pair(row.toarray().astype(core.dtype, copy=False), col.dot(np.ascontiguousarray(core.T)))
    return Pair(row.dot(core), col.toarray().astype(core.dtype, copy=False))
