"""Link prediction on ca-GrQc and ca-HepPh: five fixed splits, settings chosen on validation edges only."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks._store import store
from unseen import BiasMC, Observations
from unseen.datasets import GraphData, load_ca_grqc, load_ca_hepph
from unseen.links import BlendedLinks, CommonNeighbors, Katz, SVDKatz, TruncatedSVDLinks, link_curve
from unseen.links.graph import top_eigenpairs

GRAPHS: dict[str, Callable[[], GraphData]] = {"ca-GrQc": load_ca_grqc, "ca-HepPh": load_ca_hepph}
SPLITS = range(5)
MULTIPLES = (1, 3, 15)
"""Lists that are reported, as multiples of the number of test edges."""
RANK = 50
Edges = npt.NDArray[np.int64]
Setting = dict[str, float]


def bias_mc(setting: Setting) -> BiasMC:
    return BiasMC(RANK, alpha=setting["alpha"], reg=setting["reg"], max_iter=15, tol=1e-4, random_state=0)


def methods(lambda_max: float) -> dict[str, tuple[Callable[[Setting], Any], list[Setting]]]:
    """Every method with the settings among which validation edges choose."""
    return {
        "BiasMC": (
            bias_mc,
            [{"alpha": a, "reg": r} for a in (0.75, 0.9, 0.95, 0.99, 0.999) for r in (0.3, 1.0)],
        ),
        "Common Neighbors": (lambda s: CommonNeighbors(), [{}]),
        "shared neighbours / degree": (lambda s: CommonNeighbors(degree_power=1.0), [{}]),
        "Katz": (
            lambda s: Katz(s["beta_lambda"] / lambda_max, length=3),
            [{"beta_lambda": b} for b in (0.1, 0.3, 0.6)],
        ),
        "SVD": (lambda s: TruncatedSVDLinks(RANK), [{}]),
        "SVD-Katz": (
            lambda s: SVDKatz(RANK, beta=s["beta_lambda"] / lambda_max),
            [{"beta_lambda": b} for b in (0.1, 0.3, 0.6, 0.9)],
        ),
    }


def graph_of(edges: Edges, n_nodes: int) -> Observations:
    both = np.vstack([edges, edges[:, ::-1]])
    return Observations.from_triples(
        both[:, 0], both[:, 1], np.ones(len(both), dtype=np.float32), (n_nodes, n_nodes)
    )


def run_split(data: GraphData, number: int) -> Iterator[dict[str, Any]]:
    n = data.observations.shape[0]
    train_edges, test = data.edges[data.train[number]], data.edges[~data.train[number]]
    order = np.random.default_rng(1000 + number).permutation(len(train_edges))
    n_val = len(train_edges) // 5
    val, rest = train_edges[order[:n_val]], train_edges[order[n_val:]]
    inner, train = graph_of(rest, n), graph_of(train_edges, n)
    # beta is given as a share of 1/lambda_1, which differs between the two graphs.
    inner_lambda, train_lambda = (float(top_eigenpairs(g.csr, 1, which="LA")[0][0]) for g in (inner, train))

    def validate(model: Any) -> float:
        curve = link_curve(model.fit(inner), val, train=inner, k=5 * n_val)
        return float(curve.fnr[-1])

    def judge(name: str, model: Any, setting: Setting, tried: int) -> dict[str, Any]:
        model.fit(train)
        lengths = [m * len(test) for m in MULTIPLES]
        curve = link_curve(model, test, train=train, k=lengths[-1])
        return {
            "method": name,
            "split": number,
            "setting": setting,
            "settings_tried": tried,
            "lengths": lengths,
            "fnr": [float(curve.fnr[k - 1]) for k in lengths],
            "fpr": [float(curve.fpr[k - 1]) for k in lengths],
            "precision": {str(k): float(curve.precision[k - 1]) for k in (100, 1000, len(test))},
            "curve": {
                str(k): float(curve.fnr[k - 1])
                for k in np.unique(np.geomspace(100, lengths[-1], 25).astype(int))
            },
        }

    chosen: Setting = {}
    for name, (build, settings) in methods(inner_lambda).items():
        errors = [validate(build(s)) for s in settings] if len(settings) > 1 else [0.0]
        setting = settings[int(np.argmin(errors))]
        if name == "BiasMC":
            chosen = setting
        yield judge(name, methods(train_lambda)[name][0](setting), setting, len(settings))

    def blend(weight: float) -> BlendedLinks:
        return BlendedLinks([bias_mc(chosen), CommonNeighbors(degree_power=1.0)], weights=[1.0, weight])

    weights = (0.5, 1.0, 2.0, 4.0)
    weight = weights[int(np.argmin([validate(blend(w)) for w in weights]))]
    yield judge("BiasMC + shared / degree", blend(weight), {**chosen, "weight": weight}, len(weights))


def run() -> dict[str, Any]:
    results: dict[str, Any] = {}
    for graph, load in GRAPHS.items():
        data = load()
        rows = []
        for number in SPLITS:
            for row in run_split(data, number):
                rows.append(row)
                print(graph, number, row["method"], row["setting"], np.round(row["fnr"], 3), flush=True)
        results[graph] = {
            "n_nodes": data.observations.shape[0],
            "n_test": int((~data.train[0]).sum()),
            "rows": rows,
        }
    return results


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = run()
    print(store("links", {"graphs": results, "multiples": list(MULTIPLES)}))


if __name__ == "__main__":
    main()
