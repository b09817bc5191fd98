"""Run benchmark suites: ``python -m benchmarks [--list] [NAME ...]``."""

from __future__ import annotations

import argparse
import importlib
import pkgutil

import benchmarks


def main() -> None:
    names = sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if not m.name.startswith("_"))
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="suites to run; foundation by default")
    parser.add_argument("--list", action="store_true", help="list the suites")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(names)
    if unknown:
        parser.error(f"unknown suite {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    for name in names if arguments.list else arguments.names or ["foundation"]:
        module = importlib.import_module(f"benchmarks.{name}")
        if arguments.list:
            print(f"{name:20s} {(module.__doc__ or '').strip().splitlines()[0]}")
        else:
            module.main()


if __name__ == "__main__":
    main()
