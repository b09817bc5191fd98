"""Loaders of graphs."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from unseen.data import Observations, Vocabulary, read_edges
from unseen.data.streaming import PathLike
from unseen.datasets.bunches import GraphData
from unseen.datasets.registry import FILES, find_files
from unseen.docstrings import described_by

__all__ = ["load_ca_grqc", "load_ca_hepph"]


def _load_graph(name: str, data_home: PathLike | None, download: bool) -> GraphData:
    (path,) = find_files(name, data_home=data_home, download=download).values()
    whole = read_edges(path)
    _, part = connected_components(whole.csr, directed=False)
    nodes = np.flatnonzero(part == np.bincount(part).argmax())
    graph = whole.csr[nodes][:, nodes]
    graph.setdiag(0)
    graph.eliminate_zeros()
    upper = sparse.csr_array(sparse.triu(graph, k=1))
    upper.sort_indices()
    edges = np.column_stack([np.repeat(np.arange(nodes.size), np.diff(upper.indptr)), upper.indices])
    # The same halves for everybody: the first half of a permutation by NumPy's default generator.
    train = np.zeros((5, len(edges)), dtype=bool)
    for number in range(5):
        train[number, np.random.default_rng(number).permutation(len(edges))[: (len(edges) + 1) // 2]] = True
    assert whole.row_ids is not None
    ids = Vocabulary(whole.row_ids[nodes])
    return GraphData(Observations.from_sparse(graph).with_ids(ids, ids), edges.astype(np.int64), train)


@described_by(FILES)
def load_ca_grqc(*, data_home: PathLike | None = None, download: bool = False) -> GraphData:
    """ca-GrQc: who wrote with whom in General Relativity; 4,158 authors, 13,422 edges.

    Parameters
    ----------
    download : bool, default=False
        Fetch what is missing from SNAP.

    Returns
    -------
    GraphData
        The largest connected part, without loops.
    """
    return _load_graph("ca_grqc", data_home, download)


@described_by(FILES)
def load_ca_hepph(*, data_home: PathLike | None = None, download: bool = False) -> GraphData:
    """ca-HepPh: who wrote with whom in High Energy Physics; 11,204 authors, 117,619 edges.

    Parameters
    ----------
    download : bool, default=False
        Fetch what is missing from SNAP.

    Returns
    -------
    GraphData
        The largest connected part, without loops.
    """
    return _load_graph("ca_hepph", data_home, download)
