"""Fits on a cluster: equal bits for any number of workers, and clear words when something is wrong."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

distributed = pytest.importorskip("distributed", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")

from block_data import MODELS, NAMES, cluster_of, frame, in_memory  # noqa: E402

from unseen import (  # noqa: E402
    SLEEC,
    Completion,
    ExMLDS,
    LowRank,
    MatrixFactorization,
    Ridge,
    RidgeOvA,
    Term,
)
from unseen.distributed import DaskCompleter, DiskCompleter, fit_learners  # noqa: E402
from unseen.distributed.cluster import Cluster, check_reports, check_room  # noqa: E402
from unseen.distributed.steps import BlockSums, solve_block  # noqa: E402
from unseen.exceptions import (  # noqa: E402
    ClusterError,
    InvalidDataError,
    TooLargeError,
    UnsupportedComposition,
)
from unseen.linalg.blocked import gram  # noqa: E402
from unseen.losses import Background, Squared  # noqa: E402
from unseen.solvers import AlternatingCG  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Sending large graph"),
]


def dask_fit(client: Any, model: Any, data: Any, names: dict[str, Any], **options: Any) -> DaskCompleter:
    settings = {"n_blocks": 2, "dtype": "float64", "client": client, **options}
    return DaskCompleter(model, **settings).fit(data, **names)


def parts_of(data: pd.DataFrame, count: int = 3) -> list[pd.DataFrame]:
    return [data.iloc[part::count] for part in range(count)]


@pytest.mark.parametrize("name", ["mf-mean", "bias-mc-cg"])
def test_factors_are_those_of_the_fit_from_disk_to_the_last_bit(client: Any, name: str) -> None:
    model, names = MODELS[name]
    data = frame()
    fit = dask_fit(client, model, parts_of(data), names)
    local = fit.to_local()
    other = DiskCompleter(model, n_blocks=2, dtype="float64").fit(parts_of(data), **names)
    same = other.to_local()
    other.close()
    np.testing.assert_array_equal(local.row_factors_, same.row_factors_)
    np.testing.assert_array_equal(local.col_factors_, same.col_factors_)
    assert local.row_ids_ == same.row_ids_
    reference = in_memory(model, data, names)
    assert fit.history_[-1]["objective"] == pytest.approx(reference.history_[-1]["objective"], rel=1e-9)
    # Negative control: another plan of blocks adds in another order.
    assert not np.array_equal(
        dask_fit(client, model, data, names, n_blocks=3).to_local().row_factors_, local.row_factors_
    )
    fit.close()


@pytest.mark.parametrize(
    "model",
    [
        MatrixFactorization(4, center="biases", max_iter=3, tol=0.0, random_state=1, reg=1.0),
        Completion(
            [Term(core=LowRank(3), reg=Ridge(0.1, degree_scaling=1.0))],
            loss=Squared(background=Background(0.2, col_weights=np.linspace(0.5, 2.0, 80))),
            solver=AlternatingCG(),
            max_iter=2,
            tol=0.0,
            random_state=1,
        ),
    ],
    ids=["biases", "degrees and popularity"],
)
def test_weights_and_options_of_the_objective(client: Any, model: Any, tmp_path: Path) -> None:
    data = frame().assign(trust=np.random.default_rng(0).uniform(0.1, 3.0, 4000))
    names = {**NAMES, "weight": "trust"}
    fit = dask_fit(client, model, parts_of(data), names, checkpoint=str(tmp_path / "states"))
    local = fit.to_local()
    other = DiskCompleter(model, n_blocks=2, dtype="float64").fit(parts_of(data), **names)
    same = other.to_local()
    np.testing.assert_array_equal(local.row_factors_, same.row_factors_)
    np.testing.assert_array_equal(local.col_factors_, same.col_factors_)
    reference = in_memory(model, data, names)
    assert fit.history_[-1]["objective"] == pytest.approx(reference.history_[-1]["objective"], rel=1e-8)
    for completer, place in ((fit, "there"), (other, "here")):
        completer.recommend_all(str(tmp_path / place), 3)
        completer.write_factors(str(tmp_path / f"{place}-rows"))
    for place in ("", "-rows"):
        there, here = (pd.read_parquet(tmp_path / f"{name}{place}") for name in ("there", "here"))
        pd.testing.assert_frame_equal(there, here)
    other.close()
    # Negative control: cells that all count alike.
    plain = dask_fit(client, model, parts_of(data), NAMES).to_local()
    assert not np.allclose(plain.row_factors_, local.row_factors_, rtol=1e-3)


def test_dask_frames_parquet_and_results(client: Any, tmp_path: Path) -> None:
    model, names = MODELS["bias-mc"]
    data = frame(text=False)
    from_dask = dask_fit(client, model, dd.from_pandas(data, npartitions=3), names)
    (tmp_path / "cells").mkdir()
    for number, part in enumerate(parts_of(data)):
        part.to_parquet(tmp_path / "cells" / f"{number}.parquet", row_group_size=700)
    fit = dask_fit(client, model, str(tmp_path / "cells"), names)
    local = fit.to_local()
    np.testing.assert_array_equal(from_dask.to_local().row_factors_, local.row_factors_)
    assert fit.write_factors(str(tmp_path / "rows")) == 300
    written = pd.read_parquet(tmp_path / "rows")
    assert written.id.tolist() == local.row_ids_.values.tolist()
    np.testing.assert_array_equal(np.stack(written.factor.to_list()), local.row_factors_)
    fit.recommend_all(str(tmp_path / "lists"), 4)
    lists = pd.read_parquet(tmp_path / "lists")
    ids, _ = local.recommend(np.arange(300), 4, exclude=_cells(data, names), positions=True)
    assert lists.user.tolist() == np.repeat(local.row_ids_.values, 4).tolist()
    assert lists.item.tolist() == local.col_ids_[ids].ravel().tolist()


def _cells(data: pd.DataFrame, names: dict[str, Any]) -> Any:
    from unseen import Observations

    return Observations.from_frame(data, **names)


def test_only_touched_factors_are_sent(client: Any) -> None:
    model, names = MODELS["mf"]
    # Two halves that share no column: a block of rows touches the columns of its half only.
    data = frame(text=False)
    data["item"] += 100_000 * (data.user > data.user.median())
    fit = dask_fit(client, model, data, names, n_blocks=2)
    sent = fit._engine.touched["col"]
    assert sent[0, 1] + sent[1, 0] <= 0.3 * sent.sum()
    other = DiskCompleter(model, n_blocks=2, dtype="float64").fit(data, **names)
    np.testing.assert_array_equal(fit.to_local().row_factors_, other.to_local().row_factors_)
    other.close()
    plain = dask_fit(client, model, frame(), names, n_blocks=2)._engine
    assert (plain.touched["col"] == plain.touched["col"][:, :1]).all()  # negative control: all are touched
    assert plain.bytes_to_send("row", fit._settings) == 80 * 4 * 8
    assert fit._engine.bytes_to_send("row", fit._settings) < 0.4 * 160 * 4 * 8


def test_learners_are_those_of_a_fit_in_memory(client: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 6))
    Y = sparse.csr_array((X @ rng.standard_normal((6, 15)) > 1.5).astype(float))
    for model in (
        SLEEC(n_components=4, n_learners=2, n_clusters=2, random_state=0),
        ExMLDS(n_components=4, n_learners=3, random_state=0, neighbor_power=0.0),
    ):
        here, there = type(model)(**model.get_params()).fit(X, Y), fit_learners(model, X, Y, client=client)
        ours, theirs = (found.predict_topk(X, 3) for found in (there, here))
        np.testing.assert_array_equal(ours[0], theirs[0])
        np.testing.assert_array_equal(ours[1], theirs[1])
        assert there.n_iter_ == here.n_iter_
        # Negative control: another penalty learns something else.
        other = fit_learners(model.set_params(reg=9 * model.reg), X, Y, client=client)
        assert not np.array_equal(other.learners_[0].parts[0].points, here.learners_[0].parts[0].points)
    with pytest.raises(UnsupportedComposition, match="RidgeOvA has no learners"):
        fit_learners(RidgeOvA(), X, Y, client=client)


def test_a_bad_partition_is_named(client: Any) -> None:
    model, names = MODELS["mf"]
    parts = parts_of(frame())
    parts[1] = parts[1].assign(stars=np.where(np.arange(len(parts[1])) == 5, np.nan, parts[1].stars))
    with pytest.raises(InvalidDataError, match=r"partition 1: 'stars' is (nan|missing) in line 5"):
        dask_fit(client, model, parts, names)
    parts[1] = parts_of(frame())[1].rename(columns={"item": "film"})
    with pytest.raises(InvalidDataError, match="partition 1: col='item' is not a column"):
        dask_fit(client, model, parts, names)
    mixed = parts_of(frame(text=False))
    with pytest.raises(InvalidDataError, match="text in partition 1 of 3"):
        dask_fit(client, model, [mixed[0], parts_of(frame())[1], mixed[2]], names)
    with pytest.raises(InvalidDataError, match="X has no column 'film'"):
        dask_fit(client, model, dd.from_pandas(frame(), npartitions=2), {**names, "col": "film"})


def test_workers_that_would_compute_something_else_are_refused() -> None:
    own = {"unseen": "0.1.0", "numpy": "2.0", "scipy": "1.14", "kernels": "native", "isa": "avx2"}
    check_reports({"tcp://a": dict(own), "tcp://b": dict(own)}, own)
    check_reports({"tcp://a": {**own, "isa": "avx512"}}, own)  # the client solves nothing
    with pytest.raises(ClusterError, match=r"unseen is 0.2.0 on worker tcp://b and 0.1.0 on this client"):
        check_reports({"tcp://a": dict(own), "tcp://b": {**own, "unseen": "0.2.0"}}, own)
    with pytest.raises(ClusterError, match="UNSEEN_ISA"):
        check_reports({"tcp://a": dict(own), "tcp://b": {**own, "isa": "avx512"}}, own)
    with pytest.raises(ClusterError, match="does not answer"):
        check_reports({"tcp://a": OSError("closed")}, own)
    check_room(10, {"tcp://a": 100, "tcp://b": 0})
    with pytest.raises(TooLargeError, match=r"worker tcp://b may use 1.00 GiB"):
        check_room(2 << 30, {"tcp://a": 4 << 30, "tcp://b": 1 << 30})


def test_a_plan_that_does_not_fit_is_refused_before_it_starts() -> None:
    with cluster_of(1, memory_limit="100MiB") as cluster, distributed.Client(cluster) as client:
        with pytest.raises(TooLargeError, match=r"needs about 0\.29 GiB"):
            dask_fit(client, MODELS["mf"][0], frame(), NAMES)
        # Who starts all the same finds the worker paused: this process has more than that.
        (worker,) = cluster.workers.values()
        end = time.monotonic() + 30
        while worker.status.name != "paused" and time.monotonic() < end:
            time.sleep(0.05)
        task = client.submit(time.sleep, 0)
        with pytest.raises(ClusterError, match="no running worker for 1 s"):
            Cluster(client, patience=1.0).collect([task])


def drawn(count: int) -> Any:
    return BlockSums(np.random.default_rng(count).standard_normal((150, 3)))


def gram_of(part: BlockSums) -> tuple[bool, np.ndarray]:
    return part.gram.flags.aligned, gram(part.gram)


def test_what_came_over_the_network_is_multiplied_as_what_stayed() -> None:
    with cluster_of(2, protocol="tcp://") as cluster, distributed.Client(cluster) as client:
        ours = Cluster(client)
        ours.settle(2)
        for count in range(8):  # keys of other lengths put the arrays to other places of a message
            part = ours.submit(0, drawn, count, key=count * "x" + "part")
            there = ours.submit(1, gram_of, part, key=f"gram-{count}")
            is_aligned, found = ours.collect([there])[0]
            assert ours.collect([part])[0].gram.flags.aligned
            assert is_aligned
            np.testing.assert_array_equal(found, gram(drawn(count).gram))
            assert len(client.who_has([part])["x" * count + "part"]) == 2  # it was sent


def test_tasks_at_home_go_elsewhere_when_all_workers_were_lost() -> None:
    with cluster_of(1) as cluster, distributed.Client(cluster) as client:
        ours = Cluster(client)
        ours.settle(1)
        (home,) = ours.workers()
        assert ours.home(0) == home
        first = ours.submit(0, float, 2, key="first")
        assert ours.collect([first]) == [2.0]
        cluster.scale(0)
        while ours.workers():
            time.sleep(0.05)
        second = ours.submit(0, float, 3, key="second")
        cluster.scale(1)
        client.wait_for_workers(1, timeout=60)
        assert home not in ours.workers()
        distributed.wait([first, second], timeout=60)  # a scheduler of its own kind waits for ever here
        assert ours.collect([first, second]) == [2.0, 3.0]


def test_without_client_or_workers_there_is_an_error_and_no_hang() -> None:
    with pytest.raises(TypeError, match=r"client must be a distributed\.Client"):
        dask_fit("tcp://nowhere", MODELS["mf"][0], frame(), NAMES)
    with (
        cluster_of(0) as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(ClusterError, match="has no worker after"),
    ):
        dask_fit(client, MODELS["mf"][0], frame(), NAMES, patience=0.5)


def test_a_scheduler_that_goes_away_ends_the_fit() -> None:
    model = MatrixFactorization(4, max_iter=10_000, tol=0.0, random_state=0, reg=1.0, center="none")
    cluster = cluster_of(1)
    client = distributed.Client(cluster)
    timer = threading.Timer(2.0, cluster.close, kwargs={"timeout": 1})
    timer.start()
    start = time.monotonic()
    try:
        with pytest.raises(ClusterError, match="scheduler has gone away"):
            dask_fit(client, model, frame(), NAMES, patience=3.0)
        assert time.monotonic() - start < 60  # not a timing: a hang would be for ever
    finally:
        timer.join()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            client.close(timeout=1)


def test_a_client_opened_later_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client that was opened last is Dask's default; events of another one belong to another loop."""
    model = MatrixFactorization(4, max_iter=3, tol=0.0, random_state=0, reg=1.0, center="none")
    with cluster_of(1) as cluster, distributed.Client(cluster) as client:
        expected = dask_fit(client, model, frame(), NAMES).to_local().row_factors_
        with cluster_of(1) as other, distributed.Client(other) as later, monkeypatch.context() as patched:
            patched.setattr(later, "sync", lambda *_, **__: pytest.fail("the other client was asked"))
            fit = dask_fit(client, model, frame(), NAMES, patience=5.0)
            np.testing.assert_array_equal(fit.to_local().row_factors_, expected)


