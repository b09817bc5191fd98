"""Factors of a sweep on disk or in an object store, so that a fit can go on after a loss.

A checkpoint is a folder with one file for each block of factors, and a manifest that is
written last: whoever reads it finds all files, or the checkpoint before. The manifest has the digest of every
file and of itself, so a fit goes on from what was written or not at all.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import posixpath
import re
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unseen.distributed.files import filesystem
from unseen.exceptions import DataWarning, ModelFileError
from unseen.typing import Array, FloatArray
from unseen.validation import check_count

__all__ = ["Checkpoints", "Snapshot"]

MANIFEST = "checkpoint.json"
FORMAT = "unseen-checkpoint"
FOLDER = re.compile(r"sweep-[0-9]{5,}")


@dataclass(frozen=True)
class Snapshot:
    """The state after a sweep, less the arrays, which are in files with these digests."""

    folder: str
    history: list[dict[str, Any]]
    converged: bool
    digests: dict[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Checkpoints:
    """Where checkpoints go, and to which fit they belong.

    Parameters
    ----------
    path : str
        Folder, any address that fsspec knows (``s3://...``, a plain path).
    every : int
        Sweeps between two checkpoints.
    resume : bool
        Go on from the checkpoint that is there.
    fingerprint : dict
        What must be the same for a checkpoint to be of use.
    """

    path: str
    every: int
    resume: bool
    fingerprint: dict[str, Any]

    def due(self, n_sweeps: int) -> bool:
        """Whether this sweep is to be kept."""
        return n_sweeps % check_count("checkpoint_every", self.every) == 0

    def open(self, n_sweeps: int) -> str:
        """Folder of a new checkpoint."""
        folder = f"sweep-{n_sweeps:05d}"
        self._fs().makedirs(posixpath.join(self._root(), folder), exist_ok=True)
        return folder

    def write(self, folder: str, name: str, array: Array) -> str:
        """Write an array; called by whoever holds it. Returns the digest of the file."""
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        content = buffer.getvalue()
        self._fs().pipe_file(posixpath.join(self._root(), folder, f"{name}.npy"), content)
        return hashlib.sha256(content).hexdigest()

    def read(self, folder: str, name: str, digest: str | None, shape: tuple[int, int]) -> FloatArray:
        """Read an array of floats of a known shape, whose digest is compared; None where none is known."""
        place = f"{folder}/{name}.npy"
        try:
            content = self._fs().cat_file(posixpath.join(self._root(), place))
        except FileNotFoundError as error:
            raise ModelFileError(f"checkpoint {self.path!r} lacks {place}") from error
        if digest is not None and hashlib.sha256(content).hexdigest() != digest:
            raise ModelFileError(f"checkpoint {self.path!r}: {place} was altered, its sha256 is another one")
        try:
            return _float_array(content, shape)
        except ValueError as error:
            raise ModelFileError(f"checkpoint {self.path!r}: {place} cannot be read: {error}") from error

    def holds(self, snapshot: Snapshot, name: str) -> bool:
        """Whether an array is part of a checkpoint."""
        if snapshot.digests:
            return name in snapshot.digests
        return bool(self._fs().exists(posixpath.join(self._root(), snapshot.folder, f"{name}.npy")))

    def close(self, snapshot: Snapshot) -> None:
        """Make a checkpoint the one that counts, and remove those before it."""
        fs, root = self._fs(), self._root()
        content = {
            "format": FORMAT,
            "fingerprint": self.fingerprint,
            "folder": snapshot.folder,
            "history": snapshot.history,
            "converged": snapshot.converged,
            "files": snapshot.digests,
        }
        content["sha256"] = _digest_of(content)
        temporary = posixpath.join(root, f".{MANIFEST}")
        fs.pipe_file(temporary, json.dumps(content).encode())
        fs.mv(temporary, posixpath.join(root, MANIFEST))
        for entry in fs.ls(root, detail=False):
            name = posixpath.basename(str(entry).rstrip("/"))
            if name.startswith("sweep-") and name != snapshot.folder:
                fs.rm(posixpath.join(root, name), recursive=True)

    def latest(self) -> Snapshot | None:
        """The checkpoint to go on from; None if there is none or none is wanted."""
        if not self.resume:
            return None
        fs, place = self._fs(), posixpath.join(self._root(), MANIFEST)
        if not fs.exists(place):
            return None
        found, theirs = self._manifest(fs.cat_file(place))
        for key in {**self.fingerprint, **theirs}:
            wanted = self.fingerprint.get(key)
            if theirs.get(key) != wanted:
                raise ModelFileError(
                    f"checkpoint {self.path!r} is of another fit: its {key} is {theirs.get(key)!r}, here it "
                    f"is {wanted!r}; resume with the same data and settings, or choose another folder"
                )
        return found

    def _manifest(self, content: bytes) -> tuple[Snapshot, dict[str, Any]]:
        """What a manifest says, and of which fit it is."""
        try:
            found = json.loads(content)
            folder, history, theirs = found["folder"], found["history"], found["fingerprint"]
            files = found.get("files", {})
            if not (
                FOLDER.fullmatch(folder)
                and history
                and all(math.isfinite(entry["objective"]) for entry in history)
                and isinstance(theirs, dict)
                and all(isinstance(name, str) and isinstance(sha, str) for name, sha in files.items())
            ):
                raise ValueError("its entries are not what a fit writes")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ModelFileError(f"{self.path!r} holds no readable checkpoint: {error}") from error
        if "sha256" not in found and "files" not in found:
            warnings.warn(
                f"checkpoint {self.path!r} was written before checkpoints had digests, so changes in its "
                "files would go unnoticed",
                DataWarning,
                stacklevel=4,
            )
        elif found.get("sha256") != _digest_of(found):
            raise ModelFileError(f"{self.path!r}: {MANIFEST} was altered, its sha256 is another one")
        return Snapshot(folder, history, bool(found.get("converged")), files), theirs

    def _fs(self) -> Any:
        return filesystem(self.path)[0]

    def _root(self) -> str:
        return filesystem(self.path)[1]


def _digest_of(manifest: dict[str, Any]) -> str:
    """Digest of all that a manifest says but the digest itself."""
    content = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _float_array(content: bytes, shape: tuple[int, int]) -> FloatArray:
    """The array of a ``.npy`` file, whose header is believed only where the bytes bear it out."""
    buffer = io.BytesIO(content)
    version = np.lib.format.read_magic(buffer)
    if version != (1, 0):
        raise ValueError(f"it has version {version} of the format, not the one that is written")
    found, by_columns, dtype = np.lib.format.read_array_header_1_0(buffer)
    if found != shape or dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"{dtype} of shape {found}, where floats of shape {shape} are needed")
    if len(content) - buffer.tell() != math.prod(shape) * dtype.itemsize:
        raise ValueError("it is longer or shorter than its header says")
    flat: FloatArray = np.frombuffer(content, dtype, offset=buffer.tell()).copy()
    if not np.isfinite(flat).all():
        raise ValueError("it holds numbers that are not finite")
    return flat.reshape(shape, order="F" if by_columns else "C")
