"""Scores of several methods on the same splits, and what they say."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from scipy import stats

__all__ = ["Comparison", "Entry"]

CONFIDENCE = 0.95


@dataclass
class Entry:
    """One method.

    Attributes
    ----------
    method, estimator : str
        Name in the comparison, and class.
    simple : bool
        Whether it is a baseline.
    scores : dict of lists
        For each measure, the score on each test part.
    settings : list of dict
        What was chosen on each training part.
    fit_s, search_s : list of float
        Seconds of the last fit and of the choice of settings before it.
    mib : list of float or None
        Memory that the last fit took on top.
    error : str or None
        Why there is no score.
    """

    method: str
    estimator: str
    simple: bool = False
    scores: dict[str, list[float]] = field(default_factory=dict)
    settings: list[dict[str, Any]] = field(default_factory=list)
    fit_s: list[float] = field(default_factory=list)
    search_s: list[float] = field(default_factory=list)
    mib: list[float | None] = field(default_factory=list)
    error: str | None = None

    def mean(self, measure: str) -> float:
        """Mean over the test parts."""
        return float(np.mean(self.scores[measure])) if self.error is None else float("nan")

    def half_width(self, measure: str) -> float:
        """Half of the 95 % confidence interval of the mean; NaN with a single test part."""
        return _half_width(np.asarray(self.scores.get(measure, [])))

    @property
    def peak_mib(self) -> float | None:
        """Largest memory of its fits."""
        known = [value for value in self.mib if value is not None]
        return max(known) if known else None


@dataclass
class Comparison:
    """What `compare` found.

    Attributes
    ----------
    task, split : str
        What was asked.
    measures : list of str
        The first decides.
    greater_is_better : bool
        Direction of the first measure.
    entries : list of Entry
        In the order of the candidates.
    left_out : dict
        Methods that do not apply, with the reason.
    facts : dict
        Shape, cells, repeats, seed.
    """

    task: str
    split: str
    measures: list[str]
    greater_is_better: bool
    entries: list[Entry]
    left_out: dict[str, str]
    facts: dict[str, Any]

    @property
    def ranked(self) -> list[Entry]:
        """Entries with scores, best first."""
        sign = -1.0 if self.greater_is_better else 1.0
        scored = [entry for entry in self.entries if entry.error is None]
        return sorted(scored, key=lambda entry: sign * entry.mean(self.measures[0]))

    def lead(self, entry: Entry, other: Entry) -> tuple[float, float]:
        """By how much ``entry`` is better than ``other`` on the same test parts, and half its interval."""
        measure = self.measures[0]
        gap = np.asarray(other.scores[measure]) - np.asarray(entry.scores[measure])
        gap = -gap if self.greater_is_better else gap
        return float(gap.mean()), _half_width(gap)

    def is_ahead(self, entry: Entry, other: Entry) -> bool:
        """Whether the lead is larger than half of its interval."""
        lead, half = self.lead(entry, other)
        return bool(lead > half) if np.isfinite(half) else lead > 0

    def recommended(self) -> Entry | None:
        """The cheapest of the methods that the best one is not clearly ahead of; simple ones first."""
        ranked = self.ranked
        if not ranked:
            return None
        level = [entry for entry in ranked if entry is ranked[0] or not self.is_ahead(ranked[0], entry)]
        return min(level, key=lambda entry: (not entry.simple, float(np.mean(entry.fit_s))))

    def recommendation(self) -> str:
        """What to use, in words."""
        chosen = self.recommended()
        if chosen is None:
            return "No method gave a score; see the errors."
        measure, best = self.measures[0], self.ranked[0]
        text = [f"Use {chosen.estimator} ({chosen.method}): {measure} {chosen.mean(measure):.4g}."]
        if chosen is not best:
            lead, half = self.lead(best, chosen)
            text.append(
                f"{best.estimator} ({best.method}) is ahead by {lead:.2g} ± {half:.2g}, which these "
                f"{len(best.fit_s)} test parts cannot tell from nothing; {chosen.estimator} is "
                f"{'simpler' if chosen.simple else 'quicker'}."
            )
        baselines = [entry for entry in self.ranked if entry.simple and entry is not chosen]
        if baselines and not chosen.simple:
            lead, half = self.lead(chosen, baselines[0])
            share = 100 * lead / max(abs(baselines[0].mean(measure)), 1e-300)
            text.append(
                f"It is better than the best simple baseline ({baselines[0].method}, "
                f"{baselines[0].mean(measure):.4g}) by {lead:.2g} ± {half:.2g} ({share:.1f} %)."
            )
        elif chosen.simple:
            text.append("Nothing here is clearly better than a simple baseline.")
        setting = _most_common(chosen.settings)
        if setting:
            text.append("Settings: " + ", ".join(f"{name}={value}" for name, value in setting.items()) + ".")
        return " ".join(text)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        document = asdict(self)
        document["recommendation"] = self.recommendation()
        return document

    def rows(self) -> tuple[list[str], list[list[Any]]]:
        """Head and lines of a table, best first, methods without a score last."""
        head = ["method", *(f"{name} ± 95 %" for name in self.measures), "fit s", "choice s", "MiB"]
        lines: list[list[Any]] = []
        for entry in self.ranked:
            cells = [f"{entry.mean(name):.4f} ± {entry.half_width(name):.4f}" for name in self.measures]
            memory = "" if entry.peak_mib is None else f"{entry.peak_mib:.0f}"
            cost = [f"{np.mean(entry.fit_s):.2f}", f"{np.mean(entry.search_s):.1f}", memory]
            lines.append([entry.method, *cells, *cost])
        failed = [entry for entry in self.entries if entry.error is not None]
        lines += [[entry.method, *("failed" for _ in self.measures), "", "", ""] for entry in failed]
        return head, lines


def _half_width(values: Any) -> float:
    if values.size < 2:
        return float("nan")
    quantile = stats.t.ppf(0.5 + CONFIDENCE / 2, values.size - 1)
    return float(quantile * values.std(ddof=1) / np.sqrt(values.size))


def _most_common(settings: list[dict[str, Any]]) -> dict[str, Any]:
    texts = [str(setting) for setting in settings]
    return settings[texts.index(max(texts, key=texts.count))] if settings else {}
