"""Stored cells, the ids of rows and columns, side features and readers of files."""

from unseen.data.observations import CSCPattern, Observations
from unseen.data.vocabulary import Vocabulary

__all__ = ["CSCPattern", "Observations", "Vocabulary"]
