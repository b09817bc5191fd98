"""Several maps side by side, and which cells were seen as features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from unseen.data import Observations
from unseen.exceptions import ParameterError
from unseen.linalg.designs import Design, IdentityDesign, as_design
from unseen.maps.base import FeatureMap, MapParams
from unseen.maps.linear import Identity
from unseen.typing import CSR, Array, Features, FloatArray

__all__ = ["History", "Joined", "JoinedDesign", "Seen", "history_of"]


class Seen(NamedTuple):
    """What maps of one side get where one of them reads cells: features, if there are any, and histories."""

    features: Features | None
    history: CSR


def history_of(pattern: Observations, weights: Array | None, side: str, dtype: np.dtype) -> CSR:
    """Which cells each entity has: ones at them, divided by the root of their number.

    Cells of weight zero say nothing, not even that they were seen.
    """
    ones = np.ones(len(pattern.indices)) if weights is None else (weights > 0).astype(np.float64)
    given = sparse.csr_array((ones, pattern.indices, pattern.indptr), shape=pattern.shape)
    cells = sparse.csr_array(given if side == "row" else given.T, copy=True)
    if weights is not None:
        cells.eliminate_zeros()
    counts = np.maximum(np.diff(cells.indptr), 1)
    cells.data = np.repeat(1.0 / np.sqrt(counts), np.diff(cells.indptr)).astype(dtype)
    return cells


class History(FeatureMap):
    """Which cells of an entity are observed, as features: ``x_i = n_i^(-1/2) sum_j e_j`` over its n_i cells.

    What somebody chose to rate says something about them, whatever the ratings. The features come from the
    training cells of each fit, so nothing of held-out cells is in them, and nobody needs to build a matrix.
    A row that is folded in has the history of its cells; one that is known by features alone has none.

    Examples
    --------
    >>> from unseen import History, Identity, Joined
    >>> Joined([Identity(), History()])
    Joined(maps=[Identity(), History()])
    """

    needs_features = False
    reads_cells = True

    def init(self, features: Features | None, n_entities: int, rng: np.random.Generator) -> MapParams:
        return {}

    def apply(
        self, features: Features | None, n_entities: int, params: MapParams, n_threads: int = 1
    ) -> Design:
        seen: object = features
        assert isinstance(seen, Seen)
        return as_design(seen.history, n_threads)


class Joined(FeatureMap):
    """Several maps side by side: a score is the sum of what each contributes.

    ``Joined([Identity(), Given()])`` gives each entity coefficients of its own beside those of its features:
    where features are known, the own ones are what they leave. Under :class:`~unseen.solvers.Gibbs` the own
    coefficients are draws around what the features say, with a weight for each of the other maps that is
    learned; ``Identity`` must be among them then.

    Parameters
    ----------
    maps : sequence of FeatureMap
        Fixed maps such as ``Identity()``, ``Given()``, ``History()``.

    Examples
    --------
    >>> from unseen import Given, Identity, Joined
    >>> Joined([Identity(), Given()]).needs_features
    True
    """

    def __init__(self, maps: Sequence[FeatureMap] = ()) -> None:
        self.maps = maps

    @property
    def needs_features(self) -> bool:  # type: ignore[override]
        """Whether one of the maps does."""
        return any(part.needs_features for part in self.maps)

    @property
    def reads_cells(self) -> bool:  # type: ignore[override]
        """Whether one of the maps does."""
        return any(part.reads_cells for part in self.maps)

    def init(self, features: Features | None, n_entities: int, rng: np.random.Generator) -> MapParams:
        if not self.maps or any(part.learned or isinstance(part, Joined) for part in self.maps):
            raise ParameterError(f"Joined takes one or more fixed maps, found {self.maps!r}")
        own = _given(features)
        return {
            f"{place}.{name}": value
            for place, part in enumerate(self.maps)
            for name, value in part.init(own, n_entities, rng).items()
        }

    def apply(
        self, features: Features | None, n_entities: int, params: MapParams, n_threads: int = 1
    ) -> JoinedDesign:
        own = _given(features)
        parts = []
        for place, part in enumerate(self.maps):
            prefix = f"{place}."
            of_part = {k.removeprefix(prefix): v for k, v in params.items() if k.startswith(prefix)}
            source = features if part.reads_cells else own
            parts.append(part.apply(source, n_entities, of_part, n_threads))
        return JoinedDesign(parts)

    def feature_designs(
        self, features: Features | Seen | None, n_entities: int, params: MapParams, n_threads: int = 1
    ) -> list[Design]:
        """Designs of all maps but ``Identity``."""
        return self.apply(features, n_entities, params, n_threads).feature_parts  # type: ignore[arg-type]

    @property
    def has_own(self) -> bool:
        """Whether each entity has coefficients of its own, once."""
        return sum(isinstance(part, Identity) for part in self.maps) == 1


def _given(features: Features | Seen | None) -> Features | None:
    return features.features if isinstance(features, Seen) else features


class JoinedDesign(Design):
    """Designs side by side; the coefficients are those of the first, then those of the second, ..."""

    def __init__(self, parts: list[Design]) -> None:
        self.parts = parts
        self.shape = (parts[0].shape[0], sum(part.shape[1] for part in parts))

    @property
    def feature_parts(self) -> list[Design]:
        """Those that are no identities."""
        return [part for part in self.parts if not isinstance(part, IdentityDesign)]

    def dot(self, coefficients: FloatArray) -> FloatArray:
        start, total = 0, None
        for part in self.parts:
            product = part.dot(np.ascontiguousarray(coefficients[start : start + part.shape[1]]))
            total = product if total is None else total + product
            start += part.shape[1]
        assert total is not None
        return total

    def tdot(self, values: FloatArray) -> FloatArray:
        return np.vstack([part.tdot(values) for part in self.parts])

    def toarray(self) -> FloatArray:
        return np.hstack([part.toarray() for part in self.parts])
