"""DXML: vectors of labels from walks on their graph, a network that finds them, votes of neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from unseen.embeddings import deepwalk
from unseen.multilabel.neighbour_base import LabelEmbedding, Learned, NeighbourClassifier
from unseen.multilabel.neighbours import Metric, Search, unit_rows
from unseen.multilabel.network import fit_network
from unseen.typing import CSR, Features
from unseen.validation import check_count, check_fraction, check_positive

__all__ = ["DXML"]


class DXML(NeighbourClassifier):
    """A deep embedding of the graph of labels, and the votes of neighbours in it.

    Labels are nodes, joined by how many rows have both. Random walks on the graph give each label a vector
    v_l of length one (DeepWalk), a row the mean of its labels' vectors, and a network of one hidden layer
    learns to find it from the features::

        z_i = mean of v_l over labels l of i,    min over f  sum_i huber(f(x_i) - z_i)

    A new row gets the average labels of the k training rows whose f is nearest. The network is learned by
    PyTorch (``pip install 'unseen[deep]'``) on one thread of the processor; predictions do without it.

    Parameters
    ----------
    n_components : int, default=100
        Size of the vectors.
    n_walks, walk_length, window : int, default=10, 40 and 5
        Walks from each label, their labels, and how far apart two of them make a pair.
    hidden : int, default=256
        Units of the hidden layer.
    dropout : float, default=0.5
        Share of them that a step leaves out.
    learning_rate : float, default=0.001
        Adam's step length.
    batch_size : int, default=128
        Rows of a step.
    max_iter : int, default=30
        Passes over the rows.
    n_learners : int, default=1
        Members of the ensemble; their scores are added.
    random_state : int, Generator, RandomState or None
        Walks, skip-gram training, and everything that the network draws.
    n_jobs : int, optional
        Threads of predictions; learning works on one.

    Attributes
    ----------
    learners_ : list of Learner
        Networks and points.
    labels_ : csr_array
        Labels of the training rows that vote.
    label_counts_ : array of shape (n_labels,)
        Training rows of each label.
    history_ : list of dict
        Mean loss of the network after each pass, of all learners.

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import DXML
    >>> X = np.repeat(np.eye(3), 20, axis=0)
    >>> Y = np.repeat(np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]]), 20, axis=0)
    >>> model = DXML(n_components=4, k=5, random_state=0)
    >>> model.get_params()["hidden"]
    256
    """

    partition = "kmeans"
    n_clusters = 1
    reg, l1, prune = 1.0, 0.0, 0.0
    unlabeled = "drop"

    def __init__(
        self,
        n_components: int = 100,
        *,
        n_walks: int = 10,
        walk_length: int = 40,
        window: int = 5,
        hidden: int = 256,
        dropout: float = 0.5,
        learning_rate: float = 1e-3,
        batch_size: int = 128,
        max_iter: int = 30,
        k: int = 25,
        metric: Metric = "cosine",
        neighbor_power: float = 0.0,
        n_learners: int = 1,
        search: Search = "exact",
        normalize: bool = True,
        calibrate: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_walks = n_walks
        self.walk_length = walk_length
        self.window = window
        self.hidden = hidden
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.k = k
        self.metric = metric
        self.neighbor_power = neighbor_power
        self.n_learners = n_learners
        self.search = search
        self.normalize = normalize
        self.calibrate = calibrate
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("n_walks", "window", "hidden", "batch_size", "max_iter"):
            check_count(name, getattr(self, name))
        check_count("walk_length", self.walk_length, minimum=2)
        check_fraction("dropout", self.dropout, include_low=True)
        check_positive("learning_rate", self.learning_rate)

    def _embed(self, Y: CSR, rng: np.random.Generator, n_threads: int) -> LabelEmbedding:
        together = sparse.csr_array(Y.T.astype(np.float64) @ Y.astype(np.float64))
        together.setdiag(0.0)
        together.eliminate_zeros()
        together.sort_indices()
        labels = unit_rows(
            deepwalk(
                together,
                self.n_components,
                rng=rng,
                n_walks=self.n_walks,
                length=self.walk_length,
                window=self.window,
            )
        ).astype(Y.dtype)
        lengths = np.diff(Y.indptr)
        return LabelEmbedding((Y @ labels) / lengths[:, None].astype(Y.dtype))

    def _learn_map(self, X: Features, Y: CSR, rng: np.random.Generator, n_threads: int) -> Learned:
        found, losses = fit_network(
            X,
            self._embed(Y, rng, n_threads).rows,
            hidden=self.hidden,
            dropout=self.dropout,
            rate=self.learning_rate,
            batch_size=self.batch_size,
            max_iter=self.max_iter,
            rng=rng,
        )
        return Learned(found, None, self.max_iter, [{"loss": loss} for loss in losses])
