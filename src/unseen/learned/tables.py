"""What every learned attribute holds, by the name of the class.

Letters stand for lengths that must agree within a model: ``n`` rows, ``m`` columns, ``k`` factors, ``l``
labels, ``d`` features of rows, ``e`` of columns.
"""

from __future__ import annotations

import math

import numpy as np

from unseen.learned.kinds import (
    Check,
    arrays,
    children,
    count,
    either,
    flag,
    ids,
    limits,
    matrix,
    numbers,
    part,
    places,
    real,
    records,
    seen_cells,
    sides,
    some,
    starts,
    states,
    text,
)

__all__ = ["FIELDS", "NEEDED", "OTHERS", "PARAMS"]

MOST_STEPS = 1_000_000
"""Steps that a model may ask for; more is no fit but a loop without an end."""

FACTORS = {"row_factors_": numbers("n", "k"), "col_factors_": numbers("m", "k")}
NEEDED: dict[str, dict[str, Check | None]] = {
    "Completer": {"n_features_in_": count("m", 1), **FACTORS},
    "RowScores": {"row_factors_": None, "col_factors_": None},
    "NeighbourLinks": {"graph_": matrix("m", "m")},
    "PositiveRows": {"positives_": matrix("n", "m")},
    "ItemNeighbors": {"similarity_": matrix("m", "m")},
    "SpectralFilter": {
        "row_scale_": numbers("n", low=0),
        "col_scale_": numbers("m", low=0),
        "list_scale_": numbers("m", low=0),
        "singular_values_": numbers("singular", low=0),
        "left_basis_": numbers("m", "basis"),
        "right_basis_": numbers("m", "basis"),
    },
    "CellBlend": {"shape_": sides, "as_lists_": flag, "models_": some(part("Completer"), "models")},
    "LabelBlend": {"models_": some(part("MultiLabelClassifier"), "models")},
    "CommonNeighbors": {"spread_": matrix("m", "m")},
    "Katz": {"beta_": real(0.0), "length_": count(None, 1, 10_000)},
    "SVDKatz": {"beta_": real(0.0)},
    "BlendedLinks": {"models_": some(part("Completer"), "blends"), "weights_": some(real(0.0), "blends")},
    "FactoredCompleter": {
        "terms_": some(part("Term"), "terms"),
        "loss_": part("Loss"),
        "state_": states,
        "offsets_": part("Offsets"),
        "widths_": some(count()),
    },
    "BayesianMF": {"clip_": either(limits)},
    "PositiveCompleter": {"alpha_": real(), "rho_": real(), "class_prior_": real()},
    "BiasModel": {"offsets_": part("Offsets"), "row_bias_": numbers("n"), "col_bias_": numbers("m")},
    "ObservedCompleter": {"offsets_": part("Offsets"), "center_": real()},
    "MMMF": {"levels_": numbers("levels"), "thresholds_": numbers("n", "gaps", finite=False)},
    "LowDensityNMF": {"path_": numbers("stages", 2), "class_prior_": real(0.0, 1.0)},
    "MultiLabelClassifier": {
        "n_labels_": count("l", 1),
        "n_features_in_": count("d", 1),
        "multi_class_": flag,
        "classes_": lambda value, sizes: isinstance(value, np.ndarray) and value.shape == (sizes["l"],),
    },
    "RidgeOvA": {"coef_": numbers("d", "l"), "intercept_": numbers("l")},
    "LinearLabels": {"coef_": matrix("l", "d"), "intercept_": numbers("l")},
    "LabelTree": {"trees_": some(part("LabelHierarchy"))},
    "FastXML": {"forest_": part("LabelForest")},
    "PfastreXML": {"centroids_": matrix("l", "d")},
    "FactoredClassifier": {"label_factors_": numbers("l", "k")},
    "LEML": {"coef_": numbers("d", "k"), "intercept_": numbers("k")},
    "GIMCClassifier": {"scaling_": part("FeatureScaling"), "map_": part("FeatureMap"), "map_params_": arrays},
    "NeighbourClassifier": {
        "labels_": matrix("n", "l"),
        "label_counts_": numbers("l", kinds="i", low=0),
        "learners_": some(part("Learner")),
    },
    "PairClusterer": {
        "n_features_in_": count("d", 1),
        "embedding_": numbers("n", "k"),
        "labels_": numbers("n", kinds="i", low=0),
    },
    "PlacingClusterer": {"completer_": part("Completer")},
    "SPPMIEmbedding": {
        "n_features_in_": count("l", 1),
        "embedding_": numbers("n", "k"),
        "eigenvalues_": numbers("k"),
    },
    "BlockSearch": {"best_params_": lambda value, _: isinstance(value, dict)},
}
"""What a model of each class, or of one derived from it, cannot do without; None where it has none."""

