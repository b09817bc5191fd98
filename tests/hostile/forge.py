"""Saved models that are damaged or forged, and what becomes of them."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import os
import resource
import shutil
import signal
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import unseen
from tests.hostile import questions, zoo
from unseen.exceptions import ModelFileError, ParameterError
from unseen.learned import LIBRARY_ERRORS

MEMORY = 3 << 30
"""Bytes that a process of the fuzzer may ask for on top of what it has."""
SECONDS = 20
SHOWN = 25
"""Surprises that are told in words."""
STRANGE: list[Any] = [
    *(None, True, -1, 0, 1, 3, 2**31, 2**40, 2**62, 2**64, 0.0, -1.5, 1e308, 1e-320, "", "x", "cosine"),
    *([], {}, [1], ["a"], {"$float": "nan"}, {"$float": "inf"}, {"$tuple": [1, 2]}),
    {"$data": "Offsets", "fields": {}},
    *({"$estimator": name, "params": {}, "fitted": {}} for name in ("Given", "Full", "Logistic", "Katz")),
    {"$estimator": "Fourier", "params": {"n_components": 2**40}, "fitted": {}},
    {"$estimator": "Fourier", "params": {"n_components": 3}, "fitted": {}},
    {"$estimator": "Nystrom", "params": {"n_components": 3}, "fitted": {}},
]
NUMBERS = [0.0, -1.0, 1e30, -1e300, np.nan, np.inf, 1e-310]
WHOLE = [0, -1, 1, 2**31 - 1, 2**62, -(2**63)]


# -- files ----------------------------------------------------------------------------


def parts_of(directory: Path) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Manifest, header of the arrays and their bytes."""
    manifest = json.loads((directory / "manifest.json").read_text())
    content = (directory / manifest["arrays"]["file"]).read_bytes()
    length = int.from_bytes(content[:8], "little")
    return manifest, json.loads(content[8 : 8 + length]), content[8 + length :]


def write(directory: Path, manifest: dict[str, Any], header: dict[str, Any], body: bytes) -> None:
    """Write a model of these parts with all digests as they should be."""
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    content = len(text).to_bytes(8, "little") + text + body
    directory.mkdir(exist_ok=True)
    for file in directory.iterdir():
        file.unlink()
    (directory / manifest["arrays"]["file"]).write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    manifest["arrays"].update(bytes=len(content), sha256=digest, count=len(header))
    manifest["sha256"] = "0" * 64
    whole = json.dumps(manifest).encode()
    own = hashlib.sha256(whole).hexdigest().encode()
    (directory / "manifest.json").write_bytes(whole.replace(b"0" * 64, own, 1))


def damaged(before: bytes, rng: np.random.Generator) -> bytes:
    """A few bits, bytes or pages changed, put in, or an end cut off."""
    content = bytearray(before)
    while content == before:
        kind = rng.integers(5)
        place = int(rng.integers(len(content)))
        if kind == 0:
            content[place] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            content[place] = int(rng.integers(256))
        elif kind == 2:
            del content[place:]
        elif kind == 3:
            end = min(len(content), place + int(rng.integers(1, 64)))
            content[place:end] = bytes(end - place)
        else:
            content[place:place] = rng.bytes(int(rng.integers(1, 9)))
    return bytes(content)


def damage(directory: Path, target: Path, rng: np.random.Generator) -> None:
    """Copy a folder with one of its files damaged."""
    shutil.rmtree(target, ignore_errors=True)
    files = sorted(file for file in directory.rglob("*") if file.is_file())
    chosen = files[int(rng.integers(len(files)))]
    for file in files:
        content = file.read_bytes()
        copy = target / file.relative_to(directory)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(damaged(content, rng) if file == chosen else content)


