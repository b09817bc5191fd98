"""Stored runs in one form: on which data, by which measure, and who reached what.

``reference.py`` puts a class among them on the page of the class. What :func:`unseen.comparison.compare`
found comes first; classes that it does not try stand in the runs of papers and suites.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
STORED = ROOT / "benchmarks" / "stored"
RESULTS = ROOT / "docs" / "results"


class Score(NamedTuple):
    """What one method reached: its name and class, and whether it is a simple baseline."""

    label: str
    estimator: str
    value: float
    simple: bool = False


class Case(NamedTuple):
    """Methods on the same data; `page` says how it was run."""

    data: str
    measure: str
    greater: bool
    page: str
    scores: list[Score]
    about: tuple[str, ...] = ()
    """Classes on whose pages it stands; none for all that are in it."""

    @property
    def ranked(self) -> list[Score]:
        """Best first."""
        return sorted(self.scores, key=lambda score: score.value, reverse=self.greater)

    def tells_of(self, name: str) -> bool:
        """Whether it stands on the page of a class."""
        return name in (self.about or [score.estimator for score in self.scores])


def suite(name: str) -> Any:
    """Stored results of a suite of benchmarks."""
    return json.loads((STORED / f"{name}.json").read_text(encoding="utf-8"))


def rows(experiment: str) -> list[dict[str, Any]]:
    """Rows of a reproduction, all parts together."""
    parts = json.loads((RESULTS / f"{experiment}.json").read_text(encoding="utf-8"))["units"].values()
    return [row for part in parts for row in part]


Names = dict[str, tuple[str, str]]
"""By the name in a run: the label in the table, and the class."""


def averaged(
    runs: Iterable[dict[str, Any]], key: Callable[[dict[str, Any]], float], names: Names, simple: str
) -> list[Score]:
    """Means over the runs of each method; methods without a name here are left out."""
    found: dict[str, list[float]] = {}
    for run in runs:
        if run["method"] in names:
            found.setdefault(run["method"], []).append(key(run))
    return [Score(*names[method], mean(values), method == simple) for method, values in found.items()]


def same(*names: str) -> Names:
    """Methods that are called by their class."""
    return {name: (name, name) for name in names}


def compared() -> Iterator[Case]:
    """What compare found."""
    for data, case in suite("which_method")["cases"].items():
        measure = case["measures"][0]
        scores = [
            Score(entry["estimator"], entry["estimator"], mean(entry["scores"][measure]), entry["simple"])
            for entry in case["entries"]
            if entry["scores"]
        ]
        yield Case(data, measure, case["greater_is_better"], "/guide/which_method", scores)


def by_default() -> Iterator[Case]:
    """Completers as they are without a setting."""
    fits = suite("defaults")["fits"]
    for data in ("MovieLens-100K", "FilmTrust", "yelp-3zones", "Ciao"):
        own = [
            {**fit, "method": fit["model"].removesuffix("()")}
            for fit in fits
            if fit["data"] == data and fit["model"].endswith("()")
        ]
        names = same(*(fit["method"] for fit in own))
        scores = averaged(own, lambda fit: fit["rmse"], names, "BiasModel")
        yield Case(f"{data}, no settings", "rmse", False, "/guide/choosing_settings", scores)


def remaining() -> Iterator[Case]:
    """Runs for classes that are in no other."""
    for case in suite("remaining")["cases"]:
        scores = [Score(entry["label"], entry["estimator"], mean(entry["scores"]), entry["simple"])
                  for entry in case["entries"]]  # fmt: skip
        yield Case(
            case["data"],
            case["measure"],
            case["greater_is_better"],
            case["page"],
            scores,
            tuple(case["about"]),
        )


def label_systems() -> Iterator[Case]:
    """Methods for many labels, on the published splits that all of them have."""
    from benchmarks.label_systems import OURS, SYSTEMS

    known = {name: (name, system.estimator) for name, system in {**SYSTEMS, **OURS}.items()}
    runs = suite("label_systems")["runs"]
    for data in dict.fromkeys(run["data"] for run in runs):
        own = [run for run in runs if run["data"] == data and run["split"] in ("repository0", None)]
        scores = averaged(own, lambda run: run["precision"][0], known, "RidgeOvA")
        if any(score.simple for score in scores):
            yield Case(f"{data}, split of the repository", "P@1", True, "/papers/label_systems", scores)


def clusters() -> Iterator[Case]:
    """Clusters from pairs that belong together or apart."""
    names: Names = {
        "k-means": ("k-means", ""),
        "MCCC": ("MCCC", "MCCC"),
        "IMC-RFF": ("GIMCClustering, maps fixed", "GIMCClustering"),
        "GIMC": ("GIMCClustering", "GIMCClustering"),
    }
    found = rows("gimc-clustering")
    for data in dict.fromkeys(row["data"] for row in found):
        for count in (1, 5):
            own = [row for row in found if row["data"] == data and row["count"] in (0, count)]
            scores = averaged(own, lambda row: row["error"], names, "k-means")
            label = f"{data}, {'one pair' if count == 1 else f'{count} pairs'} an item"
            yield Case(label, "pairs of items told wrongly", False, "/papers/gimc_clustering", scores)


def links() -> Iterator[Case]:
    """Links of whole graphs, and of a part small enough for dense methods."""
    names: Names = {
        "BiasMC": ("BiasMC", "BiasMC"),
        "Common Neighbors": ("CommonNeighbors", "CommonNeighbors"),
        "Katz": ("Katz", "Katz"),
        "SVD": ("TruncatedSVDLinks", "TruncatedSVDLinks"),
        "SVD-Katz": ("SVDKatz", "SVDKatz"),
        "BiasMC + shared / degree": ("BlendedLinks", "BlendedLinks"),
        "OneBitMC": ("OneBitMC", "OneBitMC"),
        "LowDensityNMF": ("LowDensityNMF", "LowDensityNMF"),
        "ShiftMC-relax": ("ShiftMC", "ShiftMC"),
    }
    found = [{"graph": "a part of ca-HepPh", **row} for row in rows("pu-links-subset")] + rows("pu-links")
    for graph in dict.fromkeys(row["graph"] for row in found):
        for place, length in enumerate(("as long as", "three times as long as")):
            own = [row for row in found if row["graph"] == graph]
            scores = averaged(own, lambda row, k=place: row["fnr"][k], names, "Common Neighbors")
            label = f"{graph}, a list {length} the hidden links"
            yield Case(label, "share of links missed", False, "/papers/pu_links", scores)


def cold_sides() -> Iterator[Case]:
    """Rows or columns of MovieLens-100K without a single cell."""
    plain = ("BiasModel", "SparseBilinear", "Maxide", "IMC", "DirtyIMC")
    names: Names = {**same(*plain), "MixedLinear soft": ("MixedLinear", "MixedLinear")}
    names["SparseBilinear, features of the cold side only"] = (
        "SparseBilinear, features of movies only",
        "SparseBilinear",
    )
    found = rows("mixed-cold")
    for side, what in (("row", "users"), ("col", "movies")):
        own = [row for row in found if row["side"] == side]
        scores = averaged(own, lambda row: row["rmse"], names, "BiasModel")
        yield Case(f"MovieLens-100K, new {what}", "rmse", False, "/papers/mixed", scores)


def few_cells() -> Iterator[Case]:
    """Ratings by augmented factorization and its baselines, ten splits."""
    names: Names = {
        **same("BiasModel", "NMF", "PMF", "MMMF"),
        "MatrixFactorization, biases": ("MatrixFactorization", "MatrixFactorization"),
        "AMF, biases, chosen": ("AugmentedMF", "AugmentedMF"),
    }
    found = rows("amf-errors")
    for data in dict.fromkeys(row["data"] for row in found):
        own = [row for row in found if row["data"] == data]
        scores = averaged(own, lambda row: row["rmse"], names, "BiasModel")
        yield Case(data, "rmse", False, "/papers/amf", scores)


def tables_with_gaps() -> Iterator[Case]:
    """Imputers on tables that scikit-learn ships."""
    runs = [{**run, "method": run["imputer"]} for run in suite("imputation")["small"] if run["share"] == 0.3]
    ours: Names = same(*dict.fromkeys(run["method"] for run in runs))
    for table in dict.fromkeys(run["table"] for run in runs):
        own = [run for run in runs if run["table"] == table]
        scores = averaged(own, lambda run: run["error"], ours, "SimpleImputer")
        yield Case(
            f"{table}, three of ten cells hidden", "scaled error", False, "/guide/scikit_learn", scores
        )


def blends() -> Iterator[Case]:
    """Several models as one, beside the best that is in it."""
    found = suite("lists")["results"]
    gowalla = [
        Score("Blend", "Blend", found["gowalla_blend"]["scores"]["recall@20"]),
        Score("SpectralFilter", "SpectralFilter", found["gowalla"]["scores"]["recall@20"]),
        Score("BiasMC", "BiasMC", found["gowalla_blend"]["alone"]["recall@20"]),
    ]
    yield Case("Gowalla", "recall@20", True, "/how_good", gowalla)
    runs, models = found["bibtex"]["runs"], found["bibtex"]["models"]
    scores = [Score("Blend", "Blend", mean(run["precision"][0] for run in runs))]
    for place, model in enumerate(models):
        name = model.partition("(")[0]
        value = mean(run["alone"][place][0] for run in runs)
        scores.append(Score(name, name, value, name == "RidgeOvA"))
    yield Case("Bibtex, ten splits", "precision@1", True, "/how_good", scores)


def beyond_memory() -> Iterator[Case]:
    """What going by blocks costs, and what it saves."""
    found = suite("distributed")
    overhead, disk = found["overhead"], found["disk"]
    where = "/guide/distributed"
    scores = [
        Score("MatrixFactorization in memory", "MatrixFactorization", overhead["memory_sweep_s"]),
        Score("DaskCompleter", "DaskCompleter", overhead["dask_sweep_s"]),
    ]
    yield Case(
        f"{overhead['cells'] / 1e6:g} million cells, generated", "seconds a sweep", False, where, scores
    )
    cells = disk["cells"] * 16 / 2**30  # a value and a place of four bytes each, by rows and by columns
    scores = [
        Score("the cells alone, in memory", "", cells),
        Score("DiskCompleter", "DiskCompleter", disk["peak_gib"]),
    ]
    yield Case(f"{disk['cells'] / 1e6:g} million cells, generated", "GiB at most", False, where, scores)


SOURCES = (
    label_systems,
    clusters,
    links,
    cold_sides,
    few_cells,
    tables_with_gaps,
    blends,
    beyond_memory,
    by_default,
)


@cache
def cases(first: bool) -> list[Case]:
    """What compare found, with what was run to fill its gaps; or all other stored runs."""
    return [*compared(), *remaining()] if first else [case for source in SOURCES for case in source()]


def of(name: str) -> list[Case]:
    """Where a class stands: in what compare found if it is there, else in other stored runs."""
    for first in (True, False):
        found = [case for case in cases(first) if case.tells_of(name)]
        if found:
            return found
    return []
