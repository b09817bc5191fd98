"""
Feature maps that are learned
=============================

A matrix depends on features of its rows and columns, but through waves in hidden directions. Random
Fourier features meet these directions only by luck; learned ones turn towards them.
"""

# %%
# A tenth of the cells is seen.

import matplotlib.pyplot as plt
import numpy as np

from unseen import GIMC, IMC, Fourier
from unseen.datasets import make_fourier
from unseen.metrics import relative_error

data = make_fourier(150, 150, 5, n_waves=3, rank=3, density=0.15, noise=0.1, random_state=0)
sides = {"row_features": data.row_features, "col_features": data.col_features}
rows, cols = (index.ravel() for index in np.indices((150, 150)))
truth = data.truth(rows, cols)


def error(model):
    """Relative error over all cells, against the truth without noise."""
    model.fit(data.observations, **sides)
    return relative_error(truth, model.predict_entries(rows, cols))


# %%
# The same maps, held fixed and learned, for a growing number of projections.

sizes = [2, 4, 8, 16]
errors = {"random": [], "learned": []}
for size in sizes:
    for name, learnable in (("random", False), ("learned", True)):
        a_map = Fourier(size, gamma=0.2, learnable=learnable)
        model = GIMC(
            3,
            row_map=a_map,
            col_map=a_map,
            reg=0.05,
            max_iter=200,
            tol=1e-3,
            random_state=0,
            n_jobs=1,
            center="none",
        )
        errors[name].append(error(model))
linear = error(IMC(3, reg=1.0, random_state=0, n_jobs=1, center="none"))

figure, axis = plt.subplots(figsize=(5, 3.5))
for name, values in errors.items():
    axis.plot(sizes, values, marker="o", label=f"{name} Fourier features")
axis.axhline(linear, color="grey", linestyle="--", label="linear features")
axis.set(xlabel="projections", ylabel="relative error", xscale="log", ylim=(0, None))
axis.set_xticks(sizes, [str(size) for size in sizes])
axis.minorticks_off()
axis.legend()
figure.tight_layout()
plt.show()

# %%
# The objective of the learned map only goes down, and starts at that of the random one.

history = model.history_
print(f"first sweep {history[0]['objective']:.1f}, last sweep {history[-1]['objective']:.1f}")
