"""Shared fixtures."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# A machine that is busy with other work is slow, not wrong.
settings.register_profile("busy", deadline=None)
settings.load_profile("busy")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def data_home() -> Path:
    """Folder of the real datasets, or skip."""
    folder = os.environ.get("UNSEEN_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("UNSEEN_DATA does not point to the real datasets")
    return Path(folder)
