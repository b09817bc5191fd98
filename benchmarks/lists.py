"""Lists and labels on real data, settings chosen inside the training part, the test part scored once.

    python -m benchmarks lists                    what is not stored yet
    PARTS=gowalla,liked python -m benchmarks lists    these parts, again

Each part runs in a process of its own, so that its memory is its own.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from benchmarks._store import ROOT, STORED, peak_memory_gib, store
from benchmarks.updates import gowalla as load_gowalla
from papers.amf_best import business_features
from papers.experiment import take_out
from unseen import (
    Background,
    BayesianMF,
    BiasMC,
    BiasModel,
    Blend,
    Completion,
    ExMLDS,
    FastXML,
    GIMCClassifier,
    LinearOvA,
    LowRank,
    MatrixFactorization,
    Observations,
    Ridge,
    RidgeOvA,
    SpectralFilter,
    Squared,
    Term,
)
from unseen.datasets import (
    load_bibtex,
    load_ciao,
    load_delicious,
    load_filmtrust,
    load_ml100k,
    load_yelp2013,
    load_yelp_3zones,
)
from unseen.metrics import ndcg_at_k, precision_at_k, recall_at_k, rmse, stratified_recall_at_k
from unseen.model_selection import GridSearch, HalvingSearch, Split, get_scorer, split_entries
from unseen.solvers import ALS

JUDGED = 2000
"""Rows of Gowalla by whose held-out cells settings are chosen."""
HELD_OUT = 0.2
RANK = 384
"""Singular vectors for Gowalla; more bring nothing on held-out cells."""


class Spent:
    """Seconds and processor seconds of a block."""

    def __enter__(self) -> Spent:
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._start[0]
        self.cpu_seconds = time.process_time() - self._start[1]

    def told(self) -> dict[str, float]:
        """Both, rounded."""
        return {"seconds": round(self.seconds, 2), "cpu_seconds": round(self.cpu_seconds, 2)}


# -- Gowalla --------------------------------------------------------------------------


def judged_split(train: Observations, seed: int) -> Split:
    """A fifth of the cells of some rows, held out of the training cells."""
    rng = np.random.default_rng(seed)
    degrees = np.diff(train.indptr)
    rows = rng.choice(np.flatnonzero(degrees >= 5), JUDGED, replace=False)
    held = np.zeros(train.nnz, dtype=bool)
    for row in rows:
        cells = np.arange(train.indptr[row], train.indptr[row + 1])
        held[rng.choice(cells, round(HELD_OUT * cells.size), replace=False)] = True
    return Split(train.select(~held), train.select(held))


def measured(model: Any, split: Split) -> dict[str, float]:
    """All measures of the lists for rows with held-out cells, training cells left out."""
    rows = np.flatnonzero(np.diff(split.test.indptr))
    ids, _ = model.recommend(rows, k=20, exclude=split.train, positions=True)
    truth = split.test.csr[rows]
    counts = np.bincount(split.train.indices, minlength=split.train.shape[1])
    return {
        "recall@20": recall_at_k(truth, ids, 20),
        "ndcg@20": ndcg_at_k(truth, ids, 20),
        "stratified_recall@20": stratified_recall_at_k(truth, ids, counts, 20),
    }


def better(model: Any, split: Split) -> float:
    """What settings are chosen by: the mean of recall and NDCG."""
    found = measured(model, split)
    return (found["recall@20"] + found["ndcg@20"]) / 2


def chosen(model: Any, grid: Any, split: Split) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Settings by the held-out cells, and what was found for each."""
    search = GridSearch(model, grid, cv=split, scoring=better, refit=False)
    search.fit(split.train)
    tried = [{"params": row["params"], "score": row["score"]} for row in search.results_]
    return dict(search.best_params_), tried


