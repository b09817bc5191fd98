"""A fitted model behind HTTP, with a page to look into it (``pip install 'unseen[serve]'``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unseen.serve.app import create_app as create_app
    from unseen.serve.limits import Limits as Limits

__all__ = ["Limits", "create_app"]

_HOMES = {"Limits": "limits", "create_app": "app"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"unseen.serve.{_HOMES[name]}"), name)
