"""Write the tables of speed and of cmfrec on docs/papers/mixed.md from the stored mixed_* suites.

python -m benchmarks mixed_tables
"""

from __future__ import annotations

from typing import Any

from benchmarks._tables import stored, table, write_page
from unseen.reproduction._numbers import with_spread

PAGE = "papers/mixed.md"


def cmfrec() -> str:
    entries: list[dict[str, Any]] = stored("mixed_cold")["results"]
    lines = [
        [name, *(with_spread(e[key] for e in entries if (e["method"], e["side"]) == (name, side))
                 for side in ("row", "col") for key in ("rmse", "mae"))]
        for name in dict.fromkeys(entry["method"] for entry in entries)
    ]  # fmt: skip
    return table(["", "users: RMSE", "MAE", "movies: RMSE", "MAE"], lines)


def scale() -> str:
    lines = [
        [entry["method"], entry["n_iter"], f"{entry['seconds']:.0f}", f"{entry['peak_gib']:.2f}",
         f"{entry['peak_gib_of_data']:.2f}", entry.get("largest_rank") or "", f"{entry['relative_gap']:.1e}"]
        for entry in stored("mixed_scale")["results"]
    ]  # fmt: skip
    header = ["", "steps", "seconds", "peak GiB", "of it data and libraries", "largest rank", "relative gap"]
    return table(header, lines)


def scale_dense() -> str:
    dense = stored("mixed_scale")["dense"]
    n, m = dense["shape"]
    line = [f"{n} x {m}", f"{dense['cells']:,}", dense["n_iter"], f"{dense['seconds']:.1f}",
            f"{dense['seconds_dense']:.0f}", f"{dense['seconds_dense'] / dense['seconds']:.0f}"]  # fmt: skip
    return table(["SoftImpute", "cells", "steps", "seconds", "by dense SVD", "times faster"], [line])


def tables() -> dict[str, str]:
    return {make.__name__: make() for make in (cmfrec, scale, scale_dense)}


def main() -> None:
    write_page(PAGE, tables())


if __name__ == "__main__":
    main()
