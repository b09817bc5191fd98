"""
What augmentation fixes between blocks
======================================

Two groups of people rate two groups of things, and nobody rates both. Many factorisations fit equally
well and say different things about the cells in between. What can be said there?
"""

# %%
# Two blocks of low rank; nothing is known between them.

import matplotlib.pyplot as plt
import numpy as np

from unseen import AugmentedMF

rng = np.random.default_rng(0)
X = np.full((25, 21), np.nan)
X[:15, :12] = rng.standard_normal((15, 3)) @ rng.standard_normal((3, 12))
X[15:, 12:] = rng.standard_normal((10, 3)) @ rng.standard_normal((3, 9))

options = {"reg": 0.1, "center": "none", "max_iter": 1000, "random_state": 0}
plain = AugmentedMF(3, weight=0.0, cross_component="model", **options).fit(X)

# %%
# Turn the factors of the second block by an angle. The fit and the penalty stay as they are, the predictions
# between the blocks do not.


def objective(left: np.ndarray, right: np.ndarray, weight: float) -> float:
    seen, scores = ~np.isnan(X), left @ right.T
    misfit = (1 + weight) * np.sum((scores - X)[seen] ** 2) + weight * np.sum(scores[~seen] ** 2)
    return float(misfit + 0.1 * (np.sum(left**2) + np.sum(right**2)))


def turned(model: AugmentedMF, angle: float) -> tuple[np.ndarray, np.ndarray]:
    left, right = model.row_factors_.copy(), model.col_factors_.copy()
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    left[15:], right[12:] = left[15:] @ turn, right[12:] @ turn
    return left, right


angles = np.linspace(0, 2 * np.pi, 60)
augmented = AugmentedMF(3, cross_component="model", **options).fit(X)
between = np.abs((augmented.row_factors_ @ augmented.col_factors_.T)[:15, 12:])
i, j = np.unravel_index(between.argmax(), between.shape)
j += 12

figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharex=True)
for model, weight, label in ((plain, 0.0, "observed cells only"), (augmented, 1.0, "augmented")):
    pairs = [turned(model, angle) for angle in angles]
    axes[0].plot(angles, [objective(*pair, weight) for pair in pairs], label=label)
    axes[1].plot(angles, [(left @ right.T)[i, j] for left, right in pairs], label=label)
axes[0].set(title="objective", xlabel="angle", ylim=(0, None))
axes[1].set(title="prediction of one cell between the blocks", xlabel="angle")
axes[0].legend()
figure.tight_layout()

# %%
# Without augmentation every angle is an optimum. With it the objective prefers some angles, but flipping the
# signs of all components still costs nothing, and the cells in between go from a value to its opposite.

left, right = augmented.row_factors_, augmented.col_factors_
other_left, other_right = left.copy(), right.copy()
other_left[15:], other_right[12:] = -left[15:], -right[12:]
print(f"objective {objective(left, right, 1.0):.6f} and {objective(other_left, other_right, 1.0):.6f}")
print(f"prediction {(left @ right.T)[i, j]:.2f} and {(other_left @ other_right.T)[i, j]:.2f}")

# %%
# So the default says what is known: the baseline.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.5))
sound = AugmentedMF(3, **options).fit(X)
shown = {"observed": X, "factors": augmented.predict_new(), "baseline in between": sound.predict_new()}
for axis, (title, values) in zip(axes, shown.items(), strict=True):
    axis.imshow(values, cmap="RdBu", vmin=-3, vmax=3)
    axis.set_title(title)
figure.tight_layout()
plt.show()
