"""An update by implicit, in its own process and environment; see updates.py.

It minimises, in its own units,

    alpha sum_stored (s - 1)^2 + (1 - alpha) sum_blank s^2 + lam/2 (||W||^2 + ||H||^2)

and has no update of its own but to solve again for the users, then the items, that it is told.
"""

import json
import sys
import time

import numpy as np
from implicit.als import AlternatingLeastSquares
from scipy import sparse

request = json.loads(sys.argv[1])
alpha, lam = request["alpha"], request["lam"]


def read(path):
    with np.load(path) as file:
        shape = tuple(file["shape"])
        return sparse.csr_matrix(
            (np.ones(len(file["indices"]), dtype=np.float32), file["indices"], file["indptr"]), shape=shape
        )


def fitted(X):
    model = AlternatingLeastSquares(
        factors=request["rank"],
        regularization=lam / (2 * (1 - alpha)),
        alpha=alpha / (1 - alpha),
        use_cg=True,
        iterations=request["n_sweeps"],
        num_threads=request["n_threads"],
        random_state=0,
        calculate_training_loss=False,
    )
    start = time.process_time()
    model.fit(X, show_progress=False)
    return model, time.process_time() - start


def loss(model, X):
    left, right = np.asarray(model.user_factors), np.asarray(model.item_factors)
    total = 0.0
    for begin in range(0, X.shape[0], 20_000):
        block = X[begin : begin + 20_000]
        rows = np.repeat(np.arange(block.shape[0]) + begin, np.diff(block.indptr))
        s = np.einsum("ij,ij->i", left[rows], right[block.indices]).astype(np.float64)
        total += float(np.sum(alpha * (s - 1) ** 2 - (1 - alpha) * s**2))
    grams = [f.astype(np.float64).T @ f for f in (left, right)]
    total += (1 - alpha) * float(np.sum(grams[0] * grams[1]))
    return total + 0.5 * lam * float(np.trace(grams[0]) + np.trace(grams[1]))


before, after = read(request["before"]), read(request["after"])
old = before.copy()
old.resize(after.shape)
changed = after - old
users = np.flatnonzero(np.diff(changed.tocsr().indptr))
items = np.flatnonzero(np.diff(changed.tocsc().indptr))
model, _ = fitted(before)
start = time.process_time()
model.partial_fit_items(items, after.T.tocsr()[items][:, : before.shape[0]])
model.partial_fit_users(users, after[users])
seconds = time.process_time() - start
refit, refit_seconds = fitted(after)
print(
    json.dumps(
        {
            "update_s": seconds,
            "refit_s": refit_seconds,
            "share": seconds / refit_seconds,
            "above": loss(model, after) / loss(refit, after) - 1.0,
        }
    )
)
