"""scikit-learn's own checks for every public estimator.

Exceptions, with reasons:

- none so far: what the tags say (NaN means missing, sparse input is welcome) is all that differs.
"""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from unseen import IMC, BiasModel, Completion, MatrixFactorization, SoftImpute

EXPECTED_FAILURES: dict[str, dict[str, str]] = {}


def reasons(estimator: Any) -> dict[str, str]:
    return EXPECTED_FAILURES.get(type(estimator).__name__, {})


@parametrize_with_checks(
    [
        BiasModel(),
        MatrixFactorization(2),
        MatrixFactorization(2, solver="ccd"),
        SoftImpute(),
        IMC(2),
        Completion(),
    ],
    expected_failed_checks=reasons,
)
def test_sklearn(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)
