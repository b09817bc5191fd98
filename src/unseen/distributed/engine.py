"""What a fit by blocks asks of whoever holds the blocks: run a function on each of them.

The driver knows the algorithm, the functions of :mod:`unseen.distributed.steps` know one block, and an engine
knows where blocks are: in files beside one process, or on the workers of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from unseen.distributed.blocks import Indices
from unseen.typing import FloatArray

__all__ = [
    "CELLS",
    "DESIGN",
    "FACTORS",
    "IDS",
    "SIDES",
    "TABLES",
    "Engine",
    "Held",
    "Touched",
    "WholeBlock",
    "other_side",
]

SIDES = ("row", "col")
TABLES = ("factors", "bias")
"""What has a line for each row (or column) of the target, of which other blocks want some."""


@dataclass(frozen=True)
class Held:
    """An argument: what the block holds under a name."""

    name: str


@dataclass(frozen=True)
class Touched:
    """An argument: the lines of a table of the other side that the block's cells touch, in their order.

    ``again`` says that the same lines will be asked for again before the table changes.
    """

    table: str = "factors"
    again: bool = False


@dataclass(frozen=True)
class WholeBlock:
    """An argument: one block of a table, for all blocks of the other side."""

    side: str
    number: int
    table: str = "factors"


CELLS, FACTORS, DESIGN, IDS = Held("cells"), Held("factors"), Held("design"), Held("ids")


def other_side(side: str) -> str:
    """Columns for rows, rows for columns."""
    return "col" if side == "row" else "row"


class Engine(Protocol):
    """Somebody who holds blocks and works on them.

    Sums over blocks are made in the order of the blocks, so that no result depends on who did what.
    """

    bounds: dict[str, Indices]
    """Where blocks of rows and columns begin and end."""
    recomputes: bool
    """Whether lost blocks are made again from what led to them, so that files are a better place to start."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the target."""
        ...

    def each(
        self, side: str, function: Callable[..., Any], *args: Any, keep: str | None = None, wait: bool = True
    ) -> list[Any]:
        """Run a function on every block of one side; what it gives, in the order of the blocks.

        `Held`, `Touched` and `WholeBlock` among the arguments become what they stand for, lists are taken
        apart (one element for each block), all else is passed as it is. With ``keep`` the function gives two
        things: one that the block holds under that name from now on, and a small one that comes back; without
        ``wait`` nothing comes back, and the work may still be under way.
        """
        ...

    def total(self, side: str, function: Callable[..., Any], *args: Any) -> FloatArray:
        """Sum over the blocks of one side of what a function gives, in float64."""
        ...

    def drop(self, side: str, name: str) -> None:
        """Let go of what the blocks hold under a name."""
        ...

    def table(self, side: str, name: str = "factors") -> FloatArray:
        """All lines of a table, in this process."""
        ...

    def all_ids(self, side: str) -> Any:
        """Ids of all rows or columns as an argument for :meth:`each`; None if ids are indices."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...
