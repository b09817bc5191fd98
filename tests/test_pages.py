"""What pages hold: no number typed by hand, no block of code that nothing runs."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
from pathlib import Path

import pytest

from docs import drawn, formulas, reference, standings

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


def test_shared_options_are_on_one_page() -> None:
    assert reference.OPTIONS.read_text(encoding="utf-8") == reference.options(), "python -m docs.reference"


def classes_of_the_reference() -> dict[str, type]:
    """Public classes on pages of their own, by their names with modules."""
    found = {}
    for page in sorted((DOCS / "api").glob("*.rst")):
        module = "unseen"
        for line in page.read_text(encoding="utf-8").splitlines():
            module = line.split()[-1] if line.startswith(".. currentmodule::") else module
            if not re.fullmatch(r"   (?:\w+\.)*\w+", line):
                continue
            *path, last = line.strip().split(".")
            if importlib.util.find_spec(place := ".".join([module, *path])) is not None:
                entry = getattr(importlib.import_module(place), last, None)
                if isinstance(entry, type):
                    found[f"{place}.{last}"] = entry
    return found


def test_every_estimator_says_what_it_is_good_at_and_what_does_the_same() -> None:
    import unseen
    from unseen.estimators import Completer, PairClusterer
    from unseen.multilabel import MultiLabelClassifier

    apart = {unseen.Imputer, unseen.Blend, unseen.SPPMIEmbedding}
    bases = (Completer, PairClusterer, MultiLabelClassifier)
    judged = 0
    for path, found in classes_of_the_reference().items():
        module, name = path.rsplit(".", 1)
        beyond = module == "unseen.distributed" and name.endswith("Completer")
        if module in ("unseen.estimators", "unseen.multilabel", "unseen.blends"):
            continue  # bases, and what Blend makes
        if found in apart or beyond or issubclass(found, bases):
            judged += 1
            assert any("list-table" in line for line in reference.what_it_is_good_at(name)), (
                f"{name}: no stored run has it; add one to docs/standings.py"
            )
            assert reference.see_also(name), f"{name}: add it to GROUPS or BESIDE in docs/reference.py"
    assert judged > 45


def test_every_display_has_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    made = 0
    for path, found in classes_of_the_reference().items():
        if path.startswith("unseen.plotting."):
            lines = drawn.picture(found, tmp_path)
            assert (tmp_path / f"{found.__name__}.svg").read_text(encoding="utf-8").count("<path") > 5
            assert any(":alt:" in line for line in lines)
            made += 1
    assert made == 9


def test_no_base_class_stands_among_the_estimators() -> None:
    from unseen.estimators import Completer
    from unseen.multilabel import MultiLabelClassifier

    apart = ("estimators", "multilabel")
    bases = {path.rsplit(".", 1)[1] for path in classes_of_the_reference() if path.split(".")[1] in apart}
    listed = (DOCS / "api" / "bases.rst").read_text(encoding="utf-8")
    assert bases <= set(re.findall(r"^   (?:\w+\.)*(\w+)$", listed, flags=re.MULTILINE))
    for base in (Completer, MultiLabelClassifier):
        assert any(found is base for found in classes_of_the_reference().values())


def test_objectives_of_docstrings_become_formulas() -> None:
    made = 0
    for path, found in classes_of_the_reference().items():
        for part in re.split(r"\n\s*\n", inspect.getdoc(found) or ""):
            lines = part.split("\n")
            if not formulas.STARTS.match(lines[0]):
                continue
            made += 1
            formula = "\n".join(formulas.objective(lines))
            left = re.sub(r"\\(?:text|mathtt|begin|end)\{[^}]*\}|\\[A-Za-z]+", "", formula)
            assert not re.search(r"\|\||sum_| \. |[A-Za-z]{3,}", left), f"{path}: {left}"
            assert formula.count("{") == formula.count("}"), path
            options = set(re.findall(r"\b\w*reg\w*|class_prior", part))
            shown = {name.replace("\\_", "_") for name in re.findall(r"mathtt\{([^}]*)\}", formula)}
            assert {re.sub("_[A-Z]$", "", option) for option in options} == shown, path
    assert made > 20


def test_the_reference_names_classes_and_pages_that_exist() -> None:
    import unseen

    named = {other for name in reference.BESIDE for other in (name, *reference.BESIDE[name])}
    modules = [unseen, unseen.baselines, unseen.links, unseen.distributed, unseen.solvers, unseen.diagnostics]
    for name in {*named, *(name for group in reference.GROUPS for name in group)}:
        assert any(hasattr(module, name.rsplit(".", 1)[-1]) for module in modules), name
    for pages in reference.AT_WORK.values():
        for page in pages:
            assert (DOCS / f"{page[1:]}.md").exists(), page


def test_a_class_stands_where_stored_comparisons_put_it() -> None:
    case = standings.suite("which_method")["cases"]["FilmTrust"]
    scores = {
        entry["estimator"]: sum(entry["scores"]["rmse"]) / 3
        for entry in case["entries"]
        if entry["method"] != "mean"
    }
    best = min(scores, key=lambda name: scores[name])
    lines = {line[0]: line for line in reference.standing(best)}
    line = lines[":doc:`FilmTrust </guide/which_method>`"]
    assert line[2] == f"**{scores[best]:.4g}**"
    assert line[4] == "itself"
    assert line[3] == f"BiasModel {scores['BiasModel']:.4g}"


def test_all_stored_cases_have_a_page_and_a_right_order() -> None:
    for first in (True, False):
        for case in standings.cases(first):
            assert (DOCS / f"{case.page[1:]}.md").exists(), case.data
            values = [score.value for score in case.ranked]
            assert values == sorted(values, reverse=case.greater)
            assert len(values) > 1, case.data


def test_shared_options_go_to_a_section_of_their_own() -> None:
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
