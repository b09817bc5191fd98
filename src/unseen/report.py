"""A page of results as one HTML file that needs nothing else: no network, no scripts, no other files."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Self

__all__ = ["Report"]

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5a6676; --line: #d9dfe7; --page: #ffffff;
  --shade: #f4f6f9; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #9aa7b8; --line: #35404e;
  --page: #141a22; --shade: #1d2530; } }
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
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 1rem; }
figure { margin: 0; min-width: 0; }
figure .scroll { margin: 0; }
figure img { display: block; width: 100%; height: auto; background: #ffffff; border: 1px solid var(--line);
  border-radius: 4px; }
figcaption { font-size: .9rem; padding: .35rem .1rem; }
@media (max-width: 40rem) { th, td { padding: .35rem .4rem; font-size: .85rem; }
  figure .scroll img { width: auto; min-width: 100%; max-width: 44rem; } }
"""


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
    >>> "<td>model</td>" in page.html()
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
        self._parts.extend(f"<p>{escape(text)}</p>" for text in paragraphs if text)
        return self

    def table(
        self,
        headers: Sequence[str],
        rows: Sequence[Sequence[Any]],
        *,
        caption: str = "",
        best: int | None = None,
    ) -> Self:
        """Add a table; columns of numbers stand to the right.

        Parameters
        ----------
        headers : sequence of str
            Names of the columns.
        rows : sequence of sequences
            Text or numbers.
        caption : str, default=""
            What is shown.
        best : int, optional
            Row to bring out.

        Returns
        -------
        Report
            Itself.
        """
        numeric = [
            bool(rows) and all(_is_number(row[place]) for row in rows) for place in range(len(headers))
        ]
        kinds = [' class="number"' if flag else "" for flag in numeric]
        lines = ['<div class="scroll"><table>']
        if caption:
            lines.append(f"<caption>{escape(caption)}</caption>")
        cells = (
            f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(headers, kinds, strict=True)
        )
        lines.append(f"<thead><tr>{''.join(cells)}</tr></thead><tbody>")
        for number, row in enumerate(rows):
            cells = (
                f"<td{kind}>{escape(_shown(value))}</td>" for value, kind in zip(row, kinds, strict=True)
            )
            mark = ' class="best"' if number == best else ""
            lines.append(f"<tr{mark}>{''.join(cells)}</tr>")
        lines.append("</tbody></table></div>")
        self._parts.append("\n".join(lines))
        return self

    def figures(self, figures: Iterable[tuple[Any, str]]) -> Self:
        """Add figures side by side, below each other where the screen is narrow.

        Parameters
        ----------
        figures : iterable of (matplotlib Figure, str)
            Each with a sentence that says what it shows.

        Returns
        -------
        Report
            Itself.
        """
        self._parts.append('<div class="figures">')
        for figure, caption in figures:
            source = f"data:image/svg+xml;base64,{_svg(figure)}"
            self._parts.append(
                f'<figure><div class="scroll"><img alt="{escape(caption)}" src="{source}"></div>'
                f"<figcaption>{escape(caption)}</figcaption></figure>"
            )
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


def _is_number(value: Any) -> bool:
    """Also of text, so that a caller can choose the digits."""
    try:
        float(value)
    except ValueError:
        return False
    return not isinstance(value, bool)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"
    # A number stays on one line with its spread and its unit.
    kept = str(value).replace(" ± ", "\u00a0±\u00a0").replace(" %", "\u00a0%")
    return f"{value:,}" if isinstance(value, int) else kept
