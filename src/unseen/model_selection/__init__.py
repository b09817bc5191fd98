"""Splits of cells, rows and columns, cross-validation and search over parameters."""

from unseen.model_selection._evaluate import cross_validate
from unseen.model_selection._results import ResultTable
from unseen.model_selection._scoring import Scorer, get_scorer, make_scorer
from unseen.model_selection._search import GridSearch
from unseen.model_selection._splits import (
    KFoldEntries,
    Split,
    split_cols,
    split_entries,
    split_rows,
    split_time,
)

__all__ = [
    "GridSearch",
    "KFoldEntries",
    "ResultTable",
    "Scorer",
    "Split",
    "cross_validate",
    "get_scorer",
    "make_scorer",
    "split_cols",
    "split_entries",
    "split_rows",
    "split_time",
]
