"""Side features by blocks: the coefficients of a fit in memory, and clear words about wrong tables."""

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

from block_data import NAMES, WITH_FEATURES, disk, frame, in_memory, side_features

import unseen
from unseen import GIMC, IMC, BiasIMC, Completion, Given, Identity, LowRank, MatrixFactorization, Ridge, Term
from unseen.distributed import DiskCompleter, cluster_memory, conjugate, local_memory, steps
from unseen.distributed.blocks import Triples, build_block
from unseen.distributed.features import extent, map_params_of, mean_of
from unseen.distributed.steps import Settings
from unseen.exceptions import (
    DataWarning,
    InvalidDataError,
    ModelFileError,
    ParameterError,
    UnsupportedComposition,
)
from unseen.linalg.designs import as_design
from unseen.losses import Background, Biased, Squared
from unseen.maps import WithOnes
from unseen.maps.linear import squared_deviations
from unseen.solvers import AlternatingCG

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def changed(model: Any, **changes: Any) -> Any:
    return type(model)(**{**model.get_params(), **changes})


@pytest.mark.parametrize(
    ("name", "sides"),
    [
        ("imc", ("row", "col")),
        ("imc", ("row",)),
        ("imc", ()),
        ("imc-plain", ("row", "col")),
        ("bias-imc", ("row", "col")),
        ("bias-imc", ("col",)),
    ],
)
def test_the_objective_and_the_scores_are_those_of_a_fit_in_memory(name: str, sides: tuple[str, ...]) -> None:
    model, names = WITH_FEATURES[name]
    data = frame()
    features = {key: table for key, table in side_features(data).items() if key[:3] in sides}
    reference = in_memory(model, data, names, features)
    fit = disk(model).fit(data, **names, **features)
    local = fit.to_local()
    fit.close()
    ours, theirs = ([entry["objective"] for entry in found.history_] for found in (fit, reference))
    # Conjugate gradients blow up rounding where features are not scaled.
    share = 1e-6 if name == "imc-plain" else 1e-9
    np.testing.assert_allclose(ours, theirs, rtol=share)
    scores, expected = (found.row_factors_ @ found.col_factors_.T for found in (local, reference))
    np.testing.assert_allclose(scores, expected, atol=1000 * share)
    assert sorted(local.state_) == sorted(reference.state_)
    for key, array in reference.state_.items():
        if "_map." in key:
            np.testing.assert_allclose(local.state_[key], array, rtol=1e-12)
    # Negative control: another penalty gives another fit.
    other = in_memory(changed(model, reg=model.reg + 3.0), data, names, features)
    assert abs(other.history_[-1]["objective"] / ours[-1] - 1.0) > 10 * share


def test_the_model_is_an_ordinary_one(tmp_path: Path) -> None:
    model, names = WITH_FEATURES["imc"]
    data = frame()
    features = side_features(data)
    fit = disk(model).fit(data, **names, **features)
    local, reference = fit.to_local(), in_memory(model, data, names, features)
    new = np.random.default_rng(3).standard_normal((5, 6))
    np.testing.assert_allclose(
        local.predict_new(row_features=new), reference.predict_new(row_features=new), atol=1e-7
    )
    assert local.row_feature_names_ == reference.row_feature_names_
    local.save(tmp_path / "model")
    again = unseen.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_new(row_features=new), local.predict_new(row_features=new))
    assert fit.write_factors(str(tmp_path / "rows")) == 300
    written = np.stack(pd.read_parquet(tmp_path / "rows").factor.to_list())
    np.testing.assert_array_equal(written, local.row_factors_)
    assert fit.recommend_all(str(tmp_path / "lists"), 3) == 900
    fit.close()


def test_files_frames_and_arrays_give_the_same_bits(tmp_path: Path) -> None:
    model, names = WITH_FEATURES["bias-imc"]
    data = frame(text=False)
    data["user"], data["item"] = (data.user - 3) // 7, data["item"] // 11
    features = side_features(data)
    rows, cols = features["row_features"], features["col_features"]
    rows = rows[rows.user < 300]
    cols = cols[cols["item"] < 80]
    (tmp_path / "rows").mkdir()
    for number in range(3):
        rows.iloc[number::3].to_parquet(tmp_path / "rows" / f"{number}.parquet", row_group_size=40)
    by_ids = disk(model).fit(data, **names, row_features=str(tmp_path / "rows"), col_features=cols)
    in_order = {
        f"{side}_features": table.sort_values(table.columns[0]).drop(columns=table.columns[0]).to_numpy()
        for side, table in (("row", rows), ("col", cols))
    }
    by_index = disk(model, n_jobs=2).fit(data, **names, shape=(300, 80), **in_order)
    parts = [cols.iloc[:50], cols.iloc[50:]]
    tables = disk(model).fit(data, **names, shape=(300, 80), row_features=rows, col_features=parts)
    renamed = cols.rename(columns={"item": "thing"})[[*cols.columns[1:], "thing"]]
    named = disk(model).fit(
        data, **names, row_features=rows.rename(columns={"user": "thing"}), col_features=renamed,
        id_column="thing",
    )  # fmt: skip
    expected = by_ids.to_local()
    for fit in (by_index, tables, named):
        found = fit.to_local()
        np.testing.assert_array_equal(found.row_factors_, expected.row_factors_)
        np.testing.assert_array_equal(found.state_["0.col"], expected.state_["0.col"])
    # Negative control: features of other rows.
    in_order["row_features"] = in_order["row_features"][::-1]
    other = disk(model).fit(data, **names, shape=(300, 80), **in_order)
    assert not np.array_equal(other.to_local().row_factors_, expected.row_factors_)
    for fit in (by_ids, by_index, tables, named, other):
        fit.close()


