"""What pages hold: no number typed by hand, no block of code that nothing runs."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FOLDERS = (".", "concepts", "guide", "papers", "tutorials")
PAGES = [*sorted(page for part in FOLDERS for page in (DOCS / part).glob("*.md")), ROOT / "README.md"]

# -- numbers --------------------------------------------------------------------------

NOT_TEXT = [
    re.compile(pattern, re.DOTALL | re.MULTILINE)
    for pattern in (
        r"<!-- (?:table|claims|figure):.*?<!-- end -->",  # written by benchmarks/pages.py
        r"^```.*?^```$",  # run by tests, see below
        r"^    .*?$",  # formulas
        r"\$\$.*?\$\$|\$[^$\n]+\$",
        r"`[^`]*`",  # settings in code
        r"\]\([^)]*\)",  # addresses
    )
]
DECIMAL = re.compile(r"(?<![\w.])\d*\.\d+(?!\w|\.\d)")
TYPED = {
    "README": {"3.11": "version of Python"},
    "start": {"3.11": "version of Python"},
    "diagnose": {"0.2": "the bar of the claim, in the table above the text"},
    "gpu": {"7.5": "compute capability", "8.0": "compute capability"},
    "scikit_learn": {"0.5": "what chance has"},
    "serving": {"0.99": "the default of the recall that is asked for"},
    "averaging": {"1.1": "the usual bar of R-hat"},
    "memory": {"1.5": "size of the generated data, in millions"},
    "updates": dict.fromkeys(("0.2", "0.5"), "bars of the drift in percent, settings of an update"),
    "how_good": dict.fromkeys(("0.1570", "0.1214", "0.1830", "0.1554"), "published, in the papers named"),
    "methods": {"0.01": "a default"},
    "performance": {"4.5": "size of the generated data, in millions"},
    "amf": {
        **dict.fromkeys(("0.06", "0.005", "1.5", "0.02", "0.01", "0.001", "0.2"), "settings of the runs"),
        "1.231": "printed in the paper",
    },
    "exmlds": {**dict.fromkeys(("0.55", "1.5"), "constants of propensities"), "0.9": "a setting of the runs"},
    "exmlds_joint": {"0.3": "a setting of the runs"},
    "gimc": dict.fromkeys(("0.003", "0.3"), "settings that were tried"),
    "gimc_clustering": dict.fromkeys(("0.1", "0.2"), "how the data is made, and a setting"),
    "pu": dict.fromkeys(("0.9", "0.5", "0.1", "0.95"), "how the data is made, and the weight that follows"),
    "pu_links": {
        **dict.fromkeys(("0.75", "0.999", "0.5"), "settings that were tried"),
        **dict.fromkeys(("1.14", "1.08"), "printed in the paper"),
    },
}
"""Decimals in the text of a page, with the reason why they are no results of ours."""


def typed(text: str) -> list[str]:
    """Decimals in what somebody wrote by hand."""
    for pattern in NOT_TEXT:
        text = pattern.sub("", text)
    return [found.lstrip("0") or found for found in DECIMAL.findall(text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_results_are_not_typed_by_hand(page: Path) -> None:
    allowed = {number.lstrip("0") for number in TYPED.get(page.stem, {})}
    found = sorted(set(typed(page.read_text(encoding="utf-8"))) - allowed)
    assert not found, (
        f"{page.name}: write these by benchmarks/pages.py, or say in TYPED what they are: {found}"
    )


def test_reasons_are_not_kept_for_numbers_that_are_gone() -> None:
    for page in PAGES:
        there = set(typed(page.read_text(encoding="utf-8")))
        same = [other for other in PAGES if other.stem == page.stem]
        there = there.union(*(typed(other.read_text(encoding="utf-8")) for other in same))
        gone = {number for number in TYPED.get(page.stem, {}) if number.lstrip("0") not in there}
        assert not gone, f"{page.name}: {gone}"


def test_a_typed_number_is_noticed() -> None:
    page = "error 0.91\n\n<!-- table: x -->\n0.92\n<!-- end -->\n`0.93`\n\n```python\n0.94\n```\n"
    assert typed(page) == [".91"]


def test_tutorials_print_what_they_say() -> None:
    """Text of notebooks has no decimals at all: they would not follow the run."""
    for path in sorted((DOCS / "tutorials").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        assert not typed(text), f"{path.name}: {typed(text)}"


# -- code -----------------------------------------------------------------------------

FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
RUN = {"pycon", "python", "text", "{toctree}", "{include}"}
"""Run, or compared with what is printed, by tests/test_docs.py; or no code."""
SESSIONS_RUN = {"command_line", "by_command"}
NO_COMMAND_OF_OURS = {"pip", "make", "python", ".venv/bin/python", ".venv/bin/pre-commit", "cat", "cd", "git"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_are_of_a_kind_that_tests_run(page: Path) -> None:
    kinds = {kind for kind, _ in FENCE.findall(page.read_text(encoding="utf-8"))}
    assert kinds <= {*RUN, "console"}, f"{page.name}: nothing runs {kinds - RUN}"


def commands() -> dict[str, set[str]]:
    """Options of each command."""
    typer = pytest.importorskip("typer", reason="the command needs unseen[cli]")
    from unseen.cli.app import app

    group = typer.main.get_command(app)
    return {
        name: {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
        for name, command in group.commands.items()
    }


def unknown(line: str, known: dict[str, set[str]]) -> list[str]:
    """What a line of a session asks for and the command does not have."""
    words = line.split(" #")[0].split()
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        words = words[1:]
    if not words or words[0] in NO_COMMAND_OF_OURS:
        return []
    if words[0] != "unseen":
        return [words[0]]
    if words[1].startswith("-"):
        return []
    if words[1] not in known:
        return [words[1]]
    options = {word.split("=")[0] for word in words[2:] if re.match(r"--?[a-z]", word)}
    return sorted(options - known[words[1]] - {"--help"})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_sessions_that_are_only_shown_use_commands_that_exist(page: Path) -> None:
    if page.stem in SESSIONS_RUN:
        return
    known = commands()
    for kind, block in FENCE.findall(page.read_text(encoding="utf-8")):
        if kind == "console":
            for line in re.findall(r"^\$ (.*)$", block, flags=re.MULTILINE):
                for piece in re.split(r"\s(?:\||&&)\s", line):
                    assert not unknown(piece, known), f"{page.name}: {line}"


def test_a_command_that_is_not_there_is_noticed() -> None:
    known = commands()
    assert unknown("unseen fit a.csv --no-such-option", known) == ["--no-such-option"]
    assert unknown("unseen fitt a.csv", known) == ["fitt"]
    assert not unknown("unseen fit a.csv --out model", known)


# -- the reference --------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    """What the pages of the reference say beside docstrings."""
    spec = importlib.util.spec_from_file_location("reference", DOCS / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_shared_options_are_on_one_page(reference: ModuleType) -> None:
    assert reference.OPTIONS.read_text(encoding="utf-8") == reference.options(), "python -m docs.reference"


def test_every_estimator_says_what_it_is_good_at_and_what_does_the_same(reference: ModuleType) -> None:
    import unseen
    from unseen.estimators import Completer, PairClusterer
    from unseen.multilabel import MultiLabelClassifier

    for name in unseen.__all__:
        found = getattr(unseen, name)
        if isinstance(found, type) and issubclass(found, (Completer, PairClusterer, MultiLabelClassifier)):
            assert reference.what_it_is_good_at(name), f"{name}: add it to AT_WORK in docs/reference.py"
            assert reference.see_also(name), f"{name}: add it to GROUPS or BESIDE in docs/reference.py"


def test_the_reference_names_classes_and_pages_that_exist(reference: ModuleType) -> None:
    import unseen

    named = {other for name in reference.BESIDE for other in (name, *reference.BESIDE[name])}
    modules = [unseen, unseen.baselines, unseen.links, unseen.distributed, unseen.solvers, unseen.diagnostics]
    for name in {*named, *(name for group in reference.GROUPS for name in group)}:
        assert any(hasattr(module, name.rsplit(".", 1)[-1]) for module in modules), name
    for pages in reference.AT_WORK.values():
        for page in pages:
            assert (DOCS / f"{page[1:]}.md").exists(), page


def test_a_class_stands_where_stored_comparisons_put_it(reference: ModuleType) -> None:
    case = reference.cases()["FilmTrust"]
    scores = {
        entry["estimator"]: sum(entry["scores"]["rmse"]) / 3
        for entry in case["entries"]
        if entry["method"] != "mean"
    }
    best = min(scores, key=lambda name: scores[name])
    lines = {line[0]: line for line in reference.standing(best)}
    assert lines["FilmTrust"][2] == f"**{scores[best]:.4g}**"
    assert lines["FilmTrust"][4] == "itself"
    assert lines["FilmTrust"][3] == f"BiasModel {scores['BiasModel']:.4g}"


def test_shared_options_go_to_a_section_of_their_own(reference: ModuleType) -> None:
    import inspect

    from unseen import IMC

    lines = inspect.getdoc(IMC).split("\n")
    apart = reference.shared_apart(lines)
    own, other = apart.index("Parameters"), apart.index("Other Parameters")
    names = [line.split(" :")[0] for line in apart[own:other] if " : " in line and not line.startswith(" ")]
    assert "rank" in names
    assert "verbose" not in names
    assert {line for line in lines if line.strip()} <= {line for line in apart if line.strip()} | {
        line for line in lines if line.startswith("    ")
    }
