"""ExMLDS: methods for many labels, with the settings among which validation rows choose."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any

from unseen import LEML, SLEEC, ExMLDS, LinearOvA, RidgeOvA
from unseen.datasets import (
    MultiLabelData,
    load_bibtex,
    load_corel5k,
    load_delicious,
    load_mediamill_subset,
    load_rcv1_subset,
)
from unseen.multilabel.scaling import scaled_rows

__all__ = ["SETS", "Contender", "LabelSet", "Setting", "rows_of"]

Setting = dict[str, Any]
REGS = (1.0, 3.0, 10.0)
POWERS = (4.0, 8.0, 16.0)
SMALL_SAMPLING = ({"n_negatives": 1, "max_iter": 35}, {"n_negatives": 5, "max_iter": 35})
LARGE_SAMPLING = ({"n_negatives": 2, "max_iter": 5},)
"""Negatives and passes of ExMLDS2; a pass grows with rows and neighbours, so large sets need fewer."""


@dataclass(frozen=True)
class Contender:
    """A method, with the settings among which validation rows choose.

    Settings of `at_fit` need a fit each, those of `variants` only another prediction. Each variant is a
    method of its own in the results.
    """

    make: Callable[[], Any]
    at_fit: tuple[Setting, ...] = ({},)
    variants: dict[str, tuple[Setting, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class LabelSet:
    """Data, the splits that are run (None: the one that comes with it), and who runs."""

    load: Callable[[], MultiLabelData]
    splits: tuple[str | None, ...]
    methods: dict[str, Contender]


def grid(**lists: Iterable[Any]) -> tuple[Setting, ...]:
    """All combinations."""
    return tuple(dict(zip(lists, values, strict=True)) for values in product(*lists.values()))


def contenders(ks: tuple[int, ...], pairs: int, *, large: bool = False) -> dict[str, Contender]:
    """Methods with settings of the order that the papers use for such data.

    `pairs` is the number of neighbours in label space; on small sets ExMLDS1 may choose all pairs instead.
    """
    votes, weighted = grid(k=ks), grid(k=ks, neighbor_power=POWERS)
    n_neighbors = (pairs,) if large else (None, pairs)
    sampling = LARGE_SAMPLING if large else SMALL_SAMPLING

    def exmlds(**settings: Any) -> Callable[[], Any]:
        return lambda: ExMLDS(**{"neighbor_power": 0.0, **settings}, random_state=0, n_jobs=1)

    return {
        "ExMLDS1": Contender(
            exmlds(),
            grid(n_neighbors=n_neighbors, reg=REGS),
            {"ExMLDS1": votes, "ExMLDS1, weighted votes": weighted},
        ),
        "ExMLDS2": Contender(
            exmlds(method="sgns", n_neighbors=pairs),
            tuple({**draws, **reg} for draws in sampling for reg in grid(reg=REGS[:2])),
            {"ExMLDS2": votes, "ExMLDS2, weighted votes": weighted},
        ),
        "joint": Contender(
            exmlds(method="joint_sgns"), grid(reg=REGS), {"joint": votes, "joint, weighted votes": weighted}
        ),
        "SLEEC": Contender(
            lambda: SLEEC(n_neighbors=pairs, random_state=0, n_jobs=1),
            grid(reg=REGS),
            {
                "SLEEC": grid(k=ks, metric=("l2",)),
                "SLEEC, cosine and weighted votes": grid(k=ks, metric=("cosine",), neighbor_power=POWERS),
            },
        ),
        "LEML": Contender(
            lambda: LEML(100, random_state=0, n_jobs=1, intercept=False),
            grid(reg=(0.3, 1.0, 3.0)),
            {"LEML": ({},)},
        ),
        "RidgeOvA": Contender(
            lambda: RidgeOvA(n_jobs=1), grid(reg=(0.3, 1.0, 3.0, 10.0)), {"RidgeOvA": ({},)}
        ),
        "LinearOvA": Contender(lambda: LinearOvA(n_jobs=1), grid(C=(0.1, 0.3, 1.0)), {"LinearOvA": ({},)}),
    }


SETS = {
    "Bibtex": LabelSet(load_bibtex, tuple(f"repository{i}" for i in range(10)), contenders((15, 25), 250)),
    "Delicious": LabelSet(load_delicious, (None,), contenders((40, 70), 500, large=True)),
    "Corel5k": LabelSet(load_corel5k, (None,), contenders((25, 60), 250)),
    "rcv1 subset": LabelSet(load_rcv1_subset, (None,), contenders((10, 25), 250)),
    "mediamill subset": LabelSet(load_mediamill_subset, (None,), contenders((10, 25), 250)),
}


@cache
def _data(load: Callable[[], MultiLabelData]) -> MultiLabelData:
    return load()


def rows_of(load: Callable[[], MultiLabelData], split: str | None) -> tuple[Any, Any, Any, Any]:
    """Features of length one and labels of training and test rows."""
    X, Y, X_test, Y_test = _data(load).split(split)
    return scaled_rows(X), Y, scaled_rows(X_test), Y_test
