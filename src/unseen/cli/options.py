"""Options that several commands share."""

from __future__ import annotations

import codecs
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unseen.cli.errors import UsageError
from unseen.cli.methods import METHODS

if TYPE_CHECKING:
    from unseen.cli.sources import CellFile

__all__ = ["Edges", "Missing", "cell_file", "has_header", "hyper_parameters"]


class Edges(StrEnum):
    """Whether a file is a list of edges."""

    NO = "no"
    UNDIRECTED = "undirected"
    DIRECTED = "directed"


class Missing(StrEnum):
    """What to do about an id without features."""

    ERROR = "error"
    ZERO = "zero"
    MEAN = "mean"


def _known_encoding(name: str) -> str:
    try:
        codecs.lookup(name)
    except LookupError:
        raise UsageError(
            f"--encoding {name}: no such encoding; utf-8, latin-1 and cp1252 are frequent"
        ) from None
    return name


CELLS = "Cells"
FEATURES = "Side features"
SETTINGS = "Settings of the method"
METHOD_HELP = f"One of {', '.join(METHODS)}."

ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="Directory that `unseen fit` wrote.")]
OptionalModelPath = Annotated[
    Path | None,
    typer.Argument(metavar="[MODEL]", help="What `unseen fit` wrote; else what computes here."),
]
Row = Annotated[
    str | None,
    typer.Option("--row", metavar="NAME", help="Column with row ids, by name or position from 0 [first]."),
]
Col = Annotated[
    str | None, typer.Option("--col", metavar="NAME", help="Column with the ids of columns [second].")
]
Value = Annotated[str | None, typer.Option("--value", metavar="NAME", help="Column with values [third].")]
NoValue = Annotated[bool, typer.Option("--no-value", help="Each line counts one; there is no value column.")]
Weight = Annotated[
    str | None,
    typer.Option("--weight", metavar="NAME", help="Column with how much each cell counts [all count one]."),
]
Time = Annotated[
    str | None,
    typer.Option("--time", metavar="NAME", help="Column with when each cell arose: numbers or dates."),
]
Sep = Annotated[
    str | None,
    typer.Option(
        "--sep", metavar="CHAR", help="What separates fields, such as ; or tab [seen from the file]."
    ),
]
NoHeader = Annotated[
    bool | None,
    typer.Option("--no-header/--header", help="The first line holds data, or names [as it looks]."),
]
Encoding = Annotated[
    str,
    typer.Option(
        "--encoding", metavar="NAME", callback=_known_encoding, help="Encoding of text, such as latin-1."
    ),
]
Wide = Annotated[
    bool,
    typer.Option("--wide", help="A line holds a whole row: its id, then a value or nothing for each column."),
]
EdgeList = Annotated[
    Edges,
    typer.Option("--edges", help="Read a list of edges, two node ids in each line, into a square matrix."),
]
RowFeatures = Annotated[
    Path | None, typer.Option("--row-features", metavar="FILE", help="Table with features of the rows.")
]
ColFeatures = Annotated[
    Path | None, typer.Option("--col-features", metavar="FILE", help="Table with features of the columns.")
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id-column",
        metavar="NAME",
        help="Its column of ids [named like that of the cells, else the first].",
    ),
]
MissingFeatures = Annotated[Missing, typer.Option("--missing", help="What to do about ids without features.")]
MethodName = Annotated[str, typer.Option("--method", metavar="NAME", help=METHOD_HELP)]
OptionalMethodName = Annotated[str | None, typer.Option("--method", metavar="NAME", help=METHOD_HELP)]
Task = Annotated[
    str | None,
    typer.Option(
        "--task",
        metavar="NAME",
        help="Meaning of the data: explicit, positive, links, multilabel or clustering [that of the method].",
    ),
]
Rank = Annotated[int | None, typer.Option("--rank", help="Columns of the factors.")]
Reg = Annotated[
    str | None,
    typer.Option("--reg", metavar="NUMBER", help="Weight of the penalty; some methods take 0.1max too."),
]
Center = Annotated[
    str | None,
    typer.Option(
        "--center",
        metavar="NAME",
        help="Subtract first: none, mean or biases; joint learns biases with the factors.",
    ),
]
MaxIter = Annotated[int | None, typer.Option("--max-iter", help="Limit of sweeps.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of everything random.")]
NJobs = Annotated[int | None, typer.Option("--n-jobs", help="Threads [all cores].")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any other setting, value as JSON; may be repeated."),
]
Dask = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        help="Work on a Dask cluster: tcp://host:port, or local for one here.",
    ),
]
ColNames = Annotated[
    Path | None,
    typer.Option("--col-names", metavar="FILE", help="Ids of columns and what they are called: titles."),
]
Defuse = Annotated[
    bool,
    typer.Option("--defuse", help="Put ' before text that a spreadsheet would run as a formula."),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        callback=lambda path: None if path == Path("-") else path,
        help="CSV, TSV (also .gz) or Parquet by its ending [stdout].",
    ),
]


def cell_file(
    path: Path,
    row: str | None,
    col: str | None,
    value: str | None,
    no_value: bool,
    sep: str | None,
    no_header: bool | None,
    edges: Edges,
    *,
    task: str,
    weight: str | None = None,
    time: str | None = None,
    encoding: str = "utf-8",
    wide: bool = False,
) -> CellFile:
    """The file of cells that the options describe; positives need no values, links have none."""
    from unseen.cli.sources import CellFile
    from unseen.cli.tables import looks_extreme

    links = task == "links"
    if looks_extreme(path):
        raise UsageError(
            f"{path} is a file of features and labels by its first line: --task multilabel reads it"
        )
    if links and value is not None:
        raise UsageError(f"--value {value}: links have no values, each line is one")
    if links and weight is not None:
        raise UsageError(f"--weight {weight}: links have no weights, each line is one")
    if links and time is not None:
        raise UsageError(f"--time {time}: links are held out at random, without times")
    if links and edges is Edges.DIRECTED:
        raise UsageError("--edges directed: the task links is for graphs without directions")
    if no_value and value is not None:
        raise UsageError("--value and --no-value exclude each other")
    if wide and (links or edges is not Edges.NO or col is not None or value is not None or no_value):
        raise UsageError("--wide: a whole matrix has neither links nor --col, --value or --no-value")
    file = CellFile(
        path,
        row,
        col,
        value,
        has_values=not (no_value or links),
        sep=sep,
        edges=edges.value,
        values_optional=task != "explicit",
        links=links,
        weight=weight,
        time=time,
        encoding=encoding,
        wide=wide,
    )
    return file.seen(has_header(no_header))


def has_header(no_header: bool | None) -> bool | None:
    """What ``--no-header`` or ``--header`` say; None where neither is given."""
    return None if no_header is None else not no_header


def hyper_parameters(
    rank: int | None,
    reg: str | None,
    center: str | None,
    max_iter: int | None,
    seed: int,
    n_jobs: int | None,
    verbose: int,
) -> dict[str, Any]:
    """The options under the names that estimators give them."""
    return {
        "rank": rank,
        "reg": reg,
        "center": center,
        "max_iter": max_iter,
        "random_state": seed,
        "n_jobs": n_jobs,
        "verbose": verbose,
    }
