"""Multi-label and multi-class classifiers."""

from unseen.multilabel.base import FactoredClassifier, MultiLabelClassifier
from unseen.multilabel.ridge import RidgeOvA

__all__ = ["FactoredClassifier", "MultiLabelClassifier", "RidgeOvA"]
