"""Array aliases shared by all modules."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

Array: TypeAlias = npt.NDArray[Any]
FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
IndexArray: TypeAlias = npt.NDArray[np.integer[Any]]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
CSR: TypeAlias = sparse.csr_array[Any]
SparseLike: TypeAlias = Any
"""Any ``scipy.sparse`` matrix or array."""
Features: TypeAlias = FloatArray | CSR
"""Side features after validation: a dense float array or a CSR array."""
