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
)
"""Where classes are looked up by name; the name stays valid when the code moves inside."""
MAX_DEPTH = 60
ARRAY_KINDS = "fiub"


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
        return {"$data": type(value).__name__, "fields": content}
    if isinstance(value, BaseEstimator):
        params = value.get_params(deep=False)
        fitted = {k: v for k, v in vars(value).items() if k.endswith("_") and not k.startswith("_")}
        return {
            "$estimator": type(value).__name__,
            "params": encode(params, arrays, depth + 1),
            "fitted": encode(fitted, arrays, depth + 1),
        }
    raise ModelFileError(f"a {type(value).__name__} cannot be saved without pickle: {value!r:.80}")


def decode(value: Any, arrays: dict[str, Array], custom: dict[str, type], depth: int = 0) -> Any:
    """The object that :func:`encode` wrote."""
    if depth > MAX_DEPTH:
        raise ModelFileError("the model is nested too deeply")
    if isinstance(value, list):
        return [decode(item, arrays, custom, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    marker = next(iter(value), "")
    content: Any = value.get(marker)
    if marker == "$float":
        return float(content)
    if marker in ("$array", "$text"):
        return _decode_array(value, arrays)
    if marker == "$tuple":
        return tuple(decode(item, arrays, custom, depth + 1) for item in content)
    if marker == "$vocabulary":
        return Vocabulary(_decode_array(content, arrays))
    if marker == "$csr":
        parts = tuple(_decode_array(part, arrays) for part in content["parts"])
        matrix = sparse.csr_array(parts, shape=tuple(content["shape"]))
        matrix.check_format(full_check=True)
        return matrix
    if marker == "$data":
        cls = _find_class(content, custom)
        if not is_dataclass(cls):
            raise ModelFileError(f"{content!r} is not a known record")
        return cls(**{k: decode(v, arrays, custom, depth + 1) for k, v in value["fields"].items()})
    if marker == "$estimator":
        cls = _find_class(content, custom)
        if not issubclass(cls, BaseEstimator):
            raise ModelFileError(f"{content!r} is not an estimator or a part of one")
        params = decode(value["params"], arrays, custom, depth + 1)
        gone = getattr(cls, "former_params", ())
        model = cls(**{name: item for name, item in params.items() if name not in gone})
        for name, item in value["fitted"].items():
            if not name.endswith("_") or name.startswith("_"):
                raise ModelFileError(f"{name!r} is not the name of a learned attribute")
            setattr(model, name, decode(item, arrays, custom, depth + 1))
        return model
    if marker.startswith("$"):
        raise ModelFileError(f"unknown kind {marker!r}; was the model written by a newer release?")
    return {key: decode(item, arrays, custom, depth + 1) for key, item in value.items()}


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
    arrays[f"{name}.ends"] = np.cumsum([len(item) for item in encoded], dtype=np.int64)
    return {"$text": name, "shape": list(array.shape)}


def _decode_array(entry: dict[str, Any], arrays: dict[str, Array]) -> Array:
    if "$array" in entry:
        return arrays[entry["$array"]]
    raw = arrays[entry["$text"]].tobytes()
    ends = arrays[f"{entry['$text']}.ends"]
    if ends.size and (np.any(np.diff(ends) < 0) or ends[0] < 0 or ends[-1] != len(raw)):
        raise ModelFileError("a text array has inconsistent lengths")
    texts = [raw[start:end].decode("utf-8") for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    return np.array(texts, dtype=str).reshape(entry["shape"])


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