def gowalla() -> dict[str, Any]:
    """The filter, its settings chosen on cells held out of train; test scored once."""
    train, test = load_gowalla()
    split = judged_split(train, 0)
    with Spent() as choice:
        near = {
            "degree_power": [(0.35, 0.4), (0.5, 0.4), (0.35, 0.5)],
            "list_power": [0.1, 0.2, 0.3],
            "neighbor_power": [1.25, 1.5],
        }
        first, tried = chosen(SpectralFilter(low_pass=0.0, random_state=0), near, split)
        low = {"low_pass": [0.002, 0.005, 0.015, 0.04]}
        second, more = chosen(SpectralFilter(RANK, random_state=0, **first), low, split)
    settings = {**first, **second, "rank": RANK}
    model = SpectralFilter(random_state=0, **settings)
    with Spent() as fit:
        model.fit(train)
    with Spent() as lists:
        scores = measured(model, Split(train, test))
    return {
        "scores": scores, "settings": settings, "tried": tried + more, "rows_judged": JUDGED,
        "choice": choice.told(), "fit": fit.told(), "lists": lists.told(),
    }  # fmt: skip


def gowalla_blend() -> dict[str, Any]:
    """The filter with the settings of ``gowalla`` and BiasMC, weights by held-out cells; test scored once."""
    train, test = load_gowalla()
    single = stored_parts()["gowalla"]
    filtered = SpectralFilter(random_state=0, **_tuples(single["settings"]))
    split = judged_split(train, 0)
    with Spent() as choice:
        short = BiasMC(64, max_iter=6, random_state=0)
        # A penalty is for a row of ten cells, so that strengths are alike at all powers.
        alphas, regs = [0.95, 0.98, 0.99, 0.995], {0.0: [1.0, 3.0], 0.5: [0.3, 1.0], 1.0: [0.1, 0.3]}
        grid = [{"alpha": alphas, "degree_scaling": [nu], "reg": given} for nu, given in regs.items()]
        found, tried = chosen(short, grid, split)
    factors = BiasMC(192, max_iter=12, random_state=0, **found)
    blend = Blend([filtered, factors], scoring="ndcg@20", validation_fraction=HELD_OUT / 2, random_state=0)
    with Spent() as fit, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        blend.fit(train)
    with Spent() as lists:
        scores = measured(blend, Split(train, test))
        alone = measured(blend.models_[1], Split(train, test))
    return {
        "scores": scores, "alone": alone, "tried": tried,
        "settings": {**found, "rank": 192, "max_iter": 12},
        "weights": blend.weights_.tolist(), "validation": np.asarray(blend.validation_scores_).tolist(),
        "choice": choice.told(), "fit": fit.told(), "lists": lists.told(),
    }  # fmt: skip


def gowalla_drift() -> dict[str, Any]:
    """Share of the cells of rare and popular columns that is in the test file; nothing is chosen by it."""
    train, test = load_gowalla()
    before, after = (np.bincount(cells.indices, minlength=cells.shape[1]) for cells in (train, test))
    edges = [1, 8, 20, 100, 400, int(before.max()) + 1]
    shares = []
    for low, high in itertools.pairwise(edges):
        of = (before >= low) & (before < high)
        share = float(after[of].sum() / (after + before)[of].sum())
        shares.append({"from": low, "to": high - 1, "columns": int(of.sum()), "share": share})
    return {"shares": shares}


def _tuples(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}


# -- MovieLens, liked -----------------------------------------------------------------


