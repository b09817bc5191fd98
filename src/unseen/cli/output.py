"""What a command says, and where: results on stdout, everything else on stderr."""

from __future__ import annotations

import functools
import inspect
import json
import math
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from unseen.cli.stdin import STANDARD_INPUT, spooled
from unseen.cli.terminal import visible

__all__ = ["DebugFlag", "JsonFlag", "Output", "QuietFlag", "command", "plain", "print_json"]

JsonFlag = Annotated[bool, typer.Option("--json", help="One JSON document on stdout and nothing else there.")]
QuietFlag = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, notes or warnings.")]
DebugFlag = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

PIPE_WIDTH = 120


@dataclass
class Output:
    """How one run of a command talks.

    Parameters
    ----------
    json : bool
        Results as one JSON document.
    quiet : bool
        Nothing on stderr but errors.
    debug : bool
        Tracebacks of errors.
    """

    json: bool = False
    quiet: bool = False
    debug: bool = False
    warnings: list[str] = field(default_factory=list)
    spool: str = STANDARD_INPUT

    @property
    def progress(self) -> int:
        """``verbose`` for estimators: bars only where somebody can watch them move."""
        return int(not self.quiet and sys.stderr.isatty())

    def note(self, text: str) -> None:
        """Say something about the run on stderr."""
        if not self.quiet:
            print(visible(text.replace(self.spool, STANDARD_INPUT)), file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Print a line of the result for people to read."""
        print(visible(text.replace(self.spool, STANDARD_INPUT)))

    def result(self, document: dict[str, Any], show: Callable[[], None]) -> None:
        """Give the result, as JSON or by calling ``show``."""
        if self.json:
            document = {**document, "warnings": self.warnings}
            print_json(document, self.spool)
        else:
            show()

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[Any]], *, title: str = "") -> None:
        """Print a table; numbers to the right."""
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        is_terminal = sys.stdout.isatty()
        console = Console(
            file=sys.stdout,
            width=None if is_terminal else PIPE_WIDTH,
            markup=False,
            emoji=False,
            highlight=False,
        )
        if title:
            console.print(Text(visible(title), style="bold"))
        table = Table(box=box.SIMPLE_HEAD, show_header=any(headers))
        for position, header in enumerate(headers):
            numeric = all(isinstance(row[position], (int, float)) for row in rows)
            table.add_column(Text(header), justify="right" if numeric else "left", overflow="fold")
        for row in rows:
            table.add_row(*(Text(_cell(value)) for value in row))
        console.print(table)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Turn warnings into single lines on stderr and keep them for the JSON document."""

        def show(message: Warning | str, *_: Any, **__: Any) -> None:
            line = " ".join(str(message).split())
            if line not in self.warnings:
                self.warnings.append(line)
                self.note(f"warning: {line}")

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.simplefilter("ignore", FutureWarning)
            warnings.showwarning = show
            yield


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command ``--json``, ``--quiet`` and ``--debug``; its first parameter is the `Output`.

    The options are accepted before the command's name as well as after it.
    """
    parameters = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    keyword = inspect.Parameter.KEYWORD_ONLY
    common = [
        inspect.Parameter(name, keyword, default=False, annotation=flag)
        for name, flag in (("json", JsonFlag), ("quiet", QuietFlag), ("debug", DebugFlag))
    ]
    context = inspect.Parameter("ctx", keyword, annotation=typer.Context)
    inputs = {parameter.name for parameter in parameters if not _names_output(parameter)}
    parameters = [parameter.replace(kind=keyword) for parameter in parameters]

    @functools.wraps(function)
    def run(*, ctx: typer.Context, json: bool, quiet: bool, debug: bool, **arguments: Any) -> None:
        given = ctx.obj if isinstance(ctx.obj, Output) else Output()
        output = Output(json or given.json, quiet or given.quiet, debug or given.debug)
        with output.listening():
            try:
                with spooled(arguments, inputs) as output.spool:
                    function(output, **arguments)
            except Exception:
                if output.debug:
                    traceback.print_exc()
                raise

    signature = inspect.Signature([context, *parameters, *common])
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {name: p.annotation for name, p in signature.parameters.items()}
    return run


def _names_output(parameter: inspect.Parameter) -> bool:
    declared = getattr(parameter.annotation, "__metadata__", ())
    # Beside a type, typer keeps the first name of an option where its default would be.
    return any(
        "--out" in (getattr(option, "default", None), *(option.param_decls or ())) for option in declared
    )


def print_json(document: dict[str, Any], spool: str = STANDARD_INPUT) -> None:
    """One document on stdout, for a terminal in ASCII alone."""
    text = json.dumps(plain(document), ensure_ascii=sys.stdout.isatty(), allow_nan=False, indent=2)
    print(text.replace(json.dumps(spool)[1:-1], STANDARD_INPUT), flush=True)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else visible(str(value), keep="")


def plain(value: Any) -> Any:
    """Only what JSON knows: no NumPy types, no NaN."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):  # NumPy arrays and scalars
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
