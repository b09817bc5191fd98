"""Stored cells, the ids of rows and columns, side features and readers of files."""

from unseen.data.extreme import read_extreme, read_svmlight, write_extreme
from unseen.data.features import align
from unseen.data.merging import TrainingCells
from unseen.data.observations import CSCPattern, Observations
from unseen.data.origin import Origin
from unseen.data.readers import read_edges, read_triples
from unseen.data.vocabulary import Vocabulary

__all__ = [
    "CSCPattern",
    "Observations",
    "Origin",
    "TrainingCells",
    "Vocabulary",
    "align",
    "read_edges",
    "read_extreme",
    "read_svmlight",
    "read_triples",
    "write_extreme",
]
