"""What the pages of the reference say of a class beside its docstring.

Where it stands in stored comparisons, which pages show it at work, which classes do the same in another
way, and which of its options are described for all estimators at once (``docs/api/options.rst``).
``conf.py`` puts it on the pages.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

from docs import standings
from unseen.docstrings import CLASSIFIERS, ENTRY, PARAMETERS, Descriptions

ROOT = Path(__file__).parent.parent
OPTIONS = ROOT / "docs" / "api" / "options.rst"

VALUES = ("BiasModel", "MatrixFactorization", "BayesianMF", "SoftImpute", "AugmentedMF")
SIDES = ("IMC", "GIMC", "Maxide", "DirtyIMC", "SparseBilinear", "MixedLinear")
POSITIVES = ("BiasMC", "ShiftMC", "SpectralFilter", "ItemNeighbors")
LABELS = (
    "RidgeOvA",
    "LEML",
    "GIMCClassifier",
    "LinearOvA",
    "ExMLDS",
    "SLEEC",
    "FastXML",
    "PfastreXML",
    "LabelTree",
    "AnnexML",
    "DXML",
    "PDSparse",
    "PPDSparse",
)
CLUSTERS = ("PUClustering", "GIMCClustering", "MCCC")
LINKS = ("CommonNeighbors", "Katz", "SVDKatz", "TruncatedSVDLinks", "BlendedLinks")
GROUPS = (VALUES, SIDES, POSITIVES, ("BiasIMC", "ShiftIMC"), LABELS, CLUSTERS, LINKS)
"""Classes that do the same in another way."""
BESIDE = {
    "MatrixFactorization": ("Imputer", "IMC"),
    "SoftImpute": ("Imputer", "Maxide"),
    "Imputer": ("SoftImpute", "MatrixFactorization"),
    "BayesianMF": ("solvers.Gibbs", "History"),
    "AugmentedMF": ("diagnostics.diagnose",),
    "IMC": ("MatrixFactorization", "BiasIMC"),
    "Maxide": ("SoftImpute",),
    "BiasMC": ("BiasIMC", "links.BlendedLinks"),
    "BiasIMC": ("BiasMC", "IMC"),
    "ShiftIMC": ("ShiftMC",),
    "SpectralFilter": ("Blend",),
    "ExMLDS": ("SPPMIEmbedding", "Blend"),
    "SPPMIEmbedding": ("ExMLDS",),
    "Blend": ("links.BlendedLinks",),
    "Completion": ("Term", "MatrixFactorization", "IMC"),
    "DiskCompleter": ("distributed.DaskCompleter",),
    "DaskCompleter": ("distributed.DiskCompleter",),
    "NMF": ("MatrixFactorization",),
    "PMF": ("MatrixFactorization", "BayesianMF"),
    "MMMF": ("MatrixFactorization",),
    "OneBitMC": ("BiasMC",),
    "LowDensityNMF": ("BiasMC",),
    "Popularity": ("BiasMC", "SpectralFilter"),
    "SpectralPairs": ("GIMCClustering",),
}
"""Further ones for a class, of other groups."""
AT_WORK = {
    VALUES: ("/guide/which_method", "/concepts/diagnose"),
    SIDES: ("/concepts/cold_start", "/papers/mixed"),
    POSITIVES: ("/concepts/blank_cells", "/papers/pu"),
    ("BiasIMC", "ShiftIMC"): ("/concepts/cold_start", "/papers/pu"),
    LABELS: ("/guide/many_labels", "/papers/exmlds"),
    CLUSTERS: ("/papers/gimc_clustering",),
    LINKS: ("/papers/pu_links",),
    ("AugmentedMF",): ("/papers/amf",),
    ("GIMC",): ("/papers/gimc_clustering",),
    ("GIMCClassifier",): ("/papers/gimc",),
    ("BayesianMF",): ("/how_good",),
    ("Completion",): ("/guide/composing",),
    ("DiskCompleter", "DaskCompleter"): ("/guide/distributed",),
    ("NMF", "PMF", "MMMF"): ("/papers/amf",),
    ("OneBitMC", "LowDensityNMF", "Popularity"): ("/papers/pu",),
}
"""Pages that show classes at work."""
ESSENTIAL = ("rank", "n_clusters", "intercept", "standardize")
"""Shared options that say what a model is; they stay among the parameters of each class."""
AS_PART = {"SPPMIEmbedding": "ExMLDS"}
"""What is judged as a part of another class."""
PATHS = {name: f"links.{name}" for name in LINKS}


def group(name: str) -> tuple[str, ...]:
    """Classes for the same task, the class itself among them."""
    return next((classes for classes in GROUPS if name in classes), ())


def pages(name: str) -> list[str]:
    """Pages that show a class at work, the closest first."""
    found = [page for classes, many in AT_WORK.items() if name in classes for page in reversed(many)]
    return list(dict.fromkeys(reversed(found)))


def see_also(name: str) -> list[str]:
    """A section of numpydoc that names what does the same in another way."""
    others = [PATHS.get(other, other) for other in group(name) if other != name]
    others += [other for other in BESIDE.get(name, ()) if other not in others]
    if not others:
        return []
    entries = [line for other in others for line in (f"unseen.{other}", f"    {summary(other)}")]
    return ["", "See Also", "--------", *entries, ""]


def summary(name: str) -> str:
    """The first sentence of a docstring, without what is in brackets."""
    *path, last = name.split(".")
    module = importlib.import_module(".".join(["unseen", *path]))
    text = (inspect.getdoc(getattr(module, last)) or "").split("\n\n", 1)[0]
    return re.sub(r" \([^()]*\)(?=[.,:])", "", " ".join(text.split()))


def standing(name: str) -> list[tuple[str, str, str, str, str]]:
    """Data, measure, score of this class, best simple baseline, best of all: a line for each stored case."""
    lines = []
    for case in standings.of(name):
        ranked = case.ranked
        mine = next(score for score in ranked if score.estimator == name)
        simple = next((score for score in ranked if score.simple), None)

        def told(score: standings.Score | None, mine: standings.Score = mine) -> str:
            if score is None:
                return "none run"
            return "itself" if score is mine else f"{score.label} {score.value:.4g}"

        figure = f"{mine.value:.4g}"
        lines.append(
            (
                f":doc:`{case.data} <{case.page}>`",
                f"{case.measure}, {'more' if case.greater else 'less'} is better",
                f"**{figure}**" if mine is ranked[0] else figure,
                told(simple),
                told(ranked[0]),
            )
        )
    return lines


def what_it_is_good_at(name: str) -> list[str]:
    """Notes with the table of stored comparisons, and links to the pages that show the class at work."""
    lines, shown = standing(AS_PART.get(name, name)), pages(name)
    if not lines and not shown:
        return []
    out = ["", ".. rubric:: What it is good at", ""]
    if lines:
        head = ("data", "measure", name, "best simple baseline", "best of all")
        whole = AS_PART.get(name)
        out += [
            f"As the first step of :class:`~unseen.{whole}`, whose scores these are." if whole else "",
            "From stored runs on held-out data; the page behind the name of the data says how settings were "
            "chosen, and has the spread.",
            "",
            ".. list-table::",
            "   :header-rows: 1",
            "",
        ]
        for line in (head, *lines):
            out += [f"   {'* -' if place == 0 else '  -'} {text}" for place, text in enumerate(line)]
        out.append("")
    if shown:
        out += ["At work: " + ", ".join(f":doc:`{page}`" for page in shown) + ".", ""]
    return out


def shared_apart(lines: list[str]) -> list[str]:
    """A docstring with the options that all estimators share in a section of their own."""
    try:
        start = lines.index("Parameters") + 2
    except ValueError:
        return lines
    end = start
    while end < len(lines) and not (
        end + 1 < len(lines) and lines[end].strip() and set(lines[end + 1].strip()) == {"-"}
    ):
        end += 1
    own, shared, place = [], [], start
    while place < end:
        after = place + 1
        while after < end and (lines[after].startswith(" ") or not lines[after].strip()):
            after += 1
        entry = [line for line in lines[place:after] if line.strip()]
        found = ENTRY.match(lines[place])
        named = found is not None and found[1] in PARAMETERS and found[1] not in ESSENTIAL
        meaning = " ".join(line.strip() for line in entry[1:])
        (shared if named and found and meaning == PARAMETERS[found[1]][1] else own).extend(entry)
        place = after
    if not shared or not own:
        return lines
    return [*lines[:start], *own, "", "Other Parameters", "----------------", *shared, "", *lines[end:]]


def options() -> str:
    """The page of the options that estimators share."""
    out = [
        "Options of all estimators",
        "=========================",
        "",
        "These mean the same wherever they occur; the page of a class lists them as other parameters,",
        "with its own defaults. What a class describes itself under one of these names differs there.",
        "",
        *table_of(PARAMETERS),
        "",
        "Multi-label classifiers",
        "-----------------------",
        "",
        *table_of({name: told for name, told in CLASSIFIERS.items() if name not in PARAMETERS}),
    ]
    return "\n".join([*out, ""])


def table_of(shared: Descriptions) -> list[str]:
    """A line for each option."""
    out = [".. list-table::", "   :header-rows: 1", "", "   * - option", "     - type", "     - meaning"]
    for name, (kind, meaning) in shared.items():
        out += [f"   * - ``{name}``", f"     - {kind}", f"     - {meaning}"]
    return out


if __name__ == "__main__":
    OPTIONS.write_text(options(), encoding="utf-8")
    print(OPTIONS)
