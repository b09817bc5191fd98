# %% [markdown]
# # Links: who will write together?
#
# Authors of papers on general relativity, linked where they wrote one together. Half of the links are hidden; which of the eight million pairs are
# they? `UNSEEN_DATA` names the folder that holds `ca-grqc`.

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import diags_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans

from unseen import BiasMC, Observations
from unseen.datasets import load_ca_grqc
from unseen.links import BlendedLinks, CommonNeighbors, Katz, link_curve, top_links
from unseen.plotting import FprFnrDisplay

data = load_ca_grqc()
edges, chosen = data.edges, data.train[0]
n = data.observations.shape[0]


def graph(links):
    """A square matrix with each link in both directions."""
    both = np.concatenate([links, links[:, ::-1]])
    return Observations.from_triples(*both.T, np.ones(len(both)), shape=(n, n))


train, hidden = graph(edges[chosen]), edges[~chosen]
print(
    f"{n:,} authors, {chosen.sum():,} links to learn from, {len(hidden):,} hidden ones among {n * (n - 1) // 2:,} pairs"
)

# %% [markdown]
# ## Look before you fit
#
# Sorted so that linked authors stand close, the graph is a chain of tight groups: people of one institute write with each other. Where half of the
# links are gone, some authors have none left, and about their links nothing can be said.

# %%
# alt: Left, the matrix of links, sorted: dense groups along the diagonal. Right, the number of links of authors falls steeply.
degree = np.diff(train.csr.indptr)
shrink = diags_array(1 / np.sqrt(degree + 1))
_, axes = eigsh(shrink @ train.csr @ shrink, k=40, v0=np.ones(n))
groups = KMeans(40, n_init=1, random_state=0).fit_predict(
    axes / np.maximum(np.linalg.norm(axes, axis=1, keepdims=True), 1e-9)
)
order = np.lexsort((-degree, groups))
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
left.spy(train.csr[order][:, order], markersize=0.4, color="#1f6fb4")
left.set(xticks=[], yticks=[], xlabel="authors, sorted by the graph")
right.hist(degree, bins=np.arange(0, 40) - 0.5, color="#d9822b")
right.set(xlabel="links that are left", ylabel="authors", yscale="log")
plt.show()
lost = (degree[hidden] == 0).any(axis=1).mean()
print(f"{(degree == 0).sum()} authors have no link left; {lost:.0%} of the hidden links are of one of them")
print(f"the rest falls into {connected_components(train.csr)[0] - (degree == 0).sum()} connected parts")

# %% [markdown]
# ## Neighbours, factors, and both
#
# Counting shared neighbours is the classical answer, and hard to beat for pairs that have some. It says nothing about pairs that are three steps
# apart; factors do. {class}`~unseen.links.BlendedLinks` adds the two.

# %%
# alt: Share of hidden links that are missed against the share of other pairs that are listed, for five methods; the blend lies lowest for short lists.
bias = BiasMC(50, alpha=0.95, reg=0.5, max_iter=20, tol=1e-2, random_state=0)
shared = CommonNeighbors(degree_power=1.0)
models = {
    "shared neighbours": CommonNeighbors(),
    "shared / degree": shared,
    "Katz": Katz(),
    "BiasMC": bias,
    "BiasMC + shared / degree": BlendedLinks([bias, shared], weights=[1.0, 1.0]),
}
curves = {}
for name, model in models.items():
    curves[name] = link_curve(model.fit(train), hidden, train=train, k=5 * len(hidden))
    print(
        f"{name:26s} {1 - curves[name].fnr[len(hidden) - 1]:.0%} of the hidden links in a list of their number"
    )
FprFnrDisplay(curves).plot()
plt.show()

# %% [markdown]
# With equal weights the blend leads where lists are short; at their full length weighted neighbours alone are level with it. Weights that are chosen on
# held-out links do better.
#
# ## The list itself
#
# The best fifty pairs, and how many of them are hidden links. Of the rest nobody knows: the data ends, the authors went on writing.

# %%
best = top_links(models["BiasMC + shared / degree"], 50, exclude=train)
known = {tuple(pair) for pair in hidden.tolist()}
right = [tuple(sorted(pair)) in known for pair in best.pairs.tolist()]
print(f"{sum(right[:10])} of the first ten and {sum(right)} of the first fifty are hidden links")

# %% [markdown]
# ## What this does not show
#
# - Links were hidden at random. Links of next year differ: they are new partnerships more often than forgotten ones. With dates, hold out the
#   latest.
# - Weights and penalties were not tuned here. {doc}`/papers/pu_links` chooses them on held-out links, on five splits and two graphs.
# - A list of likely links closes triangles. It makes a close group closer; it does not find the surprising partner.
