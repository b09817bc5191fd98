"""Files on any file system that fsspec knows."""

from __future__ import annotations

from typing import Any

from unseen.exceptions import ParameterError

__all__ = ["filesystem"]


def filesystem(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path on it."""
    try:
        import fsspec
    except ImportError as error:
        raise ParameterError(
            f"{address!r} cannot be opened without the package fsspec; "
            "install the extra: pip install 'unseen[dask]'"
        ) from error
    found: tuple[Any, str] = fsspec.core.url_to_fs(address)
    return found
