"""Write tables, verdicts and figures on all pages of the documentation from stored results.

Places end with ``<!-- end -->`` and begin with ``<!-- table: EXPERIMENT/TABLE -->``,
``<!-- claims: EXPERIMENT EXPERIMENT ... -->``, ``<!-- figure: EXPERIMENT/NUMBER -->``, or
``<!-- table: NAME -->`` for a table of a suite. The experiments are run again by
``unseen reproduce all --out docs/results``, a suite by ``python -m benchmarks SUITE``.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import matplotlib as mpl

from benchmarks import (
    _distributed_tables,
    _gpu_tables,
    _performance_tables,
    averaged,
    averaged_elsewhere,
    averaged_peers,
    defaults,
    exmlds_speed,
    gimc_speed,
    how_good,
    imputation,
    label_systems,
    large_sets,
    memory,
    mixed_cold,
    mixed_scale,
    promises,
    sensing,
    serving,
    updates,
    which_method,
)
from benchmarks._store import ROOT
from papers import changes
from papers.catalogue import EXPERIMENTS
from papers.display import markdown
from papers.page import WHO
from papers.runner import Outcome, read

DOCS = ROOT / "docs"
RESULTS = DOCS / "results"
PLACE = re.compile(r"(<!-- (table|claims|figure): (.*?) -->\n).*?(<!-- end -->)", flags=re.DOTALL)
SUITES = {
    "how_good.md": (how_good,),
    "performance.md": (_performance_tables,),
    "guide/averaging.md": (averaged, averaged_elsewhere, averaged_peers),
    "guide/choosing_settings.md": (defaults,),
    "guide/distributed.md": (_distributed_tables,),
    "guide/gpu.md": (_gpu_tables,),
    "guide/scikit_learn.md": (imputation,),
    "guide/serving.md": (serving,),
    "guide/updates.md": (updates,),
    "guide/which_method.md": (which_method,),
    "promises.md": (promises,),
    "guide/memory.md": (memory,),
    "papers/amf.md": (sensing,),
    "papers/claims.md": (changes,),
    "papers/exmlds.md": (exmlds_speed,),
    "papers/gimc.md": (gimc_speed,),
    "papers/label_systems.md": (label_systems,),
    "papers/large_sets.md": (large_sets,),
    "papers/mixed.md": (mixed_cold, mixed_scale),
}
"""Where tables of suites stand on a page; each module has ``tables()``."""


@cache
def outcome(name: str) -> Outcome:
    """Stored results of an experiment."""
    return read(EXPERIMENTS[name], RESULTS)


@cache
def suite_tables(path: Path) -> dict[str, str]:
    """Tables of suites that a page must show."""
    modules = SUITES.get(path.relative_to(DOCS).as_posix(), ())
    return {name: text for module in modules for name, text in module.tables().items()}


def shown(kind: str, what: str, suites: dict[str, str]) -> str:
    """What belongs to a place."""
    name, _, part = what.partition("/")
    if kind == "table":
        return suites[what] if what in suites else outcome(name).tables()[part].markdown()
    if kind == "claims":
        claims = [claim for name in what.split() for claim in outcome(name).claims()]
        lines = [[claim.text, WHO[claim.source], f"**{claim.verdict}**", claim.why] for claim in claims]
        return markdown(["claim", "who says so", "verdict", "found"], lines)
    return f"![{outcome(name).figures()[int(part)][1]}](../results/{name}-{part}.svg)"


def filled(path: Path, page: str) -> str:
    """The text of a page with all places filled."""
    suites = suite_tables(path)
    marks = [what for _, kind, what, _ in PLACE.findall(page) if kind == "table"]
    for name in suites:
        assert marks.count(name) == 1, f"{path.name} must have one place for the table {name!r}"
    return PLACE.sub(lambda found: f"{found[1]}{shown(found[2], found[3], suites)}\n{found[4]}", page)


def pages() -> dict[Path, str]:
    """Pages with results, and their texts."""
    found = {
        path: path.read_text(encoding="utf-8") for path in sorted([*DOCS.glob("*.md"), *DOCS.glob("*/*.md")])
    }
    return {path: page for path, page in found.items() if PLACE.search(page)}


def draw(page: str) -> None:
    """Write the figures that a page shows."""
    for what in re.findall("<!-- figure: (.*?) -->", page):
        name, _, part = what.partition("/")
        figure, _ = outcome(name).figures()[int(part)]
        with mpl.rc_context({"svg.hashsalt": "unseen"}):
            figure.savefig(RESULTS / f"{name}-{part}.svg", metadata={"Date": None})


def main() -> None:
    for path, page in pages().items():
        path.write_text(filled(path, page), encoding="utf-8")
        draw(page)
        print(f"wrote what {path.relative_to(ROOT)} shows")


if __name__ == "__main__":
    main()
