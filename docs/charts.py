"""Draw the pictures of the front page: ``python docs/charts.py`` writes them, numbers from stored results."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
STORED = ROOT / "benchmarks" / "stored"
OURS, OTHERS, INK, SOFT, GUESS, GROUND = "#1f6fb4", "#aab4c0", "#223", "#556", "#d9822b", "#ffffff"
DARK = {
    OURS: "#4a9be0",
    OTHERS: "#6b7684",
    INK: "#e6e9ee",
    SOFT: "#b4bcc8",
    GROUND: "#14181e",
    "#c3cad2": "#4b5563",
}
"""Colours of the pictures for dark pages."""
KNOWN = ("7..3.9", ".5.8..", "2..6.4", "..9..1", ".6..2.")
FULL = ("754369", "351847", "275614", "639251", "467529")
"""Cells of the drawing: known (a dot is missing), and filled in. They illustrate; nothing was fitted."""


def matrix() -> str:
    """A table with gaps, and the same without them and with one row more."""
    cell, top, right = 34, 44, 330
    parts = [
        _text(12, 28, "What is known", weight="bold", size=18),
        _text(right, 28, "What is predicted", weight="bold", size=18),
    ]
    for i, (row, filled) in enumerate(zip(KNOWN, FULL, strict=True)):
        for j, (digit, guess) in enumerate(zip(row, filled, strict=True)):
            y = top + i * cell
            parts += _cell(12 + j * cell, y, cell, "" if digit == "." else digit, OURS)
            parts += _cell(right + j * cell, y, cell, guess, GUESS if digit == "." else OURS)
    below = top + len(KNOWN) * cell + 10
    for j, guess in enumerate("584637"):
        parts += _cell(12 + j * cell, below, cell, "", OURS)
        parts += _cell(right + j * cell, below, cell, guess, GUESS)
    arrow = top + 2.5 * cell
    under = below + cell + 20
    parts += [
        f'<path d="M228 {arrow}h80m-14 -12l14 12l-14 12" fill="none" stroke="{SOFT}" stroke-width="4"/>',
        _text(12, under, "new row, by its features", size=17),
        f'<rect x="{right}" y="{under - 13}" width="15" height="15" rx="4" fill="{OURS}"/>',
        _text(right + 21, under, "known", size=17),
        f'<rect x="{right + 90}" y="{under - 13}" width="15" height="15" rx="4" fill="{GUESS}"/>',
        _text(right + 111, under, "predicted", size=17),
    ]
    title = "A table with known cells and gaps; the same with all cells filled and a row for a newcomer"
    return _picture(546, under + 14, title, parts)


def speed() -> str:
    """Seconds of this library over those of the others, each to the same quality."""
    positives = _stored("implicit_feedback")["power_law"]
    ratings = _stored("explicit_ratings")["tasks"]["synthetic 5m"]
    share = "1.0%"
    groups = [
        (f"positives, {positives['cells']:,} cells, to {share}", _quickest(positives["time_to"][share])),
        (f"ratings, {ratings['label']}", _quickest(ratings["seconds"])),
    ]
    return _bars("Seconds to the same quality; less is better", groups, "{:.1f} s")


def accuracy() -> str:
    """First labels that are right, beside libraries for many labels."""
    runs = _stored("exmlds_speed")["runs"]
    titles = {"ExMLDS1, weighted votes": "unseen ExMLDS", "omikuji": "omikuji", "napkinXC": "napkinXC"}
    groups = []
    for data in dict.fromkeys(run["data"] for run in runs):
        found: dict[str, list[float]] = {}
        for run in runs:
            if run["data"] == data and run["method"] in titles:
                found.setdefault(titles[run["method"]], []).append(run["precision"][0])
        groups.append((str(data), {name: median(values) for name, values in found.items()}))
    return _bars("First label right, %; more is better", groups, "{:.1f}")


def _quickest(seconds: dict[str, float | None]) -> dict[str, float]:
    """The best variant of each library; those that never got there are left out."""
    found: dict[str, float] = {}
    for name, value in seconds.items():
        library = name.split()[0]
        if value is not None:
            found[library] = min(value, found.get(library, value))
    return found


def _bars(title: str, groups: Iterable[tuple[str, dict[str, float]]], form: str) -> str:
    parts, y = [_text(16, 28, title, weight="bold")], 62
    for label, values in groups:
        parts.append(_text(16, y, label, colour=SOFT))
        y += 10
        longest = max(values.values())
        for name, value in sorted(values.items(), key=lambda item: not item[0].startswith("unseen")):
            width = 230 * value / longest
            fill = OURS if name.startswith("unseen") else OTHERS
            parts += [
                _text(16, y + 17, name, weight="bold" if fill == OURS else "normal"),
                f'<rect x="136" y="{y + 3}" width="{width:.1f}" height="19" rx="3" fill="{fill}"/>',
                _text(142 + width, y + 18, form.format(value)),
            ]
            y += 27
        y += 26
    return _picture(440, y - 8, title, parts)


def _stored(suite: str) -> Any:
    return json.loads((STORED / f"{suite}.json").read_text(encoding="utf-8"))


def _cell(x: float, y: float, size: int, digit: str, colour: str) -> list[str]:
    opacity = int(digit) / 12 if digit else 0
    square = f'x="{x}" y="{y}" width="{size - 4}" height="{size - 4}" rx="5"'
    parts = [f'<rect {square} fill="{GROUND}" stroke="#c3cad2"/>']
    if digit:
        parts += [
            f'<rect {square} fill="{colour}" fill-opacity="{opacity:.2f}"/>',
            _text(x + size / 2 - 6, y + size / 2 + 3, digit),
        ]
    return parts


def _picture(width: int, height: int, title: str, parts: list[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'font-family="sans-serif" font-size="14">'
    )
    ground = f'<rect width="{width}" height="{height}" rx="8" fill="{GROUND}"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", ground, *parts, "</svg>", ""])


def _text(
    x: float, y: float, text: str, *, weight: str = "normal", colour: str = INK, size: int | None = None
) -> str:
    large = f' font-size="{size}"' if size else ""
    return (
        f'<text x="{x:.4g}" y="{y:.4g}" font-weight="{weight}"{large} fill="{colour}">{escape(text)}</text>'
    )


def _dark(draw: Callable[[], str]) -> Callable[[], str]:
    """The same picture for a dark page."""

    def drawn() -> str:
        return re.sub("|".join(DARK), lambda found: DARK[found[0]], draw())

    return drawn


DRAWN = {"matrix": matrix, "speed": speed, "accuracy": accuracy}
PICTURES: dict[Path, Callable[[], str]] = {
    **{DOCS / f"{name}.svg": draw for name, draw in DRAWN.items()},
    **{DOCS / f"{name}-dark.svg": _dark(draw) for name, draw in DRAWN.items()},
}

if __name__ == "__main__":
    for path, draw in PICTURES.items():
        path.write_text(draw(), encoding="utf-8")
        print(path)
