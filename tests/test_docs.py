"""What the documentation shows is what the code does."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import unseen

ROOT = Path(__file__).parent.parent
FOLDERS = (".", "concepts", "guide", "papers", "tutorials")
PAGES = sorted(page for part in FOLDERS for page in (ROOT / "docs" / part).glob("*.md"))
PUBLIC_MODULES = [
    "unseen",
    "unseen.baselines",
    "unseen.data",
    "unseen.datasets",
    "unseen.diagnostics",
    "unseen.estimators",
    "unseen.exceptions",
    "unseen.kernels",
    "unseen.links",
    "unseen.links",
    "unseen.metrics",
    "unseen.model_selection",
    "unseen.plotting",
    "unseen.solvers",
]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_examples(test: doctest.DocTest) -> str:
    """Run a docstring or page and return the report of what went wrong."""
    report: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=report.append)
    return "".join(report)


def page_test(text: str, name: str) -> doctest.DocTest:
    """Examples of a Markdown page; a fence ends the expected output as a blank line does."""
    unfenced = re.sub(r"^```.*$", "", text, flags=re.MULTILINE)
    return doctest.DocTestParser().get_doctest(unfenced, {"__name__": "__main__"}, name, name, 0)


def modules() -> list[str]:
    found = [info.name for info in pkgutil.walk_packages(unseen.__path__, "unseen.")]
    return [name for name in found if not name.endswith(("._native", ".__main__"))]


@pytest.mark.parametrize("name", modules())
def test_docstrings_of_modules(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if str(error.name).startswith("unseen"):
            raise
        pytest.skip(f"{name} needs {error.name}, an optional dependency")
    reports = [run_examples(test) for test in doctest.DocTestFinder().find(module) if test.examples]
    assert not any(reports), "\n".join(reports)


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # pages write files
    report = run_examples(page_test(page.read_text(encoding="utf-8"), page.stem))
    assert not report, report


def test_a_wrong_page_is_noticed() -> None:
    assert run_examples(page_test("```pycon\n>>> 1 + 1\n3\n```\n", "wrong"))
    assert not run_examples(page_test("```pycon\n>>> 1 + 1\n2\n```\n", "right"))


def test_sessions_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run_sessions("command_line", capsys)


@pytest.mark.data
@pytest.mark.slow
def test_the_path_of_a_data_scientist_by_the_command(
    tmp_path: Path, data_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in (data_home / "ml100k").glob("u.*.gz"):
        (tmp_path / file.name).symlink_to(file)
    monkeypatch.chdir(tmp_path)
    run_sessions("by_command", capsys)
    lists = importlib.import_module("pyarrow.parquet").read_table(tmp_path / "lists.parquet")
    assert lists.num_rows == 9430


def rounded(text: str) -> str:
    """Numbers that are printed with all their digits, less those in which processors differ."""
    return re.sub(r"\d+\.\d{10,}(e-?\d+)?", lambda found: f"{float(found[0]):.10g}", text)


def run_sessions(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Run the sessions that a page of the guide shows, and compare what is printed."""
    pytest.importorskip("typer", reason="the command needs unseen[cli]")
    from unseen.cli.main import main

    page = (ROOT / "docs" / "guide" / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    steps = re.findall(r"^\$ (.*)\n((?:[^$].*\n|\n)*)", "".join(blocks), flags=re.MULTILINE)
    assert len(steps) > 5
    for command, shown in steps:
        program, *options = shlex.split(command)
        if program == "cat":  # what a session shows of a file is what the file holds
            Path(options[0]).write_text(shown, encoding="utf-8")
            continue
        code = main(options)
        printed = capsys.readouterr().out
        assert code == 0, command
        same = doctest.OutputChecker().check_output(rounded(shown), rounded(printed), FLAGS)
        assert same, f"{command}\n{printed}"


@pytest.mark.parametrize("name", PUBLIC_MODULES)
def test_every_public_name_is_in_the_reference(name: str) -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "api").glob("*.rst"))
    listed = set(re.findall(r"^   (?:\w+\.)*(\w+)$", pages, flags=re.MULTILINE))
    module = importlib.import_module(name)
    public = set(getattr(module, "__all__", ())) - {"ConvergenceWarning", "NotFittedError"}
    missing = sorted(public - listed)
    assert not missing, f"{name}: add to a page in docs/api: {', '.join(missing)}"


def test_every_part_of_the_guide_is_reachable() -> None:
    contents = (ROOT / "docs" / "guide" / "index.md").read_text(encoding="utf-8")
    pages = {path.stem for path in (ROOT / "docs" / "guide").glob("*.md")} - {"index"}
    assert pages == set(re.findall(r"^(\w+)$", contents, flags=re.MULTILINE)) & pages


@pytest.mark.parametrize("name", ["layers", "picture", "charts"])
def test_pictures_are_drawn_from_the_contract_and_stored_results(name: str) -> None:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    pictures = getattr(module, "PICTURES", None) or {module.PICTURE: module.draw}
    for path, draw in pictures.items():
        assert path.read_text(encoding="utf-8") == draw(), f"python docs/{name}.py draws it"


@pytest.mark.slow
@pytest.mark.parametrize(
    "example", sorted((ROOT / "docs" / "examples").glob("plot_*.py")), ids=lambda p: p.stem
)
def test_examples_of_the_gallery_run(example: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(example)],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
