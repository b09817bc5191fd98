"""Files of a saved model: arrays in the safetensors format, and a directory that many may use at once.

A writer puts its arrays under a name of its own and then swaps the manifest, in one step; a name is never
used twice. Once the manifest names other arrays, the ones before are nobody's, so whoever swapped it may
remove them. What a killed writer left can be told from the files of one at work by a lock that every
writer shares: a writer that gets it alone, after its own work, removes all that the manifest does not name.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from unseen.exceptions import ModelFileError
from unseen.typing import Array

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no such locks
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "ARRAYS_NAME",
    "MANIFEST",
    "exclusive",
    "named",
    "new_arrays_name",
    "read_arrays",
    "shared",
    "swap",
    "why_no_place",
    "write_arrays",
]

MANIFEST = "manifest.json"
ARRAYS_NAME = re.compile(r"arrays-[0-9a-f]{16}\.safetensors")
NEW_MANIFEST = re.compile(r"\.manifest\.json\.[0-9a-f]{8,16}")
MAX_HEADER_BYTES = 64 << 20
PIECE = 16 << 20
"""Bytes that are hashed and written at once."""
TYPES = {
    "BOOL": "|b1", "U8": "|u1", "I8": "|i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4",
    "U64": "<u8", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8",
}  # fmt: skip
NAMES = {np.dtype(form).newbyteorder("="): name for name, form in TYPES.items()}


# -- arrays ---------------------------------------------------------------------------


def write_arrays(arrays: Mapping[str, Array], path: Path) -> tuple[int, str]:
    """Write arrays to a new file and bring them to the disk; its size and sha256."""
    header: dict[str, Any] = {}
    end = 0
    # Wide types first, so that every array starts at a multiple of its width.
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    for name in order:
        array = arrays[name]
        kind = NAMES.get(array.dtype.newbyteorder("="))
        if kind is None:
            raise ModelFileError(f"an array of type {array.dtype} cannot be saved")
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    digest = hashlib.sha256()
    with path.open("xb") as file:
        for piece in (len(text).to_bytes(8, "little"), text):
            digest.update(piece)
            file.write(piece)
        for name in order:
            # Not ascontiguousarray: it gives a single number a dimension that it did not have.
            array = np.asarray(arrays[name], dtype=TYPES[header[name]["dtype"]], order="C")
            content = _bytes_of(array)
            for start in range(0, len(content), PIECE):
                piece_of = content[start : start + PIECE]
                digest.update(piece_of)
                file.write(piece_of)
        file.flush()
        os.fsync(file.fileno())
        return 8 + len(text) + end, digest.hexdigest()


def read_arrays(file: BinaryIO, sha256: str, *, mmap: bool = False) -> dict[str, Array]:
    """Arrays of an open file, whose digest is compared; none is larger than what the file holds.

    With ``mmap`` they are read-only views of the file, whose pages all processes share.
    """
    size = os.fstat(file.fileno()).st_size
    digest = hashlib.sha256()

    def take(count: int) -> bytes:
        content = file.read(count)
        digest.update(content)
        return content

    length = int.from_bytes(take(8), "little")
    if size < 8 or length > min(MAX_HEADER_BYTES, size - 8):
        raise ModelFileError(f"{file.name}: a header of {length} bytes in a file of {size}")
    try:
        header = json.loads(take(length))
        spans = sorted(
            (
                *map(_whole, entry["data_offsets"]),
                name,
                TYPES[entry["dtype"]],
                tuple(map(_whole, entry["shape"])),
            )
            for name, entry in header.items()
            if name != "__metadata__"
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"{file.name} has no readable header: {error}") from error
    arrays: dict[str, Array] = {}
    mapped = np.memmap(file, np.uint8, "r").view(np.ndarray) if mmap else None
    place = 0
    for start, end, name, form, shape in spans:
        if (
            start != place
            or end - start != math.prod(shape) * np.dtype(form).itemsize
            or end > size - 8 - length
        ):
            raise ModelFileError(f"{file.name}: array {name!r} is not where its header says")
        place = end
        if mapped is not None:
            array = mapped[8 + length + start : 8 + length + end].view(form).reshape(shape)
            digest.update(_bytes_of(array))
        else:
            array = np.empty(shape, dtype=form)
            content = _bytes_of(array)
            for at in range(0, len(content), PIECE):
                piece = content[at : at + PIECE]
                if file.readinto(piece) != len(piece):  # type: ignore[attr-defined]
                    raise ModelFileError(f"{file.name} ends within array {name!r}")
                digest.update(piece)
        arrays[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
    if place != size - 8 - length:
        raise ModelFileError(f"{file.name} has {size - 8 - length - place} bytes more than its arrays")
    if digest.hexdigest() != sha256:
        raise ModelFileError(f"{file.name} was altered: its sha256 is not the one in the manifest")
    return arrays


def _bytes_of(array: Array) -> memoryview:
    """The memory of a contiguous array, to be read or written."""
    return memoryview(array.reshape(-1).view(np.uint8).data) if array.size else memoryview(b"")


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a whole number of zero or more")
    return value


# -- directory ------------------------------------------------------------------------


def new_arrays_name() -> str:
    """A name that no other writer uses."""
    return f"arrays-{secrets.token_hex(8)}.safetensors"


def why_no_place(directory: Path) -> str | None:
    """Say why no model can be saved there; None if one can."""
    if directory.exists() and not directory.is_dir():
        return "it is a file, a directory is needed"
    if not directory.is_dir() or (directory / MANIFEST).exists():
        return None
    if all(_is_debris(file.name) for file in directory.iterdir()):
        return None
    return "the directory holds other files and no model; choose a new or empty directory"


def _is_debris(name: str) -> bool:
    """Whether a file that no manifest names comes from a writer that was killed."""
    return bool(ARRAYS_NAME.fullmatch(name) or NEW_MANIFEST.fullmatch(name))


@contextlib.contextmanager
def shared(directory: Path) -> Iterator[None]:
    """Tell other writers that files of one more are to come; then remove what nobody needs.

    The clean-up happens only where all went well and no other writer is at work.
    """
    handle = _lock(directory)
    try:
        yield
        if handle is not None and _only_writer(handle):
            _clean(directory)
    finally:
        if handle is not None:
            os.close(handle)


@contextlib.contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """The right to replace what is read here: whoever else asks for it waits, and then reads the newer model.

    What is locked is the manifest, which a save replaces: a lock on one that is gone is worth nothing.
    """
    if fcntl is None:  # pragma: no cover - Windows
        yield
        return
    while True:
        handle = os.open(directory / MANIFEST, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(handle), os.stat(directory / MANIFEST)):
                break
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
    try:
        yield
    finally:
        os.close(handle)


def swap(directory: Path, manifest: bytes) -> None:
    """Make this the manifest, in one step, and remove the arrays that the one before named."""
    before = named(directory)
    new = directory / f".{MANIFEST}.{secrets.token_hex(8)}"
    try:
        with new.open("xb") as file:
            file.write(manifest)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, directory / MANIFEST)
    except BaseException:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        raise
    _flush(directory)
    if before is not None and before != named(directory):
        with contextlib.suppress(OSError):
            (directory / before).unlink(missing_ok=True)


def _lock(directory: Path) -> int | None:
    """The directory itself, locked together with other writers; None where there are no such locks."""
    if fcntl is None:  # pragma: no cover - Windows
        return None
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
    except OSError:  # some network file systems
        os.close(handle)
        return None
    except BaseException:
        os.close(handle)
        raise
    return handle


def _only_writer(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _clean(directory: Path) -> None:
    """Remove what killed writers left; called by the only writer there is."""
    named_file = named(directory)
    if named_file is None:
        return
    for file in directory.iterdir():
        if _is_debris(file.name) and file.name != named_file:
            with contextlib.suppress(OSError):
                file.unlink()


def named(directory: Path) -> str | None:
    """Arrays file that the manifest names; None where that cannot be said."""
    try:
        name = json.loads((directory / MANIFEST).read_bytes())["arrays"]["file"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return name if isinstance(name, str) and ARRAYS_NAME.fullmatch(name) else None


def _flush(directory: Path) -> None:
    """Bring the entries of a directory to the disk, where that can be asked for."""
    with contextlib.suppress(PermissionError):  # Windows opens no directories
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
