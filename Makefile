# Each target does its own set-up: a virtual environment in .venv, an editable build, then the work.
# Later runs only rebuild when the build files or the C++ sources changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := CMakeLists.txt $(shell find cpp -type f 2>/dev/null)
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs-ready

.PHONY: demo test test-fast lint format bench docs docs-check asan tsan release clean

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

# Links, and every kind of page in a headless Chromium: width, console, accessibility, search.
docs-check: docs
	$(BIN)/python -m docs.check docs/_build/html

# Everything that a release needs but the upload: checks, pages, two builds that must be equal, wheel and source
# distribution tried in environments of their own. Results are in dist.
release: test docs
	$(BIN)/python -m release

# The kernels under the address and undefined-behaviour sanitisers: the native test, then the module in an
# environment of its own, under the tests of the kernels and the fuzzer of their calls.
asan: $(READY)
	$(BIN)/python -m pytest tests/kernels/test_kernels_native.py -k "address"
	$(BIN)/python -m venv --clear build/asan
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" > $$(build/asan/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/rest.pth
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir build/asan -C build-dir=build/asan/cmake \
	  -C cmake.define.UNSEEN_SANITIZE=address,undefined .
	build/asan/bin/python -m pip install --quiet --no-deps build/asan/unseen-*.whl
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 OMP_WAIT_POLICY=passive \
	build/asan/bin/python -m pytest tests/kernels tests/hostile/test_calls.py -m "not slow" -p no:cacheprovider

# Races, by the native test on plain threads: the sanitiser does not see the barriers of OpenMP.
tsan: $(READY)
	$(BIN)/python -m pytest tests/kernels/test_kernels_native.py -k "threads"

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
