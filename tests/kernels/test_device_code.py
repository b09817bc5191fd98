"""The device code as NumPy: each idea of it beside the reference kernels, in float64 to rounding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from unseen import kernels
from unseen.exceptions import DeviceError, ParameterError
from unseen.kernels import on_device, reference
from unseen.kernels.device_lists import ListsOnDevice
from unseen.kernels.twin import twin_provider

FEW_BYTES = 3500
"""So little shared memory that most rows are cut into chunks."""


@dataclass
class Rows:
    """One half sweep at random."""

    indptr: Any
    indices: Any
    curvature: Any
    linear: Any
    other: Any
    start: Any
    gram: Any
    options: dict[str, Any]
    offset: Any


def make_rows(
    dtype: Any = np.float64,
    *,
    by_cell=False,
    ridge=False,
    scaled=False,
    shifted=False,
    offsets=0,
    diagonal=False,
    rank=20,
) -> Rows:
    rng = np.random.default_rng(7)
    n, m = 30, 90
    stored = rng.random((n, m)) < rng.random((n, 1)) ** 2
    stored[1] = False
    stored[2] = True
    pattern = sparse.csr_array(stored.astype(float))
    other = rng.normal(size=(m, rank)).astype(dtype)
    gram = np.diag(rng.uniform(1, 2, rank)) if diagonal else 0.1 * other.T @ other + np.eye(rank)
    options = {
        "ridge": rng.uniform(0.5, 2, n).astype(dtype) if ridge else None,
        "gram_scale": rng.uniform(0.5, 2, n).astype(dtype) if scaled else None,
        "shift": rng.normal(size=m).astype(dtype) if shifted else None,
    }
    return Rows(
        pattern.indptr,
        pattern.indices,
        rng.uniform(0.5, 2, pattern.nnz).astype(dtype) if by_cell else 1.3,
        rng.uniform(0.5, 2, pattern.nnz).astype(dtype) if by_cell else 2.0,
        other,
        rng.normal(size=(n, rank)).astype(dtype),
        gram.astype(dtype),
        options,
        rng.normal(size=(n if offsets > 1 else offsets, rank)).astype(dtype) if offsets else None,
    )


def solve(provider: Any, rows: Rows, method: str = "cg", steps: int = 4, **more: Any) -> tuple[Any, Any]:
    cells = provider.pattern(rows.indptr, rows.indices, rows.curvature, rows.linear, n_cols=len(rows.other))
    out, values = rows.start.copy(), np.full(len(rows.start), np.nan)
    options = rows.options | {"method": method, "cg_steps": steps, "row_values": values} | more
    provider.als_solve(cells, rows.other, rows.gram, rows.offset, out, **options)
    return out, values


def error(found: tuple[Any, Any], expected: tuple[Any, Any]) -> float:
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(found, expected, strict=True))


CASES: list[dict[str, Any]] = [
    {},
    {"by_cell": True, "offsets": 1},
    {"by_cell": True, "ridge": True, "shifted": True, "offsets": 2},
    {"ridge": True, "scaled": True, "offsets": 2},
    {"shifted": True},
    {"diagonal": True, "by_cell": True, "offsets": 1},
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case) or "plain")
@pytest.mark.parametrize("method", ["cg", "cholesky"])
@pytest.mark.parametrize("chunked", [False, True])
def test_frames_chunks_and_values_agree_with_the_reference(case, method, chunked, monkeypatch):
    rows, twin = make_rows(**case), twin_provider()
    if chunked:
        twin.shared_bytes = FEW_BYTES
        monkeypatch.setattr(on_device.plan, "__kwdefaults__", {"limit": 512, "chunk": 11, "xp": np})
    expected = solve(kernels.get_provider("reference"), rows, method)
    for definite in (False, True):  # by eigenvectors, and by Cholesky where nothing differs from row to row
        assert error(solve(twin, rows, method, definite=definite), expected) < 1e-11


def test_a_wrong_curvature_is_caught():
    rows = make_rows(by_cell=True)
    expected = solve(kernels.get_provider("reference"), rows)
    rows.curvature[3] *= 1.01
    assert error(solve(twin_provider(), rows, definite=True), expected) > 1e-6


@pytest.mark.parametrize(("table", "low", "high"), [("float16", 1e-4, 2e-3), ("bfloat16", 1e-4, 2e-2)])
def test_tables_in_16_bits_round_and_no_more(table, low, high):
    rows = make_rows(np.float32)
    expected = solve(kernels.get_provider("reference"), rows)
    found = error(solve(twin_provider(table), rows, definite=True), expected)
    assert low < found < high
    assert error(solve(twin_provider(), rows, definite=True), expected) < low


def test_rows_without_a_positive_matrix_are_solved_by_the_reference():
    rows = make_rows(by_cell=True, shifted=True, offsets=1)
    rows.curvature[rows.indptr[2] : rows.indptr[3]] = -5.0
    rows.gram[:] = 0.01 * np.eye(len(rows.gram))
    expected = solve(kernels.get_provider("reference"), rows, "cholesky")
    found = solve(twin_provider(), rows, "cholesky", definite=True)
    assert np.isfinite(found[0]).all()
    assert error(found, expected) < 1e-8


def test_values_follow_from_scalars_of_the_steps():
    """Each step lowers a row's part by half its length times its size: no second pass over the cells."""
    rows = make_rows(shifted=True, offsets=1)
    out, values = solve(twin_provider(), rows, steps=2, definite=True)
    h, base = rows.options["shift"], rows.gram
    for i in range(len(out)):
        columns = rows.indices[rows.indptr[i] : rows.indptr[i + 1]]
        scores = rows.other[columns] @ out[i] + h[columns]
        value = 0.5 * out[i] @ base @ out[i] - rows.offset[0] @ out[i]
        value += np.sum(0.5 * rows.curvature * scores**2 - rows.linear * scores)
        assert np.isclose(values[i], value, rtol=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_over_a_pattern(dtype, rng, monkeypatch):
    monkeypatch.setattr(on_device, "ITEM_CELLS", 16)  # so that rows are cut
    rows, twin = make_rows(dtype), twin_provider()
    n, m, nnz = len(rows.start), len(rows.other), len(rows.indices)
    data = rng.normal(size=nnz).astype(dtype)
    cells = twin.pattern(rows.indptr, rows.indices, n_cols=m)
    given = (rows.indptr, rows.indices)
    pairs = [
        (twin.sddmm(cells, rows.start, rows.other), reference.sddmm(*given, rows.start, rows.other, 1)),
        (twin.spmm(cells, data, rows.other), reference.spmm(*given, data, rows.other, 1)),
        (twin.spmm(cells, 0.5, rows.other), reference.spmm(*given, np.full(nnz, 0.5, dtype), rows.other, 1)),
        (twin.spmm_t(cells, data, rows.start), reference.spmm_t(*given, data, rows.start, m, 1)),
        (twin.gram(rows.other), reference.gram(rows.other, 1)),
    ]
    for found, expected in pairs:
        assert found.shape == expected.shape
        assert (
            np.abs(found - expected).max()
            <= (1e-5 if dtype is np.float32 else 1e-12) * np.abs(expected).max()
        )
    assert cells.transposed.transposed is cells
    assert n == cells.transposed.shape[1]


def test_the_other_order_of_a_pattern_keeps_what_cells_carry(monkeypatch):
    monkeypatch.setattr(on_device, "CELLS_AT_ONCE", 100)
    rows = make_rows(by_cell=True)
    for given in ((rows.curvature, rows.linear), (1.0, 2.0)):
        twin, host = (
            kernels.get_provider(name)
            .pattern(rows.indptr, rows.indices, *given, n_cols=len(rows.other))
            .transposed
            for name in ("twin", "native" if kernels.provider() == "native" else "reference")
        )
        for name in ("indptr", "indices", "curvature", "linear"):
            assert np.array_equal(getattr(twin, name), getattr(host, name)), name


# -- lists -----------------------------------------------------------------------------


def lists(provider: Any, left: Any, right: Any, k: int, **options: Any) -> tuple[Any, Any]:
    return provider.topk(left, right, k, **options)


def whole_factors(rng: np.random.Generator, dtype: Any) -> tuple[Any, Any]:
    """Whole numbers whose products add up exactly in float32, in any order; halves round the right ones."""
    left = rng.integers(-255, 256, (40, 12)).astype(dtype)
    right = rng.integers(-5000, 5001, (800, 12)).astype(dtype)
    assert np.abs(left).max() * np.abs(right).max() * 12 < 2**24
    assert (right.astype(np.float16) != right).any()
    return left, right


@pytest.mark.parametrize("k", [1, 7, 30, 70, 900])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_filtered_lists_are_the_exact_ones(k, dtype, rng):
    left, right = whole_factors(rng, dtype)
    right[300:350] = right[0]  # equal scores
    left[3] = 0
    stored = rng.random((40, 800)) < 0.1
    stored[5] = True  # nothing is left
    stored[6, 4:] = True  # fewer than k are
    pattern = sparse.csr_array(stored)
    ids = 3 * np.arange(800) + 1
    options: dict[str, Any] = {"exclude": (pattern.indptr, 3 * pattern.indices + 1), "col_ids": ids}
    found = lists(twin_provider(), left, right, k, **options)
    expected = lists(kernels.get_provider("reference"), left, right, k, **options)
    for ours, exact in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, exact)
    right[:, 5] += 1
    wrong = lists(twin_provider(), left, right, k, **options)
    assert not np.array_equal(wrong[1], expected[1], equal_nan=True)


