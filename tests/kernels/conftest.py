"""The twins solve thousands of small systems, for which threads in the BLAS only cost time."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    with threadpool_limits(1):
        yield
