"""Links of graphs by one model: penalties by degree, and the filter; settings chosen on training links."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks._list_tools import Spent, stored_parts
from benchmarks._store import store
from papers.pu_links import GRAPHS, RANK, SPLITS, graph_of
from unseen import BiasMC, SpectralFilter
from unseen.links import CommonNeighbors, link_curve

ALPHAS = (0.99, 0.999)
REGS = {0.0: (0.3, 1.0), 0.5: (0.3, 1.0), 1.0: (0.1, 0.3)}
"""Of a row of ten links, so that strengths are alike at all powers."""
POWERS = ((0.35, 0.4), (0.5, 0.5))
"""Of the filter."""


def candidates() -> dict[str, list[Any]]:
    """Models by name, each at all of its settings."""

    def factors(power: float) -> list[Any]:
        shared: dict[str, Any] = {"max_iter": 15, "tol": 1e-4, "cg_steps": None, "random_state": 0}
        return [
            BiasMC(RANK, alpha=alpha, reg=reg, degree_scaling=power, **shared)
            for alpha in ALPHAS
            for reg in REGS[power]
        ]

    return {
        **{f"BiasMC, power {power:g}": factors(power) for power in REGS},
        "SpectralFilter": [
            SpectralFilter(RANK, low_pass=0.0, degree_power=powers, random_state=0) for powers in POWERS
        ],
        "shared neighbours / degree": [CommonNeighbors(degree_power=1.0)],
    }


def links() -> dict[str, Any]:
    """Share of test links that a list of their number misses; each split is stored when it is done."""
    found: dict[str, Any] = {name: list(stored_parts().get("links", {}).get(name, [])) for name in GRAPHS}
    for name, load in GRAPHS.items():
        data = load()
        done = {run["split"] for run in found[name]}
        for number in SPLITS:
            if number not in done:
                found[name].append(_on_split(data, number))
                store("lists", {"results": {**stored_parts(), "links": found}})
                print(name, found[name][-1], flush=True)
    return found


def _on_split(data: Any, number: int) -> dict[str, Any]:
    """All models on one split; a fifth of the training links chooses, by lists five times its number."""
    n = data.observations.shape[0]
    train_links, test = data.edges[data.train[number]], data.edges[~data.train[number]]
    order = np.random.default_rng(1000 + number).permutation(len(train_links))
    n_held = len(train_links) // 5
    # Lists of the held-out links' own number would hold mostly test links, which count as misses there.
    held, rest = train_links[order[:n_held]], train_links[order[n_held:]]
    inner, train = graph_of(rest, n), graph_of(train_links, n)

    def missed(model: Any, graph: Any, wanted: Any, length: int) -> float:
        model.fit(graph)
        return float(link_curve(model, wanted, train=graph, k=length, positions=True).fnr[-1])

    lines = []
    for name, models in candidates().items():
        with Spent() as spent:
            tried = [missed(model, inner, held, 5 * n_held) for model in models] if len(models) > 1 else [0.0]
            best = models[int(np.argmin(tried))]
            fnr = missed(best, train, test, len(test))
        lines.append({"model": name, "settings": repr(best), "tried": tried, "fnr": fnr, **spent.told()})
    return {"split": number, "models": lines}
