"""Tables of the guide's page on GPUs, from the stored run and from the formula of what a fit needs."""

from __future__ import annotations

from benchmarks._store import stored
from papers.display import markdown

CARDS = (16, 24, 80, 141)
"""Gigabytes of cards."""


def cards(side: float = 2e6, rank: int = 100, usable: float = 0.9) -> str:
    """How many cells fit on a card, with as many rows as columns."""
    factors = 4 * rank * (2 * side + 2 * side) + 24 * 2 * side
    lines = []
    for card in CARDS:
        room = usable * 1e9 * card - factors
        lines.append([f"{card} GB", *(f"{room / each / 1e9:.2g}" for each in (8, 16, 24))])
    return markdown(
        ["card, 90 % usable", "billion cells: positives", "values", "values and weights"],
        lines,
    )


def jobs() -> str:
    """What was measured on a card, beside the time in which it gathers the factors of every cell once."""
    run = stored("gpu")
    a, b = run["a"], run["b"]
    lists = a["lists"]
    shape = f"{a['rows']:,} x {a['columns']:,}, {a['cells'] / 1e6:.1f} million cells, rank {a['rank']}"
    large = f"{b['rows']:,} rows, {b['cells'] / 1e6:.0f} million cells, rank {b['rank']}"
    lines = [
        [f"a sweep, {shape}", f"{a['sweep_ms']:.1f} ms", f"{a['floor_ms']:.2f} ms", "1.2 ms"],
        ["the same, exact rows (`cg_steps=None`)", f"{a['exact_sweep_ms']:.1f} ms", "", "3 ms"],
        ["the same in float64", f"{a['sweep_float64_ms']:.1f} ms", "", ""],
        [f"a sweep, {large}", f"{b['sweep_ms']:.0f} ms", f"{b['floor_ms']:.0f} ms", "40 ms"],
        [
            "`fit` of that from host arrays, ten sweeps, kernels compiled before",
            f"{b['fit_s']:.1f} s",
            "",
            "2.5 s",
        ],
        [
            "lists of ten for 20,000 rows of the first, seen cells left out: at random, the longest",
            f"{lists['random_ms']:.1f}, {lists['longest_ms']:.1f} ms",
            "",
            "1.0, 1.3 ms",
        ],
        [
            f"lists of ten for a million rows of {a['columns']:,} columns",
            f"{lists['million_ms']:.0f} ms",
            "",
            "26 ms",
        ],
    ]
    return markdown(["job", "time", "floor", "wanted"], lines)


def tables() -> dict[str, str]:
    """What docs/guide/gpu.md shows."""
    return {"cards": cards(), "gpu": jobs()}
