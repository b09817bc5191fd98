"""Splits of cells, rows and columns, cross-validation and search over parameters."""

from unseen.model_selection._evaluate import cross_validate
from unseen.model_selection._folds import KFoldBoth, KFoldCols, KFoldEntries, KFoldRows
from unseen.model_selection._halving import HalvingSearch
from unseen.model_selection._optuna import OptunaSearch
from unseen.model_selection._results import ResultTable
from unseen.model_selection._scoring import Scorer, get_scorer, make_scorer
from unseen.model_selection._search import GridSearch
from unseen.model_selection._segments import segment_scorers, segment_table, segments
from unseen.model_selection._splits import Split, split_both, split_cols, split_entries, split_rows
from unseen.model_selection._time_splits import ForwardTime, split_last, split_time

__all__ = [
    "ForwardTime",
    "GridSearch",
    "HalvingSearch",
    "KFoldBoth",
    "KFoldCols",
    "KFoldEntries",
    "KFoldRows",
    "OptunaSearch",
    "ResultTable",
    "Scorer",
    "Split",
    "cross_validate",
    "get_scorer",
    "make_scorer",
    "segment_scorers",
    "segment_table",
    "segments",
    "split_both",
    "split_cols",
    "split_entries",
    "split_last",
    "split_rows",
    "split_time",
]