def test_near_ties_nan_and_signed_zeros_decide_nothing(rng):
    left = np.ones((3, 8), dtype=np.float32)
    right = np.tile(rng.normal(size=(1, 8)).astype(np.float32), (600, 1))
    right[:, 0] += np.float32(1e-6) * rng.permutation(600).astype(np.float32)  # below what halves can tell
    right[5:10] = 0
    right[7] = -0.0
    exact = np.cumsum(right, axis=1, dtype=np.float32)[:, -1]
    found, scores = lists(twin_provider(), left, right, 12)
    order = np.lexsort((np.arange(600), -exact))[:12]
    assert np.array_equal(found[0], order)
    assert np.array_equal(scores[0], exact[order])
    right[order[0]] = np.nan
    found, _ = lists(twin_provider(), left, right, 12)
    assert np.array_equal(found[0][:11], order[1:])
    zeros, _ = lists(twin_provider(), left, right * 0 + np.where(np.arange(600)[:, None] % 2, -0.0, 0.0), 4)
    assert zeros.tolist() == [[0, 1, 2, 3]] * 3


def test_rows_that_are_not_sure_are_noticed(rng, monkeypatch):
    """The planted mistake: with no margin, near ties come out of the filter in the wrong order."""
    left = rng.normal(size=(20, 8)).astype(np.float32)
    right = (1 + 1e-5 * rng.normal(size=(900, 8))).astype(np.float32)
    expected = lists(kernels.get_provider("reference"), left.astype(float), right.astype(float), 10)[0]
    agrees = (lists(twin_provider(), left, right, 10)[0] == expected).mean()
    monkeypatch.setattr("unseen.kernels.device_lists.MARGIN", 0.0)
    monkeypatch.setattr(ListsOnDevice, "_halves", _without_margin(ListsOnDevice._halves))
    fooled = (lists(twin_provider(), left, right, 10)[0] == expected).mean()
    assert agrees > 0.5 > fooled


