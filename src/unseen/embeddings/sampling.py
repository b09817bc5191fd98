"""Draws from a discrete distribution in constant time."""

from __future__ import annotations

import numpy as np

from unseen.typing import FloatArray, IndexArray

__all__ = ["Urn"]


class Urn:
    """Numbers 0 .. len(weights) - 1, drawn in proportion to their weights (Walker's alias method)."""

    def __init__(self, weights: FloatArray) -> None:
        share = np.asarray(weights, dtype=np.float64)
        n = share.size
        share = share * (n / share.sum())
        self.keep = np.ones(n)
        self.alias: IndexArray = np.arange(n)
        # Each number below its fair share is filled up by one above it. Plain lists: the loop is serial.
        small = np.flatnonzero(share < 1.0).tolist()
        large = np.flatnonzero(share >= 1.0).tolist()
        left = share.tolist()
        while small and large:
            poor, rich = small.pop(), large[-1]
            self.keep[poor], self.alias[poor] = left[poor], rich
            left[rich] -= 1.0 - left[poor]
            if left[rich] < 1.0:
                small.append(large.pop())

    def draw(self, size: int | tuple[int, ...], rng: np.random.Generator) -> IndexArray:
        """Independent draws."""
        first = rng.integers(0, self.keep.size, size=size, dtype=np.int64)
        stay = rng.random(size, dtype=np.float32) < self.keep[first]
        drawn: IndexArray = np.where(stay, first, self.alias[first]).astype(np.int32)
        return drawn
