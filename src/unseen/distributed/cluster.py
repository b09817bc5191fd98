"""A Dask cluster as seen from a fit: who is there, who does what, and when to give up."""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import is_dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from unseen.exceptions import ClusterError, TooLargeError

__all__ = ["Cluster", "aligned", "check_reports", "check_room", "connect", "run_aligned"]

TICK_S = 1.0
"""How often somebody who waits looks whether the scheduler is still there."""

GO_ON = "With checkpoint= and resume=True a new fit goes on where this one stopped"

PROBE = """
def probe():
    import importlib.metadata as metadata
    import platform

    report = {"python": platform.python_version()}
    for name in ("numpy", "scipy"):
        report[name] = metadata.version(name)
    try:
        import unseen.kernels
    except ImportError as error:
        report["error"] = str(error)
    else:
        report["unseen"] = metadata.version("unseen")
        report["kernels"] = unseen.kernels.provider()
        report["isa"] = unseen.kernels.isa()
    return report
"""


def _probe() -> Any:
    """What a worker has; sent by value, because a worker without the package must answer too."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(PROBE, space)
    return space["probe"]


def check_reports(reports: dict[str, Any], own: dict[str, Any]) -> None:
    """Refuse workers that lack the package, have another release or would compute other bits."""
    for address, report in reports.items():
        if not isinstance(report, dict):
            raise ClusterError(f"worker {address} does not answer: {report!r}")
        if "error" in report:
            raise ClusterError(
                f"worker {address} cannot import unseen ({report['error']}); install the same release on all "
                "workers, for example with client.register_plugin(distributed.PipInstall([...]))"
            )
    keys = ("unseen", "numpy", "scipy", "kernels", "isa")
    known = [("this client", own), *reports.items()]
    for key in keys:
        for who, report in known[1:]:
            if key != "isa" and report.get(key) != own.get(key):
                raise ClusterError(
                    f"{key} is {report.get(key)} on worker {who} and {own.get(key)} on this client; results "
                    "are the same everywhere only with equal versions on client and workers"
                )
            first = known[1][1]
            if key == "isa" and report.get(key) != first.get(key):
                raise ClusterError(
                    f"worker {who} computes with {report.get(key)} instructions and worker {known[1][0]} "
                    f"with {first.get(key)}; results would depend on who solves a block. Set UNSEEN_ISA on "
                    "all workers to one that all of them have"
                )


def check_room(need: int, limits: dict[str, int]) -> None:
    """Refuse a plan for which a worker has too little memory."""
    for address, limit in limits.items():
        if limit and need > limit:
            raise TooLargeError(
                f"worker {address} may use {limit / 2**30:.2f} GiB and the plan needs about "
                f"{need / 2**30:.2f} GiB on each worker; more workers, more blocks (n_blocks=) or a smaller "
                "rank would do"
            )


def connect(client: Any) -> Any:
    """The given client, or the one that is current."""
    from distributed import Client, get_client

    if isinstance(client, Client):
        return client
    if client is not None:
        raise TypeError(f"client must be a distributed.Client or None, got {type(client).__name__}")
    try:
        return get_client()
    except ValueError as error:
        raise ClusterError(
            "there is no Dask client; pass client=, or make one first: distributed.Client(address)"
        ) from error


def aligned(value: Any) -> Any:
    """The same with arrays at addresses that are multiples of their numbers' size.

    An array that comes over the network lies wherever the message put it. NumPy multiplies and adds such
    arrays in another way, so bits would depend on where a block has been.
    """
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy(order="K")
    if type(value) in (list, tuple):
        return type(value)(map(aligned, value))
    if is_dataclass(value) or sparse.issparse(value) or isinstance(value, BaseEstimator):
        own = getattr(value, "__dict__", {})
        moved = {name: aligned(part) for name, part in own.items()}
        if any(moved[name] is not part for name, part in own.items()):
            value = copy(value)
            value.__dict__.update(moved)
    return value


def run_aligned(function: Any, *args: Any, after: None = None, **kwargs: Any) -> Any:
    """Run a task on a worker; ``after`` is there to be waited for."""
    return function(*map(aligned, args), **kwargs)


def _nothing() -> None:
    pass


class Cluster:
    """Submits tasks to workers that stay the same from sweep to sweep, and waits for them.

    Parameters
    ----------
    client : distributed.Client
        Connection to the scheduler.
    patience : float
        Seconds without a scheduler, or without any worker, before giving up.
    """

    def __init__(self, client: Any, patience: float = 30.0) -> None:
        self.client = client
        self.patience = patience
        self.address = str(getattr(client.scheduler, "address", "the scheduler"))
        self._homes: dict[int, str] = {}
        self._anywhere: Any = None

    # -- who is there ----------------------------------------------------------------

    def check_workers(self) -> None:
        """Wait for a first worker; refuse workers on which results would differ."""
        end = time.monotonic() + self.patience
        while not self.workers():
            if time.monotonic() > end:
                raise ClusterError(f"{self.address} has no worker after {self.patience:g} s")
            time.sleep(0.05)
        reports = self._ask(self.client._run, _probe(), on_error="return")
        check_reports(reports, _probe()())

    def workers(self) -> dict[str, int]:
        """Threads of each worker by its address."""
        found: dict[str, int] = self._ask(self._scheduler().ncores)
        return dict(sorted(found.items()))

    def memory_limits(self) -> dict[str, int]:
        """Bytes that each worker may use; 0 where it knows no limit."""
        workers = self._identity()["workers"].items()
        return {address: int(info.get("memory_limit") or 0) for address, info in workers}

    def _identity(self) -> Any:
        return self._ask(self._scheduler().identity, n_workers=-1)

    def _scheduler(self) -> Any:
        if self.client.scheduler is None:  # the client was closed, by its owner or with the scheduler
            raise self._gone()
        return self.client.scheduler

    def _ask(self, question: Any, *args: Any, **kwargs: Any) -> Any:
        with self._watched():
            return self.client.sync(question, *args, callback_timeout=self.patience, **kwargs)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Say in one way that the scheduler is gone; errors of tasks pass."""
        from distributed.comm.core import CommClosedError

        lost = (concurrent.futures.CancelledError, asyncio.CancelledError, CommClosedError)
        try:
            yield
        except TimeoutError as error:
            raise self._silent() from error
        except lost as error:
            raise self._gone() from error
        except (OSError, RuntimeError) as error:
            if self._connected():
                raise
            raise self._gone() from error

    def _gone(self) -> ClusterError:
        return ClusterError(f"no connection to {self.address}; the scheduler has gone away. {GO_ON}")

    def _silent(self) -> ClusterError:
        return ClusterError(
            f"{self.address} does not answer for {self.patience:g} s; the scheduler has gone away. {GO_ON}"
        )

    # -- who does what ---------------------------------------------------------------

    def home(self, number: int) -> str | None:
        """Worker of a block; where it was before, if that worker lives."""
        return self._homes.get(number)

    def settle(self, n_blocks: int) -> None:
        """Give every block a worker: as before for workers that live, fewest blocks first else."""
        workers = self.workers()
        load = dict.fromkeys(workers, 0)
        for number in list(self._homes):
            if self._homes[number] in load:
                load[self._homes[number]] += 1
            else:
                del self._homes[number]
        for number in range(n_blocks):
            if number not in self._homes and load:
                # By load for each thread; ties by address, so that equal clusters get equal plans.
                best = min(load, key=lambda address: ((load[address] + 1) / workers[address], address))
                self._homes[number] = best
                load[best] += 1

    def submit(self, number: int | None, function: Any, *args: Any, key: str, **kwargs: Any) -> Any:
        """Run a task at the home of a block, elsewhere only if that worker is gone; None leaves it open."""
        from distributed import futures_of

        home = None if number is None else self.home(number)
        where = {} if home is None else {"workers": [home], "allow_other_workers": True}
        with self._watched():
            if where and not futures_of([args, kwargs]):
                # A scheduler that has lost all workers never again looks at tasks that wait for nothing but
                # a worker that is gone, even if others may run them. This one waits for a task of anywhere.
                if self._anywhere is None:
                    self._anywhere = self.client.submit(_nothing, pure=False)
                kwargs["after"] = self._anywhere
            return self.client.submit(run_aligned, function, *args, key=key, pure=False, **where, **kwargs)

    def map(self, number: int | None, function: Any, *lists: Sequence[Any], keys: list[str]) -> list[Any]:
        """Run a task for each element of lists at the home of a block; None leaves it to the scheduler."""
        home = None if number is None else self.home(number)
        where = {} if home is None else {"workers": [home], "allow_other_workers": True}
        with self._watched():
            call = partial(run_aligned, function)
            return list(self.client.map(call, *lists, key=keys, pure=False, **where))

    # -- waiting ---------------------------------------------------------------------

    def wait(self, futures: Sequence[Any]) -> None:
        """Wait until all are done, but not for ever where nobody works on them."""
        from distributed.client import _wait

        lonely_since: float | None = None
        while True:
            with self._watched(), suppress(TimeoutError):
                # Not distributed.wait: it asks the client that was opened last, in a loop to which the
                # events of these futures do not belong.
                self.client.sync(_wait, list(futures), timeout=TICK_S, callback_timeout=self.patience)
                return
            lonely_since = None if self._alive() else lonely_since or time.monotonic()
            if lonely_since is not None and time.monotonic() - lonely_since > self.patience:
                raise self._idle() if self._connected() else self._silent()

    def collect(self, futures: Sequence[Any]) -> list[Any]:
        """Results of small tasks, in order."""
        from distributed import KilledWorker

        try:
            self.wait(futures)
            return list(map(aligned, self._ask(self.client._gather, list(futures))))
        except KilledWorker as error:
            raise ClusterError(
                f"a task ended several workers ({error}); most often they ran out of memory: more blocks "
                "(n_blocks=) or more memory for each worker would do"
            ) from error

    def _connected(self) -> bool:
        comm = getattr(self.client, "scheduler_comm", None)
        return self.client.status == "running" and comm is not None and not comm.closed()

    def _idle(self) -> ClusterError:
        return ClusterError(
            f"{self.address} has had no running worker for {self.patience:g} s: workers are gone, or paused "
            f"because their memory is used up. {GO_ON}"
        )

    def _alive(self) -> bool:
        if not self._connected():
            return False
        workers = self._identity()["workers"].values()
        # A worker that has used up its memory pauses, and may do so for ever.
        return any(info.get("status", "running") == "running" for info in workers)
