"""Lists for rows that were not in the training data, by their cells, their features or both."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unseen.cli.feature_files import FeatureFile
from unseen.cli.sources import find, like_training, onto_training, some_rows, training_ids
from unseen.data import Observations, Vocabulary
from unseen.exceptions import DataWarning, InvalidDataError
from unseen.typing import Features

__all__ = ["NewRows", "names_of_columns"]


@dataclass(frozen=True)
class NewRows:
    """Rows to make lists for.

    Attributes
    ----------
    ids : Vocabulary
        What they are called.
    cells : Observations or None
        Their known cells, in the training columns.
    features : array, sparse matrix or None
        Their features, in the columns that the model knows.
    """

    ids: Vocabulary
    cells: Observations | None
    features: Features | None

    @classmethod
    def read(
        cls,
        model: Any,
        cells_path: Path | None,
        features_path: Path | None,
        id_column: str | None,
        **how: Any,
    ) -> NewRows:
        """Read what is given; ``how`` says how the file of cells is written, as `like_training` takes it."""
        source = getattr(model, "source_", None) or {}
        names = source.get("row_feature_names")
        encoding = how.get("encoding", "utf-8")
        like = str(source.get("row", "row"))
        if cells_path is None:
            assert features_path is not None
            table = FeatureFile(features_path, id_column, encoding, of_new_rows=True)
            found = table.of_new_ids(training_ids(model, "row"), like, names)
            if found is None:
                raise InvalidDataError(f"{features_path}: every id is that of a training row; use --rows")
            return cls(found[0], None, found[1])
        has_values = source.get("value", "") is not None
        file = like_training(model, cells_path, has_values=has_values, weighted=True, **how)
        given = file.read()
        assert given.row_ids is not None
        cells, unknown = onto_training(given, given.row_ids, training_ids(model, "col"))
        if unknown["col"].size:
            shown = ", ".join(map(repr, unknown["col"][:5].tolist()))
            warnings.warn(
                f"{cells_path}: {unknown['col'].size} columns that the model does not know say nothing "
                f"and are left out: {shown}",
                DataWarning,
                stacklevel=2,
            )
        known = np.isin(np.arange(len(given.row_ids)), cells.rows)
        if not known.any():
            raise InvalidDataError(f"{cells_path}: no cell is of a column that the model knows")
        cells, ids = some_rows(cells, np.flatnonzero(known)), Vocabulary(given.row_ids.values[known])
        features = None
        if features_path is not None:
            table = FeatureFile(features_path, id_column, encoding)
            features = table.of_ids(ids, file.columns()[0], names)
        return cls(ids, cells, features)

    def lists(self, model: Any, k: int, step: int, **options: Any) -> Iterator[tuple[Any, Any, Any]]:
        """Places of some rows among the ids at a time, their columns and the scores."""
        for start in range(0, len(self.ids), step):
            part = np.arange(start, min(start + step, len(self.ids)))
            cells = None if self.cells is None else some_rows(self.cells, part)
            features = None if self.features is None else self.features[part]
            yield (part, *model.recommend(cells=cells, row_features=features, k=k, positions=True, **options))


def names_of_columns(path: Path, ids: Vocabulary, like: str, encoding: str) -> tuple[str, Any]:
    """What the second column of a table is called, and its text for each id; nothing for those not in it."""
    table, id_column = FeatureFile(path, None, encoding).read(like, ids)
    others = [name for name in table.column_names if name != id_column]
    if not others:
        raise InvalidDataError(f"{path}: a column with names is wanted beside that of the ids")
    place = find(ids, table[id_column])
    names = np.full(len(ids), "", dtype=object)
    texts = np.array(
        [("" if text is None else str(text)) for text in table[others[0]].to_pylist()], dtype=object
    )
    names[place[place >= 0]] = texts[place >= 0]
    return ("name" if others[0].isdecimal() else others[0]), names
