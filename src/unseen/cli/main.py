"""Entry point: runs the command and turns whatever happens into an exit code.

===== ==============================================================
code  meaning
===== ==============================================================
0     done
1     failed on the data, the model or a file; one line says why
2     the command line asks for something that does not exist
130   ended by Ctrl-C; no half-written output is left
===== ==============================================================
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["main"]

FAILED, USAGE, INTERRUPTED = 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the ``unseen`` command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after the program's name; those of the process by default.

    Returns
    -------
    int
        Exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted.

    Examples
    --------
    >>> main(["--version"])
    unseen 0.1.0
    0
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED, arguments, "KeyboardInterrupt")


def _run(arguments: list[str]) -> int:
    try:
        from unseen.cli.app import app
        from unseen.cli.errors import UsageError
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("unseen"):
            raise
        return _complain(_not_installed(error.name), FAILED, arguments, "ModuleNotFoundError")
    from typer import Abort, BadParameter

    # The base of what typer itself says about wrong usage; newer releases carry their own copy of click.
    usage_error: Any = BadParameter.__mro__[1]
    try:
        code = app(arguments, prog_name="unseen", standalone_mode=False)
    except Abort as error:
        raise KeyboardInterrupt from error
    except UsageError as error:
        return _complain(str(error), USAGE, arguments, "UsageError")
    except usage_error as error:
        return _complain(_with_value(error.format_message(), arguments), USAGE, arguments, "UsageError")
    except Exception as error:
        return _complain(*_explain(error), arguments, type(error).__name__)
    if code == INTERRUPTED:  # typer has caught it already
        raise KeyboardInterrupt
    return int(code or 0)


def _with_value(message: str, arguments: list[str]) -> str:
    """The message about an option's value, and the value where it does not say it."""
    told = re.match(r"Invalid value for '([^']+)'", message)
    for option in told[1].split(" / ") if told else ():
        values = [argument.partition("=")[2] for argument in arguments if argument.startswith(f"{option}=")]
        values += [after for before, after in itertools.pairwise(arguments) if before == option]
        if values and values[-1] not in message:
            return f"{message.rstrip('.')}; got {values[-1]!r}"
    return message


def _explain(error: Exception) -> tuple[str, int]:
    """One line for an error, and the exit code for it."""
    from unseen import exceptions

    if isinstance(error, exceptions.ParameterError):
        return str(error), USAGE
    expected = tuple(getattr(exceptions, name) for name in exceptions.__all__ if name.endswith("Error"))
    if isinstance(error, (*expected, exceptions.UnsupportedComposition)):
        return str(error), FAILED
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}", FAILED
    if isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith("unseen"):
        return _not_installed(error.name), FAILED
    if isinstance(error, ImportError) and "unseen[" in str(error):
        return str(error), FAILED
    if isinstance(error, MemoryError):
        return f"not enough memory ({error})", FAILED
    return f"{type(error).__name__}: {error} (--debug shows where)", FAILED


def _not_installed(module: str) -> str:
    package = module.partition(".")[0]
    extras = {
        "matplotlib": "plot",
        "pandas": "frames",
        "polars": "frames",
        "starlette": "serve",
        "uvicorn": "serve",
    }
    extra = extras.get(package, "cli")
    return f"this needs {package}, which is not installed: pip install 'unseen[{extra}]'"


def _complain(message: str, code: int, arguments: Sequence[str], kind: str) -> int:
    """One line on stderr, and with ``--json`` a document on stdout, where nothing else has gone."""
    from unseen.cli.terminal import visible

    line = " ".join(message.split())
    if "--json" in arguments:
        import json

        error = {"type": kind, "message": line, "exit_code": code}
        print(json.dumps({"error": error}, ensure_ascii=sys.stdout.isatty(), indent=2), flush=True)
    print(f"error: {visible(line)}", file=sys.stderr)
    return code
