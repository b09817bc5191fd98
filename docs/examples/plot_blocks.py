"""
A continuum of optima
=====================

Two groups of rows and columns that share no known cell. A factorisation fits both, and says something about
the cells between them. What it says there is arbitrary: this page turns it round without changing the fit.
"""

# %%
# Two blocks of rank 2, and a diagnosis before any fit.

import matplotlib.pyplot as plt
import numpy as np

from unseen import MatrixFactorization
from unseen.diagnostics import diagnose, identifiability
from unseen.plotting import DiagnosisDisplay

rng = np.random.default_rng(0)
X = np.full((50, 40), np.nan)
X[:30, :25] = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 25))
X[30:, 25:] = rng.normal(size=(20, 2)) @ rng.normal(size=(2, 15))
X += 0.1 * rng.normal(size=X.shape)
X[rng.random(X.shape) < 0.3] = np.nan

print("\n".join(diagnose(X, rank=2).verdict))
DiagnosisDisplay.from_observations(X, rank=2)
plt.show()

# %%
# Fit, then rotate the factors of the second block. Both factorisations have the same objective.

reg = 0.1
model = MatrixFactorization(2, reg=reg, max_iter=500, tol=1e-10, random_state=0, center="none").fit(X)
known = np.isfinite(X)


def objective(P, Q):
    return 0.5 * np.sum((P @ Q.T - X)[known] ** 2) + 0.5 * reg * (np.sum(P**2) + np.sum(Q**2))


angles = np.linspace(0, 2 * np.pi, 73)
inside, between, values = [], [], []
for angle in angles:
    P, Q = model.row_factors_.copy(), model.col_factors_.copy()
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    P[30:], Q[25:] = P[30:] @ turn, Q[25:] @ turn
    values.append(objective(P, Q))
    inside.append(P[0] @ Q[1])
    between.append(P[0] @ Q[30])
print(f"objective between {min(values):.10f} and {max(values):.10f}")

# %%
# A prediction inside a block stays where it is; one between the blocks takes every value in a range. The
# shaded bands are the reported spread: two standard deviations around the prediction inside, around zero
# between.

found = identifiability(model, [0, 0], [1, 30])
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, moved, spread, centre, colour in (
    ("inside a block", inside, found.std[0], inside[0], "C0"),
    ("between blocks", between, found.std[1], 0.0, "C1"),
):
    ax.plot(np.degrees(angles), moved, color=colour, label=name)
    ax.axhspan(centre - 2 * spread, centre + 2 * spread, color=colour, alpha=0.15)
ax.set(xlabel="Rotation of the second block (degrees)", ylabel="Prediction", xticks=range(0, 361, 90))
ax.legend(frameon=False)
plt.show()
