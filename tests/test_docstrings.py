"""Shared descriptions reach the docstrings of classes and functions, however those are indented."""

from __future__ import annotations

import inspect

from unseen.docstrings import described_by, share_options

TABLE = {"k": ("int", "Places that count."), "seed": ("int, optional", "Of the draw.")}


def test_descriptions_stand_in_the_order_of_the_signature_and_own_ones_stay() -> None:
    @described_by(TABLE)
    def lists(rows, cols, k=5, power=1.0, *, seed=None, other="a"):  # type: ignore[no-untyped-def]
        """Make lists.

        Parameters
        ----------
        rows, cols : array
            Where.
        power : float, default=1.0
            Of what,

            and why.

        Returns
        -------
        list
        """

    expected = """Make lists.

Parameters
----------
rows, cols : array
    Where.
k : int, default=5
    Places that count.
power : float, default=1.0
    Of what,

    and why.
seed : int, optional
    Of the draw.

Returns
-------
list"""
    assert lists.__doc__ == expected


def test_classes_without_indentation_as_newer_python_keeps_them() -> None:
    class Model:
        def __init__(self, k: int = 3, seed: int | None = None) -> None: ...

    text = "A model.\n\n    Parameters\n    ----------\n    k : int\n        Mine.\n    "
    for doc in (text, inspect.cleandoc(text)):
        Model.__doc__ = doc
        share_options(Model, TABLE, {"n_": ("int", "How many.")})
        assert Model.__doc__ == (
            "A model.\n\nParameters\n----------\nk : int\n    Mine.\nseed : int, optional\n    Of the draw.\n"
            "\nAttributes\n----------\nn_ : int\n    How many."
        )
