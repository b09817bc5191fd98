"""Draw the picture of the README: ``python docs/picture.py`` writes picture.svg from stored results."""

from __future__ import annotations

import json
import math
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "picture.svg"
RESULTS = ROOT / "benchmarks" / "stored" / "explicit_ratings.json"
TASK = "synthetic 5m"
LINES = {
    "unseen svd start": ("unseen", "#1f6fb4"),
    "cmfrec cholesky": ("cmfrec, Cholesky", "#c8662b"),
    "cmfrec cg": ("cmfrec, CG", "#8a8f98"),
}
KNOWN = ("7..3.9", ".5.8..", "2..6.4", "..9..1", ".6..2.")
"""Cells of the drawing: a digit is known and shades it, a dot is missing."""
CELL, LEFT, TOP = 34, 40, 62
PLOT = {"left": 470.0, "right": 770.0, "top": 62.0, "bottom": 262.0}


def draw() -> str:
    """The picture as SVG."""
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 330" role="img" font-family="sans-serif" '
        'font-size="13">',
        "<title>A matrix with known, missing and new cells; error against seconds of fits</title>",
        '<rect width="800" height="330" fill="#ffffff"/>',
        *_matrix(),
        *_curves(json.loads(RESULTS.read_text(encoding="utf-8"))["tasks"][TASK]),
    ]
    return "\n".join([*parts, "</svg>", ""])


def _matrix() -> list[str]:
    n_rows, n_cols = len(KNOWN), len(KNOWN[0])
    parts = [_text(LEFT, 30, "Some cells are known. The rest is asked for.", "bold")]
    for i in range(n_rows + 1):
        for j in range(n_cols + 1):
            new = i == n_rows or j == n_cols
            digit = "." if new else KNOWN[i][j]
            fill = "#fdf0d5" if new else "#ffffff"
            fill = fill if digit == "." else f"rgba(31,111,180,{int(digit) / 10:.1f})"
            gap = 8
            x = LEFT + j * CELL + (gap if j == n_cols else 0)
            y = TOP + i * CELL + (gap if i == n_rows else 0)
            size = f'x="{x}" y="{y}" width="{CELL - 3}" height="{CELL - 3}"'
            parts.append(f'<rect {size} rx="4" fill="{fill}" stroke="#b9c2cc"/>')
            if digit == ".":
                parts.append(_text(x + CELL / 2 - 5, y + CELL / 2 + 3, "?", colour="#7a828c"))
    right, bottom = LEFT + (n_cols + 1) * CELL + 20, TOP + (n_rows + 1) * CELL + 8
    parts += [
        _text(right, TOP + 20, "known: values,"),
        _text(right, TOP + 37, "clicks, links, labels"),
        _text(right, TOP + 74, "? missing"),
        _text(right, bottom - 12, "new row, by its"),
        _text(right, bottom + 5, "features or a few cells"),
        _text(LEFT, bottom + 34, "New columns likewise. Features are optional.", colour="#445"),
    ]
    return parts


def _curves(task: dict[str, Any]) -> list[str]:
    runs = {name: task["systems"][name]["runs"] for name in LINES}
    seconds = [run["seconds"] for line in runs.values() for run in line]
    first, last = math.log10(min(seconds)), math.log10(max(seconds))
    errors = [run["rmse"] for line in runs.values() for run in line]
    low, high = min(errors) - 0.01, max(errors) + 0.01

    def x(value: float) -> float:
        return PLOT["left"] + (math.log10(value) - first) / (last - first) * (PLOT["right"] - PLOT["left"])

    def y(value: float) -> float:
        return PLOT["bottom"] - (value - low) / (high - low) * (PLOT["bottom"] - PLOT["top"])

    label = escape(str(task["label"]))
    parts = [
        _text(PLOT["left"] - 30, 30, "Held-out RMSE against seconds, same objective", "bold"),
        f'<path d="M{PLOT["left"]} {PLOT["top"]}V{PLOT["bottom"]}H{PLOT["right"]}" fill="none" '
        'stroke="#667"/>',
    ]
    parts += [_text(x(tick) - 4, PLOT["bottom"] + 18, str(tick)) for tick in (1, 2, 5, 10)]
    levels = [tick for tick in (0.80, 0.85, 0.90, 0.95, 1.00) if low <= tick <= high]
    parts += [_text(PLOT["left"] - 36, y(tick) + 4, f"{tick:.2f}") for tick in levels]
    for number, (name, (told, colour)) in enumerate(LINES.items()):
        points = [(x(run["seconds"]), y(run["rmse"])) for run in runs[name]]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in points]
        parts.append(_text(PLOT["right"] - 120, PLOT["top"] + 16 + 20 * number, told, "bold", colour))
    parts.append(_text(PLOT["left"] - 30, PLOT["bottom"] + 42, f"{label}, 2 threads", colour="#445"))
    return parts


def _text(x: float, y: float, text: str, weight: str = "normal", colour: str = "#223") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-weight="{weight}" fill="{colour}">{escape(text)}</text>'


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
    print(PICTURE)
