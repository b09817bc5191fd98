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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import unseen
from tests.hostile import zoo
from unseen.estimators.pu_base import PositiveCompleter
from unseen.exceptions import ModelFileError
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
    tasks: list[Callable[[], Any]] = []
    if hasattr(model, "predict_entries"):
        m = model.n_features_in_
        cells = sparse.csr_array((np.ones(3), ([0, 1, 1], [0, min(1, m - 1), m - 1])), shape=(2, m))
        d, e = (getattr(model, f"n_{side}_features_in_", None) for side in ("row", "col"))
        rows, cols = (None if w is None else np.full((2, w), 0.5) for w in (d, e))
        known = [getattr(model, f"{side}_ids_", None) for side in ("row", "col")]
        names = [[0, 1] if ids is None else ids.values[:2] for ids in known]
        tasks = [
            lambda: model.predict_entries(*names),
            lambda: model.recommend(names[0], 3),
            lambda: model.recommend(names[0], 3, candidates=names[1], exclude=None),
            lambda: model.fold_in(cells, row_features=rows),
            lambda: model.transform(cells, row_features=rows),
            lambda: model.predict_new(rows, cols),
            lambda: model.predict_proba(*names) if hasattr(model, "predict_proba") else None,
            lambda: _explained(model, cells),
        ]
    elif hasattr(model, "predict_topk"):
        row = np.full((2, model.n_features_in_), 0.5)
        tasks = [
            lambda: model.predict(row),
            lambda: model.predict_topk(row, 3),
            lambda: model.decision_function(row),
        ]
    tasks.append(lambda: repr(model)[:1000])
    for task in tasks:
        with contextlib.suppress(LIBRARY_ERRORS):
            task()


def _explained(model: Any, cells: Any) -> Any:
    if hasattr(model, "explain"):
        positive = isinstance(model, PositiveCompleter)
        return model.explain(cells, 1, 0) if positive else model.explain(0, 0)
    return None


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
    signal.signal(signal.SIGALRM, _too_long)
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        number = seed % len(models)
        if kind == "damaged":
            damage(models[number], target, rng)
        else:
            write(target, *forge(parts[number], parts, rng))
        (directory / "current").write_text(str(seed))
        signal.alarm(SECONDS)
        try:
            found[outcome(target)] += 1
        except BaseException as error:
            found["foreign"] += 1
            if found["foreign"] <= SHOWN:
                found[f"seed {seed}, {models[number].name}: {shown(error)}"] += 1
        finally:
            signal.alarm(0)
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
            zoo.fitted(name).save(path)
    return paths


def _too_long(*_: Any) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


def limit_memory() -> None:
    """Let this process ask for little more than it has; not under a sanitiser, which maps terabytes."""
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
