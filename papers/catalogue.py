"""Every table and figure of the papers that can be run again, by name."""

from papers import (
    amf_best,
    amf_cells,
    amf_convergence,
    amf_errors,
    amf_parameters,
    amf_restarts,
    amf_time,
    exmlds_hidden,
    exmlds_joint,
    exmlds_labels,
    exmlds_tuned,
    gimc_chosen,
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
from papers.experiment import Experiment

__all__ = ["EXPERIMENTS", "PAPERS"]

PAPERS = {
    "gimc": "Goal-Directed Inductive Matrix Completion (Si, Chiang, Hsieh, Rao, Dhillon; KDD 2016)",
    "exmlds": "Leveraging Distributional Semantics for Multi-Label Learning (Wadbude, Gupta, Rai, Natarajan, "
    "Karnick, Jain)",
    "pu": "PU Learning for Matrix Completion (Hsieh, Natarajan, Dhillon; ICML 2015)",
    "mixed": "Matrix completion by a mixed linear model of side information",
    "amf": "Understanding the Sparsity: Augmented Matrix Factorization with Sampled Constraints on "
    "Unobservables (Y. Zhang, M. Zhang, Y. Zhang, Liu, Ma; CIKM 2014)",
}

_MODULES = (
    *(gimc_toy, gimc_chosen, gimc_classes, gimc_labels, gimc_solvers, gimc_clustering),
    *(exmlds_labels, exmlds_hidden, exmlds_tuned, exmlds_joint),
    *(pu_recovery, pu_alpha, pu_links, pu_links_subset, pu_clustering),
    *(mixed_ratings, mixed_synthetic, mixed_support, mixed_drugs, mixed_cold),
    *(
        amf_cells,
        amf_errors,
        amf_restarts,
        amf_parameters,
        amf_convergence,
        amf_time,
        amf_best,
        spread,
    ),
)

EXPERIMENTS: dict[str, Experiment] = {module.EXPERIMENT.name: module.EXPERIMENT for module in _MODULES}
"""What can be run again."""
