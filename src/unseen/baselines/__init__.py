"""Small honest versions of methods that others are compared with."""

from unseen.baselines.low_density import LowDensityNMF
from unseen.baselines.mmmf import MMMF
from unseen.baselines.nmf import NMF
from unseen.baselines.one_bit import OneBitMC
from unseen.baselines.pmf import PMF
from unseen.baselines.popularity import Popularity
from unseen.baselines.spectral_pairs import SpectralPairs

__all__ = ["MMMF", "NMF", "PMF", "LowDensityNMF", "OneBitMC", "Popularity", "SpectralPairs"]
