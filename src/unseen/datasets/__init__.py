"""Generated data with the known truth, and loaders of public data sets."""

from unseen.datasets.bunches import ClassData, GraphData, MatrixData, MultiLabelData
from unseen.datasets.graphs import load_ca_grqc, load_ca_hepph
from unseen.datasets.labelled import (
    load_bibtex,
    load_corel5k,
    load_covtype,
    load_delicious,
    load_letter,
    load_mediamill_subset,
    load_mushroom,
    load_rcv1_subset,
    load_segment,
)
from unseen.datasets.matrices import (
    load_ciao,
    load_filmtrust,
    load_ml100k,
    load_nci_dream,
    load_yelp2013,
    load_yelp_3zones,
)
from unseen.datasets.positives import Positives, hide_labels, make_positives, make_power_law
from unseen.datasets.scale import ScaleData, make_scale_bipartite, make_scale_graph
from unseen.datasets.scale_parts import iter_scale_bipartite
from unseen.datasets.synthetic import (
    Synthetic,
    make_fourier,
    make_gimc_toy,
    make_imc,
    make_low_rank,
    make_ratings,
)

__all__ = [
    "ClassData",
    "GraphData",
    "MatrixData",
    "MultiLabelData",
    "Positives",
    "ScaleData",
    "Synthetic",
    "hide_labels",
    "iter_scale_bipartite",
    "load_bibtex",
    "load_ca_grqc",
    "load_ca_hepph",
    "load_ciao",
    "load_corel5k",
    "load_covtype",
    "load_delicious",
    "load_filmtrust",
    "load_letter",
    "load_mediamill_subset",
    "load_ml100k",
    "load_mushroom",
    "load_nci_dream",
    "load_rcv1_subset",
    "load_segment",
    "load_yelp2013",
    "load_yelp_3zones",
    "make_fourier",
    "make_gimc_toy",
    "make_imc",
    "make_low_rank",
    "make_positives",
    "make_power_law",
    "make_ratings",
    "make_scale_bipartite",
    "make_scale_graph",
]
