"""The experiments of the GIMC paper, on stand-ins that take a moment."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from papers import (
    gimc_classes,
    gimc_clustering,
    gimc_labels,
    gimc_maps,
    gimc_toy,
)
from papers.catalogue import EXPERIMENTS
from papers.experiment import Verdict
from papers.gimc_maps import Split, Variant, averages, best_on_validation, compare_maps, matching

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # trials may fail to settle


def as_stored(rows):
    """What comes back from a file."""
    return json.loads(json.dumps(rows))


@pytest.fixture
def small_grids(monkeypatch):
    monkeypatch.setattr(gimc_maps, "GAMMAS", ("0.3median", "median"))
    monkeypatch.setattr(gimc_maps, "FIXED_REGS", (0.1,))
    monkeypatch.setattr(gimc_maps, "LEARNED_REGS", (0.1,))
    monkeypatch.setattr(gimc_maps, "PLAIN_REGS", (0.01,))


def classes(rng, n):
    """Rows whose class is a product of signs, which no linear model sees."""
    X = rng.normal(size=(n, 4))
    return X, (X[:, 0] * X[:, 1] > 0).astype(np.int64)


def rows_of(units):
    return as_stored([row for unit in units for row in unit.run()])


@pytest.fixture
def class_rows(small_grids, monkeypatch):
    X, y = classes(np.random.default_rng(0), 400)
    monkeypatch.setattr(gimc_classes, "load_segment", lambda: SimpleNamespace(X=X, y=y))
    return rows_of(gimc_maps.map_units(gimc_classes.draw, {"Segment": (5, 10)}, [0]))


def test_classes(class_rows):
    experiment = gimc_classes.EXPERIMENT
    table = experiment.tables(class_rows)["classes"]
    assert [line[:3] for line in table.lines] == [
        ["Segment", str(m), kind] for m in (5, 10) for kind in ("Fourier", "Nystrom")
    ]
    first = experiment.claims(class_rows)[0]
    assert first.verdict is Verdict.HOLDS
    # Negative control: with the two kinds of map exchanged, the claim fails.
    names = {"IMC-RFF": "GIMC-LFF", "IMC-NYS": "GIMC-LNYS"}
    names |= {new: old for old, new in names.items()}
    swapped = [{**row, "method": names.get(row["method"], row["method"])} for row in class_rows]
    for row in swapped:
        learned = row["method"].startswith("GIMC")
        row["settings"] = {"solver": "lbfgs", "whiten": True} if learned else {}
    assert experiment.claims(swapped)[0].verdict is Verdict.FAILS
    (figure, _), *_ = experiment.figures(class_rows)
    assert [axes.get_title() for axes in figure.axes] == ["Segment"]
    assert all(len(line.get_xdata()) == 2 for line in figure.axes[0].lines)


def test_settings_are_chosen_without_the_test_rows(small_grids):
    rng = np.random.default_rng(1)
    X, y = classes(rng, 200)
    split = Split(X[:150], y[:150], X[150:], y[150:])
    wrong = Split(split.X, split.Y, split.X_test, 1 - split.Y_test)
    for kind in ("fourier", "nystrom"):
        right, flipped = (compare_maps(data, 0, 5, kind, [Variant()]) for data in (split, wrong))
        assert [row["settings"] for row in right] == [row["settings"] for row in flipped]
        assert right[0]["test"][0] == pytest.approx(1 - flipped[0]["test"][0])
    # Negative control: other training labels do change what is chosen.
    grid = [{"level": level} for level in (0.0, 1.0)]

    class Constant:
        def __init__(self, level):
            self.level = level

        def fit(self, X, y):
            return self

        def score(self, X, y):
            return float(np.mean(y == self.level))

    chosen = [
        best_on_validation(Constant, grid, Split(X, np.full(200, value), X, y), 0)["level"]
        for value in (0, 1)
    ]
    assert chosen == [0.0, 1.0]


def test_labels(small_grids, monkeypatch):
    rng = np.random.default_rng(0)
    X = sparse.csr_array(np.abs(rng.normal(size=(160, 12))) * (rng.random((160, 12)) < 0.5) + 0.01)
    Y = sparse.csr_array((rng.random((160, 7)) < 0.4).astype(np.float32))
    data = SimpleNamespace(X=X, Y=Y, splits={"mulan": (np.arange(120), np.arange(120, 160))})
    monkeypatch.setattr(gimc_labels, "LOADERS", {"Bibtex": lambda: data})
    monkeypatch.setattr(gimc_labels, "FOURIER", Variant(gammas=("median",), regs=(1.0,)))
    monkeypatch.setattr(gimc_maps, "LEML_REGS", (1.0,))
    units = gimc_maps.map_units(gimc_labels.draw, {"Bibtex": (5,)}, [0], fourier=gimc_labels.FOURIER)
    rows = rows_of(units)
    assert {row["method"] for row in rows} == {"ridge", "LEML", "IMC-RFF", "GIMC-LFF", "IMC-NYS", "GIMC-LNYS"}
    assert all(len(row["test"]) == 3 for row in rows)
    assert averages(matching(rows, method="ridge"))[0] == pytest.approx(100 * rows[0]["test"][0])
    experiment = gimc_labels.EXPERIMENT
    assert len(experiment.tables(rows)["labels"].lines) == 2
    assert experiment.claims(rows)[-1].verdict is Verdict.UNTESTED
    assert experiment.figures(rows)


def test_toys(monkeypatch):
    monkeypatch.setattr(gimc_toy, "ALTERNATIONS", {"start_sweeps": 2, "max_iter": 3, "tol": 0.0})
    rows = as_stored(gimc_toy.one("figure 1", 0.3, 0, 40) + gimc_toy.one("waves", 0.3, 0, 40))
    found = gimc_toy.by_method(rows, "figure 1")[0.3, 0]
    assert set(found) == {"MC", "IMC", "IMC-RFF", "GIMC", gimc_toy.WIDE}
    assert found[gimc_toy.WIDE] < found["IMC"] < found["MC"]  # the features span the matrix
    experiment = gimc_toy.EXPERIMENT
    assert [len(table.lines) for table in experiment.tables(rows).values()] == [1, 1]
    assert experiment.claims(rows)[0].verdict is Verdict.HOLDS
    worse = [{**row, "error": 9.0} if row["method"] == "IMC" else row for row in rows]
    assert experiment.claims(worse)[0].verdict is Verdict.FAILS
    (figure, _), *_ = experiment.figures(rows)
    assert len(figure.axes) == 2


def test_clusters(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 20)
    X = 6 * np.eye(3)[y] + rng.normal(size=(60, 3))
    monkeypatch.setattr(gimc_clustering, "LOADERS", {"Segment": lambda: SimpleNamespace(X=X, y=y)})
    monkeypatch.setitem(gimc_clustering.SETTINGS, "n_components", 10)
    monkeypatch.setattr(gimc_clustering, "REGS", dict.fromkeys(gimc_clustering.REGS, (0.1, 1.0)))
    first = gimc_clustering.with_pairs("Segment", None, 5, 0)
    again = gimc_clustering.with_pairs("Segment", None, 5, 1, first)
    assert [row["reg"] for row in again] == [row["reg"] for row in first]  # chosen once, in draw 0
    rows = as_stored(gimc_clustering.without_pairs("Segment", None, (0, 1)) + first + again)
    experiment = gimc_clustering.EXPERIMENT
    (line,) = experiment.tables(rows)["pairs"].lines
    assert line[:3] == ["Segment", "5 n", "2"]
    assert float(line[-2]) < 0.1
    assert experiment.claims(rows)[0].verdict is Verdict.UNTESTED  # no Mushroom here
    assert experiment.figures(rows)


def test_pairs_are_distinct():
    pairs = gimc_clustering.draw_pairs(12, 60, np.random.default_rng(0))
    assert len({tuple(pair) for pair in pairs.tolist()}) == 60
    assert (pairs[:, 0] < pairs[:, 1]).all()


def test_later_draws_need_the_first():
    for quick in (False, True):
        parts = EXPERIMENTS["gimc-clustering"].units(quick)
        before: set[str] = set()
        for unit in parts:
            assert set(unit.needs) <= before
            before.add(unit.key)
