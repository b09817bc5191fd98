"""What ``memory_estimate`` says, against what fits were measured to add, stored and here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from benchmarks import memory as measuring
from benchmarks._store import stored
from unseen import (
    BiasMC,
    Blend,
    MatrixFactorization,
    Observations,
    RidgeOvA,
    SoftImpute,
    memory,
    memory_estimate,
)
from unseen.exceptions import InvalidDataError, ParameterError, UnsupportedComposition

BAR = 1.2
STORED = stored(measuring.NAME)["models"]
X = sparse.random_array((300, 200), density=0.1, rng=np.random.default_rng(0), format="csr")


def test_every_formula_comes_from_the_stored_run() -> None:
    assert {name: measuring.coefficients(name, entry) for name, entry in STORED.items()} == memory.COSTS
    assert {name for name in STORED if measuring.is_of_labels(name)} == memory.OF_LABELS


@pytest.mark.parametrize("name", STORED)
def test_the_estimate_holds_at_sizes_that_had_no_part_in_it(name: str) -> None:
    apart = {
        key: ratio for key, ratio in measuring.off_by(name, STORED[name]).items() if key.startswith("checks")
    }
    assert len(apart) >= 2
    assert all(1 / BAR <= ratio <= BAR for ratio in apart.values()), apart
    # Negative control: without its largest part the formula is off.
    parts = {
        part: count * memory.terms_of(memory.Sizes(**STORED[name]["checks 0"]["sizes"]),
                                      labels=name in memory.OF_LABELS)[part]
        for part, count in memory.COSTS[name].items()
    }  # fmt: skip
    assert sum(parts.values()) - max(parts.values()) < STORED[name]["checks 0"]["peak"] / BAR


HERE = """
import json, sys
from benchmarks import memory
from unseen.memory import needed, sizes_of
out = {}
memory.warm()
for name in sys.argv[1:]:
    labels = memory.is_of_labels(name)
    size = memory.Design(7_000, 0, 40_000, 24, 90, labels=250) if labels else memory.Design(
        50_000, 20_000, 500_000, 24, 7, 9)
    kind = memory.KINDS[name].kind
    tiny = memory.data(kind, memory.Design(300, 200, 3000, 3, labels=20))
    memory.made(name, 3).fit(*tiny[0], **tiny[1])
    given, sides = memory.data(kind, size)
    model = memory.made(name, size.rank)
    peak = memory.added(lambda: model.fit(*given, **sides))
    out[name] = needed(name, sizes_of(model, *given, **sides)) / peak
print(json.dumps(out))
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs the tables of Linux")
def test_the_estimate_holds_here() -> None:
    names = ["MatrixFactorization reg", "BiasMC", "IMC reg", "RidgeOvA"]
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", HERE, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert all(1 / BAR <= ratio <= BAR for ratio in found.values()), found


def test_data_and_sizes_say_the_same() -> None:
    model = MatrixFactorization(4, reg=1.0)
    from_data = memory_estimate(model, X)
    assert from_data == memory_estimate(model, shape=X.shape, nnz=X.nnz)
    assert from_data == memory_estimate(model, Observations.from_any(X))
    assert from_data < memory_estimate(model, X.tocoo())
    assert memory_estimate(model, X.astype("f4")) < from_data
    dense = np.where(X.toarray() > 0, X.toarray(), np.nan)
    assert memory_estimate(model, dense) > from_data


def test_more_of_anything_takes_more() -> None:
    def at(n: int = 10_000, m: int = 5_000, nnz: int = 10**6, rank: int = 16) -> int:
        return memory_estimate(BiasMC(rank), shape=(n, m), nnz=nnz)

    assert at() < min(at(n=10**6), at(m=10**6), at(nnz=10**8), at(rank=200))


def test_settings_choose_the_formula() -> None:
    assert memory.formula_of(MatrixFactorization()) == "MatrixFactorization"
    assert memory.formula_of(MatrixFactorization(reg=1.0)) == "MatrixFactorization reg"
    assert memory.formula_of(MatrixFactorization(reg=1.0, solver="ccd")) == "MatrixFactorization ccd"
    assert memory.formula_of(MatrixFactorization(reg=1.0, center="joint")) == "MatrixFactorization joint"
    assert memory._rank(SoftImpute(), (1000, 400)) == memory.LARGEST_AUTO_RANK
    assert memory._rank(SoftImpute(max_rank=None), (1000, 400)) == 400


def test_classifiers_take_features_and_labels() -> None:
    rng = np.random.default_rng(0)
    features, labels = rng.standard_normal((300, 20)), X
    sizes = memory.sizes_of(RidgeOvA(), features, labels)
    assert (sizes.n, sizes.m, sizes.cells, sizes.d) == (300, 200, X.nnz, 20)
    assert memory_estimate(RidgeOvA(), features, labels) > 0


def test_what_cannot_be_estimated_is_refused() -> None:
    with pytest.raises(UnsupportedComposition, match="no formula for the memory of CellBlend"):
        memory_estimate(Blend([BiasMC(2)]), X)
    with pytest.raises(ParameterError, match="shape and nnz"):
        memory_estimate(BiasMC(2))
    with pytest.raises(ParameterError, match="not both"):
        memory_estimate(BiasMC(2), X, nnz=3)
    with pytest.raises(ParameterError, match="nnz must be"):
        memory_estimate(BiasMC(2), shape=(3, 3), nnz=-1)
    with pytest.raises(InvalidDataError, match="give shape and nnz"):
        memory_estimate(BiasMC(2), [[1.0]])
