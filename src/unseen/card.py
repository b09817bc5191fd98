"""A model as a document: what it is, what it was fitted to, how good it is, what it cannot do."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from html import escape
from importlib.metadata import version
from typing import Any

import numpy as np

from unseen.data import Observations
from unseen.losses import blank_of
from unseen.typing import FloatArray

__all__ = ["Card", "Score", "model_card"]

Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class Score:
    """A number with the interval that nineteen of twenty resamplings of the test rows fall into."""

    name: str
    value: float
    low: float
    high: float


@dataclass
class Card:
    """Sections with a title, each a list of names and values, or of sentences.

    Attributes
    ----------
    title : str
        Name of the model's class.
    sections : dict of list
        Pairs of text, or sentences.
    """

    title: str
    sections: dict[str, Pairs | list[str]] = field(default_factory=dict)

    def markdown(self) -> str:
        """As Markdown."""
        out = [f"# {_plain(self.title)}", ""]
        for title, lines in self.sections.items():
            out += [f"## {title}", ""]
            if lines and isinstance(lines[0], tuple):
                out += ["| | |", "| --- | --- |"]
                out += [f"| {_plain(name)} | {_plain(value)} |" for name, value in lines]
            else:
                out += [f"- {_plain(str(line))}" for line in lines]
            out.append("")
        return "\n".join(out)

    def html(self) -> str:
        """As a page without scripts."""
        out = [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(self.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>",
            f"<h1>{escape(self.title)}</h1>",
        ]
        for title, lines in self.sections.items():
            out.append(f"<h2>{escape(title)}</h2>")
            if lines and isinstance(lines[0], tuple):
                cells = (
                    f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
                    for name, value in lines
                )
                out.append(f"<table>{''.join(cells)}</table>")
            else:
                out.append(f"<ul>{''.join(f'<li>{escape(str(line))}</li>' for line in lines)}</ul>")
        return "\n".join([*out, "</body>\n</html>\n"])


MARKS = {**{mark: f"\\{mark}" for mark in "\\`*_[]#"}, **{mark: f"&#{ord(mark)};" for mark in "<>|"}}
STYLE = (
    ":root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;"
    "padding:0 1rem}th{text-align:left;font-weight:normal;opacity:.75;padding-right:2rem;vertical-align:top}"
    "td{overflow-wrap:anywhere}"
)


def _plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return "".join(MARKS.get(letter, letter) for letter in " ".join(text.split()))


def model_card(
    model: Any,
    *,
    test: Observations | None = None,
    k: int = 20,
    n_resamples: int = 1000,
    random_state: int = 0,
) -> Card:
    """Describe a fitted completer.

    Parameters
    ----------
    model : completer
        Fitted.
    test : Observations, optional
        Cells that the model has not seen, in its positions; they give the scores.
    k : int, default=20
        Length of the lists that are judged, where blank cells count.
    n_resamples : int, default=1000
        Resamplings of the test rows for the intervals.
    random_state : int, default=0
        Seed of the resamplings.

    Returns
    -------
    Card

    Examples
    --------
    >>> import numpy as np
    >>> from unseen import MatrixFactorization
    >>> from unseen.card import model_card
    >>> card = model_card(MatrixFactorization(1, random_state=0).fit(np.ones((3, 2))))
    >>> list(card.sections)
    ['Data', 'Settings', 'Fit', 'Limits', 'Versions']
    """
    card = Card(type(model).__name__)
    card.sections["Data"] = _data(model)
    card.sections["Settings"] = [(name, repr(value)) for name, value in model.get_params(deep=False).items()]
    history = getattr(model, "history_", None) or [{}]
    card.sections["Fit"] = [
        ("sweeps", str(model.n_iter_)),
        ("settled", "yes" if model.converged_ else "no: stopped at max_iter"),
        ("objective", f"{history[-1]['objective']:.6g}" if "objective" in history[-1] else "none"),
    ]
    if test is not None:
        found = scores(model, test, k, n_resamples, random_state)
        lines = [(one.name, f"{one.value:.4f} (95 %: {one.low:.4f} to {one.high:.4f})") for one in found]
        n_rows = int(np.count_nonzero(np.diff(test.indptr)))
        card.sections["Scores"] = [*lines, ("test cells", f"{test.nnz:,} of {n_rows:,} rows")]
    card.sections["Limits"] = _limits(model, test is not None)
    card.sections["Versions"] = [(name, version(name)) for name in ("unseen", "numpy", "scipy")] + [
        ("Python", platform.python_version())
    ]
    return card


def _data(model: Any) -> Pairs:
    out = [("rows", f"{model._n_rows():,}"), ("columns", f"{model.n_features_in_:,}")]
    seen = getattr(model, "seen_", None)
    if seen is not None:
        share = seen.indices.size / max(1, model._n_rows() * model.n_features_in_)
        out.append(("known cells", f"{seen.indices.size:,} ({100 * share:.3g} %)"))
    for side, noun in (("row", "rows"), ("col", "columns")):
        count = getattr(model, f"n_{side}_features_in_", None)
        out.append((f"features of {noun}", "none" if count is None else str(count)))
    return out


def _limits(model: Any, tested: bool) -> list[str]:
    out = []
    loss = getattr(model, "loss_", None)
    if loss is not None:
        background = bool(blank_of(loss))
        out.append(
            "Blank cells count as weak evidence against a cell; scores order columns and are no chances."
            if background
            else "Blank cells say nothing: what people choose to rate is not a random sample, and the model "
            "does not correct for it."
        )
    for side, noun in (("row", "row"), ("col", "column")):
        if getattr(model, f"n_{side}_features_in_", None) is None:
            how = "fold_in or an update" if side == "row" else "an update"
            out.append(f"A {noun} that was not there at training time needs some of its cells ({how}).")
    if not model.converged_:
        out.append("The fit was stopped before its objective had settled.")
    if not tested:
        out.append("No test cells were given, so nothing is said about how good it is.")
    return out


def scores(model: Any, test: Observations, k: int, n_resamples: int, random_state: int) -> list[Score]:
    """Errors of predictions, or recall of lists where blank cells count, with intervals over rows."""
    rng = np.random.default_rng(random_state)
    loss = getattr(model, "loss_", None)
    lengths = np.diff(test.indptr)
    rows = np.flatnonzero(lengths)
    if loss is not None and blank_of(loss):
        ids, listed = model.recommend(rows, k, positions=True)
        ids = np.where(np.isnan(listed), -1, ids)
        wanted = [set(test.indices[test.indptr[i] : test.indptr[i + 1]].tolist()) for i in rows]
        hits = np.array([len(own & set(line)) for own, line in zip(wanted, ids.tolist(), strict=True)])
        recall = hits / np.minimum(lengths[rows], k)
        return [_resampled(f"recall@{k}", recall, np.ones(len(rows)), n_resamples, rng, lambda mean: mean)]
    gap = model.predict_entries(test.rows, test.indices, positions=True) - test.values
    counts = lengths[rows].astype(float)
    squares = np.add.reduceat(gap.astype(np.float64) ** 2, test.indptr[rows])
    sizes = np.add.reduceat(np.abs(gap).astype(np.float64), test.indptr[rows])
    return [
        _resampled("RMSE", squares, counts, n_resamples, rng, np.sqrt),
        _resampled("MAE", sizes, counts, n_resamples, rng, lambda mean: mean),
    ]


def _resampled(
    name: str, sums: FloatArray, counts: FloatArray, n_resamples: int, rng: np.random.Generator, scale: Any
) -> Score:
    drawn = [rng.integers(0, len(sums), len(sums)) for _ in range(n_resamples)]
    found = scale(np.array([sums[rows].sum() / counts[rows].sum() for rows in drawn]))
    low, high = np.quantile(found, [0.025, 0.975])
    return Score(name, float(scale(sums.sum() / counts.sum())), float(low), float(high))
