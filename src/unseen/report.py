"""A page of results as one HTML file that needs nothing else: no network, no scripts, no other files."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, Self

__all__ = ["Badge", "Kind", "Report"]

Kind = Literal["good", "partly", "bad", "open"]
"""How something turned out; always shown with a word beside the colour."""
WIDE = 4
"""Columns of a table that fit on a telephone."""
LONG = 2
"""Times its height that a picture may be wide there."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5a6676; --line: #d9dfe7; --page: #ffffff;
  --shade: #f4f6f9; --good: #14532d; --good-ground: #d8f0dc; --partly: #6b4100; --partly-ground: #fdecc8;
  --bad: #7f1d1d; --bad-ground: #fbdcd9; --open: #39424e; --open-ground: #e3e7ec; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #9aa7b8; --line: #35404e;
  --page: #141a22; --shade: #1d2530; --good: #b7efc3; --good-ground: #1c3d27; --partly: #ffdf9e;
  --partly-ground: #47350f; --bad: #ffc9c4; --bad-ground: #4d1f1c; --open: #cfd6df;
  --open-ground: #333c48; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1rem 4rem;
  background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; padding-top: 1rem; border-top: 1px solid var(--line); }
p { margin: .5rem 0; max-width: 44rem; }
.lead, figcaption, caption { color: var(--soft); }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .95rem; }
caption { text-align: left; padding-bottom: .4rem; position: sticky; left: 0;
  max-width: calc(100vw - 2rem); }
th, td { padding: .4rem .7rem; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top; }
th { border-bottom-width: 2px; white-space: nowrap; }
td.number, th.number { text-align: right; white-space: nowrap; }
tr.best td { background: var(--shade); font-weight: 600; }
tr.best td:first-child { box-shadow: inset 4px 0 0 var(--good); }
.badge { display: inline-block; padding: 0 .5rem; border-radius: .8rem; font-size: .85em; font-weight: 600;
  white-space: nowrap; }
td .badge { margin-left: .4rem; } td .badge:first-child { margin-left: 0; }
.good { color: var(--good); background: var(--good-ground); }
.partly { color: var(--partly); background: var(--partly-ground); }
.bad { color: var(--bad); background: var(--bad-ground); }
.open { color: var(--open); background: var(--open-ground); }
.verdict { padding: .6rem .9rem; border-radius: 6px; max-width: 46rem; }
.verdict strong { display: block; }
.hint { display: none; color: var(--soft); font-size: .85rem; margin: 0; }
.next { list-style: none; margin: .5rem 0; padding: 0; }
.next li { margin: .8rem 0; }
.next code { display: block; overflow-x: auto; white-space: pre; padding: .5rem .8rem; border-radius: 4px;
  background: var(--shade); border: 1px solid var(--line); font-size: .92rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 1rem; }
figure { margin: 0; min-width: 0; }
.figures:not(.wide) figure:only-child { max-width: 34rem; }
figure .scroll { margin: 0; }
figure img { display: block; width: 100%; height: auto; background: #ffffff; border: 1px solid var(--line);
  border-radius: 4px; }
figcaption { font-size: .9rem; padding: .35rem .1rem; }
@media (max-width: 40rem) { th, td { padding: .35rem .4rem; font-size: .85rem; }
  .hint { display: block; }
  .long img { width: 40rem; max-width: none; }
  td:first-child { min-width: 8rem; }
  .words thead { display: none; }
  .words tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--line); }
  .words td { display: block; border: 0; padding: .1rem .4rem; }
  .words td:empty { display: none; }
  .words td:not(:first-child)::before { content: attr(data-of) ": "; color: var(--soft); }
  .words td:first-child { font-weight: 600; } }
