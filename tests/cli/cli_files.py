"""Names and shapes of the small files that the tests of the command share."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

N_ROWS, N_COLS = 30, 20
USERS = [f'ü{number}, "x"' if number == 3 else f"ü{number}" for number in range(N_ROWS)]
ITEMS = [10 * number for number in range(N_COLS)]


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.out)


Run = Callable[..., Ended]


@dataclass(frozen=True)
class Files:
    home: Path
    ratings: Path
    pairs: Path
    row_features: Path
    col_features: Path
