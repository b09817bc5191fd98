"""Saved models: a directory with ``manifest.json`` and one safetensors file, no pickle.

The manifest names the arrays file and its digest and is replaced in one step, so a reader
sees the old model or the new one, never a mixture; whatever goes wrong while saving, the
old model stays. Loading checks sizes and digests and creates only classes of this
package, or ones that the caller names. The manifest has a digest of its own; models that were
saved before it had one still load, with a warning.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from unseen.encoding import decode, encode
from unseen.exceptions import DataWarning, ModelFileError
from unseen.typing import Array

__all__ = ["load", "save"]

FORMAT = "unseen-model"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
ARRAYS_NAME = re.compile(r"arrays-[0-9a-f]{16}\.safetensors")
MAX_MANIFEST_BYTES = 256 << 20
MAX_ARRAYS = 100_000


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to the directory ``path``.

    Parameters
    ----------
    model : estimator
        Fitted estimator of this package.
    path : str or path-like
        Directory; made if it is not there. An older model in it is replaced in one step.
    """
    directory = Path(path)
    if directory.exists() and not directory.is_dir():
        raise ModelFileError(f"cannot save to {str(directory)!r}: it is a file, a directory is needed")
    if directory.is_dir() and not (directory / MANIFEST).exists() and any(directory.iterdir()):
        raise ModelFileError(
            f"cannot save to {str(directory)!r}: the directory holds other files and no model; "
            "choose a new or empty directory"
        )
    arrays: dict[str, Array] = {}
    content = encode(model, arrays)
    directory.mkdir(parents=True, exist_ok=True)
    arrays_name = f"arrays-{secrets.token_hex(8)}.safetensors"
    arrays_path = directory / arrays_name
    manifest_path = directory / f".{MANIFEST}.{secrets.token_hex(4)}"
    try:
        # Not ascontiguousarray: it gives a single number a dimension that it did not have.
        save_file({k: np.asarray(v, order="C") for k, v in arrays.items()}, arrays_path)
        # The library writes files for the owner alone; readable by others as the manifest is.
        manifest_path.touch()
        arrays_path.chmod(manifest_path.stat().st_mode)
        _flush(arrays_path)
        manifest = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "written_by": _version(),
            "arrays": {
                "file": arrays_name,
                "bytes": arrays_path.stat().st_size,
                "sha256": _digest(arrays_path),
                "count": len(arrays),
            },
            "model": content,
        }
        manifest["sha256"] = _manifest_digest(manifest)
        manifest_path.write_text(json.dumps(manifest, indent=1, allow_nan=False), encoding="utf-8")
        _flush(manifest_path)
        os.replace(manifest_path, directory / MANIFEST)
    except BaseException:
        for leftover in (arrays_path, manifest_path):
            with contextlib.suppress(OSError):
                leftover.unlink(missing_ok=True)
        raise
    _flush(directory)
    for old in directory.glob("arrays-*.safetensors"):
        if old.name != arrays_name and ARRAYS_NAME.fullmatch(old.name):
            with contextlib.suppress(OSError):
                old.unlink()


def load(path: str | os.PathLike[str], *, custom: Iterable[type] = ()) -> Any:
    """Read a model that ``save`` wrote.

    Parameters
    ----------
    path : str or path-like
        Directory of the model.
    custom : iterable of classes
        Classes from outside this package (a feature map of your own, say) that the model may
        be made of. Nothing else is ever imported.

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
    manifest = _read_manifest(directory)
    entry = manifest.get("arrays")
    if not isinstance(entry, dict) or not ARRAYS_NAME.fullmatch(str(entry.get("file"))):
        raise ModelFileError(f"{directory / MANIFEST}: no valid entry for the arrays file")
    arrays_path = directory / entry["file"]
    if not arrays_path.is_file():
        raise ModelFileError(f"{arrays_path} is missing")
    size = arrays_path.stat().st_size
    if size != entry.get("bytes"):
        raise ModelFileError(f"{arrays_path} has {size} bytes, the manifest says {entry.get('bytes')}")
    if _digest(arrays_path) != entry.get("sha256"):
        raise ModelFileError(f"{arrays_path} was altered: its sha256 is not the one in the manifest")
    count = entry.get("count")
    if not isinstance(count, int) or not 0 <= count <= MAX_ARRAYS:
        raise ModelFileError(f"{directory / MANIFEST}: {count!r} arrays; at most {MAX_ARRAYS} are accepted")
    try:
        arrays = load_file(arrays_path)
        model = decode(manifest["model"], arrays, {cls.__name__: cls for cls in custom})
    except (SafetensorError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"{str(directory)!r} is not a readable model: {error}") from error
    # Last, so that what is wrong is named where it can be.
    if "sha256" not in manifest:
        warnings.warn(
            f"{str(directory)!r} was saved before manifests had a digest, so changes in its {MANIFEST} would "
            "go unnoticed; save the model again",
            DataWarning,
            stacklevel=2,
        )
    elif manifest["sha256"] != _manifest_digest(manifest):
        raise ModelFileError(f"{directory / MANIFEST} was altered: its sha256 is not the one that it names")
    return model


def _read_manifest(directory: Path) -> dict[str, Any]:
    path = directory / MANIFEST
    if not path.is_file():
        raise ModelFileError(f"{str(directory)!r} is not a saved model: there is no {MANIFEST}")
    if path.stat().st_size > MAX_MANIFEST_BYTES:
        raise ModelFileError(f"{path} is larger than {MAX_MANIFEST_BYTES} bytes")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"{path} does not describe an unseen model")
    if manifest.get("format_version") != FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {manifest.get('format_version')!r}; "
            f"this release reads {FORMAT_VERSION}"
        )
    return manifest


def _flush(path: Path) -> None:
    """Bring a file or directory entry to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _manifest_digest(manifest: dict[str, Any]) -> str:
    """Digest of all that a manifest says but the digest itself, however it is laid out."""
    content = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("unseen")
    except PackageNotFoundError:
        return "unknown"
