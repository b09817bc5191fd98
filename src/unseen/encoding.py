"""Python objects as JSON plus named arrays, and back.

What JSON does not know is written as an object with one key that starts with ``$``:
arrays, tuples, text arrays, sparse matrices, vocabularies, dataclasses and estimators.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import fields, is_dataclass
from typing import Any, cast

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from unseen.data import Vocabulary
from unseen.exceptions import ModelFileError
from unseen.learned import check_fields, check_model, check_parts, try_model
from unseen.typing import CSR, Array

__all__ = ["decode", "encode"]

PUBLIC_MODULES = (
    "unseen",
    "unseen.data",
    "unseen.data.ids",
    "unseen.solvers",
    "unseen.offsets",
    "unseen.maps",
    "unseen.model_selection",
    "unseen.links",
    "unseen.baselines",
    "unseen.multilabel",
    "unseen.blends",
    "unseen.estimators.auto_reg",
)
"""Where classes are looked up by name; the name stays valid when the code moves inside."""
MAX_DEPTH = 60
ARRAY_KINDS = "fiub"
FEW_BYTES = 256 << 20
PADDING = 128
"""In memory all texts of an array are as long as the longest: above some bytes, that may be no more than so
many times as much as in the file."""
LENGTHS = 1 << 26
"""Features or columns that need not be backed by as many numbers in the file."""


def encode(value: Any, arrays: dict[str, Array], depth: int = 0) -> Any:
    """JSON form of ``value``; arrays go into ``arrays`` under fresh names."""
    if depth > MAX_DEPTH:
        raise ModelFileError("the model is nested too deeply to be saved")
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else {"$float": str(float(value))}
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.ndarray):
        return _encode_array(value, arrays)
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        return None  # a generator's place in its stream is no part of a model
    if isinstance(value, list):
        return [encode(item, arrays, depth + 1) for item in value]
    if isinstance(value, tuple):
        return {"$tuple": [encode(item, arrays, depth + 1) for item in value]}
    if isinstance(value, dict):
        if not all(isinstance(key, str) and not key.startswith("$") for key in value):
            raise ModelFileError(f"only dicts with plain text keys can be saved, found {list(value)[:5]}")
        return {key: encode(item, arrays, depth + 1) for key, item in value.items()}
    if isinstance(value, Vocabulary):
        return {"$vocabulary": _encode_array(value.values, arrays)}
    if sparse.issparse(value):
        csr: CSR = sparse.csr_array(cast(Any, value))
        parts = [_encode_array(part, arrays) for part in (csr.data, csr.indices, csr.indptr)]
        return {"$csr": {"shape": list(csr.shape), "parts": parts}}
    if is_dataclass(value) and not isinstance(value, type):
        content = {f.name: encode(getattr(value, f.name), arrays, depth + 1) for f in fields(value)}
        return {"$data": _name_of(value), "fields": content}
    if isinstance(value, BaseEstimator):
        params = value.get_params(deep=False)
        fitted = {k: v for k, v in vars(value).items() if k.endswith("_") and not k.startswith("_")}
        check_model(value)  # what could not be loaded must not replace what can
        return {
            "$estimator": _name_of(value),
            "params": encode(params, arrays, depth + 1),
            "fitted": encode(fitted, arrays, depth + 1),
        }
    raise ModelFileError(f"a {type(value).__name__} cannot be saved without pickle: {value!r:.80}")


def decode(value: Any, arrays: dict[str, Array], custom: dict[str, type]) -> Any:
    """The model that :func:`encode` wrote, each of its objects checked before it is used."""
    decoder = _Decoder(arrays, custom)
    model = decoder.object(value)
    if not isinstance(model, BaseEstimator):
        raise ModelFileError(f"a {type(model).__name__} is no model")
    if not any(name.endswith("_") for name in vars(model)):
        raise ModelFileError(f"the {type(model).__name__} has learned nothing")
    if arrays:
        raise ModelFileError(f"nothing refers to {len(arrays)} arrays, {sorted(arrays)[:3]} among them")
    return model


class _Decoder:
    """Takes each array once: what refers to one twice would need more memory than the file has bytes."""

    def __init__(self, arrays: dict[str, Array], custom: dict[str, type]) -> None:
        self.arrays, self.custom = arrays, custom
        self.most = max(LENGTHS, sum(array.size for array in arrays.values()))

    def object(self, value: Any, depth: int = 0) -> Any:
        """What an entry stands for."""
        if depth > MAX_DEPTH:
            raise ModelFileError("the model is nested too deeply")
        if isinstance(value, list):
            return [self.object(item, depth + 1) for item in value]
        if not isinstance(value, dict):
            return value
        marker = next(iter(value), "")
        content: Any = value.get(marker)
        if marker == "$float":
            return float(content)
        if marker in ("$array", "$text"):
            return self._array(value)
        if marker == "$tuple":
            return tuple(self.object(item, depth + 1) for item in content)
        if marker == "$vocabulary":
            return Vocabulary(self._array(content))
        if marker == "$csr":
            return self._matrix(content)
        if marker == "$data":
            return self._record(content, value["fields"], depth)
        if marker == "$estimator":
            return self._estimator(content, value["params"], value["fitted"], depth)
        if marker.startswith("$"):
            raise ModelFileError(f"unknown kind {marker!r}; was the model written by a newer release?")
        return {key: self.object(item, depth + 1) for key, item in value.items()}

    def _record(self, name: Any, fields: dict[str, Any], depth: int) -> Any:
        cls = _find_class(name, self.custom)
        if not is_dataclass(cls):
            raise ModelFileError(f"{name!r} is not a known record")
        record = cls(**{key: self.object(item, depth + 1) for key, item in fields.items()})
        check_fields(record)
        return record

    def _estimator(self, name: Any, params: Any, fitted: dict[str, Any], depth: int) -> Any:
        cls = _find_class(name, self.custom)
        if not issubclass(cls, BaseEstimator):
            raise ModelFileError(f"{name!r} is not an estimator or a part of one")
        gone = getattr(cls, "former_params", ())
        given = self.object(params, depth + 1)
        model = cls(**{key: item for key, item in given.items() if key not in gone})
        check_parts(model)
        for key, item in fitted.items():
            if not key.endswith("_") or key.startswith("_"):
                raise ModelFileError(f"{key!r} is not the name of a learned attribute")
            setattr(model, key, self.object(item, depth + 1))
        sizes = check_model(model)
        if sizes and cls.__module__.partition(".")[0] == "unseen":
            try_model(model, sizes, self.most)
        return model

    def _matrix(self, content: dict[str, Any]) -> CSR:
        data, indices, indptr = (self._array(part) for part in content["parts"])
        rows, cols = content["shape"]
        if not (
            type(rows) is type(cols) is int
            and 0 <= cols < 1 << 62
            and data.ndim == indices.ndim == 1
            and indptr.shape == (rows + 1,)
            and indices.dtype.kind == indptr.dtype.kind == "i"
            and data.shape == indices.shape == (int(indptr[-1]),)
        ):
            raise ModelFileError(f"parts of a sparse matrix do not make one of {rows} x {cols}")
        matrix: CSR = sparse.csr_array((data, indices, indptr), shape=(rows, cols))
        matrix.check_format(full_check=True)
        return matrix

    def _array(self, entry: dict[str, Any]) -> Array:
        if "$array" in entry:
            return self._take(entry["$array"])
        name = entry["$text"]
        raw, ends = self._take(name), self._take(f"{name}.ends")
        if raw.dtype != np.uint8 or ends.dtype.kind != "i" or raw.ndim != 1 or ends.ndim != 1:
            raise ModelFileError("a text array is made of other things than bytes and their ends")
        lengths = np.diff(ends, prepend=0)
        if np.any(lengths < 0) or (ends[-1] if ends.size else 0) != raw.size:
            raise ModelFileError("a text array has inconsistent lengths")
        refuse_padding(lengths, entry)
        whole = raw.tobytes()
        texts = [
            whole[start:end].decode("utf-8")
            for start, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True)
        ]
        return np.array(texts, dtype=str).reshape(entry["shape"])

    def _take(self, name: Any) -> Array:
        if not isinstance(name, str) or name not in self.arrays:
            raise ModelFileError(f"there is no array {name!r}, or something else has it already")
        return self.arrays.pop(name)


def refuse_padding(lengths: Array, what: Any) -> None:
    """Refuse texts that would need far more memory, each as long as the longest, than they have bytes."""
    padded = 4 * len(lengths) * int(lengths.max(initial=0))
    if padded > max(FEW_BYTES, PADDING * (int(lengths.sum()) + 8 * len(lengths))):
        raise ModelFileError(
            f"{len(lengths)} texts of up to {int(lengths.max())} bytes would take {padded} bytes of memory; "
            f"make the longest of them shorter ({what!r:.80})"
        )


def _encode_array(array: Array, arrays: dict[str, Array]) -> dict[str, Any]:
    name = f"a{len(arrays)}"
    if array.dtype.kind in ARRAY_KINDS:
        arrays[name] = array
        return {"$array": name}
    if array.dtype.kind not in "UO" or not all(isinstance(item, str) for item in array.ravel()):
        raise ModelFileError(f"an array of type {array.dtype} cannot be saved")
    # One block of bytes and the end of each text: no padding to the longest, no pickle.
    encoded = [item.encode("utf-8") for item in array.ravel()]
    arrays[name] = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    lengths = np.array([len(item) for item in encoded], dtype=np.int64)
    refuse_padding(lengths, array[:3])
    arrays[f"{name}.ends"] = np.cumsum(lengths, dtype=np.int64)
    return {"$text": name, "shape": list(array.shape)}


def _name_of(value: Any) -> str:
    """Name of the class of an object; refused where loading would not find the class by it."""
    cls = type(value)
    if cls.__module__.partition(".")[0] == "unseen" and _find_class(cls.__name__, {}) is not cls:
        raise ModelFileError(f"a {cls.__module__}.{cls.__name__} has no name of its own and cannot be saved")
    return cls.__name__


def _find_class(name: Any, custom: dict[str, type]) -> type:
    if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
        raise ModelFileError(f"{name!r} is not the name of a class")
    if name in custom:
        return custom[name]
    for module in PUBLIC_MODULES:
        found = getattr(importlib.import_module(module), name, None)
        if isinstance(found, type) and found.__module__.split(".")[0] == "unseen":
            return found
    raise ModelFileError(
        f"the model is made of {name!r}, which is not part of this release; "
        "pass load(path, custom=[...]) if it is a class of your own"
    )
