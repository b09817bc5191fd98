"""Several models as one, with weights chosen on what was held out."""

from unseen.blends.base import Blend
from unseen.blends.cells import CellBlend
from unseen.blends.labels import LabelBlend

__all__ = ["Blend", "CellBlend", "LabelBlend"]
