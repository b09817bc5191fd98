"""Factors of a sweep on disk or in an object store, so that a fit can go on after a loss.

A checkpoint is a folder with one file for each block of factors, and a manifest that is
written last: whoever reads it finds all files, or the checkpoint before.
"""

from __future__ import annotations

import io
import json
import posixpath
from dataclasses import dataclass
from typing import Any

import numpy as np

from unseen.distributed.files import filesystem
from unseen.exceptions import ModelFileError
from unseen.typing import Array, FloatArray
from unseen.validation import check_count

__all__ = ["Checkpoints", "Snapshot"]

MANIFEST = "checkpoint.json"
FORMAT = "unseen-checkpoint"


@dataclass(frozen=True)
class Snapshot:
    """The state after a sweep, less the factors, which are in files."""

    folder: str
    row_gram: FloatArray
    col_gram: FloatArray
    history: list[dict[str, Any]]
    converged: bool


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

    def write(self, folder: str, name: str, array: Array) -> None:
        """Write an array; called by whoever holds it."""
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        self._fs().pipe_file(posixpath.join(self._root(), folder, f"{name}.npy"), buffer.getvalue())

    def read(self, folder: str, name: str) -> Array:
        """Read an array."""
        path = posixpath.join(self._root(), folder, f"{name}.npy")
        try:
            content = self._fs().cat_file(path)
        except FileNotFoundError as error:
            raise ModelFileError(f"checkpoint {self.path!r} lacks {folder}/{name}.npy") from error
        array: Array = np.load(io.BytesIO(content), allow_pickle=False)
        return array

    def holds(self, folder: str, name: str) -> bool:
        """Whether an array is there."""
        return bool(self._fs().exists(posixpath.join(self._root(), folder, f"{name}.npy")))

    def close(self, snapshot: Snapshot) -> None:
        """Make a checkpoint the one that counts, and remove those before it."""
        self.write(snapshot.folder, "row_gram", snapshot.row_gram)
        self.write(snapshot.folder, "col_gram", snapshot.col_gram)
        fs, root = self._fs(), self._root()
        content = {
            "format": FORMAT,
            "fingerprint": self.fingerprint,
            "folder": snapshot.folder,
            "history": snapshot.history,
            "converged": snapshot.converged,
        }
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
        try:
            found = json.loads(fs.cat_file(place))
            folder, history, theirs = found["folder"], found["history"], found["fingerprint"]
        except (ValueError, KeyError, TypeError) as error:
            raise ModelFileError(f"{self.path!r} holds no readable checkpoint: {error}") from error
        for key in {**self.fingerprint, **theirs}:
            wanted = self.fingerprint.get(key)
            if theirs.get(key) != wanted:
                raise ModelFileError(
                    f"checkpoint {self.path!r} is of another fit: its {key} is {theirs.get(key)!r}, here it "
                    f"is {wanted!r}; resume with the same data and settings, or choose another folder"
                )
        row_gram, col_gram = (self.read(folder, f"{side}_gram") for side in ("row", "col"))
        return Snapshot(folder, row_gram, col_gram, history, bool(found.get("converged")))

    def _fs(self) -> Any:
        return filesystem(self.path)[0]

    def _root(self) -> str:
        return filesystem(self.path)[1]
