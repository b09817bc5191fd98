"""Vectors for instances and labels, learned from which labels occur together."""

from unseen.embeddings.joint import joint_regression
from unseen.embeddings.sgns import sgns
from unseen.embeddings.spectral import Embedding
from unseen.embeddings.sppmi import sppmi
from unseen.embeddings.svp import svp
from unseen.embeddings.transformer import SPPMIEmbedding
from unseen.embeddings.walks import deepwalk

__all__ = ["Embedding", "SPPMIEmbedding", "deepwalk", "joint_regression", "sgns", "sppmi", "svp"]
