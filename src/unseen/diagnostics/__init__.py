"""What the data can decide, and what it cannot."""

from unseen.diagnostics.blocks import Blocks, find_blocks
from unseen.diagnostics.diagnosis import BlockSize, Degrees, Diagnosis, diagnose
from unseen.diagnostics.identify import Identifiability, identifiability
from unseen.diagnostics.probe import Isometry

__all__ = [
    "BlockSize",
    "Blocks",
    "Degrees",
    "Diagnosis",
    "Identifiability",
    "Isometry",
    "diagnose",
    "find_blocks",
    "identifiability",
]
