"""Lists and labels on real data, settings chosen inside the training part, the test part scored once.

    python -m benchmarks lists                    what is not stored yet
    PARTS=gowalla,liked python -m benchmarks lists    these parts, again

Each part runs in a process of its own, so that its memory is its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks._list_degrees import backgrounds, degrees
from benchmarks._list_gowalla import (
    gowalla,
    gowalla_blend,
    gowalla_blend_by_row,
    gowalla_by_row,
    gowalla_drift,
)
from benchmarks._list_labels import bibtex, delicious
from benchmarks._list_links import links
from benchmarks._list_ratings import RATINGS, ratings, yelp_2013
from benchmarks._list_searches import searches
from benchmarks._list_tools import Spent, liked_cells, stored_parts
from benchmarks._store import ROOT, peak_memory_gib, store


def liked() -> dict[str, Any]:
    """Ratings of 4 and 5 as positives: ``compare`` chooses settings inside each of three training parts."""
    from unseen.comparison import compare

    with Spent() as spent:
        found = compare(
            liked_cells(),
            task="positive",
            methods=["spectral-filter", "item-neighbors", "bias-mc"],
            repeats=3,
            random_state=0,
        )
    entries = {
        entry.method: {"scores": entry.scores, "settings": entry.settings, "error": entry.error,
                       "fit_s": entry.fit_s, "search_s": entry.search_s}
        for entry in found.entries
    }  # fmt: skip
    return {"entries": entries, "all": spent.told()}


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "gowalla": gowalla,
    "gowalla_blend": gowalla_blend,
    "gowalla_by_row": gowalla_by_row,
    "gowalla_blend_by_row": gowalla_blend_by_row,
    "gowalla_drift": gowalla_drift,
    "liked": liked,
    "bibtex": bibtex,
    "delicious": delicious,
    "searches": searches,
    "links": links,
    **{name: partial(ratings, name) for name in RATINGS},
    "yelp-2013": yelp_2013,
    "degrees": degrees,
    "backgrounds": backgrounds,
}


def run_part(name: str) -> None:
    """Run one part in this process and add it to what is stored."""
    with Spent() as spent:
        found = PARTS[name]()
    found = {**found, "part": spent.told(), "peak_gib": round(peak_memory_gib(), 2)}
    store("lists", {"results": {**stored_parts(), name: found}})
    print(name, json.dumps(found)[:2000], flush=True)


def main() -> None:
    """Run what is not stored yet, or the parts named by PARTS."""
    asked = [name for name in os.environ.get("PARTS", "").split(",") if name]
    for name in asked or [name for name in PARTS if name not in stored_parts()]:
        command = [sys.executable, "-c", f"from benchmarks.lists import run_part; run_part({name!r})"]
        subprocess.run(command, check=True, cwd=ROOT)


if __name__ == "__main__":
    main()
