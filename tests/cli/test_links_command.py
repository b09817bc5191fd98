"""Link prediction on the command line: the same numbers as through the library, in the user's own ids."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import unseen
from unseen.cli.methods import METHODS
from unseen.data import read_edges
from unseen.links import CommonNeighbors, Katz, link_curve
from unseen.model_selection import split_entries

N_NODES = 40
GRAPH_METHODS = [name for name, method in METHODS.items() if "links" in method.tasks]


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """Two groups, seldom linked, as a list of edges with a comment; ids are numbers by ten."""
    rng = np.random.default_rng(3)
    low, high = np.triu_indices(N_NODES, 1)
    linked = rng.random(len(low)) < np.where(low % 2 == high % 2, 0.4, 0.03)
    path = tmp_path_factory.mktemp("links") / "graph.txt"
    lines = [f"{10 * i} {10 * j}" for i, j in zip(low[linked], high[linked], strict=True)]
    path.write_text("# two groups\n" + "\n".join(lines) + "\n")
    return path


def options_of(name):
    small = {"bias-mc": ("--rank", 3, "--set", "alpha=0.9"), "shift-mc": ("--rank", 3, "--set", "rho=0.3")}
    return ("--method", name, "--task", "links", *small.get(name, ()), "--quiet")


def upper(cells):
    keep = cells.rows < cells.indices
    return np.column_stack([cells.rows[keep], cells.indices[keep]])


def test_these_are_the_methods():
    assert {"common-neighbors", "katz", "svd-katz", "svd-links", "bias-mc"} <= set(GRAPH_METHODS)
    assert "mf" not in GRAPH_METHODS


@pytest.mark.parametrize("name", GRAPH_METHODS)
def test_every_command_works(run, graph, tmp_path, name):
    model_path, pairs = tmp_path / "m", tmp_path / "p.csv"
    fitted = run("fit", graph, *options_of(name), "--out", model_path, "--json").document
    cells = read_edges(graph)
    assert (fitted["n_rows"], fitted["n_cols"], fitted["n_cells"]) == (*cells.shape, cells.nnz)

    model = unseen.load(model_path)
    pd.DataFrame({"a": [0, 130], "b": [20, 50]}).to_csv(pairs, index=False)
    found = run("predict", model_path, pairs, "--json").document["predictions"]
    i, j = model.row_ids_.index_of([0, 130]), model.col_ids_.index_of([20, 50])
    assert np.array_equal([line["prediction"] for line in found], model.predict_entries(i, j, positions=True))
    pd.DataFrame({"a": [0, 7], "b": [20, 50]}).to_csv(pairs, index=False)
    document = run("predict", model_path, pairs, "--unknown", "nan", "--json").document
    assert [line["prediction"] is None for line in document["predictions"]] == [False, True]

    told = run("info", model_path, "--json").document
    assert (told["task"], told["n_rows"], told["n_cols"]) == ("links", N_NODES, N_NODES)

    scores = run("evaluate", graph, *options_of(name), "--json").document
    assert scores["estimator"] == METHODS[name].estimator
    assert scores["n_train"] + scores["n_test"] == cells.nnz // 2
    assert 0 <= scores["lists"][0]["fnr"] < 1


@pytest.mark.parametrize("name", GRAPH_METHODS)
def test_lists_hold_neither_known_links_nor_the_node_itself(run, graph, tmp_path, name):
    run("fit", graph, *options_of(name), "--out", tmp_path / "m")
    ask = ("recommend", tmp_path / "m", "--all", "-k", N_NODES, "--json")
    lists = pd.DataFrame(run(*ask, "--exclude", graph).document["recommendations"])
    known = {tuple(sorted(map(int, line.split()))) for line in graph.read_text().splitlines()[1:]}
    found = {(min(a, b), max(a, b)) for a, b in zip(lists["row"], lists["col"], strict=True)}
    assert not found & known
    assert not (lists["row"] == lists["col"]).any()
    assert len(lists) == N_NODES * (N_NODES - 1) - 2 * len(known)
    assert run(*ask).document["recommendations"] == lists.to_dict("records")
    assert run(*ask, "--with-seen").document["n_recommendations"] == N_NODES * (N_NODES - 1)


class TestEvaluate:
    def test_is_the_protocol_of_the_library(self, run, graph):
        options = ("--method", "katz", "--test-fraction", 0.3, "--seed", 4, "--list-length", 200, "--json")
        document = run("evaluate", graph, *options).document
        train, test = split_entries(read_edges(graph), test_fraction=0.3, random_state=4, symmetric=True)
        curve = link_curve(Katz().fit(train), upper(test), train=train, k=200, positions=True)
        n_test = test.nnz // 2
        assert [entry["length"] for entry in document["lists"]] == [n_test, 3 * n_test, 200]
        for entry in document["lists"]:
            place = entry["length"] - 1
            assert (entry["fnr"], entry["fpr"]) == (curve.fnr[place], curve.fpr[place])
        assert document["precision"] == {"100": curve.precision[99]}
        other = run("evaluate", graph, *options, "--seed", 5).document
        assert other["lists"] != document["lists"]

    def test_lists_end_with_the_candidates(self, run, graph):
        options = ("--method", "common-neighbors", "--list-length", 10**6, "--json")
        document = run("evaluate", graph, *options).document
        last = document["lists"][-1]
        assert last["length"] == document["n_candidates"]
        assert (last["fnr"], last["fpr"]) == (0, 1)

    def test_links_of_a_file(self, run, graph, tmp_path):
        lines = graph.read_text().splitlines()[1:]
        train, test, model = tmp_path / "train.csv", tmp_path / "test.csv", tmp_path / "m"
        train.write_text("a,b\n" + "\n".join(lines[::2]).replace(" ", ",") + "\n")
        test.write_text("a,b\n" + "\n".join(lines[1::2]).replace(" ", ",") + "\n")
        direct = run("evaluate", train, "--method", "common-neighbors", "--test", test, "--json").document
        assert direct["n_test"] == len(lines[1::2])
        run("fit", train, "--method", "common-neighbors", "--out", model)
        saved = run("evaluate", model, test, "--exclude", train, "--json").document
        assert saved["lists"] == direct["lists"]
        fitted = unseen.load(model)
        listed = pd.read_csv(test)
        pairs = np.column_stack([fitted.row_ids_.index_of(listed[name].to_numpy()) for name in "ab"])
        curve = link_curve(fitted, pairs, train=fitted.graph_, positions=True)
        assert saved["lists"][0]["fnr"] == curve.fnr[-1]

    def test_unknown_nodes_and_known_links_are_named(self, run, graph, tmp_path):
        test = tmp_path / "test.txt"
        first = graph.read_text().splitlines()[1]
        test.write_text(f"{first}\n")
        options = ("evaluate", graph, "--method", "katz", "--test", test)
        assert repr(int(first.split()[1])) in run(*options, code=1).err
        cells = read_edges(graph)
        i, j = np.argwhere(np.triu(cells.csr.toarray() == 0, 1))[0]
        test.write_text(f"{10 * i} {10 * j}\n0 777\n")
        ended = run(*options, code=1)
        assert "1 of 2 links" in ended.err
        assert "777" in ended.err
        document = run(*options, "--unknown", "skip", "--json").document
        assert (document["n_test"], document["n_skipped"]) == (1, 1)
        test.write_text("777 0\n")
        assert "no test link" in run(*options, "--unknown", "skip", code=1).err

    def test_a_table_for_people(self, run, graph):
        said = run("evaluate", graph, "--method", "katz").out
        assert "fnr" in said
        assert "test links" in said


class TestFiles:
    def test_a_table_and_a_list_hold_the_same_graph(self, run, graph, tmp_path):
        lines = [line.split() for line in graph.read_text().splitlines()[1:]]
        frame = pd.DataFrame(lines, columns=["who", "whom"])
        twice = pd.concat([frame, frame.head(3).rename(columns={"who": "whom", "whom": "who"})])
        twice.insert(0, "when", 2000)
        twice.to_csv(tmp_path / "g.csv", index=False)
        frame.astype(int).to_parquet(tmp_path / "g.parquet")
        frame.to_csv(tmp_path / "bare.tsv.gz", index=False, header=False, sep="\t")
        options = ("--method", "common-neighbors", "--out", tmp_path / "m")
        wanted = read_edges(graph)
        for name, *more in (
            ("g.csv", "--row", "who", "--col", 2),
            ("g.parquet",),
            ("bare.tsv.gz", "--no-header"),
        ):
            ended = run("fit", tmp_path / name, *more, *options)
            assert "warning" not in ended.err
            model = unseen.load(tmp_path / "m")
            assert np.array_equal(model.graph_.toarray(), wanted.csr.toarray())
            assert np.array_equal(model.row_ids_.values, wanted.row_ids.values)

    def test_names_and_numbers_in_one_graph(self, run, tmp_path):
        (tmp_path / "g.csv").write_text("a,b\n1,x\n2,x\n2,1\n")
        run("fit", tmp_path / "g.csv", "--method", "katz", "--out", tmp_path / "m")
        assert unseen.load(tmp_path / "m").row_ids_.values.tolist() == ["1", "2", "x"]

    def test_loops_are_left_out(self, run, tmp_path):
        (tmp_path / "g.txt").write_text("a b\nb c\nc c\n")
        ended = run("fit", tmp_path / "g.txt", "--method", "bias-mc", "--task", "links", "--rank", 1,
                    "--set", "alpha=0.9", "--out", tmp_path / "m", "--json")  # fmt: skip
        assert ended.document["n_cells"] == 4
        assert "1 links of a node with itself" in ended.err
        (tmp_path / "g.txt").write_text("a a\n")
        assert "two different nodes" in run(
            "fit", tmp_path / "g.txt", "--method", "katz", "--out", tmp_path / "n", code=1
        ).err  # fmt: skip

    def test_models_without_ids_are_told_by_number(self, run, tmp_path):
        CommonNeighbors().fit(np.ones((4, 4)) - np.eye(4)).save(tmp_path / "m")
        assert run("info", tmp_path / "m", "--json").document["n_rows"] == 4
        found = run("recommend", tmp_path / "m", "--rows", 2, "-k", 9, "--with-seen", "--json").document[
            "recommendations"
        ]
        assert [line["col"] for line in found] == [0, 1, 3]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--method", "mf", "--task", "links"), "common-neighbors"),
        (("--method", "katz", "--task", "positive"), "links"),
        (("--method", "katz", "--value", "w"), "--value"),
        (("--method", "katz", "--edges", "directed"), "directions"),
        (("--method", "katz", "--metrics", "auc"), "--metrics"),
        (("--method", "katz", "--folds", 3), "--folds"),
        (("--method", "katz", "--test", "x", "--test-fraction", 0.5), "exclude"),
        (("--method", "katz", "--test-fraction", 1.5), "test_fraction"),
        (("--method", "mf", "--test-fraction", 0.5), "--test-fraction"),
        (("--method", "mf", "--list-length", 5), "--list-length"),
        (("--method", "katz", "--list-length", 0), "--list-length"),
    ],
)
def test_usage(run, graph, arguments, said):
    assert said in run("evaluate", graph, *arguments, code=2).err


def test_a_saved_model_needs_its_training_links(run, graph, tmp_path):
    run("fit", graph, "--method", "katz", "--out", tmp_path / "m")
    assert "--exclude" in run("evaluate", tmp_path / "m", graph, code=2).err
    document = run("evaluate", tmp_path / "m", graph, "--metrics", "recall@5", "--json").document
    assert 0 < document["scores"]["recall@5"] <= 1
