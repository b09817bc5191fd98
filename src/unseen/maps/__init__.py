"""Feature maps: rows of features in, design matrix out."""

from unseen.maps.base import FeatureMap
from unseen.maps.fourier import Fourier
from unseen.maps.joined import History, Joined
from unseen.maps.linear import Constant, Given, Identity, IdentityWithOnes, WithOnes
from unseen.maps.nystrom import Nystrom
from unseen.maps.standardized import Standardized
from unseen.maps.tanh import Tanh
from unseen.maps.whitened import Whitened

__all__ = [
    "Constant",
    "FeatureMap",
    "Fourier",
    "Given",
    "History",
    "Identity",
    "IdentityWithOnes",
    "Joined",
    "Nystrom",
    "Standardized",
    "Tanh",
    "Whitened",
    "WithOnes",
]
