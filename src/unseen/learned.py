"""What the learned attributes of each class must look like, so that a file cannot give them anything else.

A name has one meaning in the whole package, so one table says for every attribute what it holds. Letters
stand for lengths that must agree within a model: ``n`` rows, ``m`` columns, ``k`` factors, ``l`` labels,
``d`` features of rows, ``e`` of columns.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from unseen import exceptions
from unseen.data import Vocabulary
from unseen.exceptions import ModelFileError
from unseen.typing import Array

__all__ = ["check_fields", "check_model", "check_parts", "try_model"]

Sizes: TypeAlias = dict[str, int]
Check: TypeAlias = Callable[[Any, Sizes], bool]

MOST_STEPS = 1_000_000
"""Steps that a model may ask for; more is no fit but a loop without an end."""
WIDE = 100_000
"""Features above which a row without any is made sparse."""
LIBRARY_ERRORS: tuple[type[Exception], ...] = tuple(
    found
    for name in exceptions.__all__
    if issubclass(found := getattr(exceptions, name), Exception) and not issubclass(found, Warning)
)


# -- kinds of values ------------------------------------------------------------------


def bound(sizes: Sizes, name: str | int, found: int) -> bool:
    """Whether a length agrees with what is known of it; the first to come says what it is."""
    return found == (name if isinstance(name, int) else sizes.setdefault(name, found))


def numbers(
    *lengths: str | int,
    kinds: str = "f",
    low: float = -math.inf,
    below: str | None = None,
    finite: bool = True,
) -> Check:
    """An array of these lengths."""

    def check(value: Any, sizes: Sizes) -> bool:
        return (
            isinstance(value, np.ndarray)
            and value.dtype.kind in kinds
            and value.ndim == len(lengths)
            and all(bound(sizes, *pair) for pair in zip(lengths, value.shape, strict=True))
            and (not finite or all_finite(value))
            and (low == -math.inf or not value.size or bool(value.min() >= low))
        )

    return check


def all_finite(array: Array) -> bool:
    """Whether no number is NaN or infinite, without a mask in the common case."""
    if array.dtype.kind != "f":
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(array.sum(dtype=np.float64))) or bool(np.isfinite(array).all())


def matrix(rows: str, cols: str) -> Check:
    """A sparse matrix, whose indices were checked when it was made."""

    def check(value: Any, sizes: Sizes) -> bool:
        return bool(
            isinstance(value, sparse.csr_array)
            and bound(sizes, rows, value.shape[0])
            and bound(sizes, cols, value.shape[1])
            and value.dtype.kind in "fiub"
            and all_finite(value.data)
        )

    return check


def count(name: str | None = None, low: int = 0, high: int = 1 << 62) -> Check:
    """A whole number, perhaps one that is a length."""

    def check(value: Any, sizes: Sizes) -> bool:
        return (
            isinstance(value, (int, np.integer))
            and not isinstance(value, bool)
            and low <= int(value) <= high
            and (name is None or bound(sizes, name, int(value)))
        )

    return check


def real(low: float = -math.inf, high: float = math.inf) -> Check:
    """A finite number."""

    def check(value: Any, _: Sizes) -> bool:
        return (
            isinstance(value, (int, float, np.integer, np.floating))
            and not isinstance(value, bool)
            and math.isfinite(value)
            and low <= float(value) <= high
        )

    return check


def ids(name: str) -> Check:
    """Ids of so many rows or columns."""
    return lambda value, sizes: isinstance(value, Vocabulary) and bound(sizes, name, len(value))


def part(name: str) -> Check:
    """An object of a class of this name or derived from one."""
    return lambda value, _: is_a(value, name)


def either(*checks: Check) -> Check:
    """Any of these; None where none is given."""
    return lambda value, sizes: value is None or any(check(value, sizes) for check in checks)


def some(check: Check, name: str | int | None = None) -> Check:
    """A list of values, perhaps of a known length."""
    return lambda value, sizes: (
        isinstance(value, (list, tuple))
        and (name is None or bound(sizes, name, len(value)))
        and all(check(item, sizes) for item in value)
    )


def flag(value: Any, _: Sizes) -> bool:
    """True or False."""
    return isinstance(value, (bool, np.bool_))


def text(value: Any, _: Sizes) -> bool:
    """A text."""
    return type(value) is str


def limits(value: Any, _: Sizes) -> bool:
    """A lower and an upper one, perhaps infinite."""
    return isinstance(value, tuple) and len(value) == 2 and bool(value[0] < value[1])


def records(value: Any, _: Sizes) -> bool:
    """What was noted in each sweep."""
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def arrays(value: Any, _: Sizes) -> bool:
    """Arrays by name, whose shapes the maps that they belong to know."""
    return isinstance(value, dict) and all(
        isinstance(item, np.ndarray) and item.dtype.kind in "fiu" and item.ndim <= 3 and all_finite(item)
        for item in value.values()
    )


def is_a(value: Any, name: str) -> bool:
    """Whether an object is of a class of this name; by name, since classes of all layers are meant."""
    return any(cls.__name__ == name for cls in type(value).__mro__)


def sides(value: Any, sizes: Sizes) -> bool:
    """Numbers of rows and columns."""
    return some(count(), 2)(value, sizes) and all(map(partial(bound, sizes), "nm", value))


def seen_cells(value: Any, sizes: Sizes) -> bool:
    """Cells of a matrix of the shape of the model; the record itself has looked at its numbers."""
    return is_a(value, "SeenCells") and (
        len(value.indptr) == sizes.get("n", sizes["m"]) + 1 and value.n_cols == sizes["m"]
    )


def places(value: Any, sizes: Sizes) -> bool:
    """Splits, or -1 less the number of a leaf, of a forest; splits below others have larger numbers."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "i" or value.ndim > 2:
        return False
    ends = (value >= -sizes["leaves"]) & (value < sizes["splits"])
    if value.ndim == 1:
        return bool(len(value) and ends.all())
    below = (value < 0) | (value > np.arange(len(value))[:, None])
    return value.shape == (sizes["splits"], 2) and bool((ends & below).all())


