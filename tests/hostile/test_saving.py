"""Nothing is lost: kills, many writers, readers in between, full disks."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import unseen
from tests.hostile.saving import in_a_process, stamp_of, stamped
from unseen import model_files
from unseen.exceptions import ModelFileError, ModelWriteError

fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@fork
def test_killed_writers_lose_nothing_and_block_nobody(tmp_path: Path) -> None:
    found = in_a_process("kills", tmp_path, first=0, count=40)
    assert found["kills"] == 40
    assert not found["lost"]
    assert not found["blocked"]
    assert not found["with debris"]


@fork
def test_many_writers_and_a_reader(tmp_path: Path) -> None:
    found = in_a_process("crowd", tmp_path / "m", writers=3, loads=60)
    assert found["loads"] == 60
    assert not found["failed loads"]
    assert not found["failed writers"]
    assert not found["with debris"]


def test_a_kill_in_a_fresh_directory_does_not_block_it(tmp_path: Path) -> None:
    place = tmp_path / "m"
    place.mkdir()
    (place / model_files.new_arrays_name()).write_bytes(b"half")
    (place / ".manifest.json.0123456789abcdef").write_bytes(b"{")
    stamped(3.0).save(place)
    assert stamp_of(place) == 3.0
    assert len(list(place.iterdir())) == 2


def test_files_of_a_writer_at_work_stay(tmp_path: Path) -> None:
    place = tmp_path / "m"
    stamped(1.0).save(place)
    with model_files.shared(place):
        theirs = place / model_files.new_arrays_name()
        theirs.write_bytes(b"in the making")
        stamped(2.0).save(place)
        assert theirs.exists()
    assert not theirs.exists()  # this writer was the last, so it cleaned up
    assert stamp_of(place) == 2.0


def test_an_interrupt_after_the_swap_keeps_the_new_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "m"
    stamped(1.0).save(place)

    def interrupted(directory: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("unseen.model_files._flush", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stamped(2.0).save(place)
    assert stamp_of(place) == 2.0


def test_a_reader_follows_a_manifest_that_changed_under_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "m"
    stamped(1.0).save(place)
    text = unseen.io._manifest_text(place)
    stamped(2.0).save(place)
    texts = iter([text])
    original = unseen.io._manifest_text
    monkeypatch.setattr(
        "unseen.io._manifest_text", lambda directory: next(texts, None) or original(directory)
    )
    assert stamp_of(place) == 2.0


@pytest.mark.parametrize("step", ["write_arrays", "swap", "_lock"])
def test_a_system_that_refuses_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    place = tmp_path / "m"
    stamped(1.0).save(place)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(f"unseen.model_files.{step}", full)
    with pytest.raises(ModelWriteError, match="No space") as caught:
        stamped(2.0).save(place)
    assert isinstance(caught.value, OSError)
    assert isinstance(caught.value, ModelFileError)
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.undo()
    assert stamp_of(place) == 1.0
    assert len(list(place.iterdir())) == 2


def test_a_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "small"
    disk.mkdir()
    mount = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    script = f"mount -t tmpfs -o size=800k tmpfs {disk} && {sys.executable} -m tests.hostile.full_disk {disk}"
    try:
        done = subprocess.run([*mount, script], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("no unshare here to mount a small disk with")
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["refused", "28", "old", "saved", "new"]


def test_other_software_reads_the_arrays(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    rng = np.random.default_rng(0)
    arrays = {
        "half": rng.standard_normal(3).astype(np.float16),
        "one": np.array(2.5),
        "none": np.empty((0, 3), dtype=np.float32),
        "bits": np.array([[True, False]]),
        "columns": np.asfortranarray(rng.standard_normal((4, 5))),
        "swapped": np.arange(4, dtype=">i4"),
        **{kind: np.arange(3, dtype=kind) for kind in ("i1", "u2", "i8", "u8")},
    }
    size, digest = model_files.write_arrays(arrays, tmp_path / "ours")
    assert size == (tmp_path / "ours").stat().st_size
    theirs = load_file(tmp_path / "ours")
    save_file(
        {k: np.ascontiguousarray(v).astype(v.dtype.newbyteorder("=")) for k, v in arrays.items()},
        tmp_path / "theirs",
    )
    for name, sha in (
        ("ours", digest),
        ("theirs", hashlib.sha256((tmp_path / "theirs").read_bytes()).hexdigest()),
    ):
        with (tmp_path / name).open("rb") as file:
            back = model_files.read_arrays(file, sha)
        assert back.keys() == arrays.keys() == theirs.keys()
        for key, array in arrays.items():
            np.testing.assert_array_equal(back[key].reshape(array.shape), array)
            np.testing.assert_array_equal(theirs[key].reshape(array.shape), array)
            assert back[key].dtype == array.dtype.newbyteorder("=")