# -- forging --------------------------------------------------------------------------


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every container with each of its keys."""
    found = []
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        found.append((tree, key))
        found += places(value)
    return found


def forge(parts: Any, others: list[Any], rng: np.random.Generator) -> Any:
    """Parts of a model with one to three things in them changed."""
    manifest, header, body = copy.deepcopy(parts[0]), copy.deepcopy(parts[1]), bytearray(parts[2])
    for _ in range(int(rng.integers(1, 4))):
        edit = EDITS[int(rng.integers(len(EDITS)))]
        edit(manifest, header, body, others, rng)
    return manifest, header, bytes(body)


def _any(rng: np.random.Generator, options: Any) -> Any:
    return options[int(rng.integers(len(options)))]


def _value(manifest: Any, header: Any, body: bytearray, others: list[Any], rng: np.random.Generator) -> None:
    holder, key = _any(rng, places(manifest["model"]))
    holder[key] = copy.deepcopy(_any(rng, STRANGE))


def _swap(manifest: Any, header: Any, body: bytearray, others: list[Any], rng: np.random.Generator) -> None:
    (one, first), (two, second) = (_any(rng, places(manifest["model"])) for _ in range(2))
    one[first], two[second] = copy.deepcopy(two[second]), copy.deepcopy(one[first])


def _drop(manifest: Any, header: Any, body: bytearray, others: list[Any], rng: np.random.Generator) -> None:
    holder, key = _any(rng, places(manifest["model"]))
    del holder[key]


def _reference(
    manifest: Any, header: Any, body: bytearray, others: list[Any], rng: np.random.Generator
) -> None:
    found = [(h, k) for h, k in places(manifest["model"]) if k in ("$array", "$text")]
    if len(found) > 1:
        (one, first), (two, second) = (_any(rng, found) for _ in range(2))
        one[first], two[second] = two[second], one[first]


def _class(manifest: Any, header: Any, body: bytearray, others: list[Any], rng: np.random.Generator) -> None:
    found = [(h, k) for h, k in places(manifest["model"]) if k in ("$estimator", "$data")]
    theirs = [(h, k) for h, k in places(_any(rng, others)[0]["model"]) if k in ("$estimator", "$data")]
    if found and theirs:
        (holder, key), (other, name) = _any(rng, found), _any(rng, theirs)
        holder[key] = other[name]


def _graft(manifest: Any, header: Any, body: bytearray, others: list[Any], rng: np.random.Generator) -> None:
    """A value of another model in the place of one of this, under the same name where there is one."""
    mine = places(manifest["model"])
    theirs = places(_any(rng, others)[0]["model"])
    holder, key = _any(rng, mine)
    same = [(h, k) for h, k in theirs if k == key]
    other, name = _any(rng, same or theirs)
    holder[key] = copy.deepcopy(other[name])


def _shape(manifest: Any, header: Any, body: bytearray, others: list[Any], rng: np.random.Generator) -> None:
    """Another shape or type of the same number of bytes, or of any."""
    if not header:
        return
    entry = header[_any(rng, sorted(header))]
    kind = rng.integers(4)
    if kind == 0:
        entry["shape"] = entry["shape"][::-1]
    elif kind == 1:
        entry["shape"] = [int(np.prod(entry["shape"]))]
    elif kind == 2:
        entry["dtype"] = _any(
            rng, ["F64", "I64", "U64"] if entry["dtype"] in ("F64", "I64") else ["U8", "I8", "BOOL"]
        )
    else:
        entry["shape"] = [*entry["shape"], _any(rng, [1, 0, 2**40, -1])]


def _number(manifest: Any, header: Any, body: bytearray, others: list[Any], rng: np.random.Generator) -> None:
    """Another number in an array."""
    filled = [
        name for name in sorted(header) if header[name]["data_offsets"][1] > header[name]["data_offsets"][0]
    ]
    if not filled:
        return
    entry = header[_any(rng, filled)]
    start, end = entry["data_offsets"]
    if entry["dtype"] in ("F64", "I64") and end <= len(body):
        place = start + 8 * int(rng.integers((end - start) // 8))
        kind, values = ("<f8", NUMBERS) if entry["dtype"] == "F64" else ("<i8", WHOLE)
        body[place : place + 8] = np.array(_any(rng, values)).astype(kind).tobytes()
    elif end <= len(body):
        body[start + int(rng.integers(end - start))] = int(rng.integers(256))


def _longer(manifest: Any, header: Any, body: bytearray, others: list[Any], rng: np.random.Generator) -> None:
    """An array that says that it is larger than it is."""
    for entry in header.values():
        if entry["shape"] and rng.integers(3) == 0:
            entry["shape"][0] += int(rng.integers(1, 9))


EDITS: list[Callable[..., None]] = [
    _value, _value, _swap, _drop, _reference, _class, _graft, _graft, _shape, _number, _number, _longer,
]  # fmt: skip


# -- what becomes of them -------------------------------------------------------------


def use(model: Any) -> None:
    """Ask a loaded model for everything, a few rows of it."""
    tasks = questions.of(model, questions.arguments(model))
    for task in [*tasks, lambda: repr(model)[:1000], *questions.more_cells(model)]:
        with contextlib.suppress(LIBRARY_ERRORS):
            task()


def outcome(path: Path) -> str:
    """What happens to whoever loads a directory and uses the model."""
    try:
        model = unseen.load(path)
    except ModelFileError:
        return "refused"
    except LIBRARY_ERRORS:
        return "refused in other words"
    use(model)
    return "answered"


def attack(directory: Path, *, kind: str, first: int, count: int) -> Counter[str]:
    """Damage or forge one model after the other; run in a process of its own, whose memory it limits."""
    warnings.simplefilter("ignore")
    models = saved_zoo(directory)
    parts = [parts_of(path) for path in models]
    limit_memory()
    target = directory / f"trial-{os.getpid()}"
    found: Counter[str] = Counter()
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        number = seed % len(models)
        if kind == "damaged":
            damage(models[number], target, rng)
        else:
            write(target, *forge(parts[number], parts, rng))
        (directory / "current").write_text(str(seed))
        try:
            with watched():
                found[outcome(target)] += 1
        except BaseException as error:
            found["foreign"] += 1
            if found["foreign"] <= SHOWN:
                found[f"seed {seed}, {models[number].name}: {shown(error)}"] += 1
    return found


def shown(error: BaseException) -> str:
    """An error and the line that it comes from."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} {str(error)[:80]} ({Path(where.filename).name}:{where.lineno})"


def saved_zoo(directory: Path) -> list[Path]:
    """A saved model of every kind; made once in a directory."""
    paths = [directory / name.replace(" ", "-") for name in zoo.MODELS]
    for path, name in zip(paths, zoo.MODELS, strict=True):
        if not path.exists():
            model = zoo.fitted(name)
            try:
                model.save(path, cells=True)
            except (TypeError, ParameterError):  # no completer, or one that no longer has its cells
                model.save(path)
    return paths


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """End what computes, or waits, for longer than anybody would: a busy machine has no part in the first."""

    def too_long(*_: Any) -> None:
        raise TimeoutError(f"more than {SECONDS} s of a processor")

    for sent in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(sent, too_long)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(20 * SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)


def limit_memory() -> None:
    """Let this process ask for little more than it has; not under a sanitiser, which maps terabytes."""
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