def children(value: Any, sizes: Sizes) -> bool:
    """Where children lead, whose parents' `starts` come before: a later node or -1 less a label."""
    return (
        numbers("children", kinds="i", low=-sizes.get("l", 1 << 62))(value, sizes)
        and bool((value < sizes["nodes"]).all())
        and np.array_equal(np.sort(value[value >= 0]), np.arange(1, sizes["nodes"]))
    )


def starts(value: Any, sizes: Sizes) -> bool:
    """Where the children of each node begin, and the end; no node is without."""
    sizes["nodes"] = len(value) - 1 if isinstance(value, np.ndarray) else 0
    return (
        numbers("starts", kinds="i", low=0)(value, sizes)
        and len(value) > 1
        and value[0] == 0
        and bool((np.diff(value) > 0).all())
        and bound(sizes, "children", int(value[-1]))
    )


# -- tables ---------------------------------------------------------------------------

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
        "state_": arrays,
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

FIELDS: dict[str, dict[str, Check]] = {
    "Offsets": {
        "mean": real(),
        "row": either(numbers("n")),
        "col": either(numbers("m")),
        "reg_row": real(0.0),
        "reg_col": real(0.0),
    },
    "FeatureScaling": {"unit_rows": flag, "centre": either(numbers("d")), "scale": either(numbers("d"))},
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


# -- the checks -----------------------------------------------------------------------


def check_fields(record: Any) -> None:
    """Refuse a record whose fields are not what its class holds."""
    _check(record, FIELDS.get(type(record).__name__, {}), {}, needed=True)


def check_parts(model: Any) -> None:
    """Refuse parts of the wrong kind."""
    for cls in type(model).__mro__:
        _check(model, PARAMS.get(cls.__name__, {}), {}, needed=True)


def check_model(model: Any) -> Sizes:
    """Refuse a fitted model whose learned attributes do not fit its class or each other; its lengths."""
    sizes: Sizes = {}
    rules: dict[str, Check | None] = {}
    for cls in reversed(type(model).__mro__):
        rules |= NEEDED.get(cls.__name__, {})
    learned = vars(model)
    if not any(name.endswith("_") for name in learned):
        return sizes  # a part, or a model that is not fitted
    table = {name: check for name, check in rules.items() if check is not None}
    _check(model, table, sizes, needed=True)
    _check(model, {name: check for name, check in OTHERS.items() if name not in table}, sizes, needed=False)
    for name, found in (("offsets_", "Offsets"), ("scaling_", "FeatureScaling")):
        if name in learned:
            _check(learned[name], FIELDS[found], dict(sizes), needed=True)
    if is_a(model, "NeighbourClassifier"):
        _check_learners(model, sizes)
    if is_a(model, "FastXML"):
        own = {"l": sizes["l"], "w": sizes["d"] + 1}
        _check(model.forest_, FIELDS["LabelForest"], own, needed=True)
    if is_a(model, "LabelTree"):
        for tree in model.trees_:
            own = {"l": sizes["l"], "w": sizes["d"] + 1}
            _check(tree, FIELDS["LabelHierarchy"], own, needed=True)
    if is_a(model, "MMMF") and sizes["gaps"] != sizes["levels"] - 1:
        raise ModelFileError("an MMMF has one threshold for each gap between its levels")
    if is_a(model, "FactoredCompleter"):
        # Samples of all terms lie side by side, not the terms one after the other.
        averaged = hasattr(getattr(model, "solver_", None), "posterior_")
        if len(model.widths_) != (1 if averaged else sizes["terms"]):
            raise ModelFileError(f"there are {len(model.widths_)} widths_ for {sizes['terms']} terms")
        if sum(model.widths_) + model.offsets_.width != sizes["k"]:
            raise ModelFileError(f"widths_ add up to other than the {sizes['k']} factors")
    return sizes


def _check(holder: Any, table: Mapping[str, Check], sizes: Sizes, *, needed: bool) -> None:
    values = vars(holder)
    for name, check in table.items():
        if name not in values:
            if needed:
                raise ModelFileError(f"a {type(holder).__name__} without {name}")
        elif not check(values[name], sizes):
            found = values[name]
            shown = f"{found.dtype} of shape {found.shape}" if hasattr(found, "dtype") else repr(found)[:80]
            raise ModelFileError(f"{name} of a {type(holder).__name__} is not what it must be: {shown}")


def _check_learners(model: Any, sizes: Sizes) -> None:
    """Refuse neighbours or features that are not there."""
    try:
        model._check_parameters()
    except LIBRARY_ERRORS as error:
        raise ModelFileError(f"a parameter of {type(model).__name__} is no such thing: {error}") from error
    if not model.learners_:
        raise ModelFileError("learners_ is empty")
    for learner in model.learners_:
        own = {name: sizes[name] for name in ("d", "l")}
        _check(learner, FIELDS["Learner"], own, needed=True)
        for found in learner.parts:
            ends = (found.rows.max(initial=-1) < sizes["n"], found.map.features.max(initial=-1) < sizes["d"])
            lengths = {"l": sizes["l"], "r": found.map.weights.shape[1]}
            _check(found, FIELDS["Part"], lengths, needed=True)
            if not all(ends) or (found.label_points is None) != (
                model.learners_[0].parts[0].label_points is None
            ):
                raise ModelFileError("a part of a learner speaks of rows or features that are not there")


def try_model(model: Any, sizes: Sizes, most: int) -> None:
    """Let a model answer for one row, so that whatever the tables do not say shows before it is used.

    The errors of the library are answers, too. ``most`` is a limit of all lengths: nothing is longer than its
    file.
    """
    if too_long := [size for size in sizes.values() if size > most]:
        raise ModelFileError(f"a {type(model).__name__} of size {max(too_long)}, which its file cannot hold")
    tasks: list[Callable[[], Any]] = []
    if is_a(model, "Completer"):
        one = sparse.csr_array((np.ones(1), ([0], [0])), shape=(1, sizes["m"]))
        sides = {side: getattr(model, f"n_{side}_features_in_", None) for side in ("row", "col")}
        zeros = {side: None if width is None else _blank_row(width) for side, width in sides.items()}
        names = [getattr(model, f"{side}_ids_", None) for side in ("row", "col")]
        firsts = [[0] if found is None else found.values[:1] for found in names]
        tasks = [
            lambda: model.predict_entries(*firsts),
            lambda: model.recommend(firsts[0], 1),
            lambda: _folded(model, one, zeros["row"], sizes.get("k", sizes["m"])),
        ]
        for side, row in zeros.items():
            if row is not None:
                tasks.append(partial(_embedded, model, side, row, sizes["k"]))
    elif is_a(model, "MultiLabelClassifier"):
        row = _blank_row(sizes["d"])
        tasks = [lambda: model.predict_topk(row, 1), lambda: model.predict(row)]
        if hasattr(model, "predict_proba"):
            tasks.append(lambda: model.predict_proba(row))
    elif is_a(model, "PlacingClusterer"):
        tasks = [lambda: model.predict(_blank_row(sizes["d"]))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for task in tasks:
            try:
                task()
            except ModelFileError:
                raise
            except LIBRARY_ERRORS:
                pass


def _blank_row(width: int) -> Any:
    return sparse.csr_array((1, width)) if width > WIDE else np.zeros((1, width))


def _folded(model: Any, cells: Any, features: Any, width: int) -> None:
    found = model.fold_in(cells, row_features=features)
    if found.shape != (1, width):
        raise ModelFileError(f"a new row has {found.shape[-1]} factors, the model has {width}")


def _embedded(model: Any, side: str, row: Array, width: int) -> None:
    embed = model._embed_rows if side == "row" else model._embed_cols
    found = embed(row.astype(model.row_factors_.dtype))
    if found.shape != (1, width):
        raise ModelFileError(f"features of a {side} give {found.shape[-1]} factors, the model has {width}")
