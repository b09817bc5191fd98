"""Blocks, counts and verdicts of ``diagnose`` against planted data and definitions."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tests.peaks import LIMIT, peak_of, target
from unseen import Observations
from unseen.diagnostics import diagnose, find_blocks
from unseen.exceptions import InvalidDataError, ParameterError

PLANTED = [(12, 9), (8, 7), (5, 4), (1, 3)]


def planted(seed: int = 0, empty_rows: int = 2, empty_cols: int = 1) -> sparse.csr_array:
    """Four blocks, shuffled, with rows and columns that have no cell."""
    rng = np.random.default_rng(seed)
    parts = [sparse.csr_array(rng.random(shape) + 0.1) for shape in PLANTED]
    whole = sparse.block_diag(parts).tocsr()
    shape = (whole.shape[0] + empty_rows, whole.shape[1] + empty_cols)
    whole.resize(shape)
    return sparse.csr_array(whole[rng.permutation(shape[0])][:, rng.permutation(shape[1])])


def flooded(cells: Observations) -> int:
    """Number of blocks by walking from cell to cell."""
    dense = np.zeros(cells.shape, dtype=bool)
    dense[cells.rows, cells.indices] = True
    count = 0
    while dense.any():
        rows = {int(np.argwhere(dense)[0][0])}
        while True:
            cols = np.flatnonzero(dense[sorted(rows)].any(axis=0))
            grown = set(np.flatnonzero(dense[:, cols].any(axis=1)).tolist())
            if grown == rows:
                break
            rows = grown
        dense[sorted(rows)] = False
        count += 1
    return count


def test_planted_blocks_are_found():
    X = planted()
    found = diagnose(X, rank=2)
    blocks = found.blocks
    assert list(zip(blocks.n_rows, blocks.n_cols, strict=True)) == PLANTED
    assert blocks.n_cells.tolist() == [a * b for a, b in PLANTED]
    assert (found.rows.n_empty, found.cols.n_empty) == (2, 1)
    coo = X.tocoo()
    assert blocks.connected(coo.row, coo.col).all()
    inside = sum(a * b for a, b in PLANTED)
    assert found.across == 1 - inside / (X.shape[0] * X.shape[1])
    assert found.across_unknown == 1.0  # all blocks are full
    assert found.isometry.worst == 0.0


def test_a_single_bridge_joins_two_blocks():
    X = planted().tolil()
    blocks = find_blocks(Observations.from_any(X.tocsr()))
    i, j = np.flatnonzero(blocks.row_block == 0)[0], np.flatnonzero(blocks.col_block == 1)[0]
    assert not blocks.connected(np.array([i]), np.array([j]))[0]
    X[i, j] = 1.0
    joined = find_blocks(Observations.from_any(X.tocsr()))
    assert len(joined) == len(blocks) - 1
    assert joined.connected(np.array([i]), np.array([j]))[0]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(1, 9), st.floats(0.05, 0.6))
def test_blocks_are_those_of_a_walk(seed: int, n: int, m: int, density: float):
    rng = np.random.default_rng(seed)
    mask = rng.random((n, m)) < density
    mask[0, 0] = True
    cells = Observations.from_dense(np.where(mask, 1.0, np.nan))
    blocks = find_blocks(cells)
    assert len(blocks) == flooded(cells)
    assert np.all(np.diff(blocks.n_cells) <= 0)
    assert ((blocks.row_block < 0) == ~mask.any(axis=1)).all()
    turned = find_blocks(cells.transpose())
    assert turned.n_cells.tolist() == blocks.n_cells.tolist()


def test_counts_are_their_definitions(rng):
    X = np.where(rng.random((30, 20)) < 0.4, rng.random((30, 20)), np.nan)
    found = diagnose(X, rank=3)
    cells = int(np.isfinite(X).sum())
    assert found.whole.freedom == 3 * (30 + 20 - 3)
    assert found.whole.per_freedom == cells / found.whole.freedom
    np.testing.assert_allclose(found.whole.per_needed, cells / (3 * 50 * np.log(600)))
    degrees = np.isfinite(X).sum(axis=1)
    assert found.rows.mean == degrees.mean()
    assert (found.rows.quantiles["min"], found.rows.quantiles["max"]) == (degrees.min(), degrees.max())
    assert found.rows.n_below_rank == (degrees < 3).sum()


def test_isometry_is_one_for_a_full_matrix_and_below_for_a_corner(rng):
    full = diagnose(rng.random((15, 10)), rank=2).isometry
    np.testing.assert_allclose([full.mean, full.low, full.high], 1.0, rtol=1e-5)
    # A probe that only looked at the number of cells would see no difference between these two.
    seen = rng.random((60, 40)) < 0.25
    corner = np.zeros((60, 40), dtype=bool)
    corner[:30, :20] = True
    even, uneven = (
        diagnose(np.where(mask, 1.0, np.nan), rank=2, n_probes=40).isometry for mask in (seen, corner)
    )
    assert even.std < uneven.std


def test_the_same_at_any_number_of_threads():
    X = planted()
    assert diagnose(X, n_jobs=1).to_dict() == diagnose(X, n_jobs=2).to_dict()


@pytest.mark.parametrize(
    ("X", "says"),
    [
        (np.array([[3.0, 3.0], [3.0, np.nan]]), "All known values are 3"),
        (np.array([[1.0, 2.0, np.nan]]), "more than the shape allows"),
        (np.diag([1.0, 2.0, 3.0]) + np.where(np.eye(3), 0, np.nan), "3 blocks"),
        (np.array([[1.0]]), "All rows and columns are connected"),
        (np.random.default_rng(0).random((40, 40)), "Enough cells for rank 1"),
    ],
    ids=["equal", "one row", "isolated cells", "one cell", "full"],
)
def test_verdicts(X: np.ndarray, says: str):
    found = diagnose(X, rank=1 if "rank 1" in says else 5)
    assert any(says in sentence for sentence in found.verdict), found.verdict
    text = str(found)
    assert all(sentence in text for sentence in found.verdict)
    assert "nan" not in text
    json.dumps(found.to_dict(), allow_nan=False)
    page = found._repr_html_()
    assert page.count("<table>") == page.count("</table>") == 3
    assert repr(found).startswith("Diagnosis(")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"rank": 0}, ParameterError, "rank"),
        ({"rank": 2.5}, ParameterError, "rank"),
        ({"n_probes": 0}, ParameterError, "n_probes"),
        ({"X": np.full((3, 2), np.nan)}, InvalidDataError, "no known cell"),
        ({"X": np.array([[np.inf, 1.0]])}, InvalidDataError, "row 0, column 0"),
    ],
)
def test_bad_input_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        diagnose(**{"X": np.ones((3, 2)), "rank": 1, **arguments})


def test_memory_is_that_of_the_cells():
    X = target(positive=False)
    assert peak_of(lambda: diagnose(X, rank=5)) < LIMIT // 4


@pytest.mark.data
def test_yelp_has_the_blocks_of_the_paper(data_home):
    from unseen.datasets import load_yelp2013

    assert len(diagnose(load_yelp2013().observations).blocks) == 53
