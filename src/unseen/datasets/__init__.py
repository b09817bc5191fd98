"""Generated data with the known truth, and loaders of public data sets."""

from unseen.datasets.positives import Positives, hide_labels, make_positives, make_power_law
from unseen.datasets.synthetic import (
    Synthetic,
    make_fourier,
    make_gimc_toy,
    make_imc,
    make_low_rank,
    make_ratings,
)

__all__ = [
    "Positives",
    "Synthetic",
    "hide_labels",
    "make_fourier",
    "make_gimc_toy",
    "make_imc",
    "make_low_rank",
    "make_positives",
    "make_power_law",
    "make_ratings",
]
