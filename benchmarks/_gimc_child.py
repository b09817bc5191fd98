"""One measurement of gimc_speed, in the environment of one library; reads a request, prints an answer."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

C1, FIRST = 1e-4, 0.1


def resident_mib(field: str) -> float:
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lines = status.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def unseen_steps(request: dict[str, Any], data: Any) -> dict[str, Any]:
    import warnings

    from scipy import sparse

    from unseen import GIMCClassifier

    Y = sparse.csr_array((data["Y_data"], data["Y_indices"], data["Y_indptr"]), shape=tuple(data["Y_shape"]))
    X = data["X"] if "X" in data else sparse.csr_array(
        (data["X_data"], data["X_indices"], data["X_indptr"]), shape=tuple(data["X_shape"])
    )  # fmt: skip
    model = GIMCClassifier(
        request["m"], gamma=request["gamma"], reg=request["reg"], solver="armijo", standardize=False,
        validation_fraction=None, max_iter=request["steps"], tol=0.0, random_state=0,
        n_jobs=request["n_threads"],
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = resident_mib("VmRSS")
        model.fit(X, Y)
    times = [record["time_s"] for record in model.history_]
    return {
        "seconds": float(np.median(np.diff(times))),
        "trials": [record["trials"] for record in model.history_[1:]],
        "objective": [record["objective"] for record in model.history_],
        "growth_mib": resident_mib("VmHWM") - before,
    }


def torch_steps(request: dict[str, Any], data: Any) -> dict[str, Any]:
    """The same alternation with dense labels and automatic derivatives."""
    import torch

    torch.set_num_threads(request["n_threads"])
    shape = tuple(data["Y_shape"])
    before = resident_mib("VmRSS")
    A = torch.zeros(shape)
    rows = np.repeat(np.arange(shape[0]), np.diff(data["Y_indptr"]))
    A[torch.from_numpy(rows), torch.from_numpy(data["Y_indices"].astype(np.int64))] = 1.0
    if "X" in data:
        X = torch.from_numpy(data["X"])
    else:
        X = torch.zeros(tuple(data["X_shape"]))
        where = np.repeat(np.arange(X.shape[0]), np.diff(data["X_indptr"]))
        X[torch.from_numpy(where), torch.from_numpy(data["X_indices"].astype(np.int64))] = torch.from_numpy(
            data["X_data"]
        )
    m, reg = request["m"], request["reg"]
    torch.manual_seed(0)
    U = torch.randn(X.shape[1], m) * (2 * request["gamma"]) ** 0.5

    def features(U: Any) -> Any:
        angles = X @ U
        return torch.cat([torch.cos(angles), torch.sin(angles)], dim=1) * m**-0.5

    def value(U: Any, W: Any) -> Any:
        return 0.5 * torch.sum((A - features(U) @ W) ** 2) + 0.5 * reg * torch.sum(W**2)

    def best(U: Any) -> Any:
        with torch.no_grad():
            phi = features(U)
            return torch.cholesky_solve(
                phi.T @ A, torch.linalg.cholesky(phi.T @ phi + reg * torch.eye(2 * m))
            )

    W = best(U)
    times, trials, objective, step = [time.perf_counter()], [], [], 0.0
    for _ in range(request["steps"]):
        U.requires_grad_(True)
        f = value(U, W)
        (g,) = torch.autograd.grad(f, U)
        U = U.detach()
        f, slope = float(f), float(torch.sum(g * g))
        objective.append(f)
        step = step or FIRST * float(torch.linalg.norm(U)) / slope**0.5
        trial = 1
        with torch.no_grad():
            while trial < 40 and float(value(U - step * g, W)) > f - C1 * step * slope:
                step, trial = step / 2, trial + 1
        U = U - step * g
        step = 2 * step if trial == 1 else step
        trials.append(trial)
        W = best(U)
        times.append(time.perf_counter())
    return {
        "seconds": float(np.median(np.diff(times))),
        "trials": trials,
        "objective": objective,
        "growth_mib": resident_mib("VmHWM") - before,
    }


def fixed_maps(request: dict[str, Any], data: Any) -> dict[str, Any]:
    """A fit with random features: this library, and scikit-learn's sampler with its ridge."""
    from scipy import sparse
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import Ridge
    from threadpoolctl import threadpool_limits

    from unseen import GIMCClassifier

    Y = sparse.csr_array((data["Y_data"], data["Y_indices"], data["Y_indptr"]), shape=tuple(data["Y_shape"]))
    X = data["X"] if "X" in data else sparse.csr_array(
        (data["X_data"], data["X_indices"], data["X_indptr"]), shape=tuple(data["X_shape"])
    )  # fmt: skip
    dense = Y.toarray()
    ours, theirs = [], []
    for _ in range(request["repeats"]):
        began = time.perf_counter()
        GIMCClassifier(
            request["m"], gamma=request["gamma"], reg=request["reg"], learn_map=False, standardize=False,
            random_state=0, n_jobs=request["n_threads"],
        ).fit(X, Y)  # fmt: skip
        ours.append(time.perf_counter() - began)
        with threadpool_limits(request["n_threads"]):
            began = time.perf_counter()
            phi = RBFSampler(
                gamma=request["gamma"], n_components=2 * request["m"], random_state=0
            ).fit_transform(X)
            Ridge(alpha=request["reg"], fit_intercept=False).fit(phi, dense)
            theirs.append(time.perf_counter() - began)
    return {"unseen_seconds": float(np.median(ours)), "sklearn_seconds": float(np.median(theirs))}


def main() -> None:
    request = json.loads(sys.argv[1])
    with np.load(request["data"]) as file:
        data = {name: file[name] for name in file.files}
    kinds = {"unseen": unseen_steps, "torch": torch_steps, "fixed": fixed_maps}
    print(json.dumps(kinds[request["kind"]](request, data)))


if __name__ == "__main__":
    main()
