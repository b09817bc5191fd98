"""``unseen fit --tune``: settings that were not given are chosen on held-out cells."""

from __future__ import annotations

import pytest

import unseen
from unseen.cli.tuning import seconds_of


def test_settings_are_chosen_and_those_given_are_kept(run, files, tmp_path):
    pytest.importorskip("optuna")
    ended = run("fit", files.ratings, "--out", tmp_path / "m", "--rank", 2, "--tune", "0.5s", "--json")
    found = ended.document["tuned"]
    assert set(found["params"]) == {"reg"}
    assert found["n_trials"] >= 1
    model = unseen.load(tmp_path / "m")
    assert model.rank == 2
    assert model.reg == found["params"]["reg"]


def test_wrong_uses_are_refused(run, files, tmp_path):
    for options, word in (
        (("--tune", "soon"), "soon"),
        (("--tune", "1s", "--memory", "1GiB"), "--tune"),
        (("--tune", "1s", "--method", "bias", "--reg", 1), "--tune"),
    ):
        ended = run("fit", files.ratings, "--out", tmp_path / "m", *options, code=None)
        assert ended.code != 0
        assert word in ended.err
    assert not (tmp_path / "m").exists()


def test_times():
    assert [seconds_of(text) for text in ("90", "90s", "2m", "1.5h")] == [90, 90, 120, 5400]
