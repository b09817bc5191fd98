"""Small honest versions of methods that others are compared with."""

from unseen.baselines.low_density import LowDensityNMF
from unseen.baselines.one_bit import OneBitMC
from unseen.baselines.popularity import Popularity
from unseen.baselines.spectral_pairs import SpectralPairs

__all__ = ["LowDensityNMF", "OneBitMC", "Popularity", "SpectralPairs"]
