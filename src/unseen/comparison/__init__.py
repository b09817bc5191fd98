"""Methods side by side on one's own data, with settings chosen inside the training part."""

from unseen.comparison.candidates import CANDIDATES, Candidate
from unseen.comparison.result import Comparison, Entry
from unseen.comparison.run import compare

__all__ = ["CANDIDATES", "Candidate", "Comparison", "Entry", "compare"]
