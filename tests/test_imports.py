"""What an import loads: nothing that is not needed, and nothing out of the ordinary."""

from __future__ import annotations

import subprocess
import sys

import pytest

PACKAGE_ALONE = """
import sys
import unseen
heavy = {"numpy", "scipy", "sklearn", "pandas", "threadpoolctl"} & set(sys.modules)
assert not heavy, heavy
"""
WITHOUT_SKLEARN = """
import sys
from unseen import Observations, Vocabulary, data, exceptions, metrics
Observations.from_triples([0, 1], [1, 0], [2.0, 3.0], shape=(2, 2))
assert metrics.rmse([1.0, 2.0], [1.0, 3.0]) > 0
heavy = {"sklearn", "scipy.stats", "scipy.optimize", "pandas"} & set(sys.modules)
assert not heavy, heavy
"""
ORDINARY_MODULES = """
import sys
ours = set()

class Watch:
    def find_spec(self, name, path=None, target=None):
        for known, module in list(sys.modules.items()):
            if type(module).__module__.startswith("unseen") and not known.startswith("unseen"):
                ours.add(known)

sys.meta_path.insert(0, Watch())
from unseen import ExMLDS, MatrixFactorization
import numpy as np
MatrixFactorization(2, max_iter=2, random_state=0).fit(np.arange(12.0).reshape(4, 3))
assert "sklearn" in sys.modules
assert not ours, ours
"""
ERRORS_OF_SKLEARN = """
from unseen import exceptions
from unseen.exceptions import *
import sklearn.exceptions
assert ConvergenceWarning is exceptions.ConvergenceWarning is sklearn.exceptions.ConvergenceWarning
assert NotFittedError is exceptions.NotFittedError is sklearn.exceptions.NotFittedError
assert not hasattr(exceptions, "NoSuchError")
"""


@pytest.mark.parametrize("script", [PACKAGE_ALONE, WITHOUT_SKLEARN, ORDINARY_MODULES, ERRORS_OF_SKLEARN])
def test_in_a_new_process(script: str) -> None:
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
