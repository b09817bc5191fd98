"""All outcomes on one page."""

from __future__ import annotations

from collections.abc import Sequence

from papers.catalogue import PAPERS
from papers.experiment import Claim, Source, Verdict
from papers.runner import PACKAGES, Outcome, surroundings, told
from unseen.report import Badge, Kind, Report

__all__ = ["WHO", "counts", "make_page"]

KINDS: dict[Verdict, Kind] = {
    Verdict.HOLDS: "good",
    Verdict.PARTLY: "partly",
    Verdict.FAILS: "bad",
    Verdict.UNTESTED: "open",
}


WHO = {Source.PAPER: "paper", Source.OURS: "we"}
"""Who says so, in tables of claims."""


def counts(claims: Sequence[Claim], source: Source) -> str:
    """How many claims of one source hold, hold partly, do not hold, cannot be tested."""
    own = [claim.verdict for claim in claims if claim.source is source]
    return ", ".join(f"{own.count(kind)} {kind}" for kind in Verdict)


def make_page(outcomes: Sequence[Outcome]) -> Report:
    """Verdicts first, then each experiment with tables beside the paper's numbers."""
    quick = any(outcome.quick for outcome in outcomes)
    known = [outcome.seconds for outcome in outcomes if outcome.seconds is not None]
    untimed = len(outcomes) - len(known)
    what = "One table or figure" if len(outcomes) == 1 else f"{len(outcomes)} tables and figures"
    lead = (
        f"{what} of the papers, run again in {told(sum(known))}"
        + (f" ({untimed} of them without a clock, not counted). " if untimed else ". ")
        + ("This was a quick run: smaller sizes and fewer repetitions than the papers'. " if quick else "")
        + "Settings were chosen on validation data; test data were scored once."
    )
    page = Report("The papers, run again", lead)
    judged = [(outcome.experiment, claim) for outcome in outcomes for claim in outcome.claims()]
    every = [claim for _, claim in judged]
    page.section(
        "Claims", f"Of the papers: {counts(every, Source.PAPER)}. Our own: {counts(every, Source.OURS)}."
    )
    for paper, title in PAPERS.items():
        lines = [
            [
                claim.text,
                WHO[claim.source],
                Badge(str(claim.verdict), KINDS[claim.verdict]),
                f"{claim.why} [{experiment.name}]",
            ]
            for experiment, claim in judged
            if experiment.paper == paper
        ]
        if lines:
            page.table(["claim", "who says so", "verdict", "found [run]"], lines, caption=title)
    for paper, title in PAPERS.items():
        own = [outcome for outcome in outcomes if outcome.experiment.paper == paper]
        if own:
            page.section(title)
        for outcome in own:
            add_outcome(page, outcome)
    page.section("How it was run").table(
        ["", ""], [[name, str(value)] for name, value in surroundings(*PACKAGES).items()]
    )
    return page.what_next(
        [
            ("unseen reproduce --list", "Names of all experiments."),
            (
                "unseen reproduce NAME --out DIR --fresh",
                "Run one again; without --fresh what DIR holds is kept.",
            ),
            ("unseen compare ratings.csv", "The same question for data of your own."),
        ]
    )


def add_outcome(page: Report, outcome: Outcome) -> None:
    """One experiment."""
    experiment = outcome.experiment
    page.section(f"{experiment.name}: {experiment.shows}", experiment.differences)
    if outcome.missing:
        page.section("", outcome.missing)
        return
    for name, table in outcome.tables().items():
        page.table(table.head, table.lines, caption=f"{name}. {table.note}".strip())
    figures = outcome.figures()
    if figures:
        page.figures(figures, wide=len(figures) == 1)
    page.table(["run time", "quick"], [[outcome.time(), "yes" if outcome.quick else "no"]])
