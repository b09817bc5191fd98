"""Who computes: the native module, or the NumPy twins where it is missing or not wanted."""

from __future__ import annotations

import importlib
import os
import warnings
from types import ModuleType

from unseen.kernels import reference


def _choose() -> tuple[str, ModuleType]:
    if os.environ.get("UNSEEN_KERNELS") == "reference":
        return "reference", reference
    try:
        native = importlib.import_module("unseen.kernels._native")
    except ImportError as error:
        warnings.warn(
            f"the native kernels of unseen cannot be loaded ({error}); slow NumPy versions are used instead",
            RuntimeWarning,
            stacklevel=4,
        )
        return "reference", reference
    return "native", native


NAME, MODULE = _choose()


def module(twins: ModuleType) -> ModuleType:
    """The native module, or these twins where it does not compute."""
    return MODULE if NAME == "native" else twins
