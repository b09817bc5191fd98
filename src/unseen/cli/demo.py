"""``unseen demo``: the main jobs on real and generated data, with a report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from unseen.cli.errors import UsageError
from unseen.cli.output import Output

__all__ = ["demo"]


def demo(
    out: Output,
    directory: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Where index.html and a model are written.")
    ] = Path("report"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of data, splits and models.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller data and fewer settings.")] = False,
) -> None:
    """Bring back a photograph, fill in digits and a table, predict ratings, cold rows, hidden positives."""
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"--out {directory}: there is a file of that name; a directory is written")
    import matplotlib as mpl

    from unseen.cli import demo_real as real
    from unseen.cli import demo_tasks as tasks
    from unseen.cli.demo_page import NEXT, make_page, surroundings
    from unseen.cli.sinks import replacing

    mpl.use("Agg")  # whatever screen there is, nothing is shown
    scale = tasks.QUICK if quick else tasks.FULL
    start = time.perf_counter()
    results = []
    jobs = (
        real.photograph,
        real.digits,
        real.table_of_measurements,
        tasks.missing_cells,
        tasks.cold_rows,
        tasks.hidden_positives,
    )
    for number, job in enumerate(jobs, 1):
        out.note(f"{number} of {len(jobs)}: {job.__name__.replace('_', ' ')} ...")
        results.append(job(scale, seed))
    seconds = time.perf_counter() - start
    page = make_page(results, scale, seed, seconds)
    directory.mkdir(parents=True, exist_ok=True)
    report = directory / "index.html"
    with replacing(report) as temporary:
        temporary.write_text(page.html(), encoding="utf-8")
    model = directory / "model"
    tasks.model_to_look_into(scale, seed).save(model, cells=True)
    document: dict[str, Any] = {
        "command": "demo",
        "report": str(report),
        "model": str(model),
        "quick": quick,
        "time_s": seconds,
        "run_with": surroundings(seed),
        "tasks": [
            {
                "task": result.name,
                "data": result.data,
                "measure": result.measure,
                "facts": result.facts,
                "methods": [
                    {"method": o.method, **o.scores, "settings": o.settings, "time_s": o.seconds}
                    for o in result.outcomes
                ],
            }
            for result in results
        ],
    }

    def show() -> None:
        rows = []
        for result in results:
            for outcome in result.outcomes:
                name = result.name if outcome is result.outcomes[0] else ""
                score = f"{result.measure} {outcome.scores[result.measure]:.3f}"
                mark = "best" if outcome is result.best() else ""
                rows.append((name, outcome.method, score, mark, outcome.settings, f"{outcome.seconds:.1f} s"))
        out.table(["task", "method", "held-out score", "", "chosen settings", "time"], rows)
        out.say(f"Report: {report}")
        out.say(f"A model to look into in the browser: unseen serve {model}")
        out.say("What next:")
        for command, text in NEXT:
            out.say(f"  {command:36s}{text}")

    out.result(document, show)
