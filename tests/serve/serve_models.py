"""What the tests of the server know about their model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ROWS = ["<script>alert(1)</script>", "ü\u2028", "u'\"&;", *(f"user {number}" for number in range(30))]
COLS = [10 * number for number in range(24)]


@dataclass(frozen=True)
class Small:
    model: Any
    cells: Any

    def row(self, name: str) -> int:
        return int(self.model.row_ids_.index_of([name])[0])

    def col(self, name: int) -> int:
        return int(self.model.col_ids_.index_of([name])[0])
