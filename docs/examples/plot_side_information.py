"""
Ratings with and without side information
=========================================

Ratings from 1 to 5, generated so that features of people and things explain a part of them. The fewer
ratings are known, the more the features are worth.
"""

# %%
# Four models, from no side information to features and a free low-rank part together.

import matplotlib.pyplot as plt

from unseen import IMC, BiasModel, Completion, LowRank, MatrixFactorization, Ridge, Term, WithOnes
from unseen.datasets import make_ratings
from unseen.metrics import rmse
from unseen.model_selection import split_entries

features_and_rest = [
    Term(WithOnes(), WithOnes(), LowRank(6), Ridge(5.0)),
    Term(core=LowRank(4), reg=Ridge(5.0)),
]
common = {"center": "biases", "max_iter": 300, "tol": 1e-4, "random_state": 0, "n_jobs": 1}
models = {
    "biases": (BiasModel(), False),
    "factors": (MatrixFactorization(rank=4, reg=5.0, **common), False),
    "features": (IMC(rank=6, reg=5.0, **common), True),
    "features and factors": (Completion(features_and_rest, **common), True),
}

# %%
# Each model is fitted at four densities and scored on a fifth of the known cells.

densities = [0.01, 0.03, 0.1, 0.3]
errors = {name: [] for name in models}
for density in densities:
    data = make_ratings(400, 300, density=density, random_state=0)
    train, test = split_entries(data.observations, test_fraction=0.2, random_state=0)
    features = {"row_features": data.row_features, "col_features": data.col_features}
    for name, (model, uses_features) in models.items():
        model.fit(train, **(features if uses_features else {}))
        errors[name].append(rmse(test, model.predict_entries(test.rows, test.indices)))
    print(f"density {density:4.0%}  " + "  ".join(f"{name} {errors[name][-1]:.2f}" for name in models))

# %%
# With few ratings the features carry nearly everything. With many, the free factors find what the features
# do not explain. The model that has both is the best, or level with it, at every density.

figure, ax = plt.subplots(layout="constrained")
for (name, values), marker in zip(errors.items(), "osD^", strict=True):
    ax.plot(densities, values, marker=marker, label=name)
ax.set(xscale="log", xlabel="share of the cells that are known", ylabel="RMSE on held-out cells")
ax.set_xticks(densities, [f"{density:.0%}" for density in densities])
ax.minorticks_off()
ax.legend()
plt.show()
