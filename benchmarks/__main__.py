"""Run benchmark suites: ``python -m benchmarks [--list] [--size SIZE] [NAME ...]``."""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
from typing import Any

import benchmarks
from benchmarks._store import SIZES


def main(arguments: list[str] | None = None) -> None:
    names = sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if not m.name.startswith("_"))
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="suites to run; the page bench by default")
    parser.add_argument("--list", action="store_true", help="list the suites")
    parser.add_argument("--size", choices=SIZES, help="how much to run, for the suites that have sizes")
    given = parser.parse_args(arguments)
    unknown = set(given.names) - set(names)
    if unknown:
        parser.error(f"unknown suite {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    for name in names if given.list else given.names or ["bench"]:
        module = importlib.import_module(f"benchmarks.{name}")
        if given.list:
            print(f"{name:20s} {(module.__doc__ or '').strip().splitlines()[0]}")
            continue
        options: dict[str, Any] = {}
        if given.size is not None:
            if "size" not in inspect.signature(module.main).parameters:
                parser.error(f"--size: {name} has one size only")
            options["size"] = given.size
        module.main(**options)


if __name__ == "__main__":
    main()
