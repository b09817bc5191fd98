"""``unseen reproduce``: runs go on where they ended, and missing data are told."""

from __future__ import annotations

import csv
import dataclasses
import json

import pytest

from unseen import reproduction
from unseen.reproduction import EXPERIMENTS, Claim, Experiment, Table, Unit, Verdict, make_page
from unseen.reproduction.experiment import grouped


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
    assert document["claims"] == [["tiny", "all are short", "holds partly", "length (1 of 2 cases)"]]
    with (home / "tiny-values.csv").open() as file:
        assert list(csv.reader(file)) == [["key", "value"], ["a", "1"], ["bb", "2"]]
    page = (home / "index.html").read_text()
    assert "holds partly" in page
    assert "length (1 of 2 cases) [tiny]" in page
    tiny.ran.clear()
    run("reproduce", "tiny", "--out", home, "--fresh")
    assert tiny.ran == ["a", "bb"]


def test_a_part_gets_the_rows_of_those_it_needs_and_an_untimed_run_stays_so(tiny, tmp_path):
    def last(first, second):
        return [{"key": "sum", "value": first[0]["value"] + second[0]["value"]}]

    parts = [*tiny.units(False), Unit("sum", last, needs=("bb", "a"))]
    longer = dataclasses.replace(tiny, units=lambda quick: parts)
    assert reproduction.run(longer, tmp_path).rows[-1] == {"key": "sum", "value": 3}
    stored = json.loads((tmp_path / "tiny.json").read_text())
    del stored["units"]["sum"]
    (tmp_path / "tiny.json").write_text(json.dumps({**stored, "seconds": None}))
    outcome = reproduction.run(longer, tmp_path)  # the parts before it come from the file
    assert outcome.rows[-1]["value"] == 3
    assert outcome.time() == "not recorded"
    assert "without a clock" in make_page([outcome]).html()


def test_quick_and_full_results_are_not_mixed(run, tiny, tmp_path):
    run("reproduce", "tiny", "--out", tmp_path, "--quick")
    tiny.ran.clear()
    run("reproduce", "tiny", "--out", tmp_path)
    assert tiny.ran == ["a", "bb"]


def test_a_real_experiment_with_quick(run, tmp_path):
    document = run("reproduce", "pu-recovery", "--quick", "--out", tmp_path, "--json").document
    assert {claim[2] for claim in document["claims"]} <= set(Verdict)
    page = (tmp_path / "index.html").read_text()
    assert page.count("<img") == 1


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
    assert document["claims"][0][2] == "can't be tested here"
    assert "data are not here" in document["claims"][0][3]


def test_the_list_and_wrong_names(run, tmp_path):
    assert "pu-links" in run("reproduce", "--list").out
    assert "nope" in run("reproduce", "nope", code=2).err
    assert "name is needed" in run("reproduce", code=2).err
    (tmp_path / "taken").write_text("")
    assert "--out" in run("reproduce", "pu-alpha", "--out", tmp_path / "taken", code=2).err


def test_every_experiment_has_what_a_page_needs():
    for name, experiment in EXPERIMENTS.items():
        assert experiment.name == name
        for quick in (False, True):
            keys = [unit.key for unit in experiment.units(quick)]
            assert keys
            assert len(set(keys)) == len(keys)
        assert experiment.differences


@pytest.mark.parametrize(
    ("cases", "verdict"),
    [([True, True], "holds"), ([True, False], "holds partly"), ([False], "does not hold"), ([], None)],
)
def test_verdicts(cases, verdict):
    assert Claim.judged("x", cases, "y").verdict == (verdict or Verdict.UNTESTED)


def test_groups_keep_their_order():
    rows = [{"a": 2}, {"a": 1}, {"a": 2}]
    assert list(grouped(rows, "a")) == [(2,), (1,)]


def test_rows_come_in_the_order_of_the_parts(tiny, tmp_path):
    units = {key: [{"key": key}] for key in ("bb", "gone", "a")}
    (tmp_path / "tiny.json").write_text(json.dumps({"quick": False, "seconds": None, "units": units}))
    assert [row["key"] for row in reproduction.read(tiny, tmp_path).rows] == ["a", "bb"]
