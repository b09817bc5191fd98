"""The commands, put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from unseen import __version__
from unseen.cli import (
    compare,
    demo,
    diagnose,
    documents,
    evaluate,
    explain,
    fit,
    info,
    predict,
    recommend,
    reproduce,
    serve,
    update,
)
from unseen.cli.errors import UsageError
from unseen.cli.output import DebugFlag, JsonFlag, Output, QuietFlag, command

__all__ = ["app"]

app = typer.Typer(
    name="unseen",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Complete matrices and predict for what has not been seen.",
    epilog="Exit codes: 0 done, 1 failed on data, model or file, 2 wrong usage, 130 interrupted.",
)


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and end.")] = False,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Complete matrices and predict for what has not been seen."""
    ctx.obj = Output(json, quiet, debug)
    if version:
        ctx.obj.result({"unseen": __version__}, lambda: print(f"unseen {__version__}"))
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        raise UsageError("a command is needed: " + ", ".join(COMMANDS) + "; see unseen --help")


COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo.demo,
    "fit": fit.fit,
    "update": update.update,
    "predict": predict.predict,
    "recommend": recommend.recommend,
    "evaluate": evaluate.evaluate,
    "compare": compare.compare,
    "diagnose": diagnose.diagnose,
    "reproduce": reproduce.reproduce,
    "info": info.info,
    "explain": explain.explain,
    "interactions": explain.interactions,
    "serve": serve.serve,
    "card": documents.card,
    "export": documents.export,
}
for _name, _function in COMMANDS.items():
    app.command(_name)(command(_function))