"""


@dataclass(frozen=True)
class Badge:
    """A word on a coloured ground, for a cell of a table.

    Attributes
    ----------
    text : str
        The word.
    kind : {"good", "partly", "bad", "open"}
        Which colour.

    Examples
    --------
    >>> from unseen.report import Badge
    >>> Badge("holds", "good").html()
    '<span class="badge good">holds</span>'
    """

    text: str
    kind: Kind

    def html(self) -> str:
        """The word as HTML."""
        return f'<span class="badge {self.kind}">{escape(self.text)}</span>'


class Report:
    """Collects text, tables and figures, and writes them as one page.

    Parameters
    ----------
    title : str
        Heading of the page.
    lead : str, default=""
        What it is about, in a sentence.

    Examples
    --------
    >>> from unseen.report import Report
    >>> page = Report("Results").section("First", "Two methods.")
    >>> page = page.table(["method", "RMSE"], [["mean", 1.0], ["model", 0.5]], best=1)
    >>> "<td>mean</td>" in page.html()
    True
    """

    def __init__(self, title: str, lead: str = "") -> None:
        self.title = title
        self._parts = [f"<h1>{escape(title)}</h1>"]
        if lead:
            self._parts.append(f'<p class="lead">{escape(lead)}</p>')

    def section(self, title: str, *paragraphs: str) -> Self:
        """Begin a section.

        Parameters
        ----------
        title : str
            Heading.
        *paragraphs : str
            Plain text.

        Returns
        -------
        Report
            Itself.
        """
        self._parts.append(f"<h2>{escape(title)}</h2>")
        return self.text(*paragraphs)

    def text(self, *paragraphs: str) -> Self:
        """Add paragraphs.

        Parameters
        ----------
        *paragraphs : str
            Plain text.

        Returns
        -------
        Report
            Itself.
        """
        self._parts.extend(f"<p>{escape(text)}</p>" for text in paragraphs if text)
        return self

    def verdict(self, word: str, text: str, kind: Kind) -> Self:
        """Add what came out, as a word and a sentence on a coloured ground.

        Parameters
        ----------
        word : str
            In a word or two.
        text : str
            In a sentence.
        kind : {"good", "partly", "bad", "open"}
            Which colour.

        Returns
        -------
        Report
            Itself.
        """
        told = f"<strong>{escape(word)}</strong> {escape(text)}" if word else escape(text)
        self._parts.append(f'<p class="verdict {kind}">{told}</p>')
        return self

    def what_next(self, commands: Iterable[tuple[str, str]]) -> Self:
        """Add a section with commands to run.

        Parameters
        ----------
        commands : iterable of (str, str)
            Each with a sentence that says what it does.

        Returns
        -------
        Report
            Itself.
        """
        lines = (
            f'<li>{escape(text)}<code tabindex="0">{escape(command)}</code></li>'
            for command, text in commands
        )
        self._parts.append(f'<h2>What next</h2><ul class="next">{"".join(lines)}</ul>')
        return self

    def table(
        self,
        headers: Sequence[str],
        rows: Sequence[Sequence[Any]],
        *,
        caption: str = "",
        best: int | None = None,
        mark: str = "best",
    ) -> Self:
        """Add a table; columns of numbers stand to the right.

        Parameters
        ----------
        headers : sequence of str
            Names of the columns.
        rows : sequence of sequences
            Text, numbers or badges.
        caption : str, default=""
            What is shown.
        best : int, optional
            Row to bring out.
        mark : str, default="best"
            The word that stands in this row.

        Returns
        -------
        Report
            Itself.
        """
        numeric = [
            bool(rows) and all(_is_number(row[place]) for row in rows) for place in range(len(headers))
        ]
        kinds = [' class="number"' if flag else "" for flag in numeric]
        words = len(headers) > 2 and not any(numeric)  # such rows become lines where it is narrow
        hint = len(headers) > WIDE and not words
        lines = ['<p class="hint">Wide table: it scrolls sideways.</p>'] if hint else []
        kind_of = "words" if words else "values"
        lines.append(f'<div class="scroll" tabindex="0"><table class="{kind_of}">')
        if caption:
            lines.append(f"<caption>{escape(caption)}</caption>")
        cells = (
            f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(headers, kinds, strict=True)
        )
        lines.append(f"<thead><tr>{''.join(cells)}</tr></thead><tbody>")
        for number, row in enumerate(rows):
            shown = [_cell(value) for value in row]
            if number == best:
                shown[0] += f" {Badge(mark, 'good').html()}"
            labels = [f' data-of="{escape(name)}"' if words else "" for name in headers]
            cells = (
                f"<td{kind}{label}>{text}</td>"
                for text, kind, label in zip(shown, kinds, labels, strict=True)
            )
            line = ' class="best"' if number == best else ""
            lines.append(f"<tr{line}>{''.join(cells)}</tr>")
        lines.append("</tbody></table></div>")
        self._parts.append("\n".join(lines))
        return self

    def figures(self, figures: Iterable[tuple[Any, str]], *, wide: bool = False) -> Self:
        """Add figures side by side, below each other where the screen is narrow.

        Parameters
        ----------
        figures : iterable of (matplotlib Figure, str)
            Each with a sentence that says what it shows.
        wide : bool, default=False
            Give a single figure the whole width.

        Returns
        -------
        Report
            Itself.
        """
        self._parts.append(f'<div class="figures{" wide" if wide else ""}">')
        for figure, caption in figures:
            source = f"data:image/svg+xml;base64,{_svg(figure)}"
            width, height = figure.get_size_inches()
            drawn = f'<img alt="{escape(caption)}" src="{source}">'
            if width > LONG * height:  # shrunk to a telephone, nobody could read its words
                hint = '<p class="hint">Wide picture: it scrolls sideways.</p>'
                drawn = f'{hint}<div class="scroll long" tabindex="0">{drawn}</div>'
            self._parts.append(f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>")
        self._parts.append("</div>")
        return self

    def html(self) -> str:
        """Give the whole page.

        Returns
        -------
        str
            HTML.
        """
        head = (
            '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(self.title)}</title><style>{STYLE}</style>"
        )
        body = "\n".join(self._parts)
        return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _svg(figure: Any) -> str:
    """A figure as base64 of SVG, the same each time it is drawn."""
    import matplotlib as mpl

    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "unseen", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def _cell(value: Any) -> str:
    return value.html() if isinstance(value, Badge) else escape(_shown(value))


def _is_number(value: Any) -> bool:
    """Also of text, so that a caller can choose the digits."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, bool)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"
    # A number stays on one line with its spread and its unit.
    kept = str(value).replace(" ± ", "\u00a0±\u00a0").replace(" %", "\u00a0%")
    return f"{value:,}" if isinstance(value, int) else kept
