"""Vectors for instances and labels, learned from which labels occur together."""

from unseen.embeddings.joint import joint_regression
from unseen.embeddings.sgns import sgns
from unseen.embeddings.spectral import Embedding
from unseen.embeddings.sppmi import sppmi
from unseen.embeddings.svp import svp
from unseen.embeddings.transformer import SPPMIEmbedding

__all__ = ["Embedding", "SPPMIEmbedding", "joint_regression", "sgns", "sppmi", "svp"]
