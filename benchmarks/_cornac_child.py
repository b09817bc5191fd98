"""Cornac's Flask application with a model of its own, in its own process and environment; see serving.py.

``_cornac_child.py HOME PORT RANK`` factorises the cells in HOME/cells.npz, saves the model as Cornac does,
and serves it until it is ended.
"""

import logging
import os
import sys
from pathlib import Path

import numpy as np
from cornac.data import Dataset
from cornac.models import MF

home, port, rank = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
with np.load(home / "cells.npz") as cells:
    names = (cells[side].astype(str).tolist() for side in ("rows", "cols"))
    data = Dataset.from_uir(list(zip(*names, cells["values"].tolist(), strict=True)), seed=0)
model = MF(k=rank, max_iter=1, seed=0, num_threads=2, name="served").fit(data)
model.save(str(home), save_trainset=True)
os.environ["MODEL_PATH"] = str(home / "served")
os.environ["MODEL_CLASS"] = "cornac.models.MF"

from cornac.serving.app import app  # noqa: E402

logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line for each request takes time
print("ready", flush=True)
app.run("127.0.0.1", port, threaded=True)
