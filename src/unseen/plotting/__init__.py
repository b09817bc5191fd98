"""Pictures of models and data, in the habit of scikit-learn's displays; needs ``unseen[plot]``."""

from unseen.plotting._blocks import BlockStructureDisplay
from unseen.plotting._convergence import ConvergenceDisplay
from unseen.plotting._curves import FprFnrDisplay, PrecisionCurveDisplay
from unseen.plotting._diagnosis import DiagnosisDisplay, SpreadDisplay
from unseen.plotting._matrices import InteractionDisplay, SpectrumDisplay
from unseen.plotting._predictions import PredictionDisplay

__all__ = [
    "BlockStructureDisplay",
    "ConvergenceDisplay",
    "DiagnosisDisplay",
    "FprFnrDisplay",
    "InteractionDisplay",
    "PrecisionCurveDisplay",
    "PredictionDisplay",
    "SpectrumDisplay",
    "SpreadDisplay",
]
