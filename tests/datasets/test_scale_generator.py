"""The generator of large graphs: counts, degrees, groups, memory."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from unseen.datasets import make_scale_bipartite, make_scale_graph
from unseen.exceptions import ParameterError

N = 20_000


def shared_group(data: Any) -> np.ndarray:
    """Whether the two ends of each stored cell share a group."""
    cells = data.observations
    left, right = data.row_groups[cells.rows], data.col_groups[cells.indices]
    return ((left[:, :, None] == right[:, None, :]) & (left[:, :, None] >= 0)).any(axis=(1, 2))


@pytest.fixture(scope="module")
def data() -> Any:
    return make_scale_graph(N, 20, random_state=0)


def test_counts_and_symmetry(data: Any) -> None:
    cells = data.observations
    assert cells.dtype == np.float32
    assert cells.indices.dtype == np.int32
    assert cells.nnz // 2 + len(data.held_out) == N * 10
    assert len(data.held_out) == pytest.approx(0.02 * N * 10, rel=0.1)
    matrix = sparse.csr_array((cells.values, cells.indices, cells.indptr), shape=cells.shape)
    matrix.check_format(full_check=True)
    assert matrix.has_canonical_format
    assert (matrix != matrix.T).nnz == 0
    assert not matrix.diagonal().any()
    assert (cells.values == 1).all()


def test_held_out_links_are_not_in_the_graph(data: Any) -> None:
    i, j = data.held_out.T
    assert (i < j).all()
    assert not np.asarray(data.observations.csr[i, j]).any()


def test_degrees_follow_a_power_law(data: Any) -> None:
    degrees = np.sort(np.diff(data.observations.indptr))[::-1]
    assert 0.4 < degrees[0] / np.sqrt(20 * N) < 1.5
    # degree of rank r falls like r^(-1/(g-1)) = r^(-2/3) once r is past the flat start
    ranks = np.geomspace(500, N / 2, 20).astype(int)
    slope = np.polyfit(np.log(ranks), np.log(degrees[ranks]), 1)[0]
    assert -0.8 < slope < -0.5


def test_groups_hold_about_half_of_the_links(data: Any) -> None:
    share = shared_group(data).mean()
    assert 0.3 < share < 0.55
    assert shared_group(make_scale_graph(N, 20, inside=0.0, random_state=0)).mean() < 0.05
    first = np.bincount(data.row_groups[:, 0])
    sizes = first[first > 0][:-1]
    assert sizes.min() >= 20
    assert sizes.max() <= 200
    assert (data.row_groups[:, 0] >= 0).all()
    assert (data.row_groups[:, 1] >= 0).mean() == pytest.approx(0.5, abs=0.01)


def test_same_seed_same_graph() -> None:
    one, two, other = (make_scale_graph(500, 8, random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.observations.indices, two.observations.indices)
    np.testing.assert_array_equal(one.held_out, two.held_out)
    assert not np.array_equal(one.observations.indices, other.observations.indices)


def test_bipartite() -> None:
    data = make_scale_bipartite(5000, 2000, 15, random_state=0)
    assert data.observations.shape == (5000, 2000)
    assert data.observations.nnz + len(data.held_out) == 75_000
    assert 0.25 < shared_group(data).mean() < 0.6
    assert data.held_out[:, 0].max() < 5000
    assert data.held_out[:, 1].max() < 2000
    assert not np.asarray(data.observations.csr[tuple(data.held_out.T)]).any()


def test_memory_grows_with_the_links() -> None:
    tracemalloc.start()
    make_scale_graph(30_000, 30, random_state=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6  # all pairs would be 450 million


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("exponent", 2.0),
        ("group_size", (1, 5)),
        ("group_size", (30, 20)),
        ("inside", 1.5),
        ("held_out", 1.0),
        ("mean_degree", 0.0),
        ("mean_degree", 90),
        ("n_nodes", 1),
    ],
)
def test_bad_arguments_are_named(name: str, value: Any) -> None:
    arguments = {"n_nodes": 100, "mean_degree": 4, name: value}
    with pytest.raises(ParameterError, match=name):
        make_scale_graph(**arguments)
