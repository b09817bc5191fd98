"""Draw the layers of the package from the import contract: ``python docs/layers.py`` writes layers.svg."""

from __future__ import annotations

import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "layers.svg"
SAYS = {
    "benchmarks": "speed and memory beside peers; not installed",
    "papers": "experiments of the papers; not installed",
    "cli": "the command",
    "comparison": "reports, figures, fits by blocks, a server",
    "blends": "several models as one",
    "links": "links, baselines, labels, gaps: models beside the core",
    "model_selection": "estimators, splits and searches, embeddings",
    "datasets": "data sets, metrics, saving; solvers",
    "encoding": "the objective, bound to data",
    "scores": "from learned arrays to scores and back",
    "terms": "what an objective is made of",
    "maps": "maps, cores, penalties, measurements",
    "linalg": "sparse plus Gram, designs, decompositions",
    "data": "cells and ids; native loops and their twins",
    "validation": "checks on everything that comes in",
    "typing": "names of types and errors",
}
WIDTH, LINE, GAP, LEFT = 920, 34, 8, 570


def layers() -> list[list[str]]:
    """Modules of each layer, the top one first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    return [[name.strip().removeprefix("unseen.") for name in row.split("|")] for row in contract["layers"]]


def draw() -> str:
    """The picture as SVG."""
    rows = layers()
    height = len(rows) * (LINE + GAP) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="sans-serif" font-size="13">',
        "<title>Layers: each imports only from those below it</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for number, names in enumerate(rows):
        top = GAP + number * (LINE + GAP)
        shade = "#eef2f7" if number % 2 else "#dfe7f1"
        middle = top + LINE / 2 + 5
        parts += [
            f'<rect x="{GAP}" y="{top}" width="{WIDTH - 2 * GAP}" height="{LINE}" rx="5" fill="{shade}"/>',
            f'<text x="{3 * GAP}" y="{middle}" font-family="monospace">{escape(" · ".join(names))}</text>',
            f'<text x="{LEFT}" y="{middle}" fill="#445">{escape(SAYS[names[0]])}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
