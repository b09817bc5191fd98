"""Short runs of the attacks of ``python -m tests.hostile`` that have no tests of their own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.hostile import readers
from tests.hostile.__main__ import KINDS, piece
from tests.hostile.saving import in_a_process

SHORT = {
    "readers": (120, {"refused", "read"}),
    "lists": (300, {"exact"}),
    "damaged checkpoints": (12, {"refused", "the same bits"}),
    "bits": (4, {"same bits"}),
}
FORKS = {"kills in update": 4, "kills in checkpoints": 4}


@pytest.mark.parametrize("kind", SHORT)
def test_nothing_foreign_is_found(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    count, allowed = SHORT[kind]
    module, function, options, *_ = KINDS[kind]
    found = in_a_process(function, tmp_path, module, first=0, count=count, **options)
    assert found.total() >= count
    assert set(found) <= allowed, found


def test_names_of_columns_that_are_no_text_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    assert readers.trial(700289, tmp_path) == "refused"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("kind", FORKS)
def test_killed_fits_and_updates_lose_nothing(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("pandas")
    module, function, options, *_ = KINDS[kind]
    found = in_a_process(function, tmp_path, module, first=0, count=FORKS[kind], **options)
    assert found["kills"] == FORKS[kind]
    assert not found["lost"], found
    assert not found["with debris"]


def test_a_process_that_ends_by_a_signal_is_told_with_its_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KINDS, "fatal", ("test_attacks", "fatal", {}, 5, 5))
    found, following = piece("fatal", tmp_path, 3, 5)
    assert found["signals"] == 1
    assert following == 5
    assert any(word.startswith("fatal, seed 4: ended with -11") for word in found)


def fatal(directory: Path, first: int, count: int) -> None:
    import ctypes

    (directory / "current").write_text(str(first + 1))
    ctypes.string_at(0)
