# Each target does its own set-up: a virtual environment in .venv, an editable build, then the work.
# Later runs only rebuild when the build files or the C++ sources changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := CMakeLists.txt $(shell find cpp -type f 2>/dev/null)
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs-ready

.PHONY: demo test test-fast lint format bench docs clean

demo: $(READY)
	$(BIN)/unseen demo --out report

test: $(READY) lint
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-fast: $(READY)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(filter %.cpp %.hpp,$(NATIVE))

# The page from stored results; SIZE=small, medium or large runs the suites first.
bench: $(READY)
	$(BIN)/python -m benchmarks bench $(if $(SIZE),--size $(SIZE))

docs: $(DOCS_READY)
	$(BIN)/sphinx-build -E -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

$(READY): pyproject.toml $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet "scikit-build-core>=0.11" "nanobind>=2.4" "cmake>=3.26" "ninja>=1.11"
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[dev]"
	touch $@

$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[docs]"
	touch $@

clean:
	rm -rf build dist report docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
