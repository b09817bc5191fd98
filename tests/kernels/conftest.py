"""Small cases must run on as many threads as they are given, or they would show nothing about threads."""

from __future__ import annotations

import pytest

from unseen.kernels import _arguments


@pytest.fixture(autouse=True)
def wake_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_arguments, "WORK_A_THREAD", 1)
