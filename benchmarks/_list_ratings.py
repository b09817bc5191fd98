"""Averaged models on ratings of few cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks._list_tools import Spent
from papers.amf_best import business_features
from papers.experiment import take_out
from unseen import BayesianMF, BiasModel
from unseen.datasets import load_ciao, load_filmtrust, load_yelp2013, load_yelp_3zones
from unseen.metrics import rmse
from unseen.model_selection import GridSearch, Split, split_entries

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
