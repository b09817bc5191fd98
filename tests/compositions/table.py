"""What each solver takes, as data: tests hold solvers to it, and the guide shows it.

``python -m tests.compositions.table`` writes the table into the guide.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.compositions.parts import LEARNED, LOSSES, MAPS, POPULAR, QUADRATIC, REGULARISERS, SOLVERS, Case

PAGE = Path(__file__).parents[2] / "docs/guide/composing.md"
BEGIN, END = "<!-- solvers: begin -->", "<!-- solvers: end -->"
FREE, FIXED, ALL = ("identity",), tuple(name for name in MAPS if name not in LEARNED), tuple(MAPS)
ENTRYWISE = ("ridge", "nuclear", "l1", "box", "nonnegative")
EVEN = tuple(name for name in QUADRATIC if name not in POPULAR)


class Takes(NamedTuple):
    """Compositions of one term that a solver takes."""

    maps: tuple[str, ...]
    losses: tuple[str, ...]
    lowrank: tuple[str, ...] = ()
    """Penalties on the factors of a low-rank core."""
    full: tuple[str, ...] = ()
    """Penalties on a full core."""
    cells: tuple[str, ...] = ("plain", "weighted")

    def allows(self, case: Case) -> bool:
        maps, core, loss, reg, cells = case
        regs = self.lowrank if core == "lowrank" else self.full
        return maps in self.maps and loss in self.losses and reg in regs and cells in self.cells


RIDGES = ("ridge", "degrees", "nuclear")
TABLE = {
    "als": Takes(FREE, QUADRATIC, RIDGES),
    "als-cg": Takes(FREE, QUADRATIC, RIDGES),
    "augmented-als": Takes(FREE, QUADRATIC, RIDGES),
    "ccd": Takes(FREE, EVEN, ENTRYWISE),
    "cg": Takes(FIXED, QUADRATIC, RIDGES, ("ridge", "degrees")),
    "lowrank-prox": Takes(FREE, EVEN, (), ("nuclear",)),
    "block-prox": Takes((), ()),
    "prox": Takes(FIXED, tuple(LOSSES), tuple(REGULARISERS), tuple(REGULARISERS)),
    "lbfgs": Takes(
        ALL,
        tuple(LOSSES),
        (*RIDGES, "box", "nonnegative"),
        ("ridge", "degrees", "box", "nonnegative"),
    ),
    "goal": Takes(ALL, QUADRATIC, RIDGES, ("ridge", "degrees")),
    "linesearch": Takes(FREE, ("squared",), ("ridge", "nuclear"), cells=("plain",)),
    "boxed": Takes(FIXED, QUADRATIC, (), ("nuclear",)),
}
AND = {
    "als": "biases beside the term",
    "als-cg": "",
    "augmented-als": "",
    "cg": "any number of terms",
    "prox": "any number of terms",
    "lbfgs": "any number of terms",
    "goal": "any number of terms",
    "block-prox": "two terms: `Full` over features, and `Full` with `Nuclear` without",
    "boxed": "all scores between bounds; dense",
}
WORDS = {
    "ridge": "`Ridge`",
    "degrees": "with `degree_scaling`",
    "nuclear": "`Nuclear`",
    "l1": "`L1`",
    "box": "`Box`",
    "nonnegative": "`NonNegative`",
    "rows": "any with a proximal step",
}


def taken(solver: str, case: Case) -> bool:
    """What the table says, and one exception: a better solver for the same thing."""
    maps, core, loss, reg, _ = case
    if solver == "prox" and (maps, core, reg) == ("identity", "full", "nuclear") and loss in EVEN:
        return False
    return TABLE[solver].allows(case)


def render() -> str:
    """The table in Markdown."""
    lines = [
        "| solver | maps | loss | on `LowRank` | on `Full` | weights of cells | beside |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, takes in TABLE.items():
        if name in ("als-cg", "augmented-als"):
            continue
        maps = {FREE: "`Identity`", FIXED: "any fixed", ALL: "any, learned too"}.get(takes.maps, "as said")
        losses = {
            QUADRATIC: "quadratic",
            EVEN: "quadratic, blanks of one weight",
            tuple(LOSSES): "any",
            ("squared",): "`Squared`",
        }.get(takes.losses, "quadratic")
        cells = "yes" if "weighted" in takes.cells else "no"
        columns = [maps, losses, _penalties(takes.lowrank), _penalties(takes.full), cells, AND.get(name, "")]
        lines.append(f"| `{type(SOLVERS[name]).__name__}` | {' | '.join(columns)} |")
    return "\n".join(lines)


def _penalties(names: tuple[str, ...]) -> str:
    if set(names) == set(REGULARISERS):
        return WORDS["rows"]
    return ", ".join(WORDS[name] for name in names) or "-"


def written(page: str) -> str:
    """The page with the table in its place."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{render()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
