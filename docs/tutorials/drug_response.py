# %% [markdown]
# # Measurements: drug response with gaps and features
#
# Fifty-three breast cell lines, thirty-one drugs, and how strongly each drug holds back the growth of each line. A fifth of the measurements is
# missing. This is the NCI-DREAM challenge; `UNSEEN_DATA` names the folder that holds `nci-dream`.
#
# Two questions: what would the missing measurements be, and what would a *new* cell line answer, of which only the active genes are known?

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

from unseen import IMC, BayesianMF, BiasModel, Imputer
from unseen.datasets import load_nci_dream
from unseen.metrics import rmse
from unseen.model_selection import split_rows

data = load_nci_dream(profiled_only=False)
drugs = [str(name) for name in data.observations.col_ids]
table = np.full(data.observations.shape, np.nan)
table[data.observations.rows, data.observations.indices] = data.observations.values
keep = np.nanstd(table, axis=0) > 0.01  # Drug26 is constant: there is nothing to predict
table, drugs = table[:, keep], [name for name, kept in zip(drugs, keep, strict=True) if kept]
print(f"{table.shape[0]} lines, {table.shape[1]} drugs, {np.isnan(table).mean():.0%} missing")

# %% [markdown]
# ## Look before you fit
#
# Drugs have scales of their own, so each column is centred for the picture and rows are sorted by their mean. Stripes along a row say
# that some lines are sensitive to everything. Grey is missing, and not at random: some lines were never tried with some drugs.

# %%
# alt: Heat map of cell lines by drugs: rows differ in overall sensitivity, grey gaps are scattered with some rows emptier.
shown = (table - np.nanmean(table, axis=0)) / np.nanstd(table, axis=0)
order = np.argsort(np.nanmean(shown, axis=1))
fig, ax = plt.subplots(figsize=(8.5, 4.6), layout="constrained")
image = ax.imshow(
    shown[order],
    cmap=plt.get_cmap("RdBu_r").with_extremes(bad="#cfd4da"),
    vmin=-2.5,
    vmax=2.5,
    aspect="auto",
    interpolation="none",
)
ax.set(xlabel="drugs", ylabel="cell lines, the least sensitive first", xticks=[], yticks=[])
fig.colorbar(image, label="sensitivity, standard deviations")
plt.show()

# %% [markdown]
# ## Fill the gaps
#
# A tenth of the known cells is hidden, ten times, and each method says what was there. Errors are in standard deviations of the drug, so that
# each drug counts the same; one is what its mean would get.

# %%
methods = {
    "column means": SimpleImputer(),
    "nearest rows": KNNImputer(n_neighbors=8, weights="distance"),
    "scikit-learn, iterative": IterativeImputer(max_iter=10, random_state=0),
    "unseen.Imputer": Imputer(random_state=0),
}
errors = {name: [] for name in methods}
known = np.argwhere(np.isfinite(table))
for seed in range(10):
    hidden = known[np.random.default_rng(seed).permutation(len(known))[: len(known) // 10]]
    gaps = table.copy()
    gaps[hidden[:, 0], hidden[:, 1]] = np.nan
    middle, scale = np.nanmean(gaps, axis=0), np.nanstd(table, axis=0)  # the scale only sets the unit
    truth = ((table - middle) / scale)[hidden[:, 0], hidden[:, 1]]
    for name, method in methods.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            filled = method.fit_transform((gaps - middle) / scale)
        errors[name].append(np.sqrt(np.mean((filled[hidden[:, 0], hidden[:, 1]] - truth) ** 2)))
for name, found in errors.items():
    print(f"{name:24s} {np.mean(found):.2f} ± {np.std(found) / np.sqrt(len(found)):.2f}")

# %% [markdown]
# That is the answer, though not the one that one hoped for: **no method is clearly better than the mean of the drug**, and regression of each drug on all
# others is worse. Fifty rows are few, and one cell line says little about another. An imputer that promises more here has not been asked with
# hidden cells. What can still be told is how sure each guess is.
#
# ## How sure?
#
# An average over all low-rank matrices that fit gives an interval for each gap. Nine in ten of the hidden values should lie in it; a few more do, because drugs that are constant for most lines have long tails. Below, one
# line in full: dots were measured, bars are what the model expects where nothing was measured.

# %%
# alt: Measured values of one cell line as dots and ninety per cent intervals for its unmeasured drugs.
model = BayesianMF(rank=5, n_samples=100, burn_in=50, random_state=0)
gaps = table.copy()
gaps[hidden[:, 0], hidden[:, 1]] = np.nan
scaled = (gaps - middle) / scale
model.fit(scaled)
low, high = model.predict_interval(hidden[:, 0], hidden[:, 1], level=0.9).T
print(f"{np.mean((low <= truth) & (truth <= high)):.0%} of the hidden values lie in their interval of 90 %")
line = int(np.argmax(np.isnan(scaled).sum(axis=1) * (np.isnan(scaled).mean(axis=1) < 0.6)))
empty = np.flatnonzero(np.isnan(scaled[line]))
there = np.flatnonzero(np.isfinite(scaled[line]))
low, high = model.predict_interval(np.full(len(empty), line), empty, level=0.9).T
fig, ax = plt.subplots(figsize=(8.5, 3), layout="constrained")
ax.vlines(
    empty, low, high, color="#d9822b", lw=5, alpha=0.6, label="interval of 90 % where nothing was measured"
)
ax.plot(there, scaled[line, there], "o", color="#1f6fb4", label="measured")
ax.axhline(0, color="0.8", zorder=0)
ax.set(xlabel="drugs", ylabel="sensitivity", xticks=[], title=f"cell line {data.observations.row_ids[line]}")
ax.legend(frameon=False, fontsize=8)
plt.show()

# %% [markdown]
# ## A cell line that was never tried
#
# Whether each of 36,953 genes is active is known of 44 lines. Their first principal components are the features; whole lines are held out.
# `BiasModel` can only say the mean of each drug.

# %%
profiled = load_nci_dream()
genes = PCA(5, random_state=0).fit_transform(profiled.row_features)
found = {"mean of the drug": [], "IMC, by active genes": []}
for seed in range(10):
    train, test = split_rows(profiled.observations, test_fraction=0.2, random_state=seed)
    for name, estimator, sides in [
        ("mean of the drug", BiasModel(), {}),
        (
            "IMC, by active genes",
            IMC(rank=2, reg=30.0, random_state=0, max_iter=200, tol=1e-4),
            {"row_features": genes},
        ),
    ]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.fit(train, **sides)
        found[name].append(rmse(test, estimator.predict_entries(test.rows, test.indices, positions=True)))
for name, each in found.items():
    print(f"{name:22s} {np.mean(each):.3f}")
better = np.array(found["IMC, by active genes"]) < np.array(found["mean of the drug"])
print(f"with genes better in {better.sum()} of {len(better)} splits")

# %% [markdown]
# ## What this does not show
#
# - Forty-four lines are few. Differences of a hundredth between methods are within the noise of the splits; read the ± above.
# - One value of Drug24 that can only be a slip is cut by the loader. Always look at the largest values before you fit.
# - Several drugs are censored at their highest dose, so that a part of a column is one constant. A loss that knows about censoring would be the
#   right thing; there is none here.
# - The published experiment had other measurements of the genes, and descriptors of the drugs. {doc}`/papers/mixed` has the comparison of
#   methods, and its verdicts.
