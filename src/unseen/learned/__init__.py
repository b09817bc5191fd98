"""What the learned attributes of each class must look like, so that a file cannot give them anything else.

A name has one meaning in the whole package, so one table says for every attribute what it holds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from unseen import exceptions
from unseen.exceptions import ModelFileError
from unseen.learned.kinds import Check, Sizes, is_a
from unseen.learned.tables import FIELDS, NEEDED, OTHERS, PARAMS
from unseen.typing import Array

__all__ = ["LIBRARY_ERRORS", "NEEDED", "OTHERS", "check_fields", "check_model", "check_parts", "try_model"]

WIDE = 100_000
"""Features above which a row without any is made sparse."""
LIBRARY_ERRORS: tuple[type[Exception], ...] = tuple(
    found
    for name in exceptions.__all__
    if issubclass(found := getattr(exceptions, name), Exception) and not issubclass(found, Warning)
)


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
        posterior = getattr(getattr(model, "solver_", None), "posterior_", None)
        if posterior is not None:
            _check_posterior(posterior, sizes)
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


def _check_posterior(posterior: Any, sizes: Sizes) -> None:
    """Refuse samples that are other in number or width than the factors."""
    kind = type(posterior).__name__
    if kind not in ("Posterior", "TermPosterior"):
        raise ModelFileError(f"posterior_ is a {kind}")
    own = {"n": sizes["n"], "m": sizes["m"]}
    _check(posterior, FIELDS[kind], own, needed=True)
    if getattr(posterior, "varying", None) is not None:
        _check(posterior.varying, FIELDS["NoiseSamples"], own, needed=True)
    if kind == "Posterior":
        rank, row_bias, col_bias = posterior.coordinates
        width, drawn = rank + row_bias + col_bias, [own["drawn"] == rank + row_bias]
        priors = {"row_prior": rank + row_bias, "col_prior": rank + col_bias}
    else:
        width = sum(posterior.widths)
        drawn = [len(part) == own["samples"] for part in posterior.learned.values()]
        priors = {"row_prior": None}
    for name, length in priors.items():
        mean = getattr(posterior, name).mean
        drawn.append(mean.shape == (own["samples"], mean.shape[1] if length is None else length))
    if not all(drawn) or own["samples"] * width > sizes["k"]:
        raise ModelFileError(f"samples of a {kind} do not fit the factors")


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
