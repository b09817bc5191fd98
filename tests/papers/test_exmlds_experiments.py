"""The experiments of the ExMLDS paper, on stand-ins that take a moment."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse

from papers import exmlds_hidden, exmlds_joint, exmlds_labels
from papers.exmlds_contenders import SETS, Contender, LabelSet, grid
from papers.experiment import Verdict
from unseen import ExMLDS, RidgeOvA
from unseen.datasets import MultiLabelData

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # trials may fail to settle


def as_stored(rows):
    """What comes back from a file."""
    return json.loads(json.dumps(rows))


def tiny():
    """Rows of three topics; words and labels follow the topic."""
    rng = np.random.default_rng(0)
    topic = rng.integers(0, 3, 150)
    X = (rng.random((150, 18)) < np.where(np.arange(18) % 3 == topic[:, None], 0.7, 0.1)).astype(np.float64)
    Y = (rng.random((150, 9)) < np.where(np.arange(9) % 3 == topic[:, None], 0.7, 0.05)).astype(np.float32)
    splits = {"one": (np.arange(100), np.arange(100, 150)), "two": (np.arange(50, 150), np.arange(50))}
    return MultiLabelData(sparse.csr_array(X), sparse.csr_array(Y), [], [], splits)


@pytest.fixture
def label_set(monkeypatch):
    methods = {
        "ExMLDS1": Contender(
            lambda: ExMLDS(n_components=4, n_neighbors=20, random_state=0, n_jobs=1, neighbor_power=0.0),
            grid(reg=(0.1, 1.0)),
            {"ExMLDS1": grid(k=(3, 9)), "ExMLDS1, weighted votes": grid(k=(3,), neighbor_power=(4.0,))},
        ),
        "RidgeOvA": Contender(lambda: RidgeOvA(n_jobs=1), grid(reg=(1.0,)), {"RidgeOvA": ({},)}),
    }
    monkeypatch.setitem(SETS, "Bibtex", LabelSet(tiny, ("one", "two"), methods))


def test_labels(label_set):
    rows = as_stored(exmlds_labels.sizes("Bibtex"))
    for method in ("ExMLDS1", "RidgeOvA"):
        chosen = as_stored(exmlds_labels.choose("Bibtex", method))
        rows += chosen
        for split in ("one", "two"):
            rows += as_stored(exmlds_labels.judge("Bibtex", method, split, chosen))
    experiment = exmlds_labels.EXPERIMENT
    tables = experiment.tables(rows)
    ours = [line[0] for line in tables["Bibtex"].lines if line[1] != "see its page"]
    assert ours == ["ExMLDS1", "ExMLDS1, weighted votes", "RidgeOvA"]
    assert tables["sizes"].lines[0][:5] == ["Bibtex", "18", "9", "100", "50"]
    assert "±" in tables["Bibtex"].lines[0][1]  # two splits
    assert len(tables["bins"].lines) == 3
    claims = {claim.text: claim for claim in experiment.claims(rows)}
    assert claims["ExMLDS1 reaches the paper's table 3"].verdict is Verdict.HOLDS
    assert claims["SLEEC reaches the paper's table 3"].verdict is Verdict.UNTESTED
    assert "no case was run" in claims["ExMLDS1 trains faster than SLEEC"].why
    assert experiment.figures(rows)
    # Negative control: lists without a hit do not reach the table.
    empty = [{**row, "precision": [0.0] * 3} if row["kind"] == "test" else row for row in rows]
    assert experiment.claims(empty)[0].verdict is Verdict.FAILS


def test_settings_are_chosen_on_training_rows_alone(label_set, monkeypatch):
    before = exmlds_labels.choose("Bibtex", "ExMLDS1")

    def other():
        data = tiny()
        Y = data.Y.toarray()
        Y[100:] = 1 - Y[100:]  # test labels turned round
        return MultiLabelData(data.X, sparse.csr_array(Y), [], [], data.splits)

    monkeypatch.setitem(SETS, "Bibtex", LabelSet(other, ("one",), SETS["Bibtex"].methods))
    assert exmlds_labels.choose("Bibtex", "ExMLDS1") == before


def test_times_are_compared():
    def took(method, seconds):
        return {"kind": "times", "data": "Bibtex", "method": method, "cpu_s": seconds}

    for slow, verdict in ((20.0, Verdict.HOLDS), (0.5, Verdict.FAILS)):
        rows = [took("ExMLDS1", 1.0), took("ExMLDS2", slow), took("SLEEC", slow)]
        about = {claim.text: claim for claim in exmlds_labels.claims(rows)}
        assert about["ExMLDS1 trains faster than SLEEC"].verdict is verdict
        assert about["about 14 times faster on Bibtex, 5 times on Delicious"].verdict is verdict
        assert about["ExMLDS2 is slower than ExMLDS1"].verdict is verdict
        assert exmlds_labels.tables(rows)["times"].lines[0][:3] == ["Bibtex", "1.0", "23"]


def test_times_are_taken(label_set):
    (row,) = exmlds_labels.fit_time("Bibtex", "ExMLDS1")
    assert row["cpu_s"] >= 0
    assert exmlds_labels.tables([row])["times"].lines[0][3] == "not run"  # ExMLDS2


def test_hidden_labels(monkeypatch):
    monkeypatch.setattr(exmlds_hidden, "SETS", {"Bibtex": (tiny, "one")})
    few = {
        "ExMLDS3, counts": exmlds_hidden.METHODS["ExMLDS3, counts"],
        "LEML": exmlds_hidden.METHODS["LEML"],
        "LEML-IMC": exmlds_hidden.METHODS["LEML-IMC"],
        "BiasIMC": exmlds_hidden.METHODS["BiasIMC"],
    }
    monkeypatch.setattr(exmlds_hidden, "METHODS", few)
    parts = [unit for unit in exmlds_hidden.units(False) if unit.key.endswith(("draw=0", "draw=1"))]
    rows = as_stored([row for unit in parts for row in unit.run()])
    assert len(rows) == 2 * 2 * len(few)
    assert {row["reading"] for row in rows} == {"keep", "drop"}
    assert rows[0]["unlabelled_rows"] > 0
    experiment = exmlds_hidden.EXPERIMENT
    assert [line[0] for line in experiment.tables(rows)["Bibtex"].lines] == list(few)
    assert experiment.figures(rows)
    better = [{**row, "precision": [99.0] * 3} if "ExMLDS3" in row["method"] else row for row in rows]
    worse = [{**row, "precision": [0.0] * 3} if "ExMLDS3" in row["method"] else row for row in rows]
    assert experiment.claims(better)[0].verdict is Verdict.HOLDS
    assert experiment.claims(worse)[0].verdict is Verdict.FAILS


def test_only_the_best_joint_trial_is_run_on_test_rows(monkeypatch):
    own = {"load": tiny, "split": "one", "k": 5, "K": 20, "ridge": 1.0}
    monkeypatch.setattr(exmlds_joint, "SETS", {"Bibtex": own})
    short = {"n_components": 4, "max_iter": 2, "init_scale": 0.5}
    settings = {
        title: ({**trial, **short} if "method" not in trial else trial)
        for title, trial in list(exmlds_joint.TRIALS.items())[:4]
    }
    settings["from ExMLDS1"] = {**exmlds_joint.POOLED, **exmlds_joint.WARM, "max_iter": 2}
    monkeypatch.setattr(exmlds_joint, "TRIALS", settings)
    exmlds_joint.rows_of.cache_clear()
    try:
        found: dict[str, list] = {}
        for unit in exmlds_joint.units(False):
            found[unit.key] = as_stored(unit.run(*(found[key] for key in unit.needs)))
    finally:
        exmlds_joint.rows_of.cache_clear()
    rows = [row for key, part in found.items() if "test" not in key for row in part]
    final = [row for key, part in found.items() if "test" in key for row in part]
    fresh = [row for row in rows if not {"method", "init"} & set(row["settings"])]
    assert len(fresh) == 3
    best = max(fresh, key=lambda row: sum(row["power 4"]))
    assert [row["trial"] for row in final] == ["ExMLDS1", best["trial"], "from ExMLDS1"]
    experiment = exmlds_joint.EXPERIMENT
    assert set(experiment.tables(rows + final)) == {"Bibtex trials", "Bibtex test", "table 5"}
    assert experiment.claims(rows + final)[0].verdict is Verdict.UNTESTED
    assert all(claim.verdict is not Verdict.UNTESTED for claim in experiment.claims(rows + final)[1:])
    assert experiment.figures(rows + final)
