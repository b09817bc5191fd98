"""Load scikit-learn without scipy.stats.

scikit-learn imports scipy.stats for one function that no estimator here needs, and with it come a third of
the memory and of the time that its import takes. While scikit-learn loads, a stand-in answers for the module;
whoever asks it for a name, in this thread or another, is given what the real one has. It is gone afterwards:
the next ``import scipy.stats`` is an ordinary one.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

__all__ = ["load_sklearn"]

STATS = "scipy.stats"


class _StandIn(ModuleType):
    def __getattr__(self, name: str) -> Any:
        self.withdraw()
        return getattr(importlib.import_module(STATS), name)

    def withdraw(self) -> None:
        if sys.modules.get(STATS) is self:
            del sys.modules[STATS]


def load_sklearn() -> None:
    """Import scikit-learn's base, without scipy.stats if neither has been imported yet."""
    if "sklearn" in sys.modules or STATS in sys.modules:
        return
    stand_in = _StandIn(STATS)
    sys.modules[STATS] = stand_in
    try:
        importlib.import_module("sklearn.base")
    finally:
        stand_in.withdraw()
