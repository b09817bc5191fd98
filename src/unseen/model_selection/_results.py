"""A list of results that turns into a table."""

from __future__ import annotations

from typing import Any

from unseen.validation import check_choice

__all__ = ["ResultTable"]


class ResultTable(list[dict[str, Any]]):
    """Results as a plain list of dicts, with a way to a data frame.

    Examples
    --------
    >>> from unseen.model_selection import ResultTable
    >>> table = ResultTable([{"fold": 0, "rmse": 1.0}, {"fold": 1, "rmse": 2.0}])
    >>> table.mean("rmse")
    1.5
    >>> table.to_frame().shape
    (2, 2)
    """

    def column(self, name: str) -> list[Any]:
        """All values of one field.

        Parameters
        ----------
        name : str
            Field.

        Returns
        -------
        list
            In the order of the results.
        """
        return [row[name] for row in self]

    def mean(self, name: str) -> float:
        """Mean of a numeric field.

        Parameters
        ----------
        name : str
            Field.

        Returns
        -------
        float
            NaN without results.
        """
        values = self.column(name)
        return float(sum(values) / len(values)) if values else float("nan")

    def to_frame(self, backend: str = "pandas") -> Any:
        """Make a data frame; parameters become columns ``param_...``, folds ``fold0``, ``fold1``, ...

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"
            Library of the frame, which must be installed.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            One row for each result.
        """
        check_choice("backend", backend, ("pandas", "polars", "pyarrow"))
        flat = [_flatten(row) for row in self]
        names = list(dict.fromkeys(name for row in flat for name in row))
        columns = {name: [row.get(name) for row in flat] for name in names}
        if backend == "pandas":
            import pandas as pd

            return pd.DataFrame(columns)
        if backend == "polars":
            import polars as pl

            return pl.DataFrame(columns, strict=False)
        import pyarrow as pa

        return pa.table(columns)


def _flatten(row: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name == "params":
            flat.update({f"param_{key}": _cell(entry) for key, entry in value.items()})
        elif name == "fold_scores":
            flat.update({f"fold{number}": entry for number, entry in enumerate(value)})
        else:
            flat[name] = value
    return flat


def _cell(value: Any) -> Any:
    """Leave what fits a column of a frame; show the rest, such as estimators, as text."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
