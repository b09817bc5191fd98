"""``unseen serve``: processes, sockets and signals around the application."""

from __future__ import annotations

import contextlib
import gc
import logging
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from unseen.exceptions import InvalidDataError, ParameterError
from unseen.serve.approximate import Approximate
from unseen.serve.limits import Limits
from unseen.serve.workers import run_workers
from unseen.validation import check_n_jobs

__all__ = ["Settings", "serve"]

LOOPBACK = ("127.0.0.1", "::1", "localhost")
MIN_TOKEN = 16


@dataclass(frozen=True)
class Settings:
    """What a server is started with; each worker gets a copy.

    Attributes
    ----------
    model : Path
        Directory of the model.
    host, port : str, int
        Where to listen. Port 0 takes a free one.
    workers : int
        Processes; they share the arrays of the model.
    token_file : Path or None
        File with the token for updates and reloads.
    load_cells : callable or None
        Takes the model and gives its training cells; must be picklable.
    names : dict of dict
        By side: what people call an id.
    n_jobs : int or None
        Threads of each worker; None shares the cores among them.
    limits : Limits
    hosts : tuple of str
        Further names under which the server may be spoken to.
    approximate : Approximate or None
        When lists are looked up in an index; None for exact lists alone.
    """

    model: Path
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    token_file: Path | None = None
    load_cells: Callable[[Any], Any] | None = None
    names: dict[str, dict[Any, str]] = field(default_factory=dict)
    n_jobs: int | None = None
    limits: Limits = field(default_factory=Limits)
    hosts: tuple[str, ...] = ()
    approximate: Approximate | None = None

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        return self.host in LOOPBACK


def load_served(settings: Settings) -> Any:
    """The model as it lies on disk now, its arrays as views of the file."""
    from unseen import io
    from unseen.serve.answers import Served

    model = io.load(settings.model, mmap=True)
    if settings.n_jobs is not None and "n_jobs" in model.get_params():
        model.set_params(n_jobs=settings.n_jobs)
    cells = None if settings.load_cells is None else settings.load_cells(model)
    return Served(model, cells, settings.names, settings.approximate)


def build_app(settings: Settings) -> Any:
    """The application of one worker."""
    from unseen.serve.app import create_app
    from unseen.serve.updating import update_directory

    local = (*LOOPBACK, "[::1]", *settings.hosts)
    return create_app(
        load=partial(load_served, settings),
        directory=settings.model,
        limits=settings.limits,
        update=partial(update_directory, settings.model),
        token=None if settings.token_file is None else read_token(settings.token_file),
        hosts=local if settings.is_local else settings.hosts or None,
    )


def read_token(path: Path) -> str:
    """The token in a file; short ones can be guessed."""
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidDataError(f"the token file {path} cannot be read: {error}") from error
    if len(token) < MIN_TOKEN or not token.isascii() or not token.isprintable():
        raise InvalidDataError(
            f"the token file {path} holds {len(token)} characters; {MIN_TOKEN} or more of ASCII are needed"
        )
    return token


def serve(settings: Settings, started: Callable[[str], None] | None = None) -> None:
    """Answer requests until a signal ends it; those under way are answered first.

    Parameters
    ----------
    settings : Settings
        What is served, and where.
    started : callable, optional
        Gets the address once the socket is open.
    """
    try:
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise ImportError("the server needs uvicorn and starlette: pip install 'unseen[serve]'") from error
    if settings.workers < 1:
        raise ParameterError(f"workers must be 1 or more, got {settings.workers}")
    if settings.token_file is not None:
        read_token(settings.token_file)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    if settings.approximate is None:
        _run(settings, started)
        return
    with tempfile.TemporaryDirectory(prefix="unseen-index-") as home:
        shared = replace(settings.approximate, home=Path(home), n_threads=check_n_jobs(settings.n_jobs))
        _run(replace(settings, approximate=shared), started)


def _run(settings: Settings, started: Callable[[str], None] | None) -> None:
    import uvicorn

    # Until the server takes them, and again after it has stopped and hands SIGTERM back.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # What is wrong with the model is said before anything is open; no thread starts here, before a fork.
    build_app(replace(settings, n_jobs=1))
    # What is imported by now stays: no later collection need look at it, which would take a request's time.
    gc.collect()
    gc.freeze()
    if settings.workers > 1 and settings.n_jobs is None:
        settings = replace(settings, n_jobs=max(1, check_n_jobs(None) // settings.workers))
    config = uvicorn.Config(
        partial(build_app, settings),
        factory=True,
        lifespan="on",
        ws="none",
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=30,
    )
    listening = open_socket(settings.host, settings.port)
    with contextlib.closing(listening):
        host, port = listening.getsockname()[:2]
        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        if started is not None:
            started(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
        if settings.workers == 1:
            uvicorn.Server(config).run([listening])
        else:
            run_workers(partial(_work, config, listening), settings.workers)


def _work(config: Any, listening: socket.socket) -> None:
    """What one of several workers does."""
    import uvicorn

    uvicorn.Server(config).run([listening])


def open_socket(host: str, port: int) -> socket.socket:
    """A listening socket, which workers inherit."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(2048)
        listening.set_inheritable(True)
    except OSError as error:
        listening.close()
        raise InvalidDataError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    return listening
