"""Fetching files: resumed where possible, checked, and in place only when complete."""

from __future__ import annotations

import contextlib
import hashlib
import os
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO, Any, cast

from tqdm import tqdm

from unseen.exceptions import DownloadError

__all__ = ["fetch", "write_whole"]

_BLOCK = 1 << 16


def fetch(
    url: str,
    path: Path,
    *,
    sha256: str | None = None,
    max_bytes: int = 1 << 30,
    progress: bool = False,
    timeout: float = 30.0,
) -> Path:
    """Download a file.

    What has arrived is kept beside the target under a temporary name, so that a second call goes on
    where the first was cut off. The target itself appears at once and complete, or not at all; several
    processes may fetch the same file.

    Parameters
    ----------
    url : str
        ``http`` or ``https`` address.
    path : Path
        Target.
    sha256 : str, optional
        Digest that the file must have.
    max_bytes : int, default=2**30
        Larger files are refused.
    progress : bool, default=False
        Show a progress bar.
    timeout : float, default=30.0
        Seconds to wait for the server.

    Returns
    -------
    Path
        The target.

    Raises
    ------
    DownloadError
        If the server does not deliver, or delivers something else than expected.
    """
    if not url.startswith(("http://", "https://")):
        raise DownloadError(f"cannot fetch {url}: only http and https addresses are accepted.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with _partial(path) as part:
        resumed = _receive(url, part, max_bytes, progress, timeout)
        if sha256 is not None and (found := _digest(part)) != sha256:
            part.truncate(0)
            if resumed:  # the beginning may have come from another version of the file
                _receive(url, part, max_bytes, progress, timeout)
                found = _digest(part)
            if found != sha256:
                part.truncate(0)
                raise DownloadError(
                    f"{url} has sha256 {found}, expected {sha256}: it was changed or damaged on its way."
                )
        part.flush()
        os.fsync(part.fileno())
        if os.name == "nt":  # an open file cannot be renamed there; elsewhere the lock must last
            part.close()
        os.replace(part.name, path)
    _sync_folder(path.parent)
    return path


@contextlib.contextmanager
def _partial(path: Path) -> Iterator[IO[bytes]]:
    """Open the temporary file; a private one if another process is at work on the shared one."""
    shared = path.with_name(path.name + ".part")
    with contextlib.ExitStack() as stack:
        try:
            handle = stack.enter_context(open(shared, "ab+", opener=_no_link))
        except OSError as error:
            if not shared.is_symlink():
                raise DownloadError(f"cannot write to {shared}: {error}") from error
            shared.unlink()  # it leads to a file that is none of ours
            handle = stack.enter_context(open(shared, "ab+", opener=_no_link))
        # Whoever held the lock before may have moved the file into place.
        if _lock(handle) and shared.exists() and os.path.samestat(os.fstat(handle.fileno()), shared.stat()):
            try:
                yield handle
            finally:
                if shared.exists() and os.fstat(handle.fileno()).st_size == 0:
                    shared.unlink(missing_ok=True)
            return
    private = _private_name(path)
    try:
        with private.open("ab+") as handle:
            yield handle
    finally:
        private.unlink(missing_ok=True)


def _no_link(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _private_name(path: Path) -> Path:
    return path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")


def _lock(handle: IO[bytes]) -> bool:
    """Try to own a file; the operating system lets go of it when the process ends."""
    try:
        import fcntl
    except ImportError:  # no such locks here: always work on a private file
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follow the server to addresses of the same kind only: not to ftp, and not from https to http."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        wanted = ("https://",) if req.full_url.startswith("https://") else ("https://", "http://")
        if not newurl.startswith(wanted):
            raise DownloadError(f"cannot fetch {req.full_url}: it leads to {newurl}, which is not accepted.")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _receive(url: str, part: IO[bytes], max_bytes: int, progress: bool, timeout: float) -> bool:
    """Append what is still wanted; tell whether there was something already."""
    start = os.fstat(part.fileno()).st_size
    request = urllib.request.Request(url, headers={"User-Agent": "unseen"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    try:
        opener = urllib.request.build_opener(_Redirects)
        with cast(HTTPResponse, opener.open(request, timeout=timeout)) as response:
            if start and response.status != 206:  # the server sends all of it again
                part.truncate(0)
                start = 0
            _copy(url, response, part, start, max_bytes, progress)
    except urllib.error.HTTPError as error:
        if error.code == 416 and start:  # nothing after what we have: complete, or another file
            if error.headers.get("Content-Range", "") == f"bytes */{start}":
                return True
            part.truncate(0)
            return _receive(url, part, max_bytes, progress, timeout)
        raise DownloadError(
            f"cannot fetch {url}: the server answered {error.code} {error.reason}."
        ) from error
    except (OSError, HTTPException) as error:
        raise DownloadError(f"cannot fetch {url}: {error}. A second call goes on from there.") from error
    return start > 0


def _copy(
    url: str, response: HTTPResponse, part: IO[bytes], start: int, max_bytes: int, progress: bool
) -> None:
    length = response.headers.get("Content-Length")
    if length is not None and not length.isdecimal():
        raise DownloadError(f"cannot fetch {url}: the server says that it has {length!r} bytes.")
    total = start + int(length) if length is not None else None
    if total is not None and total > max_bytes:
        raise DownloadError(f"{url} has {total:,} bytes, more than the {max_bytes:,} that are accepted.")
    size = start
    name = url.rsplit("/", 1)[-1]
    with tqdm(total=total, initial=start, unit="B", unit_scale=True, desc=name, disable=not progress) as bar:
        while block := response.read(_BLOCK):
            size += len(block)
            if size > max_bytes:
                part.truncate(0)
                raise DownloadError(f"{url} has more than the {max_bytes:,} bytes that are accepted.")
            part.write(block)
            bar.update(len(block))
    part.flush()
    if total is not None and size < total:
        raise DownloadError(
            f"cannot fetch {url}: the connection ended after {size:,} of {total:,} bytes. "
            "A second call goes on from there."
        )


def _digest(handle: IO[bytes]) -> str:
    handle.seek(0)
    found: Any = hashlib.sha256()
    while block := handle.read(1 << 20):
        found.update(block)
    return str(found.hexdigest())


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is seen complete or not at all."""
    private = _private_name(path)
    try:
        with private.open("xb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(private, path)
    finally:
        private.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make a rename durable, where the system has a way to."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
