"""Whether an installed package works: native kernels, a fit, the same bits again, lists, saving and loading.

Needs nothing but the package, so that it also runs where wheels are built.
"""

import tempfile
import threading
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np

import unseen
from unseen import kernels

warnings.simplefilter("error")
if kernels.provider() != "native":
    raise SystemExit(f"the kernels are {kernels.provider()}")
if version("unseen") != unseen.__version__:
    raise SystemExit(f"metadata say {version('unseen')}, the package {unseen.__version__}")
rng = np.random.default_rng(0)
left, right = rng.standard_normal((300, 3)), rng.standard_normal((200, 3))
X = np.where(rng.random((300, 200)) < 0.2, left @ right.T, np.nan)
model = unseen.MatrixFactorization(3, random_state=0, n_jobs=1).fit(X)
found = []
fit = unseen.MatrixFactorization(3, random_state=0, n_jobs=2)
thread = threading.Thread(target=lambda: found.append(fit.fit(X).row_factors_))
thread.start()
thread.join()
if not np.array_equal(model.row_factors_, found[0]):
    raise SystemExit("a fit on two threads has other bits")
missing = np.argwhere(np.isnan(X))
error = model.predict_entries(*missing.T) - (left @ right.T)[tuple(missing.T)]
if not np.sqrt(np.mean(error**2)) < 0.5:  # 1.7 without a model
    raise SystemExit(f"hidden cells are missed by {np.sqrt(np.mean(error**2)):.3f}")
with tempfile.TemporaryDirectory() as folder:
    model.save(Path(folder) / "model")
    again = unseen.load(Path(folder) / "model")
if not np.array_equal(again.recommend([0, 1], 5)[0], model.recommend([0, 1], 5)[0]):
    raise SystemExit("a loaded model has other lists")
print(f"unseen {unseen.__version__} works here ({kernels.isa()})")
