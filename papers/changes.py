"""Verdicts of an earlier state of the runs beside today's, and why they differ.

``docs/results/before.json`` holds the claims as they were judged before the papers' rivals were tuned alike,
tolerances were two-sided, and claims that cannot be tested were all listed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from papers.catalogue import EXPERIMENTS, PAPERS
from papers.display import markdown
from papers.experiment import Claim, Source, Verdict
from papers.page import WHO
from papers.runner import read

__all__ = ["tables"]

RESULTS = Path(__file__).parent.parent / "docs" / "results"
Key = tuple[str, str]
"""Experiment and text of a claim."""
RENAMED: dict[Key, str] = {
    (
        "amf-errors",
        "AMF reaches 1.231 on Yelp, the ratings taken as they are",
    ): "AMF reaches the RMSE that the paper reports on Yelp, 1.231",
    (
        "amf-errors",
        "AMF reaches 1.231 on Yelp, the mean of the ratings taken off",
    ): "AMF reaches the RMSE that the paper reports on Yelp, 1.231",
}
"""What a claim was called before."""
JUDGED_BY: dict[Key, str] = {("amf-time", "time is flat up to c0 = 1 and rises after it"): "amf-parameters"}
"""The experiment that listed a claim before another judged it."""
REASONS: dict[Key, str] = {
    (
        "amf-cells",
        "Yelp falls short by two orders of magnitude",
    ): "a tolerance of a factor of two, from both sides",
    (
        "amf-errors",
        "AMF reaches 1.231 on Yelp, the ratings taken as they are",
    ): "the paper names no centring, so that raw ratings are a claim of their own",
    (
        "amf-time",
        "time is flat up to c0 = 1 and rises after it",
    ): "shards are timed one by one, as many as the paper had cores",
    (
        "exmlds-labels",
        "about 14 times faster on Bibtex, 5 times on Delicious",
    ): "the tolerance has two sides: far more than the figure is not the figure",
}
"""Why a verdict is another one than before; without a reason no table is made."""


def before() -> dict[Key, str]:
    """Verdicts as they were."""
    stored = json.loads((RESULTS / "before.json").read_text(encoding="utf-8"))
    return {(row["experiment"], row["claim"]): row["verdict"] for row in stored}


def now() -> Iterator[tuple[str, str, Claim]]:
    """Paper, experiment and claim of all stored runs."""
    for name, experiment in EXPERIMENTS.items():
        for claim in read(experiment, RESULTS).claims():
            yield experiment.paper, name, claim


def tables() -> dict[str, str]:
    """Counts, all claims, and those whose verdict changed."""
    old = before()
    found = list(now())
    keys = [(name, claim.text) for _, name, claim in found]
    known = [(JUDGED_BY.get(key, key[0]), RENAMED.get(key, key[1])) for key in keys]
    gone = set(old) - set(known)
    if gone:
        raise ValueError(f"claims that are no longer judged: {sorted(gone)}")
    lines, changed = [], []
    for (paper, name, claim), key in zip(found, known, strict=True):
        was = old.get(key, "not listed")
        line = [claim.text, WHO[claim.source], was, f"**{claim.verdict}**"]
        lines.append([paper, *line, f"`{name}`"])
        if key in old and was != claim.verdict:
            changed.append([*line, REASONS[name, claim.text]])
    sums: list[list[Any]] = [
        [
            title.split(" (")[0],
            WHO[source],
            *(
                len(
                    [
                        claim
                        for own, _, claim in found
                        if (own, claim.source, claim.verdict) == (paper, source, kind)
                    ]
                )
                for kind in Verdict
            ),
        ]
        for source in Source
        for paper, title in (*PAPERS.items(),)
    ]
    total = [
        [
            "**all**",
            WHO[source],
            *(sum(line[place] for line in sums if line[1] == WHO[source]) for place in range(2, 6)),
        ]
        for source in Source
    ]
    return {
        "counts": markdown(["paper", "who says so", *Verdict], [*sums, *total]),
        "changed": markdown(["claim", "who says so", "before", "verdict", "why"], changed),
        "all": markdown(["paper", "claim", "who says so", "before", "verdict", "run"], lines),
    }
