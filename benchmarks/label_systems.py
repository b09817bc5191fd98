"""All methods for many labels, settings chosen on validation rows: precision, seconds and memory.

    python -m benchmarks label_systems

Runs what is not stored yet. ``DATA`` and ``METHODS`` in the environment name some only, with ``|`` between
them; ``SPLITS`` how many splits of a set that has several. A choice is made once for a set, on a fifth of the
training rows of its first split; methods of the page of ExMLDS keep the choice that was made there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from importlib.util import find_spec
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks._store import ROOT, STORED, if_measured, store
from papers.catalogue import EXPERIMENTS
from papers.display import markdown, with_spread
from papers.exmlds_contenders import SETS, Setting, grid, rows_of
from papers.exmlds_hidden import scaled_eigenvectors
from papers.exmlds_labels import PAPER, PAPER_ONLY, PLACES, VALIDATION_SHARE, told
from papers.runner import read
from unseen.metrics import precision_at_k

SPLITS = int(os.environ.get("SPLITS", "3"))
TOLERANCE = 1.0
"""Points of P@1 that may be missing to what was published."""


class System(NamedTuple):
    """An estimator and its grid; settings of `later` need no other fit."""

    estimator: str
    fixed: Setting
    at_fit: tuple[Setting, ...]
    later: tuple[Setting, ...] = ({},)


SEEDED: Setting = {"random_state": 0}
ENSEMBLE = {**SEEDED, "n_learners": 5}
LEARNED: Setting = {**SEEDED, "n_components": 100}
COUNTS = "counts"
"""Stands for how often labels occur together in the training rows, or for its scaled eigenvectors."""
SYSTEMS: dict[str, System] = {
    "FastXML": System("FastXML", SEEDED, grid(C=(1.0, 3.0))),
    "PfastreXML": System("PfastreXML", SEEDED, grid(C=(1.0, 3.0)), grid(tree_weight=(0.8, 0.95))),
    "PDSparse": System("PDSparse", SEEDED, grid(C=(1.0, 10.0), l1=(0.01, 0.1), max_iter=(2, 20))),
    "PDSparse, last weights": System(
        "PDSparse", {**SEEDED, "average": False, "l1": 0.1}, grid(C=(1.0, 10.0), max_iter=(1, 5, 60))
    ),
    "PPDSparse": System("PPDSparse", SEEDED, grid(C=(0.3, 1.0), l1=(0.01, 0.1))),
    "AnnexML": System("AnnexML", ENSEMBLE, ({},), grid(k=(10, 25, 70))),
    "DXML": System("DXML", SEEDED, ({},), grid(k=(10, 25, 70))),
    "LabelTree": System("LabelTree", SEEDED, grid(C=(0.1, 0.3, 1.0))),
    "LabelTree, k-means": System(
        "LabelTree", {**SEEDED, "branching": 16, "balanced": False, "max_leaf": 20}, grid(C=(0.1, 0.3, 1.0))
    ),
}
"""Systems that the papers compare with."""
OURS = {
    "RidgeOvA": System("RidgeOvA", {}, ()),
    "LinearOvA": System("LinearOvA", {}, ()),
    "LEML": System("LEML", {**SEEDED, "rank": 100, "intercept": False}, ()),
    "SLEEC": System("SLEEC", SEEDED, ()),
    "SLEEC, cosine and weighted votes": System("SLEEC", SEEDED, ()),
    "ExMLDS1": System("ExMLDS", {**SEEDED, "neighbor_power": 0.0}, ()),
    "ExMLDS1, weighted votes": System("ExMLDS", SEEDED, ()),
    "ExMLDS2, weighted votes": System("ExMLDS", {**SEEDED, "method": "sgns"}, ()),
    "joint, weighted votes": System("ExMLDS", {**SEEDED, "method": "joint_sgns"}, ()),
    "ExMLDS3, weighted votes": System(
        "ExMLDS",
        {**SEEDED, "label_correlations": COUNTS},
        grid(reg=(1.0, 3.0, 10.0)),
        grid(k=(15, 25, 60), neighbor_power=(4.0, 8.0, 16.0)),
    ),
    "LEML-IMC": System(
        "LEML",
        {**SEEDED, "rank": 100, "intercept": False, "label_features": COUNTS},
        grid(reg=(0.3, 1.0, 3.0)),
    ),
    "GIMC-LFF": System(
        "GIMCClassifier", LEARNED, grid(gamma=("0.01median", "0.03median"), reg=(0.3, 1.0, 3.0))
    ),
    "GIMC-LNYS": System(
        "GIMCClassifier",
        {**LEARNED, "map": "nystrom"},
        grid(gamma=("0.1median", "0.3median"), reg=(0.01, 0.1, 1.0)),
    ),
}
"""Our methods; where no setting is listed, the experiment exmlds-labels has chosen it."""
PAIRS = {"Delicious": 500}
"""Neighbours in label space of SLEEC and ExMLDS2, 250 elsewhere."""
PUBLISHED = {
    (name, method.replace("-", "")): values[0]
    for name, own in PAPER_ONLY.items()
    for method, values in own.items()
} | {key: values[0] for key, values in PAPER.items()}
"""P@1 as the paper on ExMLDS gives or quotes it."""


def made(estimator: str, setting: Setting, Y: Any) -> Any:
    """An estimator; what is known of labels comes from the training rows alone."""
    import unseen

    setting = dict(setting)
    if setting.get("label_correlations") == COUNTS:
        setting["label_correlations"] = sparse.csr_array(Y.T @ Y)
    if setting.get("label_features") == COUNTS:
        setting["label_features"] = scaled_eigenvectors(Y.T @ Y)
    return getattr(unseen, estimator)(n_jobs=1, **setting)


def choose(name: str, system: System) -> Setting:
    """Best setting by the mean of P@1, P@3 and P@5 on held-out rows of the first split."""
    X, Y, _, _ = rows_of(SETS[name].load, SETS[name].splits[0])
    order = np.random.default_rng(0).permutation(X.shape[0])
    held_out = order[: int(VALIDATION_SHARE * len(order))]
    rest = np.sort(order[len(held_out) :])
    best: tuple[float, Setting] = (-1.0, {})
    for at_fit in system.at_fit:
        model = made(system.estimator, {**system.fixed, **at_fit}, Y[rest]).fit(X[rest], Y[rest])
        for later in system.later:
            ids, _ = model.set_params(**later).predict_topk(X[held_out], 5)
            value = float(np.mean([precision_at_k(Y[held_out], ids, k) for k in PLACES]))
            if value > best[0]:
                best = value, {**at_fit, **later}
    return best[1]


def chosen_before(name: str, method: str, system: System) -> Setting:
    """What the experiment chose; methods whose pairs it fixes get the same number."""
    rows = read(EXPERIMENTS["exmlds-labels"], ROOT / "docs" / "results").rows
    found = next(
        row for row in rows if row["kind"] == "choice" and (row["data"], row["method"]) == (name, method)
    )
    pairs = {"n_neighbors": PAIRS.get(name, 250)} if system.estimator in ("SLEEC", "ExMLDS") else {}
    if system.fixed.get("method") == "joint_sgns":
        pairs = {}
    return {**pairs, **found["at_fit"], **found["at_prediction"]}


def judged(name: str, split: str | None, system: System, setting: Setting) -> dict[str, Any]:
    """One fit and its lists, in a process of its own."""
    request = {"data": name, "split": split, "estimator": system.estimator,
               "setting": {**system.fixed, **setting}}  # fmt: skip
    command = [sys.executable, "-m", "benchmarks._label_child", json.dumps(request)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def kept() -> dict[str, Any]:
    """What is stored."""
    path = STORED / "label_systems.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    return {"choices": found.get("choices", []), "runs": found.get("runs", [])}


def add(kind: str, line: dict[str, Any]) -> None:
    """Store one line more; the file is read anew, for runs of several sets side by side."""
    found = kept()
    found[kind].append(line)
    store("label_systems", found)


def setting_of(name: str, method: str, system: System) -> Setting:
    """The setting that was chosen, or is now."""
    for line in kept()["choices"]:
        if (line["data"], line["method"]) == (name, method):
            chosen: Setting = line["setting"]
            return chosen
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chosen = choose(name, system) if system.at_fit else chosen_before(name, method, system)
    add("choices", {"data": name, "method": method, "setting": chosen})
    return chosen


def main() -> None:
    """Add the choices and the runs that are not stored yet."""
    for name in os.environ.get("DATA", "|".join(SETS)).split("|"):
        for method in os.environ.get("METHODS", "|".join([*SYSTEMS, *OURS])).split("|"):
            if method == "DXML" and not find_spec("torch"):
                print("DXML is left out: PyTorch is not there")
                continue
            system = SYSTEMS.get(method) or OURS[method]
            setting = setting_of(name, method, system)
            for split in SETS[name].splits[:SPLITS]:
                key = {"data": name, "method": method, "split": split}
                if any(all(run[part] == value for part, value in key.items()) for run in kept()["runs"]):
                    continue
                run = judged(name, split, system, setting)
                add("runs", {**key, **run})
                print(key, setting, [f"{value:.2f}" for value in run["precision"]], flush=True)


def table_of(results: dict[str, Any], name: str) -> str:
    """A line for each method: precisions, what was published, seconds and memory."""
    lines = []
    settings = {c["method"]: c["setting"] for c in results["choices"] if c["data"] == name}
    for method in [*SYSTEMS, *OURS]:
        runs = [run for run in results["runs"] if (run["data"], run["method"]) == (name, method)]
        if not runs:
            continue
        ours = [with_spread([run["precision"][place] for run in runs], digits=2) for place in range(3)]
        rare = [f"{mean(run['psp'][place] for run in runs):.2f}" for place in (0, 2)]
        paper = PUBLISHED.get((name, method))
        reached = "" if paper is None else f"{paper:.2f}"
        if paper is not None and mean(run["precision"][0] for run in runs) < paper - TOLERANCE:
            reached += ", **not reached**"
        seconds = [f"{mean(run[key] for run in runs):.1f}" for key in ("fit_s", "predict_s")]
        memory = f"{max(run['gib'] for run in runs):.2f}"
        lines.append([method, *ours, *rare, reached, *seconds, memory, told(settings[method])])
    if not lines:
        return "Not measured yet: `python -m benchmarks label_systems`."
    head = [
        "method",
        "P@1",
        "P@3",
        "P@5",
        "PSP@1",
        "PSP@5",
        "published P@1",
        "fit, s",
        "lists, s",
        "GiB",
        "chosen",
    ]
    return markdown(head, lines)


def tables() -> dict[str, str]:
    """What docs/papers/label_systems.md shows."""
    return {
        f"systems {name}": if_measured("label_systems", lambda found, name=name: table_of(found, name))
        for name in SETS
    }


if __name__ == "__main__":
    main()
