"""
Precision against the number of features
========================================

Handwritten digits, ten classes, and a map of m Fourier components: drawn at random, or learned together with
the classifier. The learned map needs far fewer components for the same precision of the first label.
"""

# %%
# A third of the digits is for the test. Nothing is tuned.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from unseen import GIMCClassifier, RidgeOvA

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(y))
test, train = order[:600], order[600:]

# %%
# The same number of components for both, and a linear model of all 64 pixels beside them.

sizes = [2, 4, 8, 16, 32]
precision = {"random": [], "learned": []}
for size in sizes:
    for name, learn in (("random", False), ("learned", True)):
        model = GIMCClassifier(size, learn_map=learn, max_iter=30, random_state=0, n_jobs=1)
        precision[name].append(model.fit(X[train], y[train]).score(X[test], y[test]))
linear = RidgeOvA(n_jobs=1).fit(X[train], y[train]).score(X[test], y[test])

figure, axis = plt.subplots(figsize=(5, 3.5))
for name, values in precision.items():
    axis.plot(sizes, values, marker="o", label=f"{name} map")
axis.axhline(linear, color="grey", linestyle="--", label="linear, 64 pixels")
axis.set(xlabel="components m", ylabel="precision of the first label", xscale="log", ylim=(0, 1))
axis.set_xticks(sizes, [str(size) for size in sizes])
axis.minorticks_off()
axis.legend(loc="lower right")
figure.tight_layout()
plt.show()

# %%
# The gain is largest where components are few.

for size, random, learned in zip(sizes, precision["random"], precision["learned"], strict=True):
    print(f"m = {size:2d}: random {random:.3f}, learned {learned:.3f}")