def _without_margin(halves):
    def wrapped(self, left, right):
        return halves(self, left, right) | {"margin": -1e9}

    return wrapped


def test_lists_of_nothing():
    none, _ = lists(twin_provider(), np.zeros((0, 3)), np.zeros((5, 3)), 2)
    assert none.shape == (0, 2)
    ids, scores = lists(twin_provider(), np.ones((2, 3)), np.zeros((0, 3)), 2)
    assert (ids == -1).all()
    assert np.isnan(scores).all()


# -- devices ---------------------------------------------------------------------------


def test_names_of_devices(monkeypatch):
    assert [kernels.check_device(name) for name in ("cpu", "cuda", "cuda:3", "auto")] == [
        "cpu",
        "cuda:0",
        "cuda:3",
        "auto",
    ]
    for wrong in ("gpu", "cuda:-1", 0, "cuda:x"):
        with pytest.raises(ParameterError, match="'cuda:N'"):
            kernels.check_device(wrong)
    monkeypatch.setenv("UNSEEN_DEVICE", "cuda:1")
    assert kernels.check_device(None) == "cuda:1"
    monkeypatch.setenv("UNSEEN_DEVICE", "tpu")
    with pytest.raises(ParameterError, match="UNSEEN_DEVICE"):
        kernels.check_device(None)


def no_cuda() -> bool:
    try:
        kernels.get_provider("cuda")
    except DeviceError:
        return True
    return False


@pytest.mark.skipif(not no_cuda(), reason="there is a CUDA device")
def test_without_a_device_the_reason_is_said_and_auto_says_so_once():
    with pytest.raises(DeviceError, match=r"cuda12|no CUDA device"):
        kernels.provider_for("cuda")
    kernels.devices._say_once.cache_clear()
    with pytest.warns(RuntimeWarning, match="computes on the CPU"):
        assert kernels.provider_for("auto").device == "cpu"


def test_providers_and_tables_are_checked():
    with pytest.raises(ParameterError, match="'twin'"):
        kernels.get_provider("opencl")
    with pytest.raises(ParameterError, match="float16"):
        twin_provider("int8")
