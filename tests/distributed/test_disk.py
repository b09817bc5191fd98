"""Fits from disk: the same answer as in memory, within the memory that was given."""

from __future__ import annotations

import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyarrow", reason="files of cells are read by pyarrow")
pytest.importorskip("fsspec", reason="files are found by fsspec")

from block_data import MODELS, N_COLS, N_ROWS, NAMES, disk, frame, in_memory

import unseen
from unseen import BiasMC, MatrixFactorization, Observations
from unseen.distributed import DiskCompleter
from unseen.exceptions import (
    ConvergenceWarning,
    DataWarning,
    DivergedError,
    InvalidDataError,
    ModelFileError,
    ParameterError,
    UnsupportedComposition,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("text", [True, False], ids=["text", "integers"])
def test_objective_and_factors_are_those_of_the_fit_in_memory(name: str, text: bool) -> None:
    model, names = MODELS[name]
    data = frame(text=text)
    reference = in_memory(model, data, names)
    fit = disk(model).fit(data, **names)
    for ours, theirs in zip(fit.history_, reference.history_, strict=True):
        assert ours["objective"] == pytest.approx(theirs["objective"], rel=1e-9)
    local = fit.to_local()
    fit.close()
    assert local.row_ids_ == reference.row_ids_
    assert local.col_ids_ == reference.col_ids_
    rows, cols = np.arange(200), np.arange(200) % 80
    expected = reference.predict_entries(rows, cols, positions=True)
    np.testing.assert_allclose(
        local.predict_entries(rows, cols, positions=True), expected, rtol=1e-6, atol=1e-6
    )
    assert np.abs(expected - expected.mean()).max() > 0.01  # there is something to get wrong


def test_blocks_change_the_last_digits_only() -> None:
    model, names = MODELS["bias-mc"]
    fits = [disk(model, n_blocks=b).fit(frame(), **names) for b in (1, 4, 9)]
    assert [fit.n_blocks_ for fit in fits] == [(1, 1), (4, 4), (9, 9)]
    first, *others = (fit.history_[-1]["objective"] for fit in fits)
    assert others == pytest.approx([first] * 2, rel=1e-10)
    for fit in fits:
        fit.close()


def test_the_model_can_do_all_that_one_fitted_in_memory_can(tmp_path: Path) -> None:
    for name in ("mf-mean", "bias-mc"):
        model, names = MODELS[name]
        data = frame()
        reference = in_memory(model, data, names)
        fit = disk(model).fit(data, **names)
        local = fit.to_local()
        fit.close()
        cells = Observations.from_frame(data, **names)
        folded = [found.fold_in(cells, positions=True) @ found.col_factors_.T for found in (local, reference)]
        np.testing.assert_allclose(*folded, atol=1e-6)  # factors may be turned
        np.testing.assert_array_equal(
            local.recommend([0, 1], 5, exclude=cells, positions=True)[0],
            reference.recommend([0, 1], 5, positions=True)[0],
        )
        local.save(tmp_path / name)
        np.testing.assert_array_equal(unseen.load(tmp_path / name).row_factors_, local.row_factors_)
        assert set(vars(local)) >= {key for key in vars(reference) if key.endswith("_")}


def test_parquet_folders_files_and_indices_give_the_same(tmp_path: Path) -> None:
    model, _ = MODELS["mf"]
    data = frame(text=False)
    data = data.assign(user=(data.user - 3) // 7, item=data.item // 11)
    folder = tmp_path / "cells"
    folder.mkdir()
    for part in range(3):
        data.iloc[part * 1300 : (part + 1) * 1300 + 100 * (part == 2)].to_parquet(
            folder / f"part-{part}.parquet", row_group_size=500
        )
    whole = pd.concat([pd.read_parquet(file) for file in sorted(folder.iterdir())])
    one = disk(model).fit(folder, **NAMES)
    two = disk(model).fit(str(folder), **NAMES, shape=(N_ROWS, N_COLS))
    three = disk(model).fit([whole.iloc[:10], whole.iloc[10:]], **NAMES, shape=(N_ROWS, N_COLS))
    first, second, third = (fit.to_local() for fit in (one, two, three))
    np.testing.assert_array_equal(second.row_factors_, third.row_factors_)
    np.testing.assert_array_equal(first.row_factors_, second.row_factors_[first.row_ids_.values])
    assert second.row_ids_ is None
    for fit in (one, two, three):
        fit.close()


def test_threads_change_nothing_and_float32_stays() -> None:
    model, names = MODELS["bias-mc"]
    one, two = (disk(model, n_jobs=jobs, dtype=None).fit(frame(), **names) for jobs in (1, 2))
    np.testing.assert_array_equal(one.to_local().row_factors_, two.to_local().row_factors_)
    assert one.to_local().row_factors_.dtype == np.float32
    data = frame().astype({"stars": np.float32})
    explicit = disk(MODELS["mf"][0], dtype=None).fit(data, **NAMES)
    assert explicit.to_local().col_factors_.dtype == np.float32
    for fit in (one, two, explicit):
        fit.close()


def test_checkpoints_go_on_where_a_fit_stopped(tmp_path: Path) -> None:
    model, names = MODELS["bias-mc"]
    data, place = frame(), str(tmp_path / "states")
    whole = disk(model).fit(data, **names)
    disk(clone_with(model, max_iter=2), checkpoint=place).fit(data, **names).close()
    assert sorted(p.name for p in Path(place).iterdir()) == ["checkpoint.json", "sweep-00002"]
    rest = disk(model, checkpoint=place, checkpoint_every=3, resume=True).fit(data, **names)
    np.testing.assert_array_equal(rest.to_local().row_factors_, whole.to_local().row_factors_)
    assert [h["objective"] for h in rest.history_] == [h["objective"] for h in whole.history_]
    again = disk(model, checkpoint=place, resume=True).fit(data, **names)  # nothing is left to do
    assert again.n_iter_ == 4
    other = clone_with(model, reg=0.7)
    with pytest.raises(ModelFileError, match=r"another fit: its reg is 0\.5, here it is 0\.7"):
        disk(other, checkpoint=place, resume=True).fit(data, **names)
    with pytest.raises(ModelFileError, match="its cells is 4000"):
        disk(model, checkpoint=place, resume=True).fit(frame(n_cells=3000), **names)
    (Path(place) / "checkpoint.json").write_text("{")
    with pytest.raises(ModelFileError, match="no readable checkpoint"):
        disk(model, checkpoint=place, resume=True).fit(data, **names)
    with pytest.raises(ParameterError, match="resume=True needs checkpoint="):
        disk(model, resume=True).fit(data, **names)
    for fit in (whole, rest, again):
        fit.close()


def clone_with(model: Any, **changes: Any) -> Any:
    return type(model)(**{**model.get_params(), **changes})


def test_results_are_written_as_parquet(tmp_path: Path) -> None:
    model, names = MODELS["mf-mean"]
    data = frame()
    fit = disk(model).fit(data, **names)
    local = fit.to_local()
    assert fit.write_factors(str(tmp_path / "rows")) == 300
    written = pd.read_parquet(tmp_path / "rows")
    assert written.id.tolist() == local.row_ids_.values.tolist()
    np.testing.assert_array_equal(np.stack(written.factor.to_list()), local.row_factors_)
    fit.write_factors(str(tmp_path / "cols"), "col")
    cols = np.stack(pd.read_parquet(tmp_path / "cols").factor.to_list())
    np.testing.assert_array_equal(cols, local.col_factors_)
    lines = fit.recommend_all(str(tmp_path / "lists"), 4)
    lists = pd.read_parquet(tmp_path / "lists")
    assert len(lists) == lines == 300 * 4
    cells = Observations.from_frame(data, **names)
    ids, scores = local.recommend(np.arange(300), 4, exclude=cells, positions=True)
    assert lists.item.tolist() == local.col_ids_[ids].ravel().tolist()
    np.testing.assert_allclose(lists.score, scores.ravel(), rtol=1e-6)
    with pytest.raises(InvalidDataError, match="not empty"):
        fit.write_factors(str(tmp_path / "rows"))
    fit.close()


def test_memory_stays_below_all_cells_and_far_below_rows_x_columns(tmp_path: Path) -> None:
    n, m, n_cells = 15_000, 10_000, 500_000
    rng = np.random.default_rng(0)
    place = tmp_path / "cells.parquet"
    pd.DataFrame(
        {"row": rng.integers(0, n, n_cells), "col": rng.integers(0, m, n_cells), "value": np.ones(n_cells)}
    ).to_parquet(place, row_group_size=1 << 14)
    model = MatrixFactorization(2, max_iter=1, random_state=0, reg=1.0, center="none")

    def peak(n_blocks: int) -> int:
        tracemalloc.start()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)
                disk(model, n_blocks=n_blocks, n_jobs=1).fit(str(place), shape=(n, m)).close()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    in_one, in_many = peak(1), peak(12)
    assert in_many < 8 * n * m // 20
    assert in_many < 24 * n_cells < in_one  # three columns of eight bytes: all cells at once


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_work_folder_is_left_as_it_was_found(tmp_path: Path) -> None:
    model, names = MODELS["mf"]
    fit = disk(model, work_folder=tmp_path).fit(frame(), **names)
    assert list(tmp_path.iterdir())
    fit.close()
    assert not list(tmp_path.iterdir())
    with pytest.raises(InvalidDataError):
        disk(model, work_folder=tmp_path).fit(frame().assign(stars=np.nan), **names)
    assert not list(tmp_path.iterdir())
    with pytest.raises(DivergedError):
        disk(model, work_folder=tmp_path).fit(frame().assign(stars=1e200), **names)
    assert not list(tmp_path.iterdir())


def with_sixth(data: pd.DataFrame, column: str, value: Any) -> pd.DataFrame:
    return data.assign(**{column: np.where(data.index == 1205, value, data[column])})


BAD_PARTS = {
    "nan": (lambda f: with_sixth(f, "stars", np.nan), "'stars' is (nan|missing)"),
    "infinite": (lambda f: with_sixth(f, "stars", np.inf), "'stars' is inf in line 5"),
    "column": (lambda f: f.rename(columns={"item": "film"}), "col='item' is not a column"),
    "type": (lambda f: f.assign(stars="five"), "column 'stars' is .*string; numbers are wanted"),
    "ids": (lambda f: f.assign(item=0.5), "column 'item' is double; integers or text are wanted"),
    "no id": (
        lambda f: f.assign(item=f.item.astype("Int64").mask(f.index == 1205)),
        "'item' has no id in line 5",
    ),
}


@pytest.mark.parametrize("name", BAD_PARTS)
def test_a_bad_partition_is_named(name: str, tmp_path: Path) -> None:
    change, message = BAD_PARTS[name]
    data = frame(text=False)
    parts = [data.iloc[:1200], change(data.iloc[1200:2400]), data.iloc[2400:]]
    for number, part in enumerate(parts):
        part.to_parquet(tmp_path / f"part-{number}.parquet")
    with pytest.raises(InvalidDataError, match=rf"part-1\.parquet', row group 0: .*{message}"):
        disk(MODELS["mf"][0]).fit(str(tmp_path), **NAMES)
    (tmp_path / "part-1.parquet").write_bytes(b"no such thing")
    with pytest.raises(InvalidDataError, match=r"part-1\.parquet' is not a Parquet file"):
        disk(MODELS["mf"][0]).fit(str(tmp_path), **NAMES)


def test_bad_input_is_refused(tmp_path: Path) -> None:
    data = frame()
    with pytest.raises(InvalidDataError, match="holds no Parquet file"):
        disk(MODELS["mf"][0]).fit(str(tmp_path))
    numbers = data.assign(user=np.arange(len(data)) % 301, item=0)
    with pytest.raises(InvalidDataError, match=r"'user' is 300 in line"):
        disk(MODELS["mf"][0]).fit(numbers, **NAMES, shape=(300, 80))
    with pytest.raises(InvalidDataError, match="must hold integers where shape= is given"):
        disk(MODELS["mf"][0]).fit(data, **NAMES, shape=(300, 900))
    with pytest.raises(InvalidDataError, match=r"line 0; positives are ones"):
        disk(MODELS["bias-mc"][0]).fit(data, **NAMES)
    with pytest.raises(InvalidDataError, match="nothing to learn from"):
        disk(MODELS["mf"][0]).fit(data.iloc[:0], **NAMES)
    with pytest.raises(ParameterError, match="different columns"):
        disk(MODELS["mf"][0]).fit(data, row="user", col="user")
    with pytest.raises(ParameterError, match="too little"):
        DiskCompleter(MODELS["mf"][0], memory="100MiB").fit(data, **NAMES)
    with pytest.raises(ParameterError, match=r"n_blocks=1 needs .* memory='290MiB'"):
        disk(MODELS["mf"][0], n_blocks=1, memory="290MiB").fit(data, **NAMES)
    with pytest.raises(InvalidDataError, match="partition 0 must be a pandas or polars DataFrame"):
        disk(MODELS["mf"][0]).fit([3 * [4]], **NAMES)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (BiasMC(3, cg_steps=None), 'alpha="auto" fits several models'),
        (BiasMC(3, alpha=0.9, reg="0.1max", cg_steps=None), "reg must be a number"),
        (BiasMC(3, alpha=0.9, solver="ccd", cg_steps=None), "only solver='als' goes by blocks"),
        (BiasMC(3, alpha=0.9, init="svd", cg_steps=None), "init must be 'random'"),
        (BiasMC(3, alpha=0.9, rho=0.1, cg_steps=None), "exactly one"),
        (MatrixFactorization(3, solver="ccd", reg=1.0, center="none"), "only solver='als' goes by blocks"),
        (MatrixFactorization(3, center="joint", reg=1.0), "center must be 'none', 'mean' or 'biases'"),
        (
            MatrixFactorization(3, validation_fraction=0.1, reg=1.0, center="none"),
            "validation_fraction must be None",
        ),
        (MatrixFactorization(3, warm_start=True, reg=1.0, center="none"), "warm_start must be False"),
        (MatrixFactorization(0, reg=1.0, center="none"), "rank must be an integer"),
        (unseen.AugmentedMF(3, reg=0.02, center="mean"), "cross_component must be 'model'"),
        (
            unseen.AugmentedMF(3, reg=0.02, center="mean", augmentation="hashed"),
            "augmentation must be 'expected'",
        ),
        (unseen.BiasModel(), "BiasModel cannot be fitted by blocks"),
    ],
)
def test_models_that_do_not_go_by_blocks_are_refused_with_a_reason(model: Any, message: str) -> None:
    with pytest.raises((ParameterError, UnsupportedComposition), match=message):
        disk(model).fit(frame(), **NAMES)


def test_repeated_cells_and_the_cap_warn() -> None:
    data = pd.concat([frame(), frame().iloc[:7]])
    model = MatrixFactorization(2, max_iter=1, random_state=0, reg=1.0, center="none")
    with pytest.warns(DataWarning, match="7 of 4007 cells repeat"), pytest.warns(ConvergenceWarning):
        disk(model).fit(data, **NAMES).close()


def test_weights_and_zeros_of_positives_mean_what_they_do_in_memory() -> None:
    data = frame()
    data["stars"] = np.random.default_rng(0).integers(0, 4, len(data)).astype(float)
    model = BiasMC(3, alpha=0.8, weights=True, max_iter=3, tol=0.0, random_state=0, cg_steps=None)
    reference = in_memory(model, data, NAMES)
    fit = disk(model).fit(data, **NAMES)
    assert fit.n_cells_ == (data.stars > 0).sum()
    assert fit.history_[-1]["objective"] == pytest.approx(reference.history_[-1]["objective"], rel=1e-9)
    fit.close()
