"""The same bits in any Python thread, and the BLAS as it was found afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from unseen import GIMC, IMC, BiasMC, MatrixFactorization, RidgeOvA, ShiftMC, SoftImpute, parallel
from unseen.linalg.blocked import in_blocks
from unseen.parallel import one_blas_thread

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def counts() -> list[int]:
    """Threads of every BLAS with one limit for the process."""
    return [library.count() for library in parallel._libraries()[0]]


def limited() -> list[int]:
    with one_blas_thread():
        return counts()


def in_thread(call: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


@pytest.fixture
def two() -> Any:
    """Every BLAS at two threads, whatever machine this is."""
    shared, _ = parallel._libraries()
    if not shared:
        pytest.skip("no BLAS with one limit for the process")
    before = counts()
    for library in shared:
        library.limit(2)
    if counts() != [2] * len(shared):
        pytest.skip("this BLAS cannot use two threads")
    yield [2] * len(shared)
    for library, count in zip(shared, before, strict=True):
        library.limit(count)


def test_the_limit_holds_in_any_thread_and_is_lifted(two: list[int]) -> None:
    one = [1] * len(two)
    assert limited() == one
    assert counts() == two
    assert in_thread(limited) == one  # after the main thread has been first
    assert counts() == two
    with threadpool_limits(2):  # the main thread has the limits in its hand
        assert in_thread(limited) == one
        assert counts() == two


def test_the_limit_stays_until_the_last_is_done(two: list[int]) -> None:
    one = [1] * len(two)
    entered, leave, seen = threading.Event(), threading.Event(), []

    def first() -> None:
        with one_blas_thread():
            entered.set()
            leave.wait()

    thread = threading.Thread(target=first)
    thread.start()
    entered.wait()
    with one_blas_thread():
        leave.set()
        thread.join()
        seen.append(counts())  # the thread that set the limit is gone
        for library in parallel._libraries()[0]:
            library.limit(2)  # somebody lifts it
        with one_blas_thread():
            seen.append(counts())
    assert seen == [one, one]
    assert counts() == two


def test_a_limit_of_each_thread_is_set_in_each_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    local = threading.local()
    library = parallel._Blas(lambda: getattr(local, "count", 4), lambda count: setattr(local, "count", count))
    monkeypatch.setattr(parallel, "_libraries", lambda: ([], [library]))
    with one_blas_thread():
        assert library.count() == 1
        with one_blas_thread():
            pass
        assert library.count() == 1
        found = list(in_blocks(lambda rows: library.count(), 8, 2, block_rows=1))
        assert found == [1] * 8
    assert library.count() == 4
    assert in_thread(library.count) == 4


LATE = """
import sys
import numpy as np
from unseen import parallel
from unseen.parallel import one_blas_thread
with one_blas_thread():
    import scipy.linalg, scipy.sparse.linalg
    from threadpoolctl import threadpool_info
    print([info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"])
"""


def test_a_blas_that_is_loaded_late_is_limited_too() -> None:
    done = subprocess.run([sys.executable, "-c", LATE], check=True, capture_output=True, text=True)
    assert set(done.stdout.strip("[]\n").split(", ")) <= {"1", ""}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_process_forked_while_the_lock_is_shut_can_go_on() -> None:
    code = """
import os, signal, warnings
from unseen import parallel
warnings.simplefilter("ignore")
with parallel._state.lock:
    child = os.fork()
    if not child:
        signal.alarm(20)
        with parallel.one_blas_thread():
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True)


RNG = np.random.default_rng(0)
N_ROWS, N_COLS = 400, 300
LEFT, RIGHT = RNG.standard_normal((N_ROWS, 80)), RNG.standard_normal((N_COLS, 60))
TRUTH = LEFT[:, :4] @ RIGHT[:, :4].T
CELLS = np.where(RNG.random(TRUTH.shape) < 0.3, TRUTH, np.nan)
POSITIVES = sparse.csr_array((TRUTH > 2.0).astype(float))
LABELS = sparse.csr_array((LEFT @ RNG.standard_normal((80, 20)) > 10.0).astype(float))
FEATURES = {"row_features": LEFT, "col_features": RIGHT}

FITS: dict[str, Callable[[int], Any]] = {
    "als": lambda n_jobs: MatrixFactorization(
        40, max_iter=2, random_state=0, n_jobs=n_jobs, reg=1.0, center="none"
    ).fit(CELLS),
    "ccd": lambda n_jobs: MatrixFactorization(
        40, solver="ccd", max_iter=2, random_state=0, n_jobs=n_jobs, reg=1.0, center="none"
    ).fit(CELLS),
    "BiasMC": lambda n_jobs: BiasMC(40, max_iter=2, random_state=0, n_jobs=n_jobs, cg_steps=None).fit(
        POSITIVES
    ),
    "ShiftMC": lambda n_jobs: ShiftMC(20, rho=0.2, max_iter=3, random_state=0, n_jobs=n_jobs).fit(POSITIVES),
    "SoftImpute": lambda n_jobs: SoftImpute(
        max_iter=3, random_state=0, n_jobs=n_jobs, reg=1.0, max_rank=None, center="none"
    ).fit(CELLS),
    "IMC": lambda n_jobs: IMC(20, max_iter=2, random_state=0, n_jobs=n_jobs, reg=1.0, center="none").fit(
        CELLS, **FEATURES
    ),
    "GIMC": lambda n_jobs: GIMC(20, max_iter=2, random_state=0, n_jobs=n_jobs, reg=0.1, center="none").fit(
        CELLS, **FEATURES
    ),
    "RidgeOvA": lambda n_jobs: RidgeOvA().fit(LEFT, LABELS),
}


def bits(model: Any) -> bytes:
    if hasattr(model, "row_factors_"):
        return bytes(model.row_factors_.tobytes() + model.col_factors_.tobytes())
    return bytes(model.decision_function(LEFT).tobytes())


def test_fits_in_other_threads_have_the_bits_of_the_main_thread(two: list[int]) -> None:
    expected = {name: bits(fit(1)) for name, fit in FITS.items()}
    alone = {name: in_thread(lambda fit=fit: bits(fit(1))) for name, fit in FITS.items()}
    assert [name for name in FITS if alone[name] != expected[name]] == []
    with ThreadPoolExecutor(3) as pool:
        beside = {name: pool.submit(lambda fit=fit: bits(fit(2))) for name, fit in FITS.items()}
        here = {name: bits(fit(1)) for name, fit in FITS.items()}
    assert [name for name in FITS if here[name] != expected[name]] == []
    assert [name for name in FITS if beside[name].result() != expected[name]] == []
    assert counts() == two
