"""The examples that need real data, run as they stand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "from_frame_to_lists.py"


def test_the_path_is_short() -> None:
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) < 60


@pytest.mark.data
@pytest.mark.slow
def test_from_frames_to_lists_and_back() -> None:
    home = os.environ.get("UNSEEN_DATA")
    if home is None or not (Path(home) / "ml100k" / "u.data.gz").exists():
        pytest.skip("UNSEEN_DATA does not point to a folder with ml100k")
    command = [sys.executable, EXAMPLE]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    errors = dict(line.split(" RMSE ") for line in ended.stdout.splitlines() if " RMSE " in line)
    baseline, *others = (float(error) for error in errors.values())
    assert len(others) == 2
    assert max(others) < baseline + 0.005
    titled = [line for line in ended.stdout.splitlines() if "(19" in line]
    assert len(titled) >= 8  # five films for a user, three like one, three for each of two new people
