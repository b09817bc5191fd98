"""``unseen reproduce``: tables and figures of the papers, run again."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from unseen.cli.errors import UsageError
from unseen.cli.output import Output

__all__ = ["reproduce"]


def reproduce(
    out: Output,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", help="Experiments, papers, or all; --list names them."),
    ] = None,
    directory: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Results; parts found there are not repeated.")
    ] = Path("reproduction"),
    quick: Annotated[bool, typer.Option("--quick", help="Smaller sizes and fewer repetitions.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run everything again.")] = False,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, metavar="N", help="Experiments to run at the same time.")
    ] = 1,
    listing: Annotated[bool, typer.Option("--list", help="Name the experiments and end.")] = False,
) -> None:
    """Run tables and figures of the papers again; writes JSON, CSV and one page."""
    catalogue = experiments("catalogue")
    known, papers = catalogue.EXPERIMENTS, catalogue.PAPERS
    if listing:
        lines = [(e.name, e.paper, e.shows, ", ".join(e.datasets)) for e in known.values()]
        document = {"command": "reproduce", "experiments": [list(line) for line in lines], "papers": papers}
        out.result(document, lambda: out.table(["name", "paper", "shows", "real data"], lines))
        return
    chosen = []
    for name in names or []:
        found = [e for e in known.values() if name in ("all", e.name, e.paper)]
        if not found:
            raise UsageError(f"{name}: there are {', '.join(known)}; {', '.join(papers)}; and all")
        chosen += [experiment for experiment in found if experiment not in chosen]
    if not chosen:
        raise UsageError("a name is needed; --list shows them, all runs everything")
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"--out {directory}: there is a file of that name; a directory is written")
    if jobs > 1:
        _run_side_by_side(out, chosen, directory, quick=quick, fresh=fresh, jobs=jobs)
        fresh = False  # what they left is read below
    _run(out, chosen, directory, quick=quick, fresh=fresh)


def experiments(module: str) -> Any:
    """A module of ``papers``, which stands beside the sources of this library and is not installed with it.

    This is the one place from which the library reaches it. Looked for above this file, then above the
    current folder.
    """
    here, start = Path(__file__).resolve(), Path.cwd()
    for folder in (*here.parents, start, *start.parents):
        if _is_checkout(folder):
            if sys.path[0] != str(folder):  # first: another package may have the same name
                sys.path.insert(0, str(folder))
            return import_module(f"papers.{module}")
    raise UsageError(
        "the experiments are not part of the installed package: clone the repository of unseen "
        "and run this command inside it"
    )


def _is_checkout(folder: Path) -> bool:
    project = folder / "pyproject.toml"
    return (
        (folder / "papers" / "__init__.py").is_file()
        and project.is_file()
        and 'name = "unseen"' in project.read_text(encoding="utf-8").splitlines()
    )


def _run_side_by_side(
    out: Output, chosen: list[Any], directory: Path, *, quick: bool, fresh: bool, jobs: int
) -> None:
    """Run each experiment in one of several processes; results are left in the directory."""
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    from tqdm import tqdm

    # New processes, not copies of this one: threads of a BLAS do not survive a fork.
    with ProcessPoolExecutor(min(jobs, len(chosen)), mp_context=get_context("spawn")) as pool:
        running = {
            pool.submit(run_alone, experiment.name, directory, quick, fresh): experiment.name
            for experiment in chosen
        }
        try:
            for done in tqdm(
                as_completed(running), total=len(running), disable=not out.progress, leave=False
            ):
                done.result()
                out.note(f"{running[done]} is done")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def run_alone(name: str, directory: Path, quick: bool, fresh: bool) -> None:
    """Run one experiment in this process."""
    experiment = experiments("catalogue").EXPERIMENTS[name]
    experiments("runner").run(experiment, directory, quick=quick, fresh=fresh)


def _run(out: Output, chosen: list[Any], directory: Path, *, quick: bool, fresh: bool) -> None:
    import matplotlib as mpl
    from tqdm import tqdm

    from unseen.cli.sinks import replacing

    run, make_page = experiments("runner").run, experiments("page").make_page
    mpl.use("Agg")
    outcomes = []
    for number, experiment in enumerate(chosen, 1):
        out.note(f"{number} of {len(chosen)}: {experiment.name}, {experiment.shows}")
        with tqdm(disable=not out.progress, leave=False) as bar:

            def progress(key: str, done: int, total: int, bar: Any = bar) -> None:
                bar.total = total
                bar.n = done
                bar.set_description(key)

            outcomes.append(run(experiment, directory, quick=quick, fresh=fresh, progress=progress))
    directory.mkdir(parents=True, exist_ok=True)
    page = directory / "index.html"
    with replacing(page) as temporary:
        temporary.write_text(make_page(outcomes).html(), encoding="utf-8")
    verdicts = [
        {
            "experiment": outcome.experiment.name,
            "claim": claim.text,
            "source": str(claim.source),
            "verdict": str(claim.verdict),
            "found": claim.why,
        }
        for outcome in outcomes
        for claim in outcome.claims()
    ]
    document = {
        "command": "reproduce",
        "report": str(page),
        "quick": quick,
        "claims": verdicts,
        "seconds": {outcome.experiment.name: outcome.seconds for outcome in outcomes},
    }

    def show() -> None:
        lines = [tuple(claim.values()) for claim in verdicts]
        out.table(["run", "claim", "who says so", "verdict", "found"], lines)
        print(f"Report: {page}")

    out.result(document, show)
