"""One method for many labels on the test rows of one split, in a process of its own; see label_systems.py."""

import json
import sys
import time
import warnings

from benchmarks._store import peak_memory_gib
from papers.exmlds_contenders import SETS, rows_of
from papers.exmlds_labels import scores


def main() -> None:
    from benchmarks.label_systems import made

    request = json.loads(sys.argv[1])
    warnings.simplefilter("ignore")
    X, Y, X_test, Y_test = rows_of(SETS[request["data"]].load, request["split"])
    model = made(request["estimator"], request["setting"], Y)
    before = peak_memory_gib()
    start = time.process_time()
    model.fit(X, Y)
    middle = time.process_time()
    ids, _ = model.predict_topk(X_test, 5)
    end = time.process_time()
    found = scores(Y_test, ids, Y)
    # Processor seconds, since others may be at work on the machine.
    found |= {
        "fit_s": middle - start,
        "predict_s": end - middle,
        "gib": peak_memory_gib(),
        "data_gib": before,
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
