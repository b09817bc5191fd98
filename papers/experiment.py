"""What a reproduction of one table or figure consists of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from papers.display import Table
from unseen import Observations
from unseen.typing import Array

__all__ = [
    "Claim",
    "Experiment",
    "Figure",
    "Row",
    "Source",
    "Unit",
    "Verdict",
    "about",
    "grouped",
    "take_out",
]

Row = dict[str, Any]
"""One measurement: plain values by name."""


class Verdict(StrEnum):
    """What a run says about a claim."""

    HOLDS = "holds"
    PARTLY = "holds partly"
    FAILS = "does not hold"
    UNTESTED = "can't be tested here"


class Source(StrEnum):
    """Who makes a claim."""

    PAPER = "paper"
    OURS = "ours"


@dataclass(frozen=True)
class Claim:
    """What a paper or this library says, what was found, and in which words."""

    text: str
    verdict: Verdict
    why: str
    source: Source = Source.PAPER

    @classmethod
    def judged(cls, text: str, cases: Iterable[bool], why: str, source: Source = Source.PAPER) -> Claim:
        """Holds if all cases do, partly if some do."""
        found = list(cases)
        if not found:
            return cls(text, Verdict.UNTESTED, f"no case was run; {why}", source)
        verdict = Verdict.HOLDS if all(found) else Verdict.PARTLY if any(found) else Verdict.FAILS
        return cls(text, verdict, f"{why} ({sum(found)} of {len(found)} cases)", source)

    @classmethod
    def ours(cls, text: str, cases: Iterable[bool], why: str) -> Claim:
        """The same for what no paper says."""
        return cls.judged(text, cases, why, Source.OURS)

    @classmethod
    def untested(cls, text: str, why: str) -> Claim:
        """What a paper says and nobody can check here, and why not."""
        return cls(text, Verdict.UNTESTED, why)


def about(found: float, said: float, factor: float = 2.0) -> bool:
    """Whether a number is as good as another, from both sides.

    Examples
    --------
    >>> about(9.0, 5.0), about(31.0, 5.0), about(2.0, 5.0)
    (True, False, False)
    """
    return said / factor <= found <= said * factor


@dataclass(frozen=True)
class Unit:
    """A part of a run that is done at once; finished parts are not repeated.

    ``run`` is called with the rows of each earlier part that ``needs`` names, so that settings which one part
    has chosen can be used by another.
    """

    key: str
    run: Callable[..., list[Row]]
    needs: tuple[str, ...] = ()


Figure = tuple[Any, str]
"""A drawn figure and what it shows."""


def no_figures(rows: list[Row]) -> list[Figure]:
    """For experiments that are tables only."""
    return []


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a paper.

    Attributes
    ----------
    name : str
        By which it is asked for.
    paper : str
        Short name of the paper.
    shows : str
        Which table or figure, and what it is about.
    differences : str
        How data, settings and protocol differ from the paper's.
    units : callable
        ``units(quick)`` lists the parts of the run; each gives rows of plain values.
    tables : callable
        ``tables(rows)`` makes the tables by name, the paper's numbers beside ours.
    claims : callable
        ``claims(rows)`` judges what the paper says.
    figures : callable
        ``figures(rows)`` draws.
    datasets : tuple of str
        Real data that it needs.
    """

    name: str
    paper: str
    shows: str
    differences: str
    units: Callable[[bool], Sequence[Unit]]
    tables: Callable[[list[Row]], dict[str, Table]]
    claims: Callable[[list[Row]], list[Claim]]
    figures: Callable[[list[Row]], list[Figure]] = no_figures
    datasets: tuple[str, ...] = ()


def grouped(rows: Iterable[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows with the same values of some keys, in order of appearance.

    Examples
    --------
    >>> list(grouped([{"a": 1, "b": 2}, {"a": 1, "b": 3}], "a"))
    [(1,)]
    """
    out: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        out[tuple(row.get(key) for key in keys)].append(row)
    return dict(out)


def take_out(cells: Observations, places: Array) -> tuple[Observations, Observations]:
    """The cells without those at some places, and those.

    Examples
    --------
    >>> rest, taken = take_out(Observations.from_triples([0, 0, 1], [0, 1, 1], [1.0, 2.0, 3.0]), [2, 0])
    >>> rest.values.tolist(), taken.values.tolist()
    ([2.0], [1.0, 3.0])
    """
    taken = np.zeros(cells.nnz, dtype=bool)
    taken[places] = True
    return cells.select(~taken), cells.select(taken)
