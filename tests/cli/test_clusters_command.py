"""Clusters on the command line: the same as through the library, by id."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_files import Run

import unseen


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("clusters")
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    table = pd.DataFrame(np.eye(3)[y] + 0.2 * rng.normal(size=(90, 3)), columns=list("abc"))
    table.insert(0, "animal", [f"n° {i}" for i in range(90)])
    table["kind"] = np.where(rng.random(90) < 0.5, "wild", "tame")
    table[:60].to_csv(place / "items.csv", index=False)
    table[60:][["kind", "c", "animal", "b", "a"]].to_csv(place / "new.csv", index=False)
    pairs = rng.choice(60, (200, 2))
    names = table["animal"].to_numpy()[pairs]
    told = {"one": names[:, 0], "other": names[:, 1], "same": (y[pairs[:, 0]] == y[pairs[:, 1]]).astype(int)}
    pd.DataFrame(told).to_csv(place / "pairs.csv", index=False)
    return place


@pytest.mark.parametrize("method", ["pu-clustering", "mccc", "gimc-clustering"])
def test_every_method_clusters_and_places_new_items(
    run: Run, home: Path, tmp_path: Path, method: str
) -> None:
    small = ("--set", "n_components=10") if method == "gimc-clustering" else ()
    place = tmp_path / "m"
    fitted = run(
        "fit", home / "items.csv", "--pairs", home / "pairs.csv", "--method", method, "--clusters", 3, *small,
        "--max-iter", 30, "--out", place, "--json", "--quiet",
    ).document  # fmt: skip
    assert (fitted["n_items"], fitted["n_features"], fitted["n_pairs"]) == (60, 5, 200)
    assert sum(fitted["cluster_sizes"]) == 60
    model = unseen.load(place)
    lines = run("predict", place, home / "items.csv", "--json").document["predictions"]
    assert [line["cluster"] for line in lines] == model.labels_.tolist()
    # Columns of new items stand in another order and go by their names.
    new = run("predict", place, home / "new.csv", "--json").document["predictions"]
    assert [line["animal"] for line in new] == [f"n° {i}" for i in range(60, 90)]
    groups = [{line["cluster"] for line in new[first::3]} for first in range(3)]
    assert [len(group) for group in groups] == [1, 1, 1]
    assert len(set.union(*groups)) == 3
    assert run("info", place, "--json").document["cluster_sizes"] == fitted["cluster_sizes"]


def test_what_does_not_fit_is_refused(run: Run, home: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "pairs.csv"
    wrong.write_text("one,other\nn° 1,n° 99\n")
    said = run("fit", home / "items.csv", "--pairs", wrong, "--out", tmp_path / "m", code=1).err
    assert "'n° 99' in pair 0 is no item" in said
    wrong.write_text("one,other,same\nn° 1,n° 9,maybe\n")
    said = run("fit", home / "items.csv", "--pairs", wrong, "--out", tmp_path / "m", code=1).err
    assert "('n° 1', 'n° 9') has 'maybe'" in said
    said = run(
        "fit", home / "items.csv", "--pairs", wrong, "--method", "mf", "--out", tmp_path / "m", code=2
    ).err
    assert "--pairs is for the task clustering" in said
    run("fit", home / "items.csv", "--pairs", home / "pairs.csv", "--clusters", 3, "--method", "mccc",
        "--out", tmp_path / "m", "--quiet")  # fmt: skip
    assert "unseen predict says into which" in run("recommend", tmp_path / "m", "--all", code=2).err
    assert "puts items into clusters" in run("card", tmp_path / "m", code=2).err
