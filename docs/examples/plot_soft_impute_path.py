"""
A path of nuclear norms
=======================

:class:`~unseen.SoftImpute` does not ask for a rank. The weight of the nuclear norm decides it, and a whole
path of weights costs little more than one fit, because each starts from the last.
"""

# %%
# A noisy matrix of rank 5 with a fifth of its cells known.

import matplotlib.pyplot as plt
import numpy as np

from unseen import SoftImpute
from unseen.datasets import make_low_rank
from unseen.metrics import rmse
from unseen.model_selection import split_entries
from unseen.plotting import SpectrumDisplay

data = make_low_rank(300, 200, rank=5, density=0.2, noise=0.5, random_state=0)
train, test = split_entries(data.observations, test_fraction=0.2, random_state=0)

# %%
# From a weight that leaves nothing down to one that fits the noise.

regs = np.geomspace(40.0, 1.0, 12)
path = list(
    SoftImpute(random_state=0, tol=1e-5, n_jobs=1, reg=1.0, max_rank=None, center="none").path(train, regs)
)
errors = [rmse(test, model.predict_entries(test.rows, test.indices)) for model in path]
for model, value in zip(path, errors, strict=True):
    print(f"reg {model.reg:5.1f}  rank {model.rank_:3d}  RMSE {value:.2f}  steps {model.n_iter_}")

# %%
# Left, the error and the rank along the path. Right, what is left of the singular values: the weight cuts
# off small ones and shrinks the others by as much.

best = int(np.argmin(errors))
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(regs, errors, marker="o", color="C0")
left.axvline(regs[best], color="grey", linestyle=":")
left.set(xscale="log", xlabel="reg")
left.set_ylabel("RMSE on held-out cells", color="C0")
rank_axis = left.twinx()
rank_axis.plot(regs, [model.rank_ for model in path], marker="s", color="C1")
rank_axis.set_ylabel("rank", color="C1")
shown = {f"reg {path[place].reg:.1f}": path[place] for place in sorted({2, best, len(path) - 1})}
SpectrumDisplay.from_estimator(shown, ax=right)
plt.show()
