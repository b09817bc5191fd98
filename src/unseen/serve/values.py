"""Values of cells that come over the network: those that a model can have been fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unseen.serve.limits import RequestError

__all__ = ["check_values"]


def check_values(model: Any, cells: Sequence[dict[str, Any]]) -> None:
    """Refuse values that a model of positives cannot read; others are seen to when they are used.

    Parameters
    ----------
    model : completer
        Fitted.
    cells : sequence of dict
        ``cells`` of a checked request, each with a ``value``.
    """
    if "weights" not in model.get_params(deep=False):
        return
    for place, cell in enumerate(cells):
        value = cell["value"]
        if value < 0 or (model.weights is None and value not in (0, 1)):
            wanted = "1 (0 for none)" if model.weights is None else "0 or more"
            where = f"cells[{place}].value"
            raise RequestError(
                f"{where}: the model was fitted to positives: {wanted} is accepted, got {value:g}", where
            )
