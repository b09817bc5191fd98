"""The model that is served just now, and how it is exchanged while requests are answered."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path

from unseen.model_files import MANIFEST
from unseen.serve.answers import Served
from unseen.serve.metrics import Metrics

__all__ = ["Holder"]

SECONDS_BETWEEN_LOOKS = 0.5
log = logging.getLogger("unseen.serve")


class Holder:
    """Holds a served model. Requests keep the one that they began with.

    Parameters
    ----------
    load : callable
        Reads the model.
    directory : Path or None
        Where it lies; None for a model that lives in memory alone.
    metrics : Metrics
        Counts what happens.
    """

    def __init__(self, load: Callable[[], Served], directory: Path | None, metrics: Metrics) -> None:
        self._load, self._directory, self._metrics = load, directory, metrics
        self._lock = asyncio.Lock()
        self._seen = self._mark()
        self.current = load()
        self.generation = 1

    async def reload(self) -> None:
        """Exchange the model for what lies in the directory now; the old one stays where that fails."""
        async with self._lock:
            mark = self._mark()
            try:
                self.current = await asyncio.to_thread(self._load)
            except BaseException:
                self._metrics.failed_reloads += 1
                raise
            finally:
                self._seen = mark
            self.generation += 1
            self._metrics.reloads += 1

    async def watch(self) -> None:
        """Reload whenever the directory gets another manifest; runs until it is cancelled."""
        while True:
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
            if self._mark() != self._seen:
                await self.try_reload()

    async def try_reload(self) -> None:
        """Reload, or say in the log why not."""
        try:
            await self.reload()
        except Exception as error:
            log.warning("the model was not reloaded, the one before stays: %s", error)

    def _mark(self) -> tuple[int, ...] | None:
        """What tells one manifest from another."""
        if self._directory is not None:
            with contextlib.suppress(OSError):
                found = (self._directory / MANIFEST).stat()
                return (found.st_ino, found.st_mtime_ns, found.st_size)
        return None
