"""``unseen fit --tune``: settings that were not given are chosen on held-out cells."""

from __future__ import annotations

import unseen
from unseen.cli.tuning import seconds_of


def test_settings_are_chosen_and_those_given_are_kept(run, files, tmp_path):
    ended = run("fit", files.ratings, "--out", tmp_path / "m", "--rank", 2, "--tune", "0.5s", "--json")
    found = ended.document["tuned"]
    assert set(found["params"]) == {"reg"}
    assert found["n_trials"] >= 1
    model = unseen.load(tmp_path / "m")
    assert model.rank == 2
    assert model.reg == found["params"]["reg"]


def test_what_is_chosen_beats_the_first_grid_and_time_ends_it(run, files, tmp_path):
    results = []
    for seconds in ("1ms", "20s"):
        time = "0.001s" if seconds == "1ms" else seconds
        ended = run("fit", files.ratings, "--out", tmp_path / seconds, "--tune", time, "--json")
        results.append(ended.document["tuned"])
    short, long = results
    assert short["n_trials"] < long["n_trials"]
    assert long["score"] <= short["score"]


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
