"""``diagnose`` on 2 million nodes and 90 million cells: seconds and memory of each part."""

from __future__ import annotations

import sys
import time
from typing import Any

from benchmarks._store import peak_memory_gib, store
from unseen.datasets import make_scale_graph
from unseen.diagnostics import diagnose, find_blocks

FULL = {"n_nodes": 2_000_000, "mean_degree": 46.0}
RANK = 10


def measure(n_nodes: int, mean_degree: float) -> dict[str, Any]:
    start = time.perf_counter()
    cells = make_scale_graph(n_nodes, mean_degree, random_state=0).observations
    generated = time.perf_counter()
    facts: dict[str, Any] = {
        "n_nodes": n_nodes,
        "cells": cells.nnz,
        "generate_s": generated - start,
        "generate_peak_gib": peak_memory_gib(),
    }
    n_blocks = len(find_blocks(cells))
    found_blocks = time.perf_counter()
    facts |= {
        "n_blocks": n_blocks,
        "blocks_s": found_blocks - generated,
        "blocks_peak_gib": peak_memory_gib(),
    }
    found = diagnose(cells, RANK)
    facts |= {"diagnose_s": time.perf_counter() - found_blocks, "peak_gib": peak_memory_gib()}
    return {**facts, "rank": RANK, "verdict": found.verdict}


def main() -> None:
    """Run in full; ``python -m benchmarks.diagnose_scale N_NODES`` is a trial and stores nothing."""
    if len(sys.argv) > 1 and sys.argv[1].isdecimal():
        print(measure(int(sys.argv[1]), FULL["mean_degree"]))
        return
    print(store("diagnose_scale", {"runs": [measure(int(FULL["n_nodes"]), FULL["mean_degree"])]}))


if __name__ == "__main__":
    main()
