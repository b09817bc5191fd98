"""Multi-label and multi-class classifiers."""

from unseen.multilabel.annexml import AnnexML
from unseen.multilabel.base import MultiLabelClassifier
from unseen.multilabel.dxml import DXML
from unseen.multilabel.exmlds import ExMLDS
from unseen.multilabel.fastxml import FastXML, PfastreXML
from unseen.multilabel.forest import LabelForest
from unseen.multilabel.gimc import GIMCClassifier
from unseen.multilabel.hierarchy import LabelHierarchy
from unseen.multilabel.kinds import FactoredClassifier, WeightedClassifier
from unseen.multilabel.label_tree import LabelTree
from unseen.multilabel.learners import Learner, Part
from unseen.multilabel.leml import LEML
from unseen.multilabel.linear import LinearLabels, LinearOvA
from unseen.multilabel.network import NetworkMap
from unseen.multilabel.pdsparse import PDSparse, PPDSparse
from unseen.multilabel.regression import LinearMap
from unseen.multilabel.ridge import RidgeOvA
from unseen.multilabel.scaling import FeatureScaling
from unseen.multilabel.sleec import SLEEC

__all__ = [
    "DXML",
    "LEML",
    "SLEEC",
    "AnnexML",
    "ExMLDS",
    "FactoredClassifier",
    "FastXML",
    "FeatureScaling",
    "GIMCClassifier",
    "LabelForest",
    "LabelHierarchy",
    "LabelTree",
    "Learner",
    "LinearLabels",
    "LinearMap",
    "LinearOvA",
    "MultiLabelClassifier",
    "NetworkMap",
    "PDSparse",
    "PPDSparse",
    "Part",
    "PfastreXML",
    "RidgeOvA",
    "WeightedClassifier",
]
