"""What all experiments share: parts that are run once, verdicts, tables."""

from __future__ import annotations

import doctest
import importlib
import json
import pkgutil
from pathlib import Path
from typing import Any

import pytest

import papers
from papers import changes
from papers.catalogue import EXPERIMENTS, PAPERS
from papers.experiment import Claim, Experiment, Source, Unit, Verdict, about, grouped
from papers.page import counts, make_page
from papers.runner import read, run


def of_parts(*units: Unit) -> Experiment:
    return Experiment(
        name="tiny",
        paper="pu",
        shows="nothing",
        differences="none",
        units=lambda quick: units,
        tables=lambda rows: {},
        claims=lambda rows: [],
    )


def part(key: str) -> Unit:
    return Unit(key, lambda: [{"key": key, "value": len(key)}])


def test_a_part_gets_the_rows_of_those_it_needs_and_an_untimed_run_stays_so(tmp_path: Path) -> None:
    def last(first: list[Any], second: list[Any]) -> list[dict[str, Any]]:
        return [{"key": "difference", "value": first[0]["value"] - second[0]["value"]}]

    experiment = of_parts(part("a"), part("bb"), Unit("difference", last, needs=("bb", "a")))
    assert run(experiment, tmp_path).rows[-1] == {"key": "difference", "value": 1}
    stored = json.loads((tmp_path / "tiny.json").read_text())
    del stored["units"]["difference"]
    (tmp_path / "tiny.json").write_text(json.dumps({**stored, "seconds": None}))
    outcome = run(experiment, tmp_path)  # the parts before it come from the file
    assert outcome.rows[-1]["value"] == 1
    assert outcome.time() == "not recorded"
    assert "without a clock" in make_page([outcome]).html()


def test_rows_come_in_the_order_of_the_parts(tmp_path: Path) -> None:
    units = {key: [{"key": key}] for key in ("bb", "gone", "a")}
    (tmp_path / "tiny.json").write_text(json.dumps({"quick": False, "seconds": None, "units": units}))
    assert [row["key"] for row in read(of_parts(part("a"), part("bb")), tmp_path).rows] == ["a", "bb"]


def test_every_experiment_has_what_a_page_needs() -> None:
    for name, experiment in EXPERIMENTS.items():
        assert experiment.name == name
        assert experiment.paper in PAPERS
        for quick in (False, True):
            keys = [unit.key for unit in experiment.units(quick)]
            assert keys
            assert len(set(keys)) == len(keys)
        assert experiment.differences


@pytest.mark.parametrize(
    ("cases", "verdict"),
    [([True, True], "holds"), ([True, False], "holds partly"), ([False], "does not hold"), ([], None)],
)
def test_verdicts(cases: list[bool], verdict: str | None) -> None:
    assert Claim.judged("x", cases, "y").verdict == (verdict or Verdict.UNTESTED)


def test_groups_keep_their_order() -> None:
    rows = [{"a": 2}, {"a": 1}, {"a": 2}]
    assert list(grouped(rows, "a")) == [(2,), (1,)]


def test_examples_in_docstrings() -> None:
    names = [f"papers.{module.name}" for module in pkgutil.iter_modules(papers.__path__)]
    ended = [doctest.testmod(importlib.import_module(name)) for name in names]
    assert sum(one.failed for one in ended) == 0
    assert sum(one.attempted for one in ended) > 5


def test_tolerances_have_two_sides() -> None:
    assert about(9.9, 5.0)
    assert not about(31.0, 5.0)
    assert not about(2.4, 5.0)
    assert about(5.5, 5.0, factor=1.2)
    assert not about(5.5, 5.0, factor=1.05)


def test_who_says_so_is_counted_apart() -> None:
    claims = [Claim.judged("x", [True], "y"), Claim.ours("x", [True], "y"), Claim.ours("x", [], "y")]
    assert counts(claims, Source.PAPER) == "1 holds, 0 holds partly, 0 does not hold, 0 can't be tested here"
    assert counts(claims, Source.OURS).startswith("1 holds, 0 holds partly")
    assert Claim.untested("x", "y").source is Source.PAPER


def test_a_changed_verdict_needs_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(changes.tables()) == {"counts", "changed", "all"}
    was = changes.before()
    key = next(iter(was))
    monkeypatch.setattr(changes, "before", lambda: {**was, key: "another verdict"})
    with pytest.raises(KeyError):
        changes.tables()
    monkeypatch.setattr(changes, "before", lambda: {**was, ("gone", "claim"): "holds"})
    with pytest.raises(ValueError, match="no longer judged"):
        changes.tables()


def test_texts_of_claims_name_one_claim_each() -> None:
    for name in EXPERIMENTS:
        texts = [claim.text for _, own, claim in changes.now() if own == name]
        assert len(set(texts)) == len(texts), name
