"""Write the tables of docs/papers/mixed.md from the stored results of the mixed_* suites.

python -m benchmarks mixed_tables
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "papers" / "mixed.md"
STORED = ROOT / "benchmarks" / "stored"


def load(name: str) -> list[dict[str, Any]]:
    path = STORED / f"{name}.json"
    return json.loads(path.read_text())["results"] if path.exists() else []


def table(header: list[str], lines: list[list[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def rates() -> str:
    entries = load("mixed_rates")
    shares = sorted({entry["rate"] for entry in entries})
    lines = []
    for name in dict.fromkeys(entry["method"] for entry in entries):
        cells = []
        for rate in shares:
            found = [e["ratio"] for e in entries if (e["method"], e["rate"]) == (name, rate)]
            spread = f" ± {np.std(found):.4f}" if len(found) > 1 else ""
            cells.append(f"{np.mean(found):.4f}{spread} ({len(found)})" if found else "")
        lines.append([name, *cells])
    paper = {entry["rate"]: entry["paper"] for entry in entries}
    lines.append(["paper, its own method", *(f"{paper[rate]:.3f}" for rate in shares)])
    return table(["ratio on removed cells", *(f"{rate:.0%}" for rate in shares)], lines)


def few() -> str:
    entries = load("mixed_synthetic_few")
    seeds = sorted({entry["seed"] for entry in entries})
    lines = []
    for name in dict.fromkeys(entry["method"] for entry in entries):
        mine = {entry["seed"]: entry for entry in entries if entry["method"] == name}
        recall = [entry["recall"] for entry in mine.values() if "recall" in entry]
        lines.append(
            [name, *(f"{mine[s]['ratio']:.4f}" for s in seeds), f"{np.mean(recall):.2f}" if recall else ""]
        )
    floors = {entry["seed"]: entry["floor"] for entry in entries}
    lines.append(["noise floor", *(f"{floors[s]:.4f}" for s in seeds), ""])
    return table(["ratio", *(f"seed {s}" for s in seeds), "support found"], lines)


def main() -> None:
    text = PAGE.read_text()
    for name, make in {"rates": rates, "few": few}.items():
        pattern = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.S)
        text = pattern.sub(rf"\g<1>\n{make()}\n\n\g<2>", text)
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
