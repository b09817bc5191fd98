"""Penalties and constraints on the core of a term.

A regulariser is a value, a proximal step, where it is smooth a gradient, and what it becomes on the
factors of a low-rank core. Solvers ask what a penalty can do (``smooth``, ``quadratic``, ``by_entry``,
``spectral``), never what class it is, so a penalty of one's own goes wherever these allow.

All but the nuclear norm here are separable: a sum over entries z of ``ridge/2 z^2 + l1 |z|``
subject to ``lower <= z <= upper``. Value, gradient, proximal step and the coordinate updates of CCD
follow from these four numbers, once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from unseen.exceptions import ParameterError, UnsupportedComposition
from unseen.linalg.blocked import gram, inner
from unseen.linalg.svt import nuclear_norm_of_product
from unseen.typing import FloatArray
from unseen.validation import check_positive

__all__ = ["L1", "Box", "NonNegative", "Nuclear", "Penalty", "Regulariser", "Ridge", "Separable", "parse_reg"]

SHARE = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*\*?\s*max\s*")


class Penalty:
    """What solvers may ask of a penalty on one array.

    Attributes
    ----------
    smooth : bool
        Differentiable everywhere and without bounds: :meth:`grad` is the whole derivative.
    quadratic : bool
        Nothing but ``ridge/2 ||Z||^2`` (with a scale for each row, perhaps): normal equations apply.
    by_entry : bool
        A :class:`Separable`: entries can be moved one at a time, between bounds.
    spectral : bool
        ``reg`` times the sum of singular values: the proximal step is a thresholded SVD.
    """

    smooth: bool = False
    quadratic: bool = False
    by_entry: bool = False
    spectral: bool = False

    def value(self, z: FloatArray) -> float:
        """Penalty of ``z`` in float64."""
        raise self._lacks("value(z)")

    def value_of_product(self, left: FloatArray, right: FloatArray) -> float:
        """Penalty of ``left @ right.T``, which is formed only where the penalty leaves no other way."""
        if self.spectral:
            return float(self.reg) * nuclear_norm_of_product(left, right)  # type: ignore[attr-defined]
        return self.value(left.astype(np.float64) @ right.T.astype(np.float64))

    def prox(self, z: FloatArray, step: float) -> FloatArray:
        """``argmin_v 1/2 ||v - z||^2 + step * penalty(v)``."""
        raise self._lacks("prox(z, step)")

    def grad(self, z: FloatArray) -> FloatArray:
        """Derivative of the smooth part."""
        return np.zeros_like(z)

    def _lacks(self, method: str) -> UnsupportedComposition:
        return UnsupportedComposition(
            f"{type(self).__name__} has no {method}: give value(z) and prox(z, step) or separable()"
        )


@dataclass(frozen=True)
class Separable(Penalty):
    """``ridge/2 z^2 + l1 |z|`` on each entry, within ``[lower, upper]``."""

    ridge: float = 0.0
    l1: float = 0.0
    lower: float = -np.inf
    upper: float = np.inf
    spare_last: bool = False
    """Leave the last entry of a matrix without an L1 penalty."""
    degree_power: float = 0.0
    """Scale the ridge of a row (or column) of the target by its number of cells to this power."""
    scale: FloatArray | None = field(default=None, compare=False)
    """These factors, in a shape that broadcasts to the array, once the cells are known."""

    by_entry = True

    @property
    def bounded(self) -> bool:
        """Whether entries are constrained."""
        return self.lower > -np.inf or self.upper < np.inf

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        """Whether the penalty is differentiable and unconstrained."""
        return self.l1 == 0.0 and not self.bounded

    @property
    def quadratic(self) -> bool:  # type: ignore[override]
        """Whether it is a ridge and nothing else."""
        return self.smooth

    def scaled(self, degrees: FloatArray) -> Separable:
        """The penalty of rows with these numbers of cells; ``degrees`` broadcasts to the array."""
        return replace(self, scale=degrees**self.degree_power) if self.degree_power else self

    def ridges(self, dtype: Any) -> Any:
        """Weight of ``z^2/2``: a number, or an array that broadcasts."""
        kind = np.dtype(dtype).type
        return kind(self.ridge) if self.scale is None else (self.ridge * self.scale).astype(dtype, copy=False)

    def value(self, z: FloatArray) -> float:
        """Penalty of ``z``; infinite outside the bounds (up to rounding)."""
        if self.bounded:
            slack = 1e-6 if z.dtype == np.float32 else 1e-12
            if z.size and (z.min() < self.lower - slack or z.max() > self.upper + slack):
                return np.inf
        total = 0.0
        if self.ridge:
            total += 0.5 * self.ridge * inner(z if self.scale is None else z * self.scale, z)
        if self.l1:
            total += self.l1 * float(np.abs(z).sum(dtype=np.float64))
            if self.spare_last:
                total -= self.l1 * abs(float(z[-1, -1]))
        return total

    def value_of_product(self, left: FloatArray, right: FloatArray) -> float:
        if self.quadratic and self.scale is None:
            return 0.5 * self.ridge * max(inner(gram(left), gram(right)), 0.0)
        return super().value_of_product(left, right)

    def grad(self, z: FloatArray) -> FloatArray:
        """Gradient of the smooth (ridge) part."""
        out: FloatArray = self.ridges(z.dtype) * z
        return out

    def prox(self, z: FloatArray, step: float) -> FloatArray:
        """``argmin_v 1/2 ||v - z||^2 + step * penalty(v)``."""
        out = z
        if self.l1:
            out = np.sign(out) * np.maximum(np.abs(out) - z.dtype.type(step * self.l1), 0)
            if self.spare_last:
                out[-1, -1] = z[-1, -1]
        if self.ridge:
            size = 1.0 + step * self.ridge * (1.0 if self.scale is None else self.scale)
            out = out / np.asarray(size, dtype=z.dtype)
        return np.clip(out, self.lower, self.upper) if self.bounded else out


class Regulariser(BaseEstimator, Penalty):  # type: ignore[misc]
    """A penalty with a weight; see the subclasses.

    One of one's own gives :meth:`value` and :meth:`prox` (and ``smooth = True`` with :meth:`grad` where it
    has one), or, if it is a sum over entries, only :meth:`separable`.
    """

    def separable(self) -> Separable | None:
        """The numbers of a separable penalty, or None for others."""
        return None

    def on_core(self) -> Penalty:
        """What the penalty is on a full core."""
        return self.separable() or self

    def factored(self) -> Penalty:
        """What the penalty becomes on each factor of a low-rank core."""
        return self.separable() or self


class Ridge(Regulariser):
    """``reg/2 ||Z||_F^2``, or the same on both factors of a low-rank core.

    Parameters
    ----------
    reg : float, default=1.0
        Weight, zero or larger.
    degree_scaling : float, default=0.0
        nu: the factors of row i are penalised by ``reg/2 n_i^nu ||w_i||^2`` with n_i the number of its
        cells (the sum of their weights), those of columns likewise. 0 treats all alike, 1 is the
        weighted-lambda penalty. Sides with features have coefficients and no degrees; these take
        ``reg`` as it is.
    """

    def __init__(self, reg: float = 1.0, degree_scaling: float = 0.0) -> None:
        self.reg = reg
        self.degree_scaling = degree_scaling

    def separable(self) -> Separable:
        return Separable(
            ridge=check_positive("reg", self.reg, strict=False),
            degree_power=check_positive("degree_scaling", self.degree_scaling, strict=False),
        )


class Nuclear(Regulariser):
    """``reg ||Z||_*``; on a low-rank core its factored form ``reg/2 (||W||^2 + ||H||^2)``.

    Parameters
    ----------
    reg : float, default=1.0
        Weight, zero or larger.
    """

    spectral = True

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
