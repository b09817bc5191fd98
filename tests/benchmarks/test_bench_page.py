"""The page of benchmarks: from stored results, and what it says where something is missing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as command
from benchmarks import _performance_tables, bench
from benchmarks._store import STORED
from benchmarks._summaries import SUMMARIES, Ratio


def ratings() -> dict[str, Any]:
    """What the suite on ratings stores, with made-up numbers."""

    def system(reg: float, seconds: float, memory: float) -> dict[str, Any]:
        sweeps = _performance_tables.SHOWN
        runs = [{"reg": reg, "sweeps": n, "seconds": n * seconds, "rmse": 0.9 + 0.1 / n} for n in sweeps]
        return {"reg": reg, "runs": runs, "peak_mib": memory, "grown_mib": memory / 4}

    systems = {"unseen svd start": system(9.0, 0.01, 120.0), "cmfrec cg": system(13.0, 0.05, 100.0)}
    task = {
        "label": "Made-up ratings", "target_rmse": 0.91, "ratio": 5.0, "memory_ratio": 1.2,
        "grown_ratio": 1.2,
        "seconds": {"unseen svd start": 0.15, "cmfrec cg": None}, "systems": systems,
    }  # fmt: skip
    return {"tasks": {"made-up": task}}


def cells(dearer: float = 1.5) -> dict[str, Any]:
    rows = [
        {"cells": n, "sweep_s": n * cost, "microseconds_a_cell": 1e6 * cost, "peak_gib": 1.0}
        for n, cost in ((1_000_000, 1e-7), (10_000_000, dearer * 1e-7))
    ]
    return {"rank": 32, "rows": rows}


def against_sklearn() -> dict[str, Any]:
    runs = {
        name: {"seconds": [0.1, 0.2], "objective": [3.0, 2.0], "peak_mib": 90.0}
        for name in ("unseen", "sklearn")
    }
    nmf = {"ratio": {"1.0%": None}, "time_to": {"1.0%": {"unseen": None, "sklearn": 0.2}}, "runs": runs}
    fits = {name: {"fit_s": 1.0, "precision_at_1": 60.0, "peak_mib": 90.0} for name in ("unseen", "sklearn")}
    return {"nmf": {"graph": nmf}, "labels": {"Bibtex": {"ratio": 1.0, "runs": fits}}}


def many_labels() -> dict[str, Any]:
    names = ("ExMLDS1", "SLEEC", "omikuji", "napkinXC")
    runs = [
        {"data": "Bibtex", "method": name, "fit_s": seconds, "precision": [60.0], "memory_mib": 100.0}
        for name in names
        for seconds in (2.0, 1.0)
    ]
    return {"runs": runs, "large": {}}


MADE_UP = {
    "explicit_ratings": ratings(),
    "growth": cells(),
    "sklearn_peers": against_sklearn(),
    "exmlds_speed": many_labels(),
}


def test_page_from_stored_results() -> None:
    found = bench.read(STORED)
    assert {"implicit_feedback", "gimc_speed"} <= set(found)
    html = bench.page(found, {}, "stored results")
    plots = len(re.findall("<img ", html))
    assert plots == sum(len(s.curves) + len(s.bars) for s in (SUMMARIES[n](found[n]) for n in found)) > 4
    for name in set(SUMMARIES) - set(found):
        assert f"{name}: not measured yet" in html


@pytest.mark.parametrize("name", MADE_UP)
def test_every_suite_has_ratios_and_plots(name: str) -> None:
    summary = SUMMARIES[name](MADE_UP[name])
    assert summary.ratios
    assert all(figure.axes for figure, _ in bench.figures(summary))
    html = bench.page({name: MADE_UP[name]}, {"gimc_speed": "no data"}, "small")
    assert summary.title in html
    assert "gimc_speed: no data" in html


def test_what_is_judged() -> None:
    ratios = SUMMARIES["explicit_ratings"](MADE_UP["explicit_ratings"]).ratios
    assert [(ratio.wanted, ratio.holds) for ratio in ratios] == [
        ("at least 2", "yes"),
        ("at most 1.1", "no"),
        ("", ""),
    ]
    assert [ratio.value for ratio in SUMMARIES["growth"](cells()).ratios] == pytest.approx([1.5, 0.2])
    assert SUMMARIES["growth"](cells(2.0)).ratios[1].holds == "no"  # a third off the line
    assert Ratio("x", None, at_least=2.0).holds == ""
    assert bench.shown(None) == "not reached"
    assert bench.judged(ratios[1], "large") == ("at most 1.1", "no")
    assert bench.judged(ratios[1], "small") == ("", "")


def test_tables_of_made_up_results() -> None:
    text = _performance_tables.ratings_ratio_table(ratings())
    assert "| Made-up ratings | 0.9100 | 5.0 | 1.20 | 1.20 | 9, 13 |" in text
    assert "| cmfrec cg | 1.0000 (0.05) |" in _performance_tables.ratings_table(ratings())
    text = _performance_tables.growth_table(cells())
    assert "1.50 times the cheapest; one line through zero is within 20% of all sizes." in text
    assert "| a fit | 3 | 2 | 1.50 |" in _performance_tables.tuning_table({"jobs": [["a fit", 3.0, 2.0]]})
    assert "| NMF, graph, to 1.0% | – | 0.20 | – |" in _performance_tables.sklearn_table(against_sklearn())


def test_one_suite_that_fails_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import gimc_speed, growth

    ran = []

    def broken(size: str) -> None:
        raise RuntimeError("a library\nis not there")

    monkeypatch.setattr(growth, "main", broken)
    monkeypatch.setattr(gimc_speed, "main", lambda size: ran.append(size))
    assert bench.run_suites("small", ["growth", "gimc_speed"]) == {"growth": "is not there"}
    assert ran == ["small"]


def test_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import growth

    sizes = []
    monkeypatch.setattr(growth, "main", lambda size="large": sizes.append(size))
    command.main(["growth"])
    command.main(["growth", "--size", "medium"])
    assert sizes == ["large", "medium"]
    for wrong, message in (
        (["growht"], "unknown suite growht"),
        (["scale", "--size", "small"], "one size only"),
    ):
        with pytest.raises(SystemExit):
            command.main(wrong)
        assert message in capsys.readouterr().err
    command.main(["--list"])
    assert "explicit_ratings" in capsys.readouterr().out


def test_base_against_head(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Medians of turns that alternate; ends with 1 where a job became slower than the limit."""
    from benchmarks import base_head

    order: list[str] = []
    given = {"base": [1.0, 9.0, 1.2], "head": [1.8, 1.7, 0.1]}

    def times(python: Path) -> dict[str, float]:
        order.append(python.name)
        return {"a job": given[python.name][order.count(python.name) - 1]}

    monkeypatch.setattr(base_head, "prepare", lambda commit, folder: Path(folder.name))
    monkeypatch.setattr(base_head, "times", times)
    with pytest.raises(SystemExit) as ended:
        base_head.main(["one", "two"])
    assert order == ["base", "head"] * 3
    assert ended.value.code == 1  # 1.7 against 1.2
    assert "1.200     1.700   ratio 1.42" in capsys.readouterr().out
    order.clear()
    with pytest.raises(SystemExit) as ended:
        base_head.main(["one", "two", "--limit", "1.5"])
    assert ended.value.code == 0