def liked() -> dict[str, Any]:
    """Ratings of 4 and 5 as positives: ``compare`` chooses settings inside each of three training parts."""
    from unseen.comparison import compare

    with Spent() as spent:
        found = compare(
            _liked_cells(),
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


def _liked_cells() -> Observations:
    """Ratings of 4 and 5, as positives."""
    cells = load_ml100k().observations
    cells = cells.select(cells.values >= 4)
    return cells.with_values(np.ones(cells.nnz))


# -- labels ---------------------------------------------------------------------------


def unit_rows(X: Any) -> Any:
    """Rows of length one."""
    rows = sparse.csr_array(X).astype(np.float64)
    lengths = np.sqrt(rows.multiply(rows).sum(axis=1))
    return sparse.csr_array(sparse.diags_array(1 / np.where(lengths > 0, lengths, 1.0)) @ rows)


def blended_labels(part: str, data: Any, splits: list[str], models: list[Any]) -> dict[str, Any]:
    """P@1, 3 and 5 of a blend whose weights rows held out of training choose, and of its models.

    Each split is stored when it is done; a run that was cut off goes on with the next one.
    """
    X, Y = unit_rows(data.X), data.Y
    found: dict[str, Any] = {"models": [repr(model) for model in models], "runs": []}
    before = stored_parts().get(part)
    if before is not None and before["models"] == found["models"] and len(before["runs"]) < len(splits):
        found["runs"] = before["runs"]
    for name in splits[len(found["runs"]) :]:
        train, test = data.splits[name]
        blend = Blend(models, validation_fraction=0.2, random_state=0)
        with Spent() as spent, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            blend.fit(X[train], Y[train])
            lists = blend.predict_topk(X[test], k=5)[0]
        alone = [model.predict_topk(X[test], k=5)[0] for model in blend.models_]
        precisions = [[float(precision_at_k(Y[test], ids, k)) for k in (1, 3, 5)] for ids in (lists, *alone)]
        run = {
            "split": name, "precision": precisions[0], "alone": precisions[1:],
            "weights": blend.weights_.tolist(), "validation": np.asarray(blend.validation_scores_).tolist(),
            **spent.told(),
        }  # fmt: skip
        print(run, flush=True)
        found["runs"].append(run)
        found["peak_gib"] = round(peak_memory_gib(), 2)
        store("lists", {"results": {**stored_parts(), part: found}})
    return found


def kernel_ridge(n_landmarks: int, *, gamma: float, reg: float) -> GIMCClassifier:
    """Ridge regression on fixed features of a Gaussian kernel."""
    return GIMCClassifier(
        n_landmarks, map="nystrom", gamma=gamma, reg=reg, learn_map=False, max_iter=1, random_state=0
    )


def bibtex() -> dict[str, Any]:
    """The ten published splits."""
    models = [
        ExMLDS("joint_sgns", neighbor_power=8.0, random_state=0),
        ExMLDS(n_neighbors=250, reg=3.0, neighbor_power=8.0),
        RidgeOvA(1.0),
        LinearOvA(C=0.3),
        kernel_ridge(2000, gamma=0.5, reg=0.1),
    ]
    return blended_labels("bibtex", load_bibtex(), [f"repository{number}" for number in range(10)], models)


def delicious() -> dict[str, Any]:
    """Mulan's split."""
    models = [
        ExMLDS("sgns", n_negatives=2, reg=3.0, k=70, neighbor_power=8.0, random_state=0),
        ExMLDS(n_neighbors=500, reg=3.0, k=70, neighbor_power=16.0),
        RidgeOvA(1.0),
        LinearOvA(C=0.3),
        kernel_ridge(1200, gamma=1.0, reg=1.0),
        FastXML(random_state=0),
    ]
    return blended_labels("delicious", load_delicious(), ["mulan"], models)


# -- searches -------------------------------------------------------------------------


def searches() -> dict[str, Any]:
    """HalvingSearch beside GridSearch: validation score, and processor seconds in turns."""
    ratings = load_ml100k()
    fold = ratings.cells["fold"] == 1
    explicit = split_entries(ratings.observations.select(~fold), test_fraction=0.1, random_state=0)
    positives = judged_split(load_gowalla()[0], 0)
    cases: dict[str, tuple[Any, dict[str, list[Any]], Split, Any]] = {
        "MovieLens-100K": (
            MatrixFactorization(center="joint", max_iter=27, random_state=0, n_jobs=1),
            {"rank": [5, 10, 20], "reg": [1.0, 3.0, 6.0, 10.0, 15.0, 25.0]},
            explicit,
            "rmse",
        ),
        "Gowalla": (
            BiasMC(16, max_iter=9, random_state=0, n_jobs=1),
            {"alpha": [0.9, 0.98, 0.995], "reg": [0.1, 0.3, 1.0, 3.0]},
            positives,
            "ndcg@20",
        ),
    }
    found: dict[str, Any] = {}
    for name, (model, grid, split, scoring) in cases.items():
        for turn in range(2):
            for kind in (GridSearch, HalvingSearch):
                with Spent() as spent, warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    search = kind(model, grid, cv=split, scoring=scoring, refit=False).fit(split.train)
                found.setdefault(name, []).append(
                    {"search": kind.__name__, "turn": turn, "score": search.best_score_,
                     "params": search.best_params_, **spent.told()}
                )  # fmt: skip
                print(name, found[name][-1], flush=True)
    return found


# -- ratings of few cells -------------------------------------------------------------

RATINGS = {"yelp-3zones": load_yelp_3zones, "FilmTrust": load_filmtrust, "Ciao": load_ciao}
AVERAGED: dict[str, Any] = {"rank": 10, "n_samples": 60, "burn_in": 30, "clip": "observed"}
"""Nothing of it was chosen on these data: penalties are learned."""


def ratings(name: str) -> dict[str, Any]:
    """Averaged models beside biases whose penalties are chosen inside each of three training parts."""
    cells = RATINGS[name]().observations
    models = {
        "BiasModel": GridSearch(BiasModel(), {"reg": [1.0, 3.0, (7.0, 3.0), 10.0, 30.0]}, cv=5),
        "BayesianMF": BayesianMF(**AVERAGED, random_state=0),
        "BayesianMF with histories": BayesianMF(**AVERAGED, history=True, random_state=0),
    }
    splits = [split_entries(cells, test_fraction=0.2, random_state=seed) for seed in range(3)]
    return {"settings": AVERAGED, "runs": _errors(models, splits, {})}


def yelp_2013() -> dict[str, Any]:
    """The same on the first three of the ten folds of the paper's page, with features of businesses."""
    data = load_yelp2013()
    folds = np.array_split(np.random.default_rng(0).permutation(data.observations.nnz), 10)[:3]
    splits = [Split(*take_out(data.observations, fold)) for fold in folds]
    models = {
        "BiasModel": GridSearch(BiasModel(), {"reg": [3.0, (7.0, 3.0), 10.0]}, cv=5),
        "BayesianMF": BayesianMF(**AVERAGED, random_state=0),
    }
    runs = _errors(models, splits, {})
    with_features = {"BayesianMF with features": BayesianMF(**AVERAGED, random_state=0)}
    runs += _errors(with_features, splits, {"col_features": business_features(data)})
    return {"settings": AVERAGED, "runs": runs}


def _errors(models: dict[str, Any], splits: list[Split], features: dict[str, Any]) -> list[dict[str, Any]]:
    """RMSE of each model on each split."""
    runs = []
    for number, split in enumerate(splits):
        for name, model in models.items():
            with Spent() as spent:
                fitted = clone(model).fit(split.train, **features)
                error = rmse(split.test, fitted.predict_entries(split.test.rows, split.test.indices))
            runs.append({"model": name, "split": number, "rmse": error, **spent.told()})
            print(runs[-1], flush=True)
    return runs


# -- penalties by degree --------------------------------------------------------------

POWERS = (0.0, 0.5, 1.0)


def degrees() -> dict[str, Any]:
    """What penalties by degree bring: power and penalty by held-out training cells, then the test cells.

    Each data set is stored when it is done.
    """
    train, test = load_gowalla()
    factors = BiasMC(32, alpha=0.99, max_iter=6, random_state=0)
    split = judged_split(train, 0)
    run = _by_power(factors, (0.3, 1.0, 3.0), Split(train, test), split, "ndcg@20", 0)
    found: dict[str, Any] = {"Gowalla": [run]}
    store("lists", {"results": {**stored_parts(), "degrees": found}})
    model = MatrixFactorization(10, center="joint", random_state=0)
    for name, load in (
        ("MovieLens-100K", load_ml100k),
        ("FilmTrust", load_filmtrust),
        ("Ciao", load_ciao),
        ("yelp-3zones", load_yelp_3zones),
    ):
        cells = load().observations
        runs = []
        for seed in range(3):
            outer = split_entries(cells, test_fraction=0.2, random_state=seed)
            inner = split_entries(outer.train, test_fraction=0.1, random_state=seed)
            runs.append(_by_power(model, (2.0, 5.0, 12.0, 30.0), outer, inner, "rmse", seed))
        found[name] = runs
        store("lists", {"results": {**stored_parts(), "degrees": found}})
    return found


def _by_power(
    model: Any, regs: tuple[float, ...], outer: Split, inner: Split, scoring: str, seed: int
) -> dict[str, Any]:
    """For each power the best penalty on held-out cells, and what it gives on the test cells."""
    degrees = np.diff(inner.train.indptr)
    lines = []
    with Spent() as spent, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for power in POWERS:
            # Of about the same strength in all: a penalty is for the row of middling degree.
            middle = float(np.median(degrees[degrees > 0])) ** power
            grid = {"degree_scaling": [power], "reg": [reg / middle for reg in regs]}
            search = GridSearch(model, grid, cv=inner, scoring=scoring, refit=False).fit(inner.train)
            fitted = clone(model).set_params(**search.best_params_).fit(outer.train)
            lines.append(
                {"power": power, "params": search.best_params_, "validation": search.best_score_,
                 "test": get_scorer(scoring)(fitted, outer)}
            )  # fmt: skip
    print(seed, lines, flush=True)
    return {"seed": seed, "scoring": scoring, "powers": lines, **spent.told()}


def backgrounds() -> dict[str, Any]:
    """What it brings if blanks of popular columns weigh more, or less; chosen like penalties by degree."""
    liked_cells = _liked_cells()
    found: dict[str, Any] = {"MovieLens-100K, liked": []}
    for seed in range(3):
        outer = split_entries(liked_cells, test_fraction=0.2, random_state=seed)
        inner = split_entries(outer.train, test_fraction=0.1, random_state=seed)
        run = _by_background(20, 0.9, (1.0, 3.0), outer, inner, "ndcg@10", seed)
        found["MovieLens-100K, liked"].append(run)
    train, test = load_gowalla()
    split = judged_split(train, 0)
    found["Gowalla"] = [_by_background(32, 0.99, (0.3, 1.0), Split(train, test), split, "ndcg@20", 0)]
    return found


def _by_background(
    rank: int, alpha: float, regs: tuple[float, ...], outer: Split, inner: Split, scoring: str, seed: int
) -> dict[str, Any]:
    """For each power the best penalty on held-out cells, and what it gives on the test cells."""
    lines = []
    with Spent() as spent, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for power in (-0.5, *POWERS):

            def model(cells: Observations, reg: float, power: float = power) -> Completion:
                degrees = np.bincount(cells.indices, minlength=cells.shape[1]).astype(np.float64)
                weights = np.maximum(degrees, 1.0) ** power
                loss = Squared(2 * alpha, Background(2 * (1 - alpha), col_weights=weights / weights.mean()))
                solver = ALS(method="cg", cg_steps=3)
                term = Term(core=LowRank(rank), reg=Ridge(reg))
                return Completion([term], loss=loss, solver=solver, max_iter=8, random_state=0).fit(cells)

            score = get_scorer(scoring)
            by_reg = {reg: score(model(inner.train, reg), inner) for reg in regs}
            best = max(by_reg, key=lambda reg: by_reg[reg])
            lines.append(
                {"power": power, "params": {"reg": best}, "validation": by_reg[best],
                 "test": score(model(outer.train, best), outer)}
            )  # fmt: skip
    print(seed, lines, flush=True)
    return {"seed": seed, "scoring": scoring, "powers": lines, **spent.told()}


# -- running --------------------------------------------------------------------------

PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "gowalla": gowalla,
    "gowalla_blend": gowalla_blend,
    "gowalla_drift": gowalla_drift,
    "liked": liked,
    "bibtex": bibtex,
    "delicious": delicious,
    "searches": searches,
    **{name: partial(ratings, name) for name in RATINGS},
    "yelp-2013": yelp_2013,
    "degrees": degrees,
    "backgrounds": backgrounds,
}


def stored_parts() -> dict[str, Any]:
    """Parts that are stored."""
    path = STORED / "lists.json"
    return dict(json.loads(path.read_text())["results"]) if path.exists() else {}


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
