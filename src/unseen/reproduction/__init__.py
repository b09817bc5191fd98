"""Every table and figure of the papers that can be run again, by name."""

from unseen.reproduction import (
    amf_best,
    amf_cells,
    amf_convergence,
    amf_errors,
    amf_parameters,
    amf_restarts,
    exmlds_hidden,
    exmlds_joint,
    exmlds_labels,
    gimc_classes,
    gimc_clustering,
    gimc_labels,
    gimc_solvers,
    gimc_toy,
    mixed_cold,
    mixed_drugs,
    mixed_ratings,
    mixed_support,
    mixed_synthetic,
    pu_alpha,
    pu_clustering,
    pu_links,
    pu_links_subset,
    pu_recovery,
    spread,
)
from unseen.reproduction.experiment import Claim, Experiment, Table, Unit, Verdict
from unseen.reproduction.page import PAPERS, make_page
from unseen.reproduction.runner import Outcome, read, run

__all__ = [
    "EXPERIMENTS",
    "PAPERS",
    "Claim",
    "Experiment",
    "Outcome",
    "Table",
    "Unit",
    "Verdict",
    "make_page",
    "read",
    "run",
]

_MODULES = (
    *(gimc_toy, gimc_classes, gimc_labels, gimc_solvers, gimc_clustering),
    *(exmlds_labels, exmlds_hidden, exmlds_joint),
    *(pu_recovery, pu_alpha, pu_links, pu_links_subset, pu_clustering),
    *(mixed_ratings, mixed_synthetic, mixed_support, mixed_drugs, mixed_cold),
    *(amf_cells, amf_errors, amf_restarts, amf_parameters, amf_convergence, amf_best, spread),
)

EXPERIMENTS: dict[str, Experiment] = {module.EXPERIMENT.name: module.EXPERIMENT for module in _MODULES}
"""What can be run again."""
