"""Models for other programs: factors in Parquet, NumPy or ONNX, and a function for MLflow."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from unseen.exceptions import InvalidDataError, ParameterError
from unseen.typing import Array, FloatArray

__all__ = ["FORMATS", "export"]

FORMATS = ("parquet", "npz", "onnx-matmul")
MAX_ONNX_BYTES = (1 << 31) - (1 << 20)
"""A message of Protocol Buffers is smaller than 2 GiB."""


def export(model: Any, path: str | os.PathLike[str], to: str) -> list[Path]:
    """Write the factors of a model; a score is the inner product of a row's and a column's.

    Means and biases are coordinates of the factors, so nothing else is needed. Where the loss has a scale of
    its own (log odds), predictions are its link of the scores.

    Parameters
    ----------
    model : completer
        Fitted, with factors.
    path : str or path-like
        File to write; a directory for Parquet. It takes the place of an older one only when complete.
    to : {"parquet", "npz", "onnx-matmul"}
        ``parquet``: ``rows.parquet`` and ``cols.parquet`` with columns ``id`` and ``factors``. ``npz``:
        arrays ``row_factors``, ``col_factors``, ``row_ids``, ``col_ids``. ``onnx-matmul``: a graph that takes
        ``factors`` (n x k) and gives ``scores`` (n x columns).

    Returns
    -------
    list of Path
        Files that were written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from unseen import MatrixFactorization
    >>> from unseen.export import export
    >>> model = MatrixFactorization(1, reg=1.0, center="none", random_state=0).fit(np.ones((3, 2)))
    >>> with tempfile.TemporaryDirectory() as home:
    ...     (file,) = export(model, f"{home}/factors.npz", "npz")
    ...     with np.load(file) as arrays:
    ...         shape = arrays["col_factors"].shape
    >>> shape
    (2, 1)
    """
    if to not in FORMATS:
        raise ParameterError(f"to must be one of {', '.join(FORMATS)}, got {to!r}")
    if not (hasattr(model, "row_factors_") and hasattr(model, "col_factors_")):
        raise InvalidDataError(f"a {type(model).__name__} has no factors of rows and columns to export")
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        if to == "parquet":
            return _parquet(model, target, new)
        if to == "npz":
            with new.open("xb") as file:
                np.savez(file, allow_pickle=False, **_arrays(model))
        else:
            new.write_bytes(_onnx(model.col_factors_))
        os.replace(new, target)
    finally:
        if new.is_dir():
            shutil.rmtree(new)
        new.unlink(missing_ok=True)
    return [target]


def _arrays(model: Any) -> dict[str, Array]:
    out: dict[str, Array] = {"row_factors": model.row_factors_, "col_factors": model.col_factors_}
    for side in ("row", "col"):
        vocabulary = getattr(model, f"{side}_ids_", None)
        length = len(out[f"{side}_factors"])
        out[f"{side}_ids"] = np.arange(length) if vocabulary is None else vocabulary.values
    return out


def _parquet(model: Any, target: Path, new: Path) -> list[Path]:
    import pyarrow as pa
    from pyarrow import parquet

    if target.exists() and not (
        target.is_dir() and all(one.suffix == ".parquet" for one in target.iterdir())
    ):
        raise InvalidDataError(f"{target} holds something else than an export; choose a new directory")
    arrays = _arrays(model)
    new.mkdir()
    for side in ("row", "col"):
        factors, ids = np.ascontiguousarray(arrays[f"{side}_factors"]), arrays[f"{side}_ids"]
        lists = pa.FixedSizeListArray.from_arrays(pa.array(factors.ravel()), factors.shape[1])
        ids = ids.astype(object) if ids.dtype.kind == "U" else ids
        parquet.write_table(pa.table({"id": pa.array(ids), "factors": lists}), new / f"{side}s.parquet")
    if target.exists():
        shutil.rmtree(target)
    os.replace(new, target)
    return sorted(target.iterdir())


# -- ONNX: a message of Protocol Buffers, field by field ------------------------------


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _block(field: int, content: bytes | str) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _tensor_type(name: str, kind: int, dims: Iterable[int | str]) -> bytes:
    shape = b"".join(
        _block(1, _number(1, size) if isinstance(size, int) else _block(2, size)) for size in dims
    )
    return _block(1, name) + _block(2, _block(1, _number(1, kind) + _block(2, shape)))


def _onnx(right: FloatArray) -> bytes:
    """``scores = factors @ cols.T`` with the columns as a constant."""
    count, width = right.shape
    if right.nbytes > MAX_ONNX_BYTES:
        raise InvalidDataError(
            f"{count} columns of {width} factors take {right.nbytes} bytes; ONNX holds {MAX_ONNX_BYTES}"
        )
    kind = {4: 1, 8: 11}[right.dtype.itemsize]  # FLOAT, DOUBLE
    raw = np.ascontiguousarray(right.T, dtype=right.dtype.newbyteorder("<")).tobytes()
    columns = (
        b"".join(_number(1, size) for size in (width, count))
        + _number(2, kind)
        + _block(8, "cols")
        + _block(9, raw)
    )
    node = (
        _block(1, "factors")
        + _block(1, "cols")
        + _block(2, "scores")
        + _block(3, "product")
        + _block(4, "MatMul")
    )
    graph = (
        _block(1, node)
        + _block(2, "unseen")
        + _block(5, columns)
        + _block(11, _tensor_type("factors", kind, ("n", width)))
        + _block(12, _tensor_type("scores", kind, ("n", count)))
    )
    return _number(1, 8) + _block(2, "unseen") + _block(7, graph) + _block(8, _block(1, "") + _number(2, 13))


# -- MLflow: what its loader of Python functions asks a module for ---------------------


class _Function:
    """A model as MLflow calls it."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def predict(self, frame: Any, params: dict[str, Any] | None = None) -> Any:
        """Predictions for pairs; lists for rows alone.

        Parameters
        ----------
        frame : DataFrame
            A column of row ids and one of column ids, named as in the training data ("row" and "col" where
            that had no names). Without the second, lists are asked for.
        params : dict, optional
            ``{"k": 20}`` for lists of so many, 10 by default. MLflow hands on what the signature names.
        """
        params = params or {}
        if unknown := set(params) - {"k"}:
            raise ParameterError(f"params: k is accepted, got {', '.join(sorted(unknown))}")
        origin = getattr(self._model, "origin_", None)
        row, col = (getattr(origin, side, side) for side in ("row", "col"))
        if row not in frame:
            raise InvalidDataError(f"the frame lacks the column {row!r}; it has {list(frame)}")
        rows = np.asarray(frame[row])
        if col not in frame:
            return self._model.recommend(rows, params.get("k", 10), as_frame=True)
        return self._model.predict_entries(rows, np.asarray(frame[col]))


def _load_pyfunc(path: str) -> _Function:
    """The saved model at a path, for ``mlflow.pyfunc.save_model(loader_module="unseen.export")``."""
    from unseen.io import load

    return _Function(load(path))