def test_scales_summed_by_blocks_are_those_of_all_features() -> None:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((90, 4)) * [1.0, 1e3, 1e-3, 1.0] + [0.0, 1e4, 5.0, 0.0]
    features[:, 3] = 7.0
    blocks = np.split(features, [10, 55])
    a_map = WithOnes(standardize=True)
    with pytest.warns(DataWarning, match=r"1 of 4 features are constant \(column 3\)"):
        expected = a_map.init(features, 90, rng)
    extents = [extent(block) for block in blocks]
    squares = [squared_deviations(block, mean_of(extents)) for block in blocks]
    with pytest.warns(DataWarning, match=r"1 of 4 features are constant \(column 3\)"):
        found = map_params_of(a_map, extents, squares)
    assert sorted(found) == sorted(expected)
    for key, array in expected.items():
        np.testing.assert_allclose(found[key], array, rtol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = map_params_of(a_map, extents, squares[:-1])  # negative control: a block is forgotten
    assert not np.allclose(wrong["scale"], expected["scale"], rtol=1e-3)


@pytest.mark.parametrize("loss", [Squared(), Biased(0.8), Squared(2.0, Background(0.3))])
def test_derivatives_of_a_block_are_those_of_its_objective(loss: Any) -> None:
    rng = np.random.default_rng(0)
    rows, cols = np.divmod(rng.choice(20 * 9, 60, replace=False), 9)
    cells = build_block(Triples(rows, cols, rng.standard_normal(60)), 0, 20, 9, "mean", "float64")
    design, factors = rng.standard_normal((20, 4)), rng.standard_normal((9, 3))
    settings = Settings(loss, 0.7, 3, "float64")
    other, square = factors[cells.touched], factors.T @ factors
    weight = loss.blank().weight
    at, along = rng.standard_normal((4, 3)), rng.standard_normal((4, 3))

    def value(coefficients: Any) -> float:
        near = design @ coefficients
        data, squares = steps.judge_block(cells, other, near, settings)
        return data + 0.5 * weight * (np.sum((near @ factors.T) ** 2) - squares)

    def slope(coefficients: Any) -> Any:
        return conjugate.slope_block(cells, other, as_design(design), design @ coefficients, square, settings)

    step = 1e-5
    numeric = (value(at + step * along) - value(at - step * along)) / (2 * step)
    assert float(np.sum(slope(at) * along)) == pytest.approx(numeric, rel=1e-7)
    bend = (slope(at + step * along) - slope(at - step * along)) / (2 * step)
    product = conjugate.product_block(cells, other, as_design(design), along, square, settings)
    np.testing.assert_allclose(product, bend, rtol=1e-7)
    # Negative control: a wrong design, and a background that is forgotten.
    assert abs(np.sum(slope(at)[::-1] * along) / numeric - 1.0) > 1e-3
    if weight:
        square = np.zeros((3, 3))
        assert abs(np.sum(slope(at) * along) / numeric - 1) > 1e-3


def test_threads_change_nothing_and_float32_stays() -> None:
    model, names = WITH_FEATURES["bias-imc"]
    data = frame()
    features = side_features(data)
    one, two = (disk(model, n_jobs=jobs, dtype=None).fit(data, **names, **features) for jobs in (1, 2))
    first, second = one.to_local(), two.to_local()
    np.testing.assert_array_equal(first.row_factors_, second.row_factors_)
    assert first.state_["0.row"].dtype == first.row_factors_.dtype == np.float32
    precise = in_memory(model, data, names, features).history_[-1]["objective"]
    assert one.history_[-1]["objective"] == pytest.approx(precise, rel=1e-4)
    for fit in (one, two):
        fit.close()


@pytest.mark.parametrize("sides", [("row", "col"), ("col",)])
def test_checkpoints_go_on_where_a_fit_stopped(sides: tuple[str, ...], tmp_path: Path) -> None:
    model, names = WITH_FEATURES["imc"]
    data, place = frame(), str(tmp_path / "states")
    features = {key: table for key, table in side_features(data).items() if key[:3] in sides}
    whole = disk(model).fit(data, **names, **features)
    disk(changed(model, max_iter=2), checkpoint=place).fit(data, **names, **features).close()
    rest = disk(model, checkpoint=place, resume=True).fit(data, **names, **features)
    found, expected = rest.to_local(), whole.to_local()
    np.testing.assert_array_equal(found.row_factors_, expected.row_factors_)
    np.testing.assert_array_equal(found.state_["0.col"], expected.state_["0.col"])
    assert [e["objective"] for e in rest.history_] == [e["objective"] for e in whole.history_]
    others = {key: table.assign(**{table.columns[1]: 0.5}) for key, table in features.items()}
    with (
        pytest.raises(ModelFileError, match="another fit: its features"),
        pytest.warns(DataWarning, match="constant"),
    ):
        disk(model, checkpoint=place, resume=True).fit(data, **names, **others)
    for fit in (whole, rest):
        fit.close()


def with_line(table: pd.DataFrame, place: int, column: str, value: Any) -> pd.DataFrame:
    return table.assign(**{column: np.where(np.arange(len(table)) == place, value, table[column])})


WHERE = r"row_features, .*rows-1\.parquet', row group 0"
BAD_TABLES = {
    "nan": (lambda t: with_line(t, 5, "row2", np.nan), rf"{WHERE}: feature 'row2' is .* in line 5"),
    "infinite": (lambda t: with_line(t, 5, "row2", np.inf), rf"{WHERE}: feature 'row2' is inf in line 5"),
    "fewer": (lambda t: t.drop(columns="row3"), rf"{WHERE}: 5 features .*the first partition has 6"),
    "more": (lambda t: t.assign(extra=1.0), rf"{WHERE}: 7 features .*the first partition has 6"),
    "text": (lambda t: t.assign(row3="five"), rf"{WHERE}: feature 'row3' is .*string; numbers are wanted"),
    "no ids": (lambda t: t.drop(columns="user"), rf"{WHERE}: there is no column 'user' with ids"),
    "odd ids": (lambda t: t.assign(user=0.5), rf"{WHERE}: column 'user' is double"),
    "a null": (lambda t: t.assign(user=t.user.mask(t.index == t.index[4])), rf"{WHERE}.*no id in line 4"),
    "other ids": (lambda t: t.assign(user=np.arange(len(t))), rf"{WHERE}: the ids are integers.*are text"),
    "twice": (
        lambda t: pd.concat([t, t.iloc[7:8]]),
        rf"has 2 lines: {WHERE}, line 7; {WHERE}, line {{last}}; one line",
    ),
    "absent": (
        lambda t: t[t.user != "u17"],
        "row_features has no line for the row id 'u17' in 3 partitions",
    ),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_bad_partition_of_features_is_named(name: str, tmp_path: Path) -> None:
    change, message = BAD_TABLES[name]
    model, names = WITH_FEATURES["imc"]
    data = frame()
    table = side_features(data)["row_features"]
    (second,) = [table.iloc[100:200]]
    parts = [table[table.user != "u17"].iloc[:100], second, table[~table.index.isin(second.index)]]
    known = set(parts[0].index)
    parts[2] = parts[2][~parts[2].index.isin(known)]
    if name == "absent":
        parts = [part[part.user != "u17"] for part in parts]
    for number, part in enumerate(parts):
        found = change(part) if number == 1 else part
        found.to_parquet(tmp_path / f"rows-{number}.parquet", index=False)
    with pytest.raises(InvalidDataError, match=message.replace("{last}", str(len(second)))):
        disk(model).fit(data, **names, row_features=str(tmp_path))


def test_bad_features_are_refused() -> None:
    model, names = WITH_FEATURES["imc"]
    data = frame()
    rows = side_features(data)["row_features"]
    numbers = frame(text=False)
    array = np.zeros((300, 2))
    with pytest.raises(ParameterError, match="row_features is an array, whose lines have no ids"):
        disk(model).fit(data, **names, row_features=array)
    with pytest.raises(InvalidDataError, match="row_features has 299 rows, but 300 entities"):
        disk(model).fit(data, **names, row_features=array[:299], shape=(300, 80))
    with pytest.raises(InvalidDataError, match="row_features has no column 'film'"):
        disk(model).fit(data, **names, row_features=rows, id_column="film")
    with pytest.raises(InvalidDataError, match="no column of features beside 'user'"):
        disk(model).fit(data, **names, row_features=rows[["user"]])
    indices = numbers.assign(user=(numbers.user - 3) // 7, item=numbers["item"] // 11)
    table = pd.DataFrame({"user": np.arange(1, 301), "x": 0.5})
    with pytest.raises(InvalidDataError, match=r"id 300 in line 299 is no index of 0\.\.299"):
        disk(model).fit(indices, **names, shape=(300, 80), row_features=table)
    names_of = [f"x{place}" for place in range(4000)]
    wide = pd.DataFrame(np.zeros((301, 4000)), columns=names_of).assign(user=rows.user.to_numpy())
    with pytest.raises(ParameterError, match="too little"):
        DiskCompleter(model, memory="370MiB").fit(data, **names, row_features=wide, id_column="user")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MatrixFactorization(3, reg=1.0, center="none"), "takes no row_features or col_features; use IMC"),
        (GIMC(3, reg=0.1, center="none"), "only solver='als' goes by blocks"),
        (BiasIMC(3, alpha=0.9, reg=1.0, whiten=True), "Whitened; only .*pass whiten=False"),
        (BiasIMC(3, alpha=0.9), "reg must be a number"),
        (BiasIMC(3, alpha=0.9, reg=1.0, solver="prox"), "solved by ProxGradient"),
        (unseen.ShiftIMC(3, rho=0.1), "ShiftIMC cannot be fitted by blocks"),
        (IMC(3, validation_fraction=0.1, reg=1.0, center="none"), "validation_fraction must be None"),
    ],
)
def test_models_that_do_not_go_by_blocks_are_refused_with_a_reason(model: Any, message: str) -> None:
    data = frame()
    with pytest.raises((ParameterError, UnsupportedComposition), match=message):
        disk(model).fit(data, **NAMES, row_features=side_features(data)["row_features"])


