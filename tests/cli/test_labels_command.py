"""Multi-label files on the command line: the same lists and measures as through the library."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import unseen
from unseen.cli.methods import METHODS
from unseen.data import read_extreme, write_extreme
from unseen.metrics import label_propensities, ndcg_at_k, precision_at_k, propensity_scored_precision_at_k

LABEL_METHODS = [name for name, method in METHODS.items() if "multilabel" in method.tasks]
SMALL = {
    "exmlds": ("--set", "n_components=4", "--set", "k=5", "--set", "n_neighbors=20"),
    "sleec": ("--set", "n_components=4", "--set", "k=5", "--set", "n_neighbors=20"),
}


def rows(n, seed):
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, 3, n)
    X = sparse.csr_array(rng.poisson(np.where(np.arange(12) // 4 == topic[:, None], 2.0, 0.3)).astype(float))
    Y = sparse.csr_array(np.eye(3)[topic][:, [0, 0, 1, 1, 2]] * (rng.random((n, 5)) < 0.8))
    return X, Y


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    home = tmp_path_factory.mktemp("labels")
    for name, n, seed in (("train.txt", 80, 0), ("test.txt.gz", 30, 1)):
        write_extreme(home / name, *rows(n, seed))
    return home


@pytest.mark.parametrize("name", LABEL_METHODS)
def test_every_method_fits_predicts_and_is_measured(run, files, tmp_path, name):
    if name == "dxml":
        pytest.importorskip("torch", reason="needs PyTorch: pip install 'unseen[deep]'")
    model_path, train, test = tmp_path / "m", files / "train.txt", files / "test.txt.gz"
    small = SMALL.get(name, ())
    fitted = run("fit", train, "--method", name, *small, "--out", model_path, "--json", "--quiet").document
    assert (fitted["n_rows"], fitted["n_features"], fitted["n_labels"]) == (80, 12, 5)

    model = unseen.load(model_path)
    X, Y = read_extreme(test)
    ids, scores = model.predict_topk(X, 2)
    lines = run("predict", model_path, test, "-k", 2, "--json").document["predictions"]
    assert [line["label"] for line in lines] == ids.ravel().tolist()
    assert np.array_equal([line["score"] for line in lines], scores.ravel())
    assert [line["rank"] for line in lines[:4]] == [1, 2, 1, 2]

    found = run("evaluate", model_path, test, "--json").document["scores"]
    best, _ = model.predict_topk(X, 5)
    _, Y_train = read_extreme(train)
    rarity = label_propensities(np.bincount(Y_train.indices, minlength=5), 80)
    assert found["precision@1"] == precision_at_k(Y, best, 1)
    assert found["ndcg@3"] == ndcg_at_k(Y, best, 3)
    assert found["psp@5"] == propensity_scored_precision_at_k(Y, best, rarity, 5)
    assert len(found) == 9
    assert run("info", model_path, "--json").document["n_labels"] == 5


def test_the_task_alone_picks_a_method(run, files, tmp_path):
    done = run("fit", files / "train.txt", "--task", "multilabel", *SMALL["exmlds"], "-o", tmp_path / "m")
    assert done.out.startswith("ExMLDS fitted in")


def test_lists_go_to_a_file(run, files, tmp_path):
    run("fit", files / "train.txt", "--method", "linear-ova", "-o", tmp_path / "m")
    run("predict", tmp_path / "m", files / "test.txt.gz", "-o", tmp_path / "lists.csv")
    table = pd.read_csv(tmp_path / "lists.csv")
    assert list(table) == ["row", "rank", "label", "score"]
    assert len(table) == 30 * 5


@pytest.mark.parametrize(("width", "told"), [(15, "of unknown features are left out"), (9, "count as zero")])
def test_other_features_than_in_training(run, files, tmp_path, width, told):
    run("fit", files / "train.txt", "--method", "linear-ova", "-o", tmp_path / "m")
    X, Y = rows(30, 2)
    wide = np.zeros((30, width))
    wide[:, : min(width, 12)] = X.toarray()[:, : min(width, 12)]
    wide[:, 12:] = 1.0
    write_extreme(tmp_path / "other.txt", sparse.csr_array(wide), Y)
    done = run("predict", tmp_path / "m", tmp_path / "other.txt", "-k", 1, "--json")
    assert told in done.err
    seen = np.zeros((30, 12))
    seen[:, : min(width, 12)] = wide[:, : min(width, 12)]
    wanted = unseen.load(tmp_path / "m").predict_topk(seen, 1)[0].ravel()
    assert [line["label"] for line in done.document["predictions"]] == wanted.tolist()


def test_labels_that_were_not_in_training_are_misses(run, files, tmp_path):
    run("fit", files / "train.txt", "--method", "linear-ova", "-o", tmp_path / "m")
    X, Y = rows(30, 2)
    more = sparse.csr_array(sparse.hstack([Y, sparse.csr_array(np.ones((30, 1)))]))
    write_extreme(tmp_path / "more.txt", X, more)
    write_extreme(tmp_path / "same.txt", X, Y)
    args = ("--metrics", "precision@1,recall@5", "--json")
    wide = run("evaluate", tmp_path / "m", tmp_path / "more.txt", *args)
    same = run("evaluate", tmp_path / "m", tmp_path / "same.txt", *args)
    assert "the others are misses" in wide.err
    assert wide.document["scores"]["precision@1"] == same.document["scores"]["precision@1"]
    assert wide.document["scores"]["recall@5"] < same.document["scores"]["recall@5"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("fit", "train.txt", "--task", "multilabel", "--method", "mf", "-o", "x"), "for it there are"),
        (("fit", "train.txt", "--task", "multilabel", "--row", "a", "-o", "x"), "--row: a file of features"),
        (("evaluate", "train.txt", "--method", "exmlds"), "fit it first"),
        (("recommend", "m", "--all"), "unseen predict lists the best"),
        (("evaluate", "m", "test.txt.gz", "--metrics", "rmse"), "labels are measured by precision@K"),
    ],
)
def test_wrong_usage(run, files, tmp_path, monkeypatch, arguments, told):
    monkeypatch.chdir(tmp_path)
    for name in ("train.txt", "test.txt.gz"):
        (tmp_path / name).symlink_to(files / name)
    run("fit", "train.txt", "--method", "linear-ova", "-o", "m")
    done = run(*arguments, code=2)
    assert told in done.err


def test_names_and_correlations_of_labels(run, tmp_path):
    (tmp_path / "train.txt").write_text("4 3 2\n0 0:1\n1 1:1\n0 0:0.5 2:1\n1 1:0.5\n")
    (tmp_path / "names.txt").write_text("war\npeace\n")
    (tmp_path / "together.csv").write_text("a,b,count\nwar,peace,3\nwar,war,2\n")
    fit = ("fit", tmp_path / "train.txt", "--set", "n_components=1", "--set", "k=1", "--out", tmp_path / "m")
    named = ("--label-names", tmp_path / "names.txt")
    run(*fit, *named, "--label-correlations", tmp_path / "together.csv")
    assert unseen.load(tmp_path / "m").label_correlations.toarray().tolist() == [[2, 3], [3, 0]]
    ended = run("predict", tmp_path / "m", tmp_path / "train.txt", "-k", 1)
    assert [line.split(",")[2] for line in ended.out.splitlines()] == [
        "label",
        "war",
        "peace",
        "war",
        "peace",
    ]
    (tmp_path / "together.csv").write_text("a,b,count\nwar,love,3\n")
    assert "'love'" in run(*fit, *named, "--label-correlations", tmp_path / "together.csv", code=1).err
    (tmp_path / "names.txt").write_text("war\n")
    assert "2 different names" in run(*fit, *named, code=1).err
    assert (
        "multilabel"
        in run(
            "fit",
            tmp_path / "together.csv",
            "--out",
            tmp_path / "n",
            "--label-names",
            tmp_path / "names.txt",
            code=2,
        ).err
    )
