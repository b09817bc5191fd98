"""What a fit that goes on from another one takes over, and what it has to draw anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unseen import MatrixFactorization
from unseen.datasets import make_ratings
from unseen.problem import Problem


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_only_what_has_died_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = make_ratings(60, 40, density=0.4, random_state=0).observations
    model = MatrixFactorization(
        5, reg=1.0, center="mean", max_iter=5, tol=0.0, warm_start=True, random_state=0
    ).fit(cells)
    draws: list[int] = []
    start = Problem.start

    def counted(self: Problem, *args: Any, **options: Any) -> Any:
        draws.append(1)
        return start(self, *args, **options)

    monkeypatch.setattr(Problem, "start", counted)
    before = model.history_[-1]["objective"]
    model.fit(cells)
    assert not draws
    assert model.history_[-1]["objective"] < before
    # A penalty that leaves nothing, then one that leaves much: without fresh factors all would stay zero.
    model.set_params(reg=1e6).fit(cells)
    assert not draws
    assert np.abs(model.row_factors_[:, :5]).max() < 1e-6
    model.set_params(reg=1.0, max_iter=50).fit(cells)
    assert draws
    assert model.history_[-1]["objective"] < 1.05 * before
