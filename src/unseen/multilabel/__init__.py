"""Multi-label and multi-class classifiers."""

from unseen.multilabel.base import FactoredClassifier, MultiLabelClassifier
from unseen.multilabel.gimc import GIMCClassifier
from unseen.multilabel.leml import LEML
from unseen.multilabel.ridge import RidgeOvA
from unseen.multilabel.scaling import FeatureScaling

__all__ = [
    "LEML",
    "FactoredClassifier",
    "FeatureScaling",
    "GIMCClassifier",
    "MultiLabelClassifier",
    "RidgeOvA",
]
