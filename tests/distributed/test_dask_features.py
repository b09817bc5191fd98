"""Side features on a cluster: equal bits for any number of workers, also when one of them is killed."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

distributed = pytest.importorskip("distributed", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")

from block_data import MODELS, WITH_FEATURES, cluster_of, frame, side_features  # noqa: E402

from unseen.distributed import DaskCompleter, DiskCompleter, dask_engine  # noqa: E402
from unseen.exceptions import InvalidDataError, ParameterError  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Sending large graph"),
]


def by_dask(client: Any, model: Any, *args: Any, **options: Any) -> Any:
    # Patience for processes that import all they need on a busy machine.
    fit = DaskCompleter(model, client=client, n_blocks=2, dtype="float64", patience=300.0)
    return fit.fit(*args, **options)


def from_disk(model: Any, *args: Any, n_blocks: int = 2, **options: Any) -> Any:
    fit = DiskCompleter(model, n_blocks=n_blocks, dtype="float64", n_jobs=1).fit(*args, **options)
    found = fit.to_local()
    fit.close()
    return found


def assert_same_bits(ours: Any, theirs: Any) -> None:
    np.testing.assert_array_equal(ours.row_factors_, theirs.row_factors_)
    np.testing.assert_array_equal(ours.col_factors_, theirs.col_factors_)
    assert sorted(ours.state_) == sorted(theirs.state_)
    for key, array in theirs.state_.items():
        np.testing.assert_array_equal(ours.state_[key], array)


def quick(name: str) -> tuple[Any, dict[str, Any]]:
    model, names = WITH_FEATURES[name]
    return type(model)(**{**model.get_params(), "max_iter": 2, "cg_steps": 3}), names


def test_the_fit_from_disk_to_the_last_bit(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, names = quick("imc")
    data = frame()
    features = side_features(data)
    rows, cols = features["row_features"], features["col_features"]
    expected = from_disk(model, data, **names, **features)
    parts = [rows.iloc[number::3] for number in range(3)]
    lazy = dd.from_pandas(cols, npartitions=2)
    fit = by_dask(client, model, data, **names, row_features=parts, col_features=lazy)
    assert_same_bits(fit.to_local(), expected)
    with pytest.raises(ParameterError, match="col_features is a dask DataFrame"):
        from_disk(model, data, **names, col_features=lazy)
    assert fit.to_local().row_feature_names_ == [f"row{place}" for place in range(6)]
    monkeypatch.setattr(dask_engine, "SEND_ONCE", 0)  # all arrays as results of tasks
    assert_same_bits(by_dask(client, model, data, **names, **features).to_local(), expected)
    # Negative control: another plan of blocks adds in another order.
    other = from_disk(model, data, **names, **features, n_blocks=3)
    assert not np.array_equal(other.row_factors_, expected.row_factors_)


def test_one_side_without_features_and_files(client: Any, tmp_path: Path) -> None:
    model, names = quick("bias-imc")
    data = frame(text=False)
    cols = side_features(data)["col_features"]
    for number in range(2):
        cols.iloc[number::2].to_parquet(tmp_path / f"{number}.parquet", row_group_size=20)
    expected = from_disk(model, data, **names, col_features=cols)
    fit = by_dask(client, model, data, **names, col_features=str(tmp_path))
    assert_same_bits(fit.to_local(), expected)


def test_indices_with_an_array(client: Any) -> None:
    model, names = quick("imc")
    data = frame(text=False)
    data["user"], data["item"] = (data.user - 3) // 7, data["item"] // 11
    table = pd.DataFrame(np.random.default_rng(0).standard_normal((300, 3)), columns=["x", "y", "z"])
    array = table.to_numpy()
    options = {**names, "shape": (300, 80)}
    expected = from_disk(model, data, **options, row_features=array)
    fit = by_dask(client, model, data, **options, row_features=array)
    assert_same_bits(fit.to_local(), expected)
    few = sparse.csr_array(np.where(np.abs(array) > 1.0, array, 0.0))
    plain = type(model)(**{**model.get_params(), "standardize": False})
    there, here = (
        by(plain, data, **options, row_features=few) for by in (partial(by_dask, client), from_disk)
    )
    assert_same_bits(there.to_local(), here)
    by_table = by_dask(client, model, data, **options, row_features=table.assign(user=np.arange(300)))
    assert_same_bits(by_table.to_local(), expected)


def test_bad_features_are_named(client: Any) -> None:
    model, names = quick("imc")
    data = frame()
    rows = side_features(data)["row_features"]
    parts = [rows.iloc[:100], rows.iloc[100:200], rows.iloc[200:]]
    missing = parts[1].assign(row2=np.where(np.arange(100) == 5, np.nan, parts[1].row2))
    other = rows.user[parts[0].index[3]]
    lost = next(name for name in parts[2].user if name != "zz")
    for changed, message in (
        (missing, r"row_features, partition 1: feature 'row2' is .* in line 5"),
        (parts[1].drop(columns="row3"), "row_features, partition 1: 5 features .*first partition has 6"),
        (parts[1].assign(user=np.arange(100)), "row_features, partition 1: the ids are integers"),
        (
            pd.concat([parts[1], parts[0].iloc[3:4]]),
            f"'{other}' has 2 lines: row_features, partition 0, line 3; row_features, partition 1, line 100",
        ),
    ):
        with pytest.raises(InvalidDataError, match=message):
            by_dask(client, model, data, **names, row_features=[parts[0], changed, parts[2]])
    rest = parts[2][parts[2].user != lost]
    with pytest.raises(InvalidDataError, match=f"no line for the row id '{lost}' in 3 partitions"):
        by_dask(client, model, data, **names, row_features=[parts[0], parts[1], rest])
    with pytest.raises(InvalidDataError, match="row_features has no column 'film'"):
        by_dask(
            client, model, data, **names, row_features=dd.from_pandas(rows, npartitions=2), id_column="film"
        )


ALL_MODELS = {
    **{name: MODELS[name] for name in ("mf-mean", "bias-mc", "amf")},
    **{name: WITH_FEATURES[name] for name in ("imc", "bias-imc")},
}


def fitted(client: Any, name: str, data: pd.DataFrame) -> Any:
    model, names = quick(name) if name in WITH_FEATURES else ALL_MODELS[name]
    features = side_features(data) if name in WITH_FEATURES else {}
    return by_dask(client, model, [data.iloc[::2], data.iloc[1::2]], **names, **features).to_local()


@pytest.mark.slow
def test_the_same_bits_with_one_two_and_four_worker_processes() -> None:
    data = frame()
    with cluster_of(1, processes=True) as cluster, distributed.Client(cluster) as client:
        found: dict[str, Any] = {}
        for count in (1, 2, 4):
            cluster.scale(count)
            client.wait_for_workers(count)
            for name in ALL_MODELS:
                local = fitted(client, name, data)
                assert_same_bits(local, found.setdefault(name, local))


@pytest.mark.slow
def test_a_worker_that_is_killed_in_a_sweep_changes_nothing() -> None:
    data = frame()
    with cluster_of(2, processes=True) as cluster, distributed.Client(cluster) as client:
        for sides in (("row", "col"), ("row",)):
            model, names = quick("imc")
            features = {key: table for key, table in side_features(data).items() if key[:3] in sides}
            expected = from_disk(model, data, **names, **features)
            victim = next(iter(client.run(os.getpid).values()))
            fit = DaskCompleter(model, client=client, n_blocks=2, dtype="float64", patience=300.0)
            killed = kill_in_solve(fit, victim, after=5)
            fit.fit(data, **names, **features)
            assert killed == [victim]
            assert_same_bits(fit.to_local(), expected)


def kill_in_solve(fit: DaskCompleter, victim: int, after: int) -> list[int]:
    """Arrange for a worker to be killed, by its own id, in the middle of the steps for coefficients."""
    killed: list[int] = []
    make = fit._make_engine

    def making(*args: Any) -> Any:
        engine, dtype = make(*args)
        total, calls = engine.total, []

        def adding(*inner: Any) -> Any:
            calls.append(None)
            if len(calls) == after:
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)
            return total(*inner)

        engine.total = adding  # type: ignore[method-assign]
        return engine, dtype

    fit._make_engine = making  # type: ignore[method-assign]
    return killed
