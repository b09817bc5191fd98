"""One chain of one library on the same cells: scores of the test cells in each sweep, and its processor time.

Predictions are what a library averages: draws, or conditional means where it takes these. Effective samples
are those of the draws.

Started by ``averaged_peers`` with a JSON request; prints a JSON answer.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

Chain = tuple[np.ndarray, np.ndarray, list[float]]
"""Draws and what is averaged, sweep by sweep, and seconds."""


def unseen_chain(data: Any, rank: int, sweeps: int, threads: int, seed: int) -> Chain:
    from unseen import BayesianMF, Observations
    from unseen.solvers.gibbs_chain import Chain

    times: list[float] = []
    sweep, begin = Chain.sweep, time.process_time()

    def timed(chain: Chain) -> float:
        done = sweep(chain)
        times.append(time.process_time() - begin)
        return done

    Chain.sweep = timed  # type: ignore[method-assign]
    cells = Observations.from_triples(data["rows"], data["cols"], data["values"], shape=tuple(data["shape"]))
    model = BayesianMF(
        rank, n_samples=sweeps, burn_in=0, thin=1, precision="diagonal", random_state=seed, n_jobs=threads
    )
    sides = {name: data[name] for name in ("row_features", "col_features") if name in data}
    model.fit(cells, **sides)
    posterior, mean = model.solver_.posterior_, model.offsets_.mean
    left, right = model.row_factors_[data["test_rows"]], model.col_factors_[data["test_cols"]]
    parts = np.array_split(np.arange(len(left)), 20)
    draws, means = (
        np.concatenate([posterior.scores(left[part], right[part], rows and rows[0][part]) for part in parts])
        for rows in ([data["test_rows"]], None)
    )
    return draws.T + mean, means.T + mean, times


def myfm_chain(data: Any, rank: int, sweeps: int, threads: int, seed: int) -> Chain:
    import myfm

    def design(rows: np.ndarray, cols: np.ndarray) -> Any:
        n, m = data["shape"]
        parts = [sparse.eye(n, format="csr")[rows], sparse.eye(m, format="csr")[cols]]
        for name, places in (("row_features", rows), ("col_features", cols)):
            if name in data:
                parts.append(sparse.csr_matrix(data[name])[places])
        return sparse.csr_matrix(sparse.hstack(parts))

    train, test = (
        design(data["rows"], data["cols"]),
        design(data["test_rows"], data["test_cols"]),
    )
    shapes = [*data["shape"]] + [data[n].shape[1] for n in ("row_features", "col_features") if n in data]
    found, times, lost = [], [], [0.0]
    begin = time.process_time()

    def note(_: int, machine: Any, *rest: Any) -> tuple[bool, None]:
        now = time.process_time()
        times.append(now - begin - lost[0])
        found.append(machine.predict_score(test, []))
        lost[0] += time.process_time() - now
        return False, None

    model = myfm.MyFMGibbsRegressor(rank, random_seed=seed)
    model.fit(train, data["values"], n_iter=sweeps, n_kept_samples=1, group_shapes=shapes, callback=note)
    return np.array(found), np.array(found), times


def smurff_chain(data: Any, rank: int, sweeps: int, threads: int, seed: int) -> Chain:
    import smurff

    mean, shape = data["values"].mean(), tuple(data["shape"])
    train = sparse.coo_matrix((data["values"] - mean, (data["rows"], data["cols"])), shape)
    test = sparse.coo_matrix((data["test_values"] - mean, (data["test_rows"], data["test_cols"])), shape)
    sides = [data.get(name) for name in ("row_features", "col_features")]
    session = smurff.TrainSession(
        priors=["normal" if side is None else "macau" for side in sides],
        num_latent=rank, num_threads=threads, burnin=0, nsamples=sweeps, seed=seed, verbose=0,
    )  # fmt: skip
    # Its default is a fixed precision of five, which overfits here.
    session.addTrainAndTest(train, test, noise=smurff.SampledNoise(1.0))
    for mode, side in enumerate(sides):
        if side is not None:
            session.addSideInfo(mode, side, direct=True)
    # It predicts the test cells in each sweep; that is in its time, and small beside the rest.
    order = np.lexsort((data["test_cols"], data["test_rows"]))
    place = np.empty(len(order), dtype=int)
    place[order] = np.arange(len(order))
    found, times, lost = [], [], 0.0
    begin = time.process_time()
    session.init()
    while session.step():
        now = time.process_time()
        times.append(now - begin - lost)
        given = sorted((p.coords, p.pred_1sample) for p in session.getTestPredictions())
        found.append(np.array([value for _, value in given])[place] + mean)
        lost += time.process_time() - now
    return np.array(found), np.array(found), times


CHAINS: dict[str, Callable[..., Chain]] = {
    "unseen": unseen_chain,
    "myfm": myfm_chain,
    "smurff": smurff_chain,
}


def rmse_by_time(scores: np.ndarray, times: list[float], truth: np.ndarray, burn_in: int) -> list[Any]:
    """Seconds and RMSE of the mean since the burn-in, sweep by sweep."""
    steps = np.arange(1, len(scores) - burn_in + 1)
    mean = np.cumsum(scores[burn_in:], axis=0) / steps[:, None]
    errors = np.sqrt(np.mean((np.clip(mean, 1, 5) - truth) ** 2, axis=1))
    return [[seconds, float(error)] for seconds, error in zip(times[burn_in:], errors, strict=True)]


def effective(draws: np.ndarray) -> float:
    """Independent draws that the mean of the median cell is worth, by Geyer's initial positive sequence."""
    n = len(draws)
    away = draws - draws.mean(axis=0)
    spectrum = np.abs(np.fft.rfft(away, 2 * n, axis=0)) ** 2
    covariance = np.fft.irfft(spectrum, 2 * n, axis=0)[:n]
    rho = covariance / np.maximum(covariance[0], 1e-300)
    pairs = rho[: n - n % 2].reshape(n // 2, 2, -1).sum(axis=1)
    positive = np.minimum.accumulate(pairs > 0, axis=0)
    return float(
        np.median(n / np.maximum(2.0 * np.sum(np.where(positive, pairs, 0.0), axis=0) - 1.0, 1.0 / n))
    )


def main() -> None:
    request = json.loads(sys.argv[1])
    with np.load(request["data"]) as file:
        data = {name: file[name] for name in file.files}
    chain = CHAINS[request["library"]]
    draws, scores, times = chain(
        data, request["rank"], request["sweeps"], request["threads"], request["seed"]
    )
    burn = request["settled"]
    some = np.random.default_rng(0).choice(draws.shape[1], 500, replace=False)
    answer = {
        "curves": {
            str(burn_in): rmse_by_time(scores, times, data["test_values"], burn_in)
            for burn_in in request["burn_in"]
        },
        "effective": effective(draws[burn:][:, some]),
        "seconds_of_them": times[-1] - times[burn - 1],
        "seconds": times[-1],
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
