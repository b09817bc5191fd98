"""Vectors for instances and labels, learned from which labels occur together."""

from unseen.embeddings.record import Embedding
from unseen.embeddings.sppmi import sppmi
from unseen.embeddings.transformer import SPPMIEmbedding

__all__ = ["Embedding", "SPPMIEmbedding", "sppmi"]
