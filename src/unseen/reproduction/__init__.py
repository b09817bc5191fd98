"""Every table and figure of the papers that can be run again, by name."""

from unseen.reproduction import (
    exmlds_hidden,
    exmlds_joint,
    exmlds_labels,
    gimc_classes,
    gimc_clustering,
    gimc_labels,
    gimc_solvers,
    gimc_toy,
    pu_alpha,
    pu_clustering,
    pu_links,
    pu_links_subset,
    pu_recovery,
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
    gimc_toy,
    gimc_classes,
    gimc_labels,
    gimc_solvers,
    gimc_clustering,
    exmlds_labels,
    exmlds_hidden,
    exmlds_joint,
    pu_recovery,
    pu_alpha,
    pu_links,
    pu_links_subset,
    pu_clustering,
)

EXPERIMENTS: dict[str, Experiment] = {module.EXPERIMENT.name: module.EXPERIMENT for module in _MODULES}
"""What can be run again."""
