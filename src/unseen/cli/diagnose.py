"""``unseen diagnose``: what the cells of a file can decide."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unseen.cli import options as o
from unseen.cli.output import Output

if TYPE_CHECKING:
    from unseen.data import Observations
    from unseen.diagnostics import Diagnosis
    from unseen.report import Kind, Report

__all__ = ["diagnose"]

PictureFree = Annotated[bool, typer.Option("--no-figures", help="A page without pictures.")]


def diagnose(
    out: Output,
    source: Annotated[Path, typer.Argument(metavar="DATA", help="File with one cell in each line.")],
    rank: Annotated[int, typer.Option("--rank", help="Rank of the model that one has in mind.")] = 10,
    target: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Also write an HTML page.")
    ] = None,
    no_figures: PictureFree = False,
    probes: Annotated[int, typer.Option(help="Random matrices of the isometry probe.")] = 10,
    row: o.Row = None,
    col: o.Col = None,
    value: o.Value = None,
    no_value: o.NoValue = False,
    sep: o.Sep = None,
    no_header: o.NoHeader = None,
    encoding: o.Encoding = "utf-8",
    wide: o.Wide = False,
    edges: o.EdgeList = o.Edges.NO,
    seed: o.Seed = 0,
    n_jobs: o.NJobs = None,
) -> None:
    """Say whether the cells of DATA can decide the others: blocks, counts, and a verdict."""
    from unseen.cli.sinks import replacing
    from unseen.diagnostics import diagnose as examine

    # The task only says that a file without values will do.
    file = o.cell_file(
        source,
        row,
        col,
        value,
        no_value,
        sep,
        no_header,
        edges,
        task="positive",
        encoding=encoding,
        wide=wide,
    )
    cells = file.read()
    found = examine(cells, rank, n_probes=probes, random_state=seed, n_jobs=n_jobs)
    if target is not None:
        page = make_page(found, cells, source.name, figures=not no_figures)
        with replacing(target) as temporary:
            temporary.write_text(page.html(), encoding="utf-8")
    document: dict[str, Any] = {
        "command": "diagnose",
        "data": str(source),
        "out": None if target is None else str(target),
        **found.to_dict(),
    }

    def show() -> None:
        for title, headers, rows in found.tables():
            out.table(headers, rows, title=title)
        for sentence in found.verdict:
            out.say(sentence)
        if target is not None:
            out.say(f"Report: {target}")

    out.result(document, show)


def make_page(found: Diagnosis, cells: Observations, name: str, *, figures: bool = True) -> Report:
    """Put a diagnosis on a page."""
    from unseen.report import Report

    whole = found.whole
    page = Report(
        f"What {name} can decide",
        f"{whole.n_rows:,} rows, {whole.n_cols:,} columns, {whole.n_cells:,} known cells; rank {whole.rank}.",
    )
    word, kind = _in_short(found)
    counts = f"{whole.per_freedom:.2g} cells a degree of freedom; {whole.per_needed:.2g} times r(n+m)ln(nm)."
    page.section("Verdict").verdict(word, counts, kind).text(*found.verdict)
    if figures:
        from matplotlib.figure import Figure

        from unseen.plotting import DiagnosisDisplay

        axes = Figure(figsize=(10.5, 4.6), layout="constrained").subplots(1, 2)
        shown = DiagnosisDisplay.from_observations(cells, diagnosis=found, axes=axes)
        caption = (
            "Left, the known cells, rows and columns sorted by connected block and by number of cells. "
            "Right, the share of rows and columns with at least so many cells."
        )
        page.figures([(shown.figure_, caption)], wide=True)
    page.section("In numbers")
    for title, headers, rows in found.tables():
        page.table(headers, rows, caption=title)
    return page.what_next(
        [
            (
                f"unseen compare {name}",
                "Which methods come closest to held-out cells, simple baselines included.",
            ),
            (f"unseen diagnose {name} --rank {max(1, whole.rank // 2)}", "The same for half the rank."),
            ("unseen serve model", "After a fit: each prediction in the browser, with how sure it is."),
        ]
    )


def _in_short(found: Diagnosis) -> tuple[str, Kind]:
    """The first sentence of the verdict in a few words, with a colour."""
    if found.n_values == 1:
        return "All values are equal", "partly"
    if found.whole.per_needed >= 1:
        return "Enough cells", "good"
    if found.whole.per_freedom >= 1:
        return "Few cells", "partly"
    return "Too few cells", "bad"
