"""The figures that the first models must show, by the scripts that the documentation uses."""

from __future__ import annotations

import itertools

import pytest

from benchmarks import foundation

pytestmark = pytest.mark.slow


@pytest.mark.data
def test_movielens_folds(data_home: object) -> None:
    figures = foundation.movielens_folds(("BiasModel", "MatrixFactorization"))
    assert figures["MatrixFactorization"]["rmse"] <= 0.930
    assert 0.93 <= figures["BiasModel"]["rmse"] <= 0.96
    assert figures["MatrixFactorization"]["rmse"] < figures["BiasModel"]["rmse"]


def test_soft_impute_reaches_the_conic_optimum() -> None:
    figures = foundation.soft_impute_against_cvxpy()
    assert abs(figures["relative_to_cvxpy"]) < 1e-6
    assert 0 <= figures["relative_duality_gap"] < 1e-5


def test_imc_recovers_exactly() -> None:
    assert foundation.imc_recovery()["relative_error"] < 1e-4


def test_toy_of_the_gimc_paper() -> None:
    assert max(foundation.gimc_toy()["relative_error"]) < 0.15


def test_twenty_million_cells_fit_in_six_gib() -> None:
    figures = foundation.large_fit()
    assert figures["cells"] > 19_000_000
    assert figures["peak_gib"] < 6.0
    assert all(b < a for a, b in itertools.pairwise(figures["objectives"]))
