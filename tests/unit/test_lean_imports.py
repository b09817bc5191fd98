"""scikit-learn loads without scipy.stats, and nobody notices but the memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

LEAN = """
import sys
from unseen import MatrixFactorization
assert "scipy.stats" not in sys.modules
import numpy as np
MatrixFactorization(2, max_iter=2, random_state=0).fit(np.arange(12.0).reshape(4, 3))
assert "scipy.stats" not in sys.modules
assert "scipy.optimize" not in sys.modules
import scipy.stats
from sklearn.utils.fixes import _mode
assert scipy.stats.norm.cdf(0.0) == 0.5
assert _mode(np.array([3, 3, 1])).mode == 3
"""
FROM_A_PART = """
import sys
from unseen.data import read_extreme
from unseen import ExMLDS
assert "sklearn" in sys.modules
assert "scipy.stats" not in sys.modules
assert "scipy.optimize" not in sys.modules
"""
BY_ATTRIBUTE = """
import sys
from unseen import Observations
import scipy
assert scipy.stats.norm.cdf(0.0) == 0.5
assert type(sys.modules["scipy.stats"]).__name__ == "module"
"""
AT_THE_SAME_TIME = """
import sys, threading
from unseen import _lean_imports
found = []

def elsewhere():
    while "scipy.stats" not in sys.modules:
        pass
    import scipy.stats as stats
    from scipy.stats import norm
    import scipy.stats.distributions
    found.append((stats.norm.cdf(0.0), norm.cdf(0.0)))

thread = threading.Thread(target=elsewhere)
thread.start()
_lean_imports.load_sklearn()
thread.join()
assert found == [(0.5, 0.5)], found
import sklearn.base, scipy.stats
assert type(sys.modules["scipy.stats"]).__name__ == "module"
"""
ALREADY_THERE = """
import scipy.stats, sys
real = sys.modules["scipy.stats"]
from unseen import Observations
assert sys.modules["scipy.stats"] is real
"""


@pytest.mark.parametrize("script", [LEAN, FROM_A_PART, BY_ATTRIBUTE, AT_THE_SAME_TIME, ALREADY_THERE])
def test_in_a_new_process(script: str) -> None:
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
