"""Link prediction on one graph: baselines, the best pairs of all, and curves of errors."""

from unseen.links.blend import BlendedLinks
from unseen.links.neighbours import CommonNeighbors, Katz
from unseen.links.spectral import SVDKatz, TruncatedSVDLinks
from unseen.links.top import TopLinks, link_curve, top_links

__all__ = [
    "BlendedLinks",
    "CommonNeighbors",
    "Katz",
    "SVDKatz",
    "TopLinks",
    "TruncatedSVDLinks",
    "link_curve",
    "top_links",
]
