"""``compare`` on data of different kinds: what it recommends, for the guide "Which method?".

python -m benchmarks which_method            all of them
python -m benchmarks.which_method NAME ...   some; stored results of others stay

``METHODS`` in the environment names methods, with ``|`` between them, that are run again or added; the splits
are the same.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sklearn.decomposition import PCA

from benchmarks._store import STORED, store, stored
from papers.display import markdown
from unseen.comparison import compare
from unseen.comparison.candidates import CANDIDATES, TITLES
from unseen.comparison.result import Comparison, Entry
from unseen.datasets import (
    load_bibtex,
    load_ca_grqc,
    load_filmtrust,
    load_ml100k,
    load_nci_dream,
    load_yelp_3zones,
)

REPEATS = 3
Case = tuple[Any, Any, dict[str, Any]]


def movielens(**options: Any) -> Case:
    data = load_ml100k()
    sides = {"row_features": data.row_features, "col_features": data.col_features}
    return data.observations, None, {**sides, **options}


def movielens_positives() -> Case:
    data = load_ml100k()
    liked = data.observations.select(data.observations.values >= 4)
    sides = {"row_features": data.row_features, "col_features": data.col_features}
    return liked.with_values(1.0 + 0 * liked.values), None, {"task": "positive", **sides}


def ratings(load: Callable[[], Any]) -> Case:
    return load().observations, None, {}


def drugs() -> Case:
    data = load_nci_dream()
    calls = PCA(5, random_state=0).fit_transform(data.row_features)
    return data.observations, None, {"row_features": calls}


def labels() -> Case:
    data = load_bibtex()
    return data.X, data.Y, {"task": "multilabel"}


CASES: dict[str, Callable[[], Case]] = {
    "MovieLens-100K": movielens,
    "MovieLens-100K, new users": lambda: movielens(split="rows"),
    "MovieLens-100K, new movies": lambda: movielens(split="cols"),
    "MovieLens-100K, liked (4 or 5)": movielens_positives,
    "yelp-3zones": lambda: ratings(load_yelp_3zones),
    "FilmTrust": lambda: ratings(load_filmtrust),
    "DREAM drug response": drugs,
    "ca-GrQc": lambda: (load_ca_grqc().observations, None, {"task": "links"}),
    "Bibtex": labels,
}


def comparison(case: dict[str, Any]) -> Comparison:
    """What was stored, as it was found."""
    known = {name: value for name, value in case.items() if name not in ("entries", "recommendation")}
    return Comparison(**known, entries=[_entry(entry) for entry in case["entries"]])


def _entry(stored: dict[str, Any]) -> Entry:
    return Entry(**{"title": TITLES.get(stored["method"], ""), **stored})


def shown(found: Comparison, entry: Entry) -> str:
    """A method with its score."""
    return f"{entry.method} {entry.mean(found.measures[0]):.4g}"


def overview(cases: dict[str, Comparison]) -> str:
    lines = []
    for name, found in cases.items():
        best, chosen = found.ranked[0], found.recommended()
        simple = next(entry for entry in found.ranked if entry.simple)
        assert chosen is not None
        lines.append([name, found.measures[0], *(shown(found, entry) for entry in (simple, best, chosen))])
    return markdown(["data", "measure", "best simple baseline", "best", "recommended"], lines)


def one(found: Comparison) -> str:
    head, lines = found.rows()
    return f"{markdown(head, lines)}\n\n{found.recommendation()}"


def tables() -> dict[str, str]:
    """What docs/guide/which_method.md shows."""
    cases = {name: comparison(case) for name, case in stored("which_method")["cases"].items()}
    return {"overview": overview(cases), **{name: one(found) for name, found in cases.items()}}


def joined(before: dict[str, Any], found: Comparison, asked: list[str]) -> Comparison:
    """A stored comparison with methods that were asked for later, in the order of all methods."""
    later = [entry for entry in found.entries if entry.method in asked]
    entries = {entry.method: entry for entry in (*comparison(before).entries, *later)}
    return replace(found, entries=[entries[name] for name in CANDIDATES if name in entries])


def main() -> None:
    asked = sys.argv[1:] if sys.argv[0].endswith("which_method.py") else []
    methods = os.environ["METHODS"].split("|") if "METHODS" in os.environ else None
    results = {}
    if (STORED / "which_method.json").exists():
        results = stored("which_method")["cases"]
    for name in [name for name in CASES if name in asked] or CASES:
        X, y, options = CASES[name]()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = compare(X, y, methods=methods, repeats=REPEATS, n_jobs=1, verbose=1, **options)
        if methods is not None and name in results:
            found = joined(results[name], found, methods)
        results[name] = found.to_dict()
        print(name, found.recommendation(), flush=True)
        store(
            "which_method",
            {"repeats": REPEATS, "cases": {key: results[key] for key in CASES if key in results}},
        )


if __name__ == "__main__":
    main()
