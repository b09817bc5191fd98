"""One library on a multi-label file, in its own process and environment; see exmlds_speed.py.

Seconds count training and prediction as a user would call them on data in memory. omikuji trains from a
file, so its training time holds the reading of it; reading takes the others `read_s`.
"""

import json
import os
import sys
import tempfile
import time
import warnings

request = json.loads(sys.argv[1])
system, n_threads, setting = request["system"], request["n_threads"], request["setting"]


def memory_mib():
    # Not getrusage: its peak survives the start of a new program and would be the parent's.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def read(path):
    """Features as lists of pairs, and labels as lists."""
    rows, labels = [], []
    with open(path) as handle:
        next(handle)
        for line in handle:
            names, _, pairs = line.rstrip("\n").partition(" ")
            labels.append([int(name) for name in names.split(",")] if names else [])
            rows.append([(int(i), float(v)) for i, v in (pair.split(":") for pair in pairs.split())])
    return rows, labels


def precision(lists, labels):
    pairs = list(zip(lists, labels, strict=True))
    hits = [[sum(name in truth for name in found[:k]) / k for found, truth in pairs] for k in (1, 3, 5)]
    return [100 * sum(shares) / len(shares) for shares in hits]


def run_unseen():
    import unseen
    from unseen.data import read_extreme

    warnings.simplefilter("ignore")
    start = time.perf_counter()
    X, Y = read_extreme(request["train"])
    read_s = time.perf_counter() - start
    X_test, _ = read_extreme(request["test"])
    estimator = getattr(unseen, request["estimator"])  # imports, as the others do before
    start = time.perf_counter()
    model = estimator(random_state=0, n_jobs=n_threads, **setting).fit(X, Y)
    middle = time.perf_counter()
    ids, _ = model.predict_topk(X_test, 5)
    return ids.tolist(), read_s, middle - start, time.perf_counter() - middle


def run_omikuji():
    import omikuji

    rows, _ = read(request["test"])
    hyper = omikuji.Model.default_hyper_param()
    start = time.perf_counter()
    model = omikuji.Model.train_on_data(request["train"], hyper, n_threads)
    middle = time.perf_counter()
    model.init_prediction_thread_pool(n_threads)
    lists = [[name for name, _ in model.predict(row, top_k=5)] for row in rows]
    return lists, 0.0, middle - start, time.perf_counter() - middle


def run_napkinxc():
    import numpy as np
    from napkinxc.models import PLT
    from scipy import sparse

    def matrix(rows):
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        cells = [cell for row in rows for cell in row]
        width = request["n_features"]
        columns = np.array([i for i, _ in cells], dtype=np.int32)
        values = np.array([v for _, v in cells], dtype=np.float32)
        return sparse.csr_matrix((values, columns, indptr), shape=(len(rows), width))

    start = time.perf_counter()
    rows, labels = read(request["train"])
    X = matrix(rows)
    read_s = time.perf_counter() - start
    X_test = matrix(read(request["test"])[0])
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        model = PLT(os.path.join(folder, "model"), threads=n_threads, seed=0)
        model.fit(X, labels)
        middle = time.perf_counter()
        lists = model.predict(X_test, top_k=5)
        end = time.perf_counter()
    return [list(found) for found in lists], read_s, middle - start, end - middle


lists, read_s, fit_s, predict_s = {
    "unseen": run_unseen, "omikuji": run_omikuji, "napkinxc": run_napkinxc
}[system]()  # fmt: skip
answer = {"read_s": read_s, "fit_s": fit_s, "predict_s": predict_s, "memory_mib": memory_mib()}
answer["precision"] = precision(lists, read(request["test"])[1])
print(json.dumps(answer))
