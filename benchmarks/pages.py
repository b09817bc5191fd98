"""Write tables, verdicts and figures on all pages of the documentation from stored results.

Places end with ``<!-- end -->`` and begin with ``<!-- table: EXPERIMENT/TABLE -->``,
``<!-- claims: EXPERIMENT EXPERIMENT ... -->`` or ``<!-- figure: EXPERIMENT/NUMBER -->``. The experiments are
run again by ``unseen reproduce all --out docs/results``.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import matplotlib as mpl

from benchmarks._tables import ROOT
from unseen.reproduction import EXPERIMENTS, Outcome, Table, read

RESULTS = ROOT / "docs" / "results"


PLACE = re.compile(r"(<!-- (table|claims|figure): (.*?) -->\n).*?(<!-- end -->)", flags=re.DOTALL)


@cache
def outcome(name: str) -> Outcome:
    """Stored results of an experiment."""
    return read(EXPERIMENTS[name], RESULTS)


def shown(kind: str, what: str) -> str | None:
    """What belongs to a place; None where it is not an experiment's."""
    name, _, part = what.partition("/")
    names = what.split() if kind == "claims" else [name]
    if not set(names) <= set(EXPERIMENTS):
        return None
    if kind == "table":
        return outcome(name).tables()[part].markdown()
    if kind == "claims":
        lines = [[c.text, f"**{c.verdict}**", c.why] for name in names for c in outcome(name).claims()]
        return Table.of(["claim", "verdict", "found"], lines).markdown()
    return f"![{outcome(name).figures()[int(part)][1]}](../results/{name}-{part}.svg)"


def filled(page: str) -> str:
    """A page with the places that experiments are marked for filled."""

    def place(found: re.Match[str]) -> str:
        text = shown(found[2], found[3])
        return found[0] if text is None else f"{found[1]}{text}\n{found[4]}"

    return PLACE.sub(place, page)


def pages() -> list[Path]:
    """Pages with results of experiments."""
    found = sorted((ROOT / "docs").glob("*/*.md"))
    return [
        path
        for path in found
        if any(
            shown(kind, what) is not None
            for _, kind, what, _ in PLACE.findall(path.read_text(encoding="utf-8"))
        )
    ]


def draw(page: str) -> None:
    """Write the figures that a page shows."""
    for kind, what in re.findall("<!-- (figure): (.*?) -->", page):
        if shown(kind, what) is not None:
            name, _, part = what.partition("/")
            figure, _ = outcome(name).figures()[int(part)]
            with mpl.rc_context({"svg.hashsalt": "unseen"}):
                figure.savefig(RESULTS / f"{name}-{part}.svg", metadata={"Date": None})


def main() -> None:
    for path in pages():
        page = filled(path.read_text(encoding="utf-8"))
        path.write_text(page, encoding="utf-8")
        draw(page)
        print(f"wrote what {path.relative_to(ROOT)} shows")


if __name__ == "__main__":
    main()
