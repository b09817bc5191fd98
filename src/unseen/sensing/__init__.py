"""Linear measurements of a matrix that is known only as a product of factors (AMF, section 5).

A map takes an m x n matrix to p numbers, ``A(X)_k = <A_k, X>``. None of these maps forms the matrix or
any ``A_k`` as a dense array.
"""

from unseen.sensing.base import MeasurementOperator
from unseen.sensing.draw import Sensing
from unseen.sensing.fit import ExpectedFit, Fit, SampledFit
from unseen.sensing.law import Law, expected_weights, n_constraints
from unseen.sensing.measured import Measured, MeasuredGradient
from unseen.sensing.rank_one import RankOneMap
from unseen.sensing.shards import Step, col_step, objective, residuals, row_step, split
from unseen.sensing.sparse_rows import EntriesMap, ExplicitMap, HashedMap

__all__ = [
    "EntriesMap",
    "ExpectedFit",
    "ExplicitMap",
    "Fit",
    "HashedMap",
    "Law",
    "Measured",
    "MeasuredGradient",
    "MeasurementOperator",
    "RankOneMap",
    "SampledFit",
    "Sensing",
    "Step",
    "col_step",
    "expected_weights",
    "n_constraints",
    "objective",
    "residuals",
    "row_step",
    "split",
]
