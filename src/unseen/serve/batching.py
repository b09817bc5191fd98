"""Requests that arrive together are answered together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from unseen.serve.limits import RequestError

__all__ = ["Batcher"]

Ask = TypeVar("Ask")
Answer = TypeVar("Answer")


class Batcher(Generic[Ask, Answer]):
    """Hands all that waits to one call, in a thread; what arrives meanwhile is the next batch.

    Nothing waits for company: a request that finds the thread idle is answered at once.

    Parameters
    ----------
    answer : callable
        Takes a list of asks and gives an answer or an exception for each.
    most : int
        Asks of one batch.
    waiting : int
        Asks that may wait; more are refused.
    """

    def __init__(
        self, answer: Callable[[list[Ask]], Sequence[Answer | Exception]], *, most: int, waiting: int
    ) -> None:
        self._answer = answer
        self._most, self._limit = most, waiting
        self._waiting: list[tuple[Ask, asyncio.Future[Answer]]] = []
        self._thread = ThreadPoolExecutor(1, "unseen-batch")
        self._busy = False

    async def ask(self, ask: Ask) -> Answer:
        """Wait for the answer."""
        if len(self._waiting) >= self._limit:
            raise RequestError(f"{self._limit} requests are waiting already; try again", status=429)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((ask, future))
        self._start()
        return await future

    def close(self) -> None:
        """Let the thread go."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _start(self) -> None:
        # Whoever has given up, because its time was over, is not answered.
        self._waiting = [entry for entry in self._waiting if not entry[1].done()]
        if self._busy or not self._waiting:
            return
        batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        self._busy = True
        asks = [ask for ask, _ in batch]
        job = asyncio.get_running_loop().run_in_executor(self._thread, self._answer, asks)

        def done(finished: asyncio.Future[Sequence[Answer | Exception]]) -> None:
            self._busy = False
            error = finished.exception()
            answers = [error] * len(batch) if error is not None else finished.result()
            for (_, future), answer in zip(batch, answers, strict=True):
                if future.done():
                    continue
                if isinstance(answer, BaseException):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)
            self._start()

        job.add_done_callback(done)
