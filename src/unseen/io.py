"""Saved models: a directory with ``manifest.json`` and one safetensors file, no pickle.

The manifest names the arrays file and its digest and is replaced in one step, so a reader
sees the old model or the new one, never a mixture; whatever goes wrong while saving, the
old model stays, and any number of writers and readers may be at work (:mod:`unseen.model_files`).
Loading checks sizes and digests and creates only classes of this package, or ones that the caller
names. The manifest has a digest of its own; models that were saved before it had one still load, with
a warning.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from unseen import model_files as files
from unseen.encoding import decode, encode
from unseen.exceptions import DataWarning, ModelFileError, ModelWriteError
from unseen.model_files import MANIFEST
from unseen.typing import Array

__all__ = ["load", "save"]

FORMAT = "unseen-model"
FORMAT_VERSION = 2
"""1 had a digest of what the manifest says, or none; 2 has one of its bytes."""
MAX_MANIFEST_BYTES = 256 << 20
MAX_ARRAYS = 100_000
NO_DIGEST = "0" * 64
"""Stands for the manifest's digest while that is taken."""


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to the directory ``path``.

    Parameters
    ----------
    model : estimator
        Fitted estimator of this package.
    path : str or path-like
        Directory; made if it is not there. An older model in it is replaced in one step.

    Raises
    ------
    ModelWriteError
        If the system refuses to write, because the disk is full, say. It is an ``OSError`` too.
    """
    directory = Path(path)
    arrays: dict[str, Array] = {}
    try:
        if reason := files.why_no_place(directory):
            raise ModelFileError(f"cannot save to {str(directory)!r}: {reason}")
        content = encode(model, arrays)
        directory.mkdir(parents=True, exist_ok=True)
        with files.shared(directory):
            _write(directory, content, arrays)
    except OSError as error:
        raise ModelWriteError(
            error.errno, f"cannot save to {str(directory)!r}: {error.strerror or error}"
        ) from error


def _write(directory: Path, content: Any, arrays: dict[str, Array]) -> None:
    arrays_name = files.new_arrays_name()
    try:
        size, digest = files.write_arrays(arrays, directory / arrays_name)
        manifest = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "written_by": _version(),
            "sha256": NO_DIGEST,
            "arrays": {"file": arrays_name, "bytes": size, "sha256": digest, "count": len(arrays)},
            "model": content,
        }
        text = json.dumps(manifest, indent=1, allow_nan=False).encode()
        own = hashlib.sha256(text).hexdigest()
        files.swap(directory, text.replace(NO_DIGEST.encode(), own.encode(), 1))
    except BaseException:
        with contextlib.suppress(OSError):
            if files.named(directory) != arrays_name:
                (directory / arrays_name).unlink(missing_ok=True)
        raise


def load(path: str | os.PathLike[str], *, custom: Iterable[type] = (), mmap: bool = False) -> Any:
    """Read a model that ``save`` wrote.

    Parameters
    ----------
    path : str or path-like
        Directory of the model.
    custom : iterable of classes
        Classes from outside this package (a feature map of your own, say) that the model may
        be made of. Nothing else is ever imported.
    mmap : bool, default=False
        Leave the arrays in the file and map it into memory: several processes that load the same model hold
        it once. The arrays are read-only.

    Returns
    -------
    estimator
        The fitted model.

    Raises
    ------
    ModelFileError
        If the directory is missing, truncated, altered, too large or of another format.
    """
    directory = Path(path)
    place = directory / MANIFEST
    text = _manifest_text(directory)
    while True:
        manifest = _manifest(text, place)
        try:
            arrays = _arrays(manifest, directory, mmap)
            break
        except FileNotFoundError as error:
            # A writer may have replaced the model since the manifest was read; then there is another one.
            newer = _manifest_text(directory)
            if newer == text:
                raise ModelFileError(f"{error.filename} is missing") from error
            text = newer
    try:
        model = decode(manifest["model"], arrays, {cls.__name__: cls for cls in custom})
    except ModelFileError:
        raise
    except Exception as error:  # whatever an altered file made a class say
        raise ModelFileError(f"{str(directory)!r} is not a readable model: {error}") from error
    # Last, so that what is wrong is named where it can be.
    if manifest["format_version"] == 1 and "sha256" not in manifest:
        warnings.warn(
            f"{str(directory)!r} was saved before manifests had a digest, so changes in its {MANIFEST} would "
            "go unnoticed; save the model again",
            DataWarning,
            stacklevel=2,
        )
    elif manifest.get("sha256") != _manifest_digest(manifest, text):
        raise ModelFileError(f"{place} was altered: its sha256 is not the one that it names")
    return model


def _manifest_text(directory: Path) -> bytes:
    path = directory / MANIFEST
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size > MAX_MANIFEST_BYTES:
                raise ModelFileError(f"{path} is larger than {MAX_MANIFEST_BYTES} bytes")
            return file.read(MAX_MANIFEST_BYTES)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise ModelFileError(f"{str(directory)!r} is not a saved model: there is no {MANIFEST}") from error
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error}") from error


def _manifest(text: bytes, path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"{path} does not describe an unseen model")
    version = manifest.get("format_version")
    if type(version) is not int or not 1 <= version <= FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {version!r}; this release reads 1 to {FORMAT_VERSION}"
        )
    return manifest


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _arrays(manifest: dict[str, Any], directory: Path, mmap: bool) -> dict[str, Array]:
    entry = manifest.get("arrays")
    if not isinstance(entry, dict) or not files.ARRAYS_NAME.fullmatch(str(entry.get("file"))):
        raise ModelFileError(f"{directory / MANIFEST}: no valid entry for the arrays file")
    count = entry.get("count")
    if type(count) is not int or not 0 <= count <= MAX_ARRAYS:
        raise ModelFileError(f"{directory / MANIFEST}: {count!r} arrays; at most {MAX_ARRAYS} are accepted")
    path = directory / entry["file"]
    try:
        # From here on another writer may remove the file: what is open stays readable.
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != entry.get("bytes"):
                raise ModelFileError(f"{path} has {size} bytes, the manifest says {entry.get('bytes')}")
            arrays = files.read_arrays(file, str(entry.get("sha256")), mmap=mmap)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error}") from error
    if len(arrays) != count:
        raise ModelFileError(f"{path} has {len(arrays)} arrays, the manifest says {count}")
    return arrays


def _manifest_digest(manifest: dict[str, Any], text: bytes) -> str:
    """Digest of all that a manifest says but the digest itself."""
    if manifest["format_version"] == 1:
        content = {key: value for key, value in manifest.items() if key != "sha256"}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    own = str(manifest.get("sha256")).encode()
    return hashlib.sha256(text.replace(own, NO_DIGEST.encode(), 1)).hexdigest()


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("unseen")
    except PackageNotFoundError:
        return "unknown"
