"""The path of a data scientist: as a script, and as a notebook with what the script prints."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLE = DOCS / "examples" / "from_frame_to_lists.py"


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    """What makes the notebook from the script."""
    pytest.importorskip("nbformat", reason="notebooks need unseen[docs]")
    spec = importlib.util.spec_from_file_location("notebook", DOCS / "notebook.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def stored(maker: ModuleType) -> Any:
    """The notebook of the documentation."""
    import nbformat

    return nbformat.reads(maker.NOTEBOOK.read_text(encoding="utf-8"), as_version=4)


def test_the_path_is_short() -> None:
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) < 60


def test_the_notebook_is_the_script(maker: ModuleType, stored: Any) -> None:
    made = maker.notebook(EXAMPLE.read_text(encoding="utf-8"))
    assert [(cell.cell_type, cell.source) for cell in stored.cells] == [
        (cell.cell_type, cell.source) for cell in made.cells
    ]
    numbers = [cell.execution_count for cell in stored.cells if cell.cell_type == "code"]
    assert numbers == list(range(1, len(numbers) + 1))
    kinds = {output.get("name") for cell in stored.cells for output in cell.get("outputs", ())}
    assert kinds == {"stdout"}  # no warnings, no errors


@pytest.mark.data
@pytest.mark.slow
def test_from_frames_to_lists_and_back(maker: ModuleType, stored: Any) -> None:
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
    assert len(titled) >= 14  # five for a user, three like one, three for each of two people, three of nine
    assert rounded(ended.stdout) == rounded(maker.printed(stored))


@pytest.mark.data
@pytest.mark.slow
def test_the_notebook_runs(maker: ModuleType, stored: Any, tmp_path: Path) -> None:
    pytest.importorskip("nbclient", reason="notebooks need unseen[docs]")
    if os.environ.get("UNSEEN_DATA") is None:
        pytest.skip("UNSEEN_DATA does not point to a folder with ml100k")
    again = maker.executed(maker.notebook(EXAMPLE.read_text(encoding="utf-8")), tmp_path)
    assert rounded(maker.printed(again)) == rounded(maker.printed(stored))


def rounded(text: str) -> str:
    """Numbers with the digits that all processors agree on; blanks as they come."""
    shorter = re.sub(r"\d+\.\d+", lambda found: f"{float(found[0]):.2f}", text)
    return " ".join(shorter.split())