OTHERS: dict[str, Check] = {
    "alpha_": real(),
    "alpha_path_": records,
    "best_iter_": either(count(high=MOST_STEPS)),
    "calibration_": either(
        real(), lambda value, _: isinstance(value, tuple) and all(map(math.isfinite, value))
    ),
    "certificate_": either(part("Certificate")),
    "clip_": either(limits),
    "compression_": lambda value, _: isinstance(value, dict) and all(map(math.isfinite, value.values())),
    "class_prior_": real(),
    "cluster_centers_": numbers("clusters", "k"),
    "col_block_": numbers("m", kinds="i"),
    "col_feature_names_": either(some(text, "e")),
    "col_ids_": either(ids("m")),
    "completer_": part("Completer"),
    "converged_": flag,
    "device_": either(text),
    "drift_": real(0.0),
    "eigenvalues_": numbers("k"),
    "error_bound_": real(),
    "feature_names_in_": lambda value, sizes: isinstance(value, np.ndarray) and value.shape == (sizes["d"],),
    "history_": records,
    "informed_": arrays,
    "item_column_": either(text),
    "item_ids_": either(ids("n")),
    "label_embedding_": either(numbers("l", "k")),
    "label_sets_": flag,
    "lambda_max_": real(),
    "map_sweeps_": either(count(high=MOST_STEPS)),
    "mean_": real(),
    "measurement_": either(part("Sensing")),
    "n_col_features_in_": either(count("e", 1)),
    "n_constraints_": count(),
    "n_iter_": count(high=MOST_STEPS),
    "n_row_features_in_": either(count("d", 1)),
    "origin_": either(part("Origin")),
    "projection_": numbers("width", "k"),
    "rank_": count(),
    "reg_": real(),
    "reg_e_": real(),
    "reg_features_": real(),
    "reg_rest_": real(),
    "reg_path_": either(records),
    "reg_g_": real(),
    "rho_": real(),
    "row_block_": numbers("n", kinds="i"),
    "row_feature_names_": either(some(text, "d")),
    "row_ids_": either(ids("n")),
    "seen_": either(seen_cells),
    "solver_": part("Solver"),
    "threshold_": real(),
    "training_": either(part("TrainingCells")),
    "validation_errors_": either(some(real())),
    "validation_scores_": either(numbers("judged", finite=False)),
    "weights_": lambda value, sizes: some(real())(value, sizes) or numbers("models")(value, sizes),
}
"""What is looked at where it is there."""

SMALLEST = 1e-300
"""What is divided by is above zero."""
FIELDS: dict[str, dict[str, Check]] = {
    "Offsets": {
        "mean": real(),
        "row": either(numbers("n")),
        "col": either(numbers("m")),
        "reg_row": real(0.0),
        "reg_col": real(0.0),
    },
    "FeatureScaling": {"unit_rows": flag, "centre": either(numbers("d")), "scale": either(numbers("d"))},
    "SideSamples": {
        "mean": numbers("samples", "own"),
        "precision": lambda value, sizes: len(value) == sizes["samples"],
        "coefficients": some(lambda value, sizes: len(value) == sizes["samples"]),
    },
    "Posterior": {
        "coordinates": some(lambda value, _: isinstance(value, int) and 0 <= value < 1 << 20, 3),
        "noise": numbers("samples", low=SMALLEST),
        "row_prior": part("SideSamples"),
        "col_prior": part("SideSamples"),
        "deviations": numbers("n", "samples", "drawn", finite=False),
        "scale": real(SMALLEST),
        "thresholds": either(numbers("samples", "gaps", finite=False)),
    },
    "TermPosterior": {
        "noise": numbers("samples", low=SMALLEST),
        "widths": some(count(high=1 << 20)),
        "learned": arrays,
        "row_prior": part("SideSamples"),
        "scale": real(SMALLEST),
        "thresholds": either(numbers("samples", "gaps", finite=False)),
    },
    "SeenCells": {
        "indptr": numbers("starts", kinds="i", low=0),
        "indices": numbers("cells", kinds="i", low=0),
        "n_cols": count(low=1),
    },
    "TrainingCells": {
        "indptr": numbers("starts", kinds="i", low=0),
        "indices": numbers("cells", kinds="i", low=0),
        "values": numbers("cells"),
        "weights": either(numbers("cells", low=0)),
        "shape": some(count(), 2),
    },
    "Origin": {
        "row": text,
        "col": text,
        "value": either(text),
        "weight": either(text),
        "backend": either(text),
    },
    "NoiseSamples": {
        "rows": numbers("samples", "n", low=SMALLEST),
        "cols": numbers("samples", "m", low=SMALLEST),
        "degrees": numbers("samples", low=SMALLEST),
    },
    "LinearMap": {
        "features": numbers("u", kinds="i", low=0),
        "weights": lambda value, sizes: numbers("u", "r")(value, sizes) or matrix("u", "r")(value, sizes),
    },
    "NetworkMap": {
        "features": numbers("d", kinds="i", low=0),
        "inner": numbers("d", "h"),
        "inner_bias": numbers("h"),
        "weights": numbers("h", "r"),
        "bias": numbers("r"),
    },
    "Part": {
        "rows": numbers("p", kinds="i", low=0),
        "map": part("LinearMap"),
        "points": numbers("p", "r"),
        "label_points": either(numbers("l", "r")),
    },
    "Learner": {"directions": numbers("parts", "d"), "parts": some(part("Part"), "parts")},
    "LabelHierarchy": {"starts": starts, "ends": children, "weights": matrix("children", "w")},
    "LabelForest": {
        "splits": matrix("splits", "w"),
        "leaves": matrix("leaves", "l"),
        "children": places,
        "roots": places,
    },
}
"""The same for records."""

PARAMS: dict[str, dict[str, Check]] = {
    "Term": {
        "row_map": either(part("FeatureMap")),
        "col_map": either(part("FeatureMap")),
        "core": either(part("Core")),
        "reg": either(part("Regulariser")),
    },
    "Standardized": {"base": either(part("FeatureMap"))},
    "Whitened": {"base": either(part("FeatureMap"))},
}
"""Parameters that are parts: what is inside is asked what it can do, so it must be able to answer."""
