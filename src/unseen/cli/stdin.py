"""Standard input as a file: ``-`` in place of a name."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unseen.cli.errors import UsageError

__all__ = ["STANDARD_INPUT", "spooled"]

STANDARD_INPUT = "standard input"
"""What messages call it."""


@contextmanager
def spooled(arguments: dict[str, Any], inputs: Collection[str]) -> Iterator[str]:
    """Put standard input into a file wherever an argument that is read is ``-``; yields the file's name.

    Files are looked at before they are read, which a stream does not allow. The ending is found from the
    first bytes, since it says what a file holds.
    """
    asked = [name for name, value in arguments.items() if value == Path("-") and name in inputs]
    if not asked:
        yield STANDARD_INPUT
        return
    if len(asked) > 1:
        raise UsageError(
            f"- stands for standard input, which can be read once; it is given {len(asked)} times"
        )
    with tempfile.TemporaryDirectory(prefix="unseen-") as folder:
        raw = Path(folder) / "stdin"
        with raw.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        path = raw.with_name("stdin" + _ending(raw))
        raw.rename(path)
        arguments[asked[0]] = path
        try:
            yield str(path)
        except Exception as error:
            error.args = tuple(
                part.replace(str(path), STANDARD_INPUT) if isinstance(part, str) else part
                for part in error.args
            )
            raise


def _ending(path: Path) -> str:
    with path.open("rb") as file:
        start = file.read(4)
        if start == b"PAR1":
            return ".parquet"
        if start[:2] == b"\x1f\x8b":
            return ".csv.gz"
        line = start + file.readline(1 << 20)
    return ".csv" if any(mark in line for mark in (b",", b"\t", b";", b"|")) else ".txt"
