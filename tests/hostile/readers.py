"""Files of all kinds with bytes and lines that do not belong there: data, or an error of the library."""

from __future__ import annotations

import gzip
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.hostile.forge import SHOWN, limit_memory, shown, watched
from unseen.data import read_edges, read_extreme, read_svmlight, read_triples
from unseen.learned import LIBRARY_ERRORS

TRIPLES = b"who,film,stars,when\n" + b"".join(
    b"u%d,%d,%.1f,2024-05-%02d\n" % (i % 7, i % 5, i / 3, 1 + i % 28) for i in range(40)
)
EDGES = b"# a graph\n" + b"".join(b"%d %d\n" % (i % 9, i * i % 11) for i in range(40))
EXTREME = b"12 6 5\n" + b"".join(
    b"%d,%d %d:0.5 %d:2\n" % (i % 5, (i + 2) % 5, i % 3, 3 + i % 3) for i in range(12)
)
SVM = b"".join(b"%d %d:1 %d:0.25\n" % (i % 2, 1 + i % 3, 4 + i % 5) for i in range(20))
READERS: dict[str, tuple[str, bytes, Callable[[Path], Any]]] = {
    "triples": (
        "cells.csv",
        TRIPLES,
        lambda path: read_triples(path, row="who", col="film", value="stars", time="when"),
    ),
    "triples by position": (
        "cells.csv",
        TRIPLES,
        lambda path: read_triples(path, row=0, col=1, value=2, header=False),
    ),
    "edges": ("graph.txt", EDGES, read_edges),
    "extreme": ("rows.txt", EXTREME, read_extreme),
    "svmlight": ("rows.svm", SVM, read_svmlight),
}
PIECES = [
    *(b"", b"\0", b"\xff\xfe", b'"', b"'", b",", b":", b" ", b"\t", b"\r", b"\n", b"\n\n", b"#", b"-1"),
    *(b"nan", b"inf", b"1e999", b"-0", b"1_0", b"0x10", b"9" * 25, b"4294967296", b"9223372036854775808"),
    *(b"1000000000000000", b"2 99999999999999 3", b"1:1:1", b",,,,,,,,", b"a" * 9000, b"1970-13-41"),
    *(b"\xe2\x80\xae", b"\x1b[31m", b"=1+1"),
]


def spoiled(content: bytes, rng: np.random.Generator) -> bytes:
    """One to three pieces put in, taken out or repeated."""
    out = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        kind, place = int(rng.integers(6)), int(rng.integers(len(out) + 1))
        length = int(rng.integers(1, 12))
        piece = PIECES[int(rng.integers(len(PIECES)))]
        if kind == 0:
            out[place:place] = piece
        elif kind == 1:
            out[place : place + length] = piece
        elif kind == 2:
            del out[place : place + length]
        elif kind == 3:
            del out[place:]
        elif kind == 4 and out:
            out[min(place, len(out) - 1)] = int(rng.integers(256))
        else:  # another field: what stands between two blanks or commas
            fields = bytes(out).replace(b"\n", b" \n ").split(b" ")
            fields[int(rng.integers(len(fields)))] = piece
            out = bytearray(b" ".join(fields).replace(b" \n ", b"\n"))
    return bytes(out)


def compressed(content: bytes, rng: np.random.Generator) -> bytes:
    """The content in a gzip file, which may be damaged itself."""
    whole = gzip.compress(content)
    return spoiled(whole, rng) if rng.random() < 0.5 else whole


def parquet(path: Path, rng: np.random.Generator) -> Any:
    """Read a damaged Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet as files

    table = pa.table({"who": [f"u{i % 7}" for i in range(40)], "film": [i % 5 for i in range(40)]})
    files.write_table(table, path)
    path.write_bytes(spoiled(path.read_bytes(), rng))
    return read_triples(path, row="who", col="film", duplicates="sum")


def trial(seed: int, directory: Path) -> str:
    """Read one spoiled file."""
    rng = np.random.default_rng(seed)
    kinds = [*READERS, "parquet"]
    kind = kinds[seed % len(kinds)]
    try:
        if kind == "parquet":
            parquet(directory / "cells.parquet", rng)
        else:
            name, content, read = READERS[kind]
            packed = rng.random() < 0.2
            path = directory / (f"{name}.gz" if packed else name)
            spoilt = spoiled(content, rng)
            path.write_bytes(compressed(spoilt, rng) if packed else spoilt)
            read(path)
    except LIBRARY_ERRORS:
        return "refused"
    return "read"


def attack(directory: Path, *, first: int, count: int) -> Counter[str]:
    """Read many; run in a process of its own, whose memory it limits."""
    warnings.simplefilter("ignore")
    limit_memory()
    found: Counter[str] = Counter()
    for seed in range(first, first + count):
        (directory / "current").write_text(str(seed))
        try:
            with watched():
                found[trial(seed, directory)] += 1
        except BaseException as error:
            found["foreign"] += 1
            if found["foreign"] <= SHOWN:
                found[f"seed {seed}: {shown(error)}"] += 1
    return found
