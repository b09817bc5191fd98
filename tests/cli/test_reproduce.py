"""``unseen reproduce``: runs go on where they ended, and missing data are told."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import unseen

pytest.importorskip("papers.catalogue", reason="the experiments are not part of this copy")
from papers.catalogue import EXPERIMENTS
from papers.display import Table
from papers.experiment import Claim, Experiment, Unit, Verdict


@pytest.fixture
def tiny(monkeypatch):
    """An experiment of two parts that notes what it runs."""
    ran = []

    def part(key):
        ran.append(key)
        return [{"key": key, "value": len(key)}]

    experiment = Experiment(
        name="tiny",
        paper="pu",
        shows="nothing",
        differences="none",
        units=lambda quick: [
            Unit(key, lambda key=key: part(key)) for key in (["a"] if quick else ["a", "bb"])
        ],
        tables=lambda rows: {"values": Table.of(["key", "value"], [row.values() for row in rows])},
        claims=lambda rows: [Claim.judged("all are short", [row["value"] < 2 for row in rows], "length")],
    )
    monkeypatch.setitem(EXPERIMENTS, "tiny", experiment)
    experiment.__dict__["ran"] = ran
    return experiment


def test_a_run_goes_on_where_it_ended(run, tiny, tmp_path):
    home = tmp_path / "out"
    run("reproduce", "tiny", "--out", home)
    stored = json.loads((home / "tiny.json").read_text())
    del stored["units"]["bb"]  # as if it had been ended there
    (home / "tiny.json").write_text(json.dumps(stored))
    tiny.ran.clear()
    document = run("reproduce", "tiny", "--out", home, "--json").document
    assert tiny.ran == ["bb"]
    claim = {"experiment": "tiny", "claim": "all are short", "source": "paper"}
    assert document["claims"] == [{**claim, "verdict": "holds partly", "found": "length (1 of 2 cases)"}]
    with (home / "tiny-values.csv").open() as file:
        assert list(csv.reader(file)) == [["key", "value"], ["a", "1"], ["bb", "2"]]
    page = (home / "index.html").read_text()
    assert "holds partly" in page
    assert "length (1 of 2 cases) [tiny]" in page
    tiny.ran.clear()
    run("reproduce", "tiny", "--out", home, "--fresh")
    assert tiny.ran == ["a", "bb"]


def test_quick_and_full_results_are_not_mixed(run, tiny, tmp_path):
    run("reproduce", "tiny", "--out", tmp_path, "--quick")
    tiny.ran.clear()
    run("reproduce", "tiny", "--out", tmp_path)
    assert tiny.ran == ["a", "bb"]


def test_a_real_experiment_with_quick(run, tmp_path):
    document = run("reproduce", "pu-recovery", "--quick", "--out", tmp_path, "--json").document
    assert {claim["verdict"] for claim in document["claims"]} <= set(Verdict)
    page = (tmp_path / "index.html").read_text()
    assert page.count("<img") == 1


# Finders of an editable installation would come before the path.
LIST = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "importlib" in finder.__module__]
from unseen.cli.main import main
sys.exit(main(["reproduce", "--list"]))
"""


def from_elsewhere(folder, sources):
    """``unseen reproduce --list`` in a process of its own, in a folder, with the library from another."""
    return subprocess.run(
        [sys.executable, "-c", LIST],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(sources), "UNSEEN_KERNELS": "reference"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_experiments_are_found_in_a_checkout_only(tmp_path):
    package = Path(unseen.__file__).parent
    away = tmp_path / "away"
    (away / "papers").mkdir(parents=True)
    (away / "papers" / "__init__.py").write_text("raise SystemExit('a stranger')")  # no project of ours
    assert "pu-links" in from_elsewhere(away, package.parent).stdout  # beside the sources
    installed = tmp_path / "site-packages"
    shutil.copytree(package, installed / "unseen")
    ended = from_elsewhere(away, installed)
    assert ended.returncode == 2
    assert ended.stderr.splitlines() == [
        "error: the experiments are not part of the installed package: clone the repository of unseen and "
        "run this command inside it"
    ]
    assert "pu-links" in from_elsewhere(package.parents[1] / "docs", installed).stdout  # above the folder


@pytest.mark.slow
def test_experiments_side_by_side_give_the_same(run, tmp_path):
    names = ["pu-recovery", "pu-alpha"]
    found = {}
    for jobs in ("1", "2"):
        folder = tmp_path / jobs
        run("reproduce", *names, "--quick", "--jobs", jobs, "--out", folder)
        assert (folder / "index.html").exists()
        found[jobs] = [json.loads((folder / f"{name}.json").read_text())["units"] for name in names]
    assert found["1"] == found["2"]


def test_missing_data_are_told(run, tmp_path, monkeypatch):
    monkeypatch.setenv("UNSEEN_DATA", str(tmp_path / "nothing"))
    document = run("reproduce", "pu-clustering", "--quick", "--out", tmp_path, "--json").document
    assert document["claims"][0]["verdict"] == "can't be tested here"
    assert "data are not here" in document["claims"][0]["found"]


def test_the_list_and_wrong_names(run, tmp_path):
    assert "pu-links" in run("reproduce", "--list").out
    assert "nope" in run("reproduce", "nope", code=2).err
    assert "name is needed" in run("reproduce", code=2).err
    (tmp_path / "taken").write_text("")
    assert "--out" in run("reproduce", "pu-alpha", "--out", tmp_path / "taken", code=2).err
