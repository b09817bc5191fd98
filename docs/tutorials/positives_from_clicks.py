# %% [markdown]
# # Positives: places from check-ins
#
# People check in at places. A check-in is a yes; no check-in is not a no: most places were simply never thought of. This is what
# clicks, purchases and likes have in common, and it changes the loss, the measure and the traps.
#
# The data is Gowalla, in the split that published work uses; five thousand people of it, to keep this page quick. `UNSEEN_DATA` names the
# folder that holds `gowalla`.

# %%
import gzip
import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from unseen import BiasMC, ItemNeighbors, MatrixFactorization, Observations, SpectralFilter
from unseen.baselines import Popularity
from unseen.metrics import ndcg_at_k, recall_at_k

home = Path(os.environ["UNSEEN_DATA"]) / "gowalla"


def read(name, places=None):
    """Pairs of people and places; of the test part only places that are in the training part."""
    pairs = []
    with gzip.open(home / name, "rt") as lines:
        for line in lines:
            person, *visited = map(int, line.split())
            if person < 5000:
                pairs += [(person, place) for place in visited if places is None or place in places]
    return np.array(pairs)


pairs = read("train.txt.gz")
ids, counts = np.unique(pairs[:, 1], return_counts=True)
places = {place: number for number, place in enumerate(ids[counts >= 3])}


def matrix(pairs):
    kept = [(person, places[place]) for person, place in pairs if place in places]
    rows, cols = np.array(kept).T
    return Observations.from_triples(rows, cols, np.ones(len(rows)), shape=(5000, len(places)))


train, test = matrix(pairs), matrix(read("test.txt.gz", places))
print(
    f"{train.shape[0]:,} people, {train.shape[1]:,} places, {train.nnz:,} check-ins, {test.nnz:,} later ones"
)

# %% [markdown]
# ## Why not fit the ones?
#
# All stored cells are ones. A model that looks at them alone can be perfect by saying one everywhere, and its order of places is
# an accident. Fitting blanks as zeros with full weight is no better: it learns that nobody goes anywhere. The loss of
# {class}`~unseen.BiasMC` counts blanks, but little; filters and neighbours never look at values at all.

# %%
models = {
    "popularity": Popularity(),
    "only the ones": MatrixFactorization(
        rank=32, reg=1.0, center="none", max_iter=15, tol=1e-3, random_state=0
    ),
    "neighbours of places": ItemNeighbors(),
    "spectral filter": SpectralFilter(rank=128),
    "biased completion": BiasMC(rank=64, alpha=0.99, reg=0.3, max_iter=12, tol=1e-3, random_state=0),
}
lists = {}
for name, model in models.items():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the ones alone do not converge
        lists[name], _ = model.fit(train).recommend(np.arange(5000), k=20)
    print(
        f"{name:21s} recall@20 {recall_at_k(test, lists[name], 20):.3f}   NDCG@20 {ndcg_at_k(test, lists[name], 20):.3f}"
    )

# %% [markdown]
# "Only the ones" is a good model for ratings. Here it is far below the three that read blanks as they are meant. That it is ahead of
# popularity at all is the doing of its penalty, which keeps the scores of places with few check-ins small.
#
# ## Who is served?
#
# A mean over people hides much. Later check-ins are split into five parts of the same size by how well known the place is. What share of them
# is on a list of twenty?

# %%
# alt: Share of later check-ins that are found, by how well known the place is: popularity finds only the best known, neighbours and filter also some of the others.
known = np.bincount(train.indices, minlength=train.shape[1])[test.indices]
edges = np.quantile(known, np.linspace(0, 1, 6))
part = np.clip(np.searchsorted(edges, known, side="right") - 1, 0, 4)
fig, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
shown = [name for name in lists if name != "only the ones"]
colours = ["#aab4c0", "#d9822b", "#1f6fb4", "#3c8d5a"]
for number, name in enumerate(shown):
    hit = (lists[name][test.rows] == test.indices[:, None]).any(axis=1)
    share = [hit[part == which].mean() for which in range(5)]
    ax.bar(np.arange(5) + 0.2 * number - 0.3, share, width=0.2, color=colours[number], label=name)
ax.set(
    xticks=range(5),
    xticklabels=["least known", "", "", "", "best known"],
    ylabel="share found in lists of 20",
)
ax.legend(frameon=False)
plt.show()
covered = {name: len(np.unique(lists[name])) / train.shape[1] for name in shown}
for name, share in covered.items():
    print(f"{name:21s} has {share:.0%} of the places on somebody's list")

# %% [markdown]
# ## Why is it on the list?
#
# A filter's score is a sum over what the person has done, so it can be told.

# %%
person = int(np.argmax(np.bincount(train.rows)))
best = int(lists["biased completion"][person, 0])
cols, shares = models["biased completion"].explain(train, row=person, col=best)
order = np.argsort(-np.abs(shares))[:3]
print(f"place {best} for person {person}; the most of it comes from places {sorted(cols[order].tolist())}")
print(f"these three of {len(cols)} make up {shares[order].sum() / shares.sum():.0%} of the score")

# %% [markdown]
# ## What this does not show
#
# - The settings are those of the literature and of the guide, not tuned here. On the whole set they were chosen on cells held out of the training
#   part; {doc}`/how_good` has the figures beside published ones.
# - Later check-ins are what people found *without* these lists. A list that would have pleased them more counts as a miss. Only a trial with
#   people can tell.
# - A place that opened yesterday has no check-ins, and none of these models will ever list it. That needs features: {doc}`/concepts/cold_start`.
