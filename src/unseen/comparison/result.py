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
    title : str
        What it is called in a sentence.
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
    title: str = ""

    @property
    def called(self) -> str:
        """Title and name, for sentences."""
        return f"{self.title or self.estimator} ({self.method})"

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

    def doubt(self, entry: Entry, other: Entry) -> float:
        """Standard error of the lead over the test parts; 0 with a single one."""
        measure = self.measures[0]
        gap = np.asarray(other.scores[measure]) - np.asarray(entry.scores[measure])
        return float(gap.std(ddof=1) / np.sqrt(gap.size)) if gap.size > 1 else 0.0

    def is_ahead(self, entry: Entry, other: Entry) -> bool:
        """Whether the lead is larger than one standard error of it."""
        return self.lead(entry, other)[0] > self.doubt(entry, other)

    def recommended(self) -> Entry | None:
        """Of the methods that no other is ahead of, the best simple one, else the quickest."""
        ranked = self.ranked
        level = [one for one in ranked if not any(self.is_ahead(other, one) for other in ranked)]
        if not level:
            return None
        simple = [entry for entry in level if entry.simple]
        return simple[0] if simple else min(level, key=lambda entry: float(np.mean(entry.fit_s)))

    def recommendation(self) -> str:
        """What to use, in words."""
        chosen = self.recommended()
        if chosen is None:
            return "No method gave a score; see the errors."
        measure, best = self.measures[0], self.ranked[0]
        text = [f"Use {chosen.called}: {measure} {chosen.mean(measure):.4g}."]
        if chosen is not best:
            lead, doubt = self.lead(best, chosen)[0], self.doubt(best, chosen)
            text.append(
                f"The best score, {best.mean(measure):.4g} of {best.called}, is better by {lead:.2g}, within "
                f"one standard error ({doubt:.2g}) over {len(best.fit_s)} test parts, so the "
                f"{'simpler' if chosen.simple else 'quicker'} one will do."
            )
        baselines = [entry for entry in self.ranked if entry.simple and entry is not chosen]
        if baselines and not chosen.simple:
            lead, half = self.lead(chosen, baselines[0])
            spread = f" ± {half:.2g}" if np.isfinite(half) else ""
            share = 100 * lead / max(abs(baselines[0].mean(measure)), 1e-300)
            text.append(
                f"It is better than the best simple baseline, {baselines[0].called} with "
                f"{baselines[0].mean(measure):.4g}, by {lead:.2g}{spread} ({share:.1f} %)."
            )
            if half >= lead:
                text.append(
                    f"With {len(chosen.fit_s)} test parts that may be chance, for the 95 % interval of the "
                    "difference holds zero; more repeats would tell."
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
