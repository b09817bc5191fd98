"""Tutorials: scripts, and notebooks with what the scripts print and draw."""

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
NUMBER = re.compile(r"((?<![\w.])\d+(?:\.\d+)?(?!\w))")


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
    return read(maker.NOTEBOOK)


def read(path: Path) -> Any:
    """A stored notebook."""
    nbformat = pytest.importorskip("nbformat", reason="notebooks need unseen[docs]")
    return nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)


def test_the_path_is_short() -> None:
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) < 60


TUTORIALS = ["from_frame_to_lists", *sorted(path.stem for path in (DOCS / "tutorials").glob("*.py"))]


@pytest.mark.parametrize("name", TUTORIALS)
def test_notebooks_are_their_scripts(maker: ModuleType, name: str) -> None:
    place = DOCS / "tutorials" / f"{name}.ipynb"
    stored = read(place)
    made = maker.notebook(maker.scripts()[place].read_text(encoding="utf-8"))
    assert [(cell.cell_type, cell.source, cell.metadata) for cell in stored.cells] == [
        (cell.cell_type, cell.source, cell.metadata) for cell in made.cells
    ]
    codes = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in codes] == list(range(1, len(codes) + 1))
    kinds = {
        output.get("name")
        for cell in codes
        for output in cell.outputs
        if output.output_type != "display_data"
    }
    assert kinds <= {"stdout", None}  # no warnings, no errors
    assert all(output.output_type != "error" for cell in codes for output in cell.outputs)


@pytest.mark.parametrize("name", TUTORIALS[1:])
def test_tutorials_have_pictures_with_words_and_an_honest_end(name: str) -> None:
    stored = read(DOCS / "tutorials" / f"{name}.ipynb")
    drawn = [
        cell
        for cell in stored.cells
        for output in cell.get("outputs", ())
        if "image/png" in output.get("data", {})
    ]
    assert drawn
    for cell in drawn:
        assert len(cell.metadata["mystnb"]["image"]["alt"]) > 40, cell.source
    assert "## What this does not show" in stored.cells[-1].source


def test_every_tutorial_is_listed() -> None:
    listed = (DOCS / "tutorials" / "index.md").read_text(encoding="utf-8")
    missing = [name for name in TUTORIALS if name not in listed]
    assert not missing


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
@pytest.mark.parametrize("name", TUTORIALS)
def test_notebooks_run(maker: ModuleType, tmp_path: Path, name: str) -> None:
    pytest.importorskip("nbclient", reason="notebooks need unseen[docs]")
    if os.environ.get("UNSEEN_DATA") is None:
        pytest.skip("UNSEEN_DATA does not point to a folder with the data")
    place = DOCS / "tutorials" / f"{name}.ipynb"
    made = maker.notebook(maker.scripts()[place].read_text(encoding="utf-8"))
    again = maker.executed(made, tmp_path)
    assert same(maker.printed(again), maker.printed(read(place)))


def same(told: str, stored: str) -> bool:
    """The same words; numbers within what processors and thread counts make of them."""
    pieces = [NUMBER.split(" ".join(text.split())) for text in (told, stored)]
    if pieces[0][::2] != pieces[1][::2]:
        return False
    return all(
        abs(float(a) - float(b)) <= 0.02 * max(abs(float(a)), abs(float(b)), 1.0)
        for a, b in zip(pieces[0][1::2], pieces[1][1::2], strict=True)
    )


def test_another_number_or_word_is_noticed() -> None:
    assert same("error 0.91 of  ten", "error 0.912 of ten")
    assert not same("error 0.91 of ten", "error 0.97 of ten")
    assert not same("error 0.91 of ten", "error 0.91 of two")


def rounded(text: str) -> str:
    """Numbers with the digits that all processors agree on; blanks as they come."""
    shorter = re.sub(r"\d+\.\d+", lambda found: f"{float(found[0]):.2f}", text)
    return " ".join(shorter.split())
