"""A cluster for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from block_data import cluster_of


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two workers in this process."""
    distributed = pytest.importorskip("distributed", reason="dask is not installed")
    with cluster_of(2) as cluster, distributed.Client(cluster) as found:
        yield found
