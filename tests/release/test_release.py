"""What is said in several places agrees: version, dependencies, systems."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import unseen
from release.__main__ import NOT_COPIED, RECIPE, ROOT, contradictions, version_of

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_version_stands_in_one_place() -> None:
    assert "version" in PROJECT["project"]["dynamic"]
    assert version_of() == unseen.__version__ == version("unseen")
    assert [words for words in contradictions() if "no date" not in words] == []


@pytest.mark.parametrize("file", ["CITATION.cff", RECIPE, "CHANGELOG.md"])
def test_another_version_would_be_seen(tmp_path: Path, file: str) -> None:
    for name in ("CITATION.cff", RECIPE, "CHANGELOG.md", "src/unseen/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    changed = tmp_path / file
    changed.write_text(changed.read_text().replace(unseen.__version__, "9.9.9"))
    assert any(file in words and "9.9.9" in words for words in contradictions(tmp_path))


def test_the_conda_recipe_asks_for_what_the_package_asks_for() -> None:
    recipe = (ROOT / RECIPE).read_text()
    wanted = {re.sub(r"(>=|<)", r" \1", need, count=1) for need in PROJECT["project"]["dependencies"]}
    asked = set(re.findall(r"^    - (\S+ [<>=].*)$", recipe[recipe.index("  run:") :], re.MULTILINE))
    assert wanted <= asked
    for need in PROJECT["build-system"]["requires"]:
        assert re.sub(r">=", " >=", need) in recipe


def test_the_workflow_has_no_secret_and_a_wheel_for_each_system() -> None:
    flow = (ROOT / ".github/workflows/wheels.yml").read_text()
    assert "secrets." not in flow
    for words in (
        "id-token: write",
        "attest-build-provenance",
        "attest-sbom",
        "windows-latest",
        "ubuntu-24.04-arm",
    ):
        assert words in flow
    settings = PROJECT["tool"]["cibuildwheel"]
    assert "musllinux" not in " ".join(settings["skip"])
    assert settings["build"] == ["cp311-*", "cp312-*"]


def test_what_is_installed_works_without_the_sources(tmp_path: Path) -> None:
    assert "src" in NOT_COPIED
    script = ROOT / "release" / "try_it.py"
    done = subprocess.run(
        [sys.executable, "-I", str(script)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    if "the kernels are reference" in done.stderr:
        pytest.skip("no native kernels here")
    assert done.returncode == 0, done.stderr
    assert unseen.__version__ in done.stdout
