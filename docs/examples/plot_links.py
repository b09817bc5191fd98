"""
Links of a graph
================

Half of the links of a graph are hidden. Which of all pairs are they? Scores that count shared
neighbours, a low-rank model of positives and the sum of both, by what they find.
"""

# %%
# A graph with power-law degrees and groups; part of its links is held out.

import matplotlib.pyplot as plt

from unseen import BiasMC
from unseen.datasets import make_scale_graph
from unseen.links import (
    BlendedLinks,
    CommonNeighbors,
    Katz,
    TruncatedSVDLinks,
    link_curve,
    top_links,
)
from unseen.plotting import FprFnrDisplay

data = make_scale_graph(1500, 16, inside=0.8, group_size=(20, 50), held_out=0.5, random_state=0)
train, test = data.observations, data.held_out
print(
    f"{train.nnz // 2} links are seen, {len(test)} are hidden among {1500 * 1499 // 2 - train.nnz // 2} pairs"
)

# %%
# Every model takes the square matrix of the graph. ``BiasMC`` has a row and a column for each node, so its
# scores differ by direction; lists of links take the mean.

bias = BiasMC(50, alpha=0.95, reg=0.5, max_iter=100, tol=1e-2, random_state=0, n_jobs=1, cg_steps=None)
models = {
    "shared neighbours": CommonNeighbors(),
    "shared / degree": CommonNeighbors(degree_power=1.0),
    "Katz": Katz(n_jobs=1),
    "SVD": TruncatedSVDLinks(50),
    "BiasMC": bias,
    "BiasMC + shared / degree": BlendedLinks(
        [bias, CommonNeighbors(degree_power=1.0)], weights=[1.0, 1.0], n_jobs=1
    ),
}
curves = {}
for name, model in models.items():
    curves[name] = link_curve(model.fit(train), test, train=train, k=5 * len(test))
    found = 1 - curves[name].fnr[len(test) - 1]
    print(f"{name:26s}finds {100 * found:4.1f} % of the hidden links in a list of their number")

# %%
# Lower left is better. Settings were not tuned here: on real graphs choose them on held-out links.

FprFnrDisplay(curves).plot()
plt.show()

# %%
# The best pairs themselves; training links are left out.

best = top_links(models["BiasMC + shared / degree"], 5, exclude=train)
for (i, j), score in zip(best.pairs, best.scores, strict=True):
    print(f"{i:5d} - {j:<5d} {score:.3f}")
