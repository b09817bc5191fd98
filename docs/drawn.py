"""Pictures of displays: what the example of each class draws, on the page of the class."""

from __future__ import annotations

import contextlib
import doctest
import inspect
import io
import warnings
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "api" / "generated"
"""Where the pages of single classes are made."""


def shown(display: type) -> Any:
    """The figure of the last display that the example of a class draws."""
    made: list[Any] = []
    plot = display.plot  # type: ignore[attr-defined]

    def kept(self: Any, *args: Any, **options: Any) -> Any:
        made.append(self)
        return plot(self, *args, **options)

    text = inspect.getdoc(display) or ""
    names: dict[str, Any] = {}
    display.plot = kept  # type: ignore[attr-defined]
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            for example in doctest.DocTestParser().get_examples(text):
                exec(compile(example.source, display.__name__, "single"), names)
    finally:
        display.plot = plot  # type: ignore[attr-defined]
    return made[-1].figure_


def picture(display: type, folder: Path = FOLDER) -> list[str]:
    """Write the picture, and give the lines that show it."""
    import matplotlib as mpl

    name = f"{display.__name__}.svg"
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "unseen"}):
        shown(display).savefig(folder / name, metadata={"Date": None})
    summary = " ".join((inspect.getdoc(display) or "").split("\n\n", 1)[0].split())
    return [
        "",
        f".. image:: {name}",
        f"   :alt: {summary}",
        "   :width: 32rem",
        "",
        "Drawn by the example below.",
        "",
    ]
