"""The public names: they exist, they are documented, and they cost nothing until used."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any

import pytest

import unseen

MODULES = [
    "unseen.data",
    "unseen.datasets",
    "unseen.diagnostics",
    "unseen.distributed",
    "unseen.estimators",
    "unseen.exceptions",
    "unseen.kernels",
    "unseen.links",
    "unseen.metrics",
    "unseen.model_selection",
    "unseen.multilabel",
    "unseen.plotting",
    "unseen.solvers",
]
BUILT_OTHERWISE = {unseen.Observations}
"""Classes that users never construct themselves: their class methods do."""
HEAVY = {"dask", "matplotlib", "pandas", "polars", "pyarrow", "torch", "typer"}


def public_objects() -> dict[str, Any]:
    """Classes and functions of this package by the name under which users import them."""
    found = {f"unseen.{name}": getattr(unseen, name) for name in unseen.__all__}
    for path in MODULES:
        module = importlib.import_module(path)
        found |= {f"{path}.{name}": getattr(module, name) for name in getattr(module, "__all__", ())}
    return {
        name: value
        for name, value in sorted(found.items())
        if callable(value) and str(value.__module__).startswith("unseen")
    }


OBJECTS = public_objects()
CLASSES = {name: value for name, value in OBJECTS.items() if isinstance(value, type)}
FUNCTIONS = {name: value for name, value in OBJECTS.items() if not isinstance(value, type)}
ESTIMATORS = {
    name: value
    for name, value in CLASSES.items()
    if hasattr(value, "fit")
    and not inspect.isabstract(value)
    and not name.startswith(("unseen.estimators.", "unseen.model_selection."))
}


def section(value: Any, title: str) -> str | None:
    """Text of a section of a numpydoc docstring, None if there is no such section."""
    text = inspect.getdoc(value) or ""
    found = re.search(
        rf"^{title}\n-+\n(.*?)(?=^[A-Z]\w+(?: \w+)*\n-{{3,}}\n|\Z)", text, re.DOTALL | re.MULTILINE
    )
    return found.group(1) if found else None


def described(value: Any, title: str) -> set[str]:
    """Names that a section describes; ``a, b : float`` describes two."""
    lines = re.findall(r"^(\S[^:\n]*?)(?:\s*:.*)?$", section(value, title) or "", re.MULTILINE)
    return {name.strip().lstrip("*") for line in lines for name in line.split(",")}


def arguments(function: Callable[..., Any]) -> set[str]:
    return {
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name not in ("self", "cls") and not parameter.name.startswith("_")
    }


def returns_something(function: Callable[..., Any]) -> bool:
    return inspect.signature(function).return_annotation not in (None, "None", inspect.Signature.empty)


def problems_of_function(function: Callable[..., Any]) -> list[str]:
    found = [
        f"{name} is not described" for name in sorted(arguments(function) - described(function, "Parameters"))
    ]
    summary = (inspect.getdoc(function) or "").split("\n\n")[0]
    if not summary:
        found.append("no docstring")
    # A function without arguments may say in its summary what it returns.
    silent = all(section(function, title) is None for title in ("Returns", "Yields"))
    if silent and returns_something(function) and arguments(function):
        found.append("no Returns section")
    return found


@pytest.mark.parametrize("name", unseen.__all__)
def test_public_names_can_be_imported(name: str) -> None:
    assert getattr(unseen, name) is not None
    assert name in dir(unseen)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        unseen.nonsense  # noqa: B018


def test_type_checkers_see_the_same_names_as_users() -> None:
    # Lazy names are invisible to type checkers; the block for them must not fall behind.
    source = inspect.getsource(unseen)
    block = source[source.index("if TYPE_CHECKING:") : source.index("__version__")]
    assert set(unseen.__all__) <= set(re.findall(r"\w+", block))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_documented(name: str) -> None:
    assert problems_of_function(FUNCTIONS[name]) == []


@pytest.mark.parametrize("name", CLASSES)
def test_classes_are_documented(name: str) -> None:
    cls = CLASSES[name]
    assert cls.__doc__, "no docstring"
    called = not (issubclass(cls, Exception) or inspect.isabstract(cls) or is_dataclass(cls))
    if not called or "__init__" not in vars(cls) or cls in BUILT_OTHERWISE:
        return
    known = described(cls, "Parameters") | described(cls, "Attributes")
    assert arguments(cls.__init__) - known == set()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_are_documented(name: str) -> None:
    cls = ESTIMATORS[name]
    assert ">>>" in (section(cls, "Examples") or ""), "no example"
    problems = {
        method: problems_of_function(value)
        for method, value in inspect.getmembers(cls, inspect.isfunction)
        if not method.startswith("_") and value.__module__.startswith("unseen")
    }
    assert {method: found for method, found in problems.items() if found} == {}


def test_missing_documentation_is_noticed() -> None:
    def undocumented(first: int, second: int) -> int:
        """Add.

        Parameters
        ----------
        first : int
            A number.
        """
        return first + second

    assert problems_of_function(undocumented) == ["second is not described", "no Returns section"]


def imported_by(statement: str) -> set[str]:
    """Top-level packages that a statement loads in a fresh interpreter."""
    source = f"import json, sys\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", source], capture_output=True, text=True, check=True
    )
    return {name.split(".")[0] for name in json.loads(ran.stdout)}


def test_import_alone_loads_nothing_heavy() -> None:
    assert imported_by("import unseen") & (HEAVY | {"numpy", "scipy", "sklearn", "tqdm"}) == set()


def test_fitting_loads_no_optional_package() -> None:
    fit = "import unseen; unseen.BiasModel().fit([[1.0, 2.0], [3.0, float('nan')]])"
    # scikit-learn loads pandas on its own where it is installed.
    assert imported_by(fit) & HEAVY <= imported_by("import sklearn.base")
