"""Penalties and constraints on the core of a term.

All of them but the nuclear norm are separable: a sum over entries z of
``ridge/2 z^2 + l1 |z|`` subject to ``lower <= z <= upper``. Value, gradient, proximal
step and the coordinate updates of CCD follow from these four numbers, once.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from unseen.exceptions import ParameterError
from unseen.linalg.blocked import inner
from unseen.typing import FloatArray
from unseen.validation import check_positive

__all__ = ["L1", "Box", "NonNegative", "Nuclear", "Regulariser", "Ridge", "Separable", "parse_reg"]

SHARE = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*\*?\s*max\s*")


class Separable(NamedTuple):
    """``ridge/2 z^2 + l1 |z|`` on each entry, within ``[lower, upper]``."""

    ridge: float = 0.0
    l1: float = 0.0
    lower: float = -np.inf
    upper: float = np.inf
    spare_last: bool = False
    """Leave the last entry of a matrix without an L1 penalty."""

    @property
    def bounded(self) -> bool:
        """Whether entries are constrained."""
        return self.lower > -np.inf or self.upper < np.inf

    @property
    def smooth(self) -> bool:
        """Whether the penalty is differentiable and unconstrained."""
        return self.l1 == 0.0 and not self.bounded

    def value(self, z: FloatArray) -> float:
        """Penalty of ``z``; infinite outside the bounds (up to rounding)."""
        if self.bounded:
            slack = 1e-6 if z.dtype == np.float32 else 1e-12
            if z.size and (z.min() < self.lower - slack or z.max() > self.upper + slack):
                return np.inf
        total = 0.0
        if self.ridge:
            total += 0.5 * self.ridge * inner(z, z)
        if self.l1:
            total += self.l1 * float(np.abs(z).sum(dtype=np.float64))
            if self.spare_last:
                total -= self.l1 * abs(float(z[-1, -1]))
        return total

    def grad(self, z: FloatArray) -> FloatArray:
        """Gradient of the smooth (ridge) part."""
        return z.dtype.type(self.ridge) * z

    def prox(self, z: FloatArray, step: float) -> FloatArray:
        """``argmin_v 1/2 ||v - z||^2 + step * penalty(v)``."""
        out = z
        if self.l1:
            out = np.sign(out) * np.maximum(np.abs(out) - z.dtype.type(step * self.l1), 0)
            if self.spare_last:
                out[-1, -1] = z[-1, -1]
        if self.ridge:
            out = out / z.dtype.type(1.0 + step * self.ridge)
        return np.clip(out, self.lower, self.upper) if self.bounded else out


class Regulariser(BaseEstimator):  # type: ignore[misc]
    """A penalty with a weight; see the subclasses."""

    def separable(self) -> Separable | None:
        """The four numbers of a separable penalty, or None for the nuclear norm."""
        return None

    def factored(self) -> Separable:
        """What the penalty becomes on each factor of a low-rank core."""
        numbers = self.separable()
        assert numbers is not None
        return numbers


class Ridge(Regulariser):
    """``reg/2 ||Z||_F^2``, or the same on both factors of a low-rank core.

    Parameters
    ----------
    reg : float, default=1.0
        Weight, zero or larger.
    """

    def __init__(self, reg: float = 1.0) -> None:
        self.reg = reg

    def separable(self) -> Separable:
        return Separable(ridge=check_positive("reg", self.reg, strict=False))


class Nuclear(Regulariser):
    """``reg ||Z||_*``; on a low-rank core its factored form ``reg/2 (||W||^2 + ||H||^2)``.

    Parameters
    ----------
    reg : float, default=1.0
        Weight, zero or larger.
    """

    def __init__(self, reg: float = 1.0) -> None:
        self.reg = reg

    def factored(self) -> Separable:
        return Separable(ridge=check_positive("reg", self.reg, strict=False))

    def value(self, z: FloatArray) -> float:
        """``reg`` times the sum of the singular values."""
        return self.reg * float(np.linalg.svd(z.astype(np.float64), compute_uv=False).sum())

    def prox(self, z: FloatArray, step: float) -> FloatArray:
        """Soft thresholding of the singular values."""
        u, s, vt = np.linalg.svd(z, full_matrices=False)
        shrunk: FloatArray = (u * np.maximum(s - s.dtype.type(step * self.reg), 0)) @ vt
        return shrunk


class L1(Regulariser):
    """``reg sum |z|``.

    Parameters
    ----------
    reg : float, default=1.0
        Weight, zero or larger.
    spare_last : bool, default=False
        Leave the last entry of the core without a penalty; between two :class:`WithOnes` maps it
        is the constant.
    """

    def __init__(self, reg: float = 1.0, spare_last: bool = False) -> None:
        self.reg = reg
        self.spare_last = spare_last

    def separable(self) -> Separable:
        reg = check_positive("reg", self.reg, strict=False)
        return Separable(l1=reg, spare_last=bool(self.spare_last))


class Box(Regulariser):
    """``lower <= z <= upper`` for each entry, with an optional ridge.

    Parameters
    ----------
    lower, upper : float, default=0.0 and 1.0
        Bounds.
    reg : float, default=0.0
        Weight of ``reg/2 ||Z||_F^2``.
    """

    def __init__(self, lower: float = 0.0, upper: float = 1.0, reg: float = 0.0) -> None:
        self.lower = lower
        self.upper = upper
        self.reg = reg

    def separable(self) -> Separable:
        if not self.lower <= self.upper:
            raise ParameterError(
                f"Box needs lower <= upper, found lower={self.lower!r}, upper={self.upper!r}"
            )
        return Separable(
            ridge=check_positive("reg", self.reg, strict=False),
            lower=float(self.lower),
            upper=float(self.upper),
        )


class NonNegative(Regulariser):
    """``z >= 0`` for each entry, with an optional ridge.

    Parameters
    ----------
    reg : float, default=0.0
        Weight of ``reg/2 ||Z||_F^2``.
    """

    def __init__(self, reg: float = 0.0) -> None:
        self.reg = reg

    def separable(self) -> Separable:
        return Separable(ridge=check_positive("reg", self.reg, strict=False), lower=0.0)


def parse_reg(reg: Any) -> tuple[float, bool]:
    """Weight of a penalty, and whether it is a share of the largest useful one, as ``"0.1max"`` is."""
    if not isinstance(reg, str):
        return check_positive("reg", reg, strict=False), False
    found = SHARE.fullmatch(reg)
    if found is None:
        raise ParameterError(
            f'reg must be a number >= 0 or a share of its largest useful value such as "0.1max", got {reg!r}.'
        )
    return float(found.group(1)), True
