"""Measures of how good completed cells, ranked lists and clusterings are."""

from unseen.metrics._beyond import coverage_at_k, diversity_at_k, novelty_at_k
from unseen.metrics._binary import FprFnrCurve, auc, fpr_fnr_curve, ranked_hits
from unseen.metrics._clustering import constraint_error, pair_error
from unseen.metrics._frequency import frequency_bins, stratified_recall_at_k
from unseen.metrics._pointwise import mae, relative_error, rmse
from unseen.metrics._propensity import (
    label_propensities,
    propensity_scored_ndcg_at_k,
    propensity_scored_precision_at_k,
)
from unseen.metrics._ranking import (
    hit_rate_at_k,
    map_at_k,
    mrr_at_k,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
)

__all__ = [
    "FprFnrCurve",
    "auc",
    "constraint_error",
    "coverage_at_k",
    "diversity_at_k",
    "fpr_fnr_curve",
    "frequency_bins",
    "hit_rate_at_k",
    "label_propensities",
    "mae",
    "map_at_k",
    "mrr_at_k",
    "ndcg_at_k",
    "novelty_at_k",
    "pair_error",
    "precision_at_k",
    "propensity_scored_ndcg_at_k",
    "propensity_scored_precision_at_k",
    "ranked_hits",
    "recall_at_k",
    "relative_error",
    "rmse",
    "stratified_recall_at_k",
]