def test_only_who_waited_says_how_long() -> None:
    from distributed.comm.core import CommClosedError

    cluster = Cluster.__new__(Cluster)
    cluster.patience, cluster.address = 30.0, "somewhere"
    with pytest.raises(ClusterError, match=r"^no connection to somewhere"), cluster._watched():
        raise CommClosedError
    with pytest.raises(ClusterError, match="somewhere does not answer for 30 s"), cluster._watched():
        raise TimeoutError


def test_a_client_that_was_closed_is_named() -> None:
    with cluster_of(1) as cluster, distributed.Client(cluster) as client:
        pass
    with pytest.raises(ClusterError, match="scheduler has gone away"):
        dask_fit(client, MatrixFactorization(2, reg=1.0, center="none"), frame(), NAMES, patience=1.0)


WITHOUT_PACKAGE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "unseen":
            raise ModuleNotFoundError("No module named 'unseen'")
for name in [name for name in sys.modules if name.split(".")[0] == "unseen"]:
    del sys.modules[name]
sys.meta_path.insert(0, Hidden())
"""


@pytest.mark.slow
def test_processes_a_killed_worker_and_one_without_the_package(tmp_path: Path) -> None:
    model, names = MODELS["bias-mc"]
    model = type(model)(**{**model.get_params(), "max_iter": 8})
    data = frame()
    calm = DiskCompleter(model, n_blocks=4, dtype="float64").fit(parts_of(data), **names)
    expected = calm.to_local().row_factors_
    calm.close()
    with cluster_of(2, processes=True) as cluster, distributed.Client(cluster) as client:
        for checkpoint in (None, str(tmp_path / "states")):
            victim = next(iter(client.run(os.getpid).values()))
            fit = DaskCompleter(model, client=client, n_blocks=4, dtype="float64", checkpoint=checkpoint)
            killed = _kill_in_sweep(fit, victim, sweep=4)
            np.testing.assert_array_equal(fit.fit(parts_of(data), **names).to_local().row_factors_, expected)
            assert killed == [victim]
        client.run(exec, WITHOUT_PACKAGE, {}, workers=[next(iter(client.nthreads()))])
        with pytest.raises(ClusterError, match="cannot import unseen"):
            Cluster(client).check_workers()


def _kill_in_sweep(fit: DaskCompleter, victim: int, sweep: int) -> list[int]:
    """Arrange for a worker to be killed, by its own id, while a sweep is being solved."""
    killed: list[int] = []
    make = fit._make_engine

    def making(*args: Any) -> Any:
        made = make(*args)
        engine: Any = made[0]
        each, calls = engine.each, []

        def working(side: str, function: Any, *inner: Any, **options: Any) -> Any:
            calls.extend([None] * (function is solve_block))
            if function is solve_block and len(calls) == 2 * sweep:
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)
            return each(side, function, *inner, **options)

        engine.each = working
        return made

    fit._make_engine = making  # type: ignore[method-assign]
    return killed
