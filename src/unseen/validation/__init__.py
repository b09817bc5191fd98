"""Checks on everything that a user can pass in.

Nothing below this module checks again: solvers and kernels trust what they get.
Every message names the argument, what was found and what would be accepted.
"""

from __future__ import annotations

from unseen.validation.arrays import (
    check_entries,
    check_index_pairs,
    check_indices,
    check_sparse,
    float_dtype,
    refuse_long,
    refuse_masked,
)
from unseen.validation.features import as_frame, check_features, held
from unseen.validation.parameters import (
    check_choice,
    check_count,
    check_fraction,
    check_list_length,
    check_n_jobs,
    check_pair,
    check_positive,
    check_rng,
    check_several,
    check_verbose,
)

__all__ = [
    "as_frame",
    "check_choice",
    "check_count",
    "check_entries",
    "check_features",
    "check_fraction",
    "check_index_pairs",
    "check_indices",
    "check_list_length",
    "check_n_jobs",
    "check_pair",
    "check_positive",
    "check_rng",
    "check_several",
    "check_sparse",
    "check_verbose",
    "float_dtype",
    "held",
    "refuse_long",
    "refuse_masked",
]