def test_a_composition_of_linear_maps_goes_by_blocks() -> None:
    data = frame()
    rows = {"row_features": side_features(data)["row_features"]}
    term = Term(Given(standardize=True), Identity(), LowRank(2), Ridge(0.5))
    model = Completion([term], solver=AlternatingCG(), max_iter=3, tol=0.0, random_state=0)
    fit = disk(model).fit(data, **NAMES, **rows)
    expected = in_memory(model, data, NAMES, rows).history_[-1]["objective"]
    assert fit.history_[-1]["objective"] == pytest.approx(expected, rel=1e-9)
    fit.close()
    with pytest.raises(UnsupportedComposition, match="it needs row_features"):
        disk(model).fit(data, **NAMES)
    with pytest.raises(UnsupportedComposition, match=r"name one, solver=ALS\(\) or AlternatingCG\(\)"):
        disk(Completion([term])).fit(data, **NAMES, **rows)


def test_memory_stays_far_below_all_features(tmp_path: Path) -> None:
    n, m, n_cells, p = 10_000, 100, 30_000, 150
    rng = np.random.default_rng(0)
    cells = pd.DataFrame(
        {"row": rng.integers(0, n, n_cells), "col": rng.integers(0, m, n_cells), "value": np.ones(n_cells)}
    )
    (tmp_path / "rows").mkdir()
    for number in range(4):
        part = np.arange(number, n, 4)
        table = pd.DataFrame(rng.standard_normal((len(part), p)), columns=[f"x{i}" for i in range(p)])
        table.assign(row=part).to_parquet(tmp_path / "rows" / f"{number}.parquet", row_group_size=1000)
    model = IMC(2, max_iter=1, cg_steps=2, random_state=0, reg=1.0, center="none")

    def peak(n_blocks: int) -> int:
        tracemalloc.start()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)
                fit = disk(model, n_blocks=n_blocks)
                fit.fit(cells, shape=(n, m), row_features=str(tmp_path / "rows")).close()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    everything = 8 * n * p
    in_one, in_many = peak(1), peak(16)
    assert in_many < everything < in_one
    assert in_many < 8 * n * m * 4  # nothing of rows x columns beside it


def test_the_need_of_memory_grows_with_features() -> None:
    size = (10**8, (10**6, 10**5), 32)
    plain, wide = (local_memory(*size, 16, n_features=(p, 0)) for p in (0, 2000))
    assert wide.sweeping - plain.sweeping > 2 * 2000 * 10**6 / 16 * 4
    assert wide.fixed == plain.fixed
    plain, wide = (cluster_memory(*size, 16, 4, n_features=(p, p)) for p in (0, 500))
    assert wide.fixed - plain.fixed == pytest.approx(1.1e6 / 4 * 500 * 4, rel=1e-6)
    assert wide.building > plain.building
    assert wide.sweeping > plain.sweeping
