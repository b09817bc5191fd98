# %% [markdown]
# # Many labels: tags for documents, by name
#
# BibSonomy's users gave bookmarks and papers tags: 7,395 documents, 1,836 words, 159 tags. Which tags does a new document get? The answers here are
# words, not column numbers. `UNSEEN_DATA` names the folder that holds `bibtex`.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.manifold import TSNE

from unseen import ExMLDS, RidgeOvA, SPPMIEmbedding
from unseen.datasets import load_bibtex
from unseen.metrics import label_propensities, precision_at_k, propensity_scored_precision_at_k

data = load_bibtex()
train, test = data.splits["repository0"]
X, Y = data.X, data.Y
names = np.array([name.removeprefix("TAG_") for name in data.label_names])
print(f"{len(train):,} documents to learn from, {len(test):,} to tag; {Y.sum() / Y.shape[0]:.1f} tags each")
document = test[2]
words = [data.feature_names[word] for word in X[[document]].indices[:12]]
print("words:", ", ".join(words))
print("tags: ", ", ".join(names[Y[[document]].indices]))

# %% [markdown]
# ## Tags that keep company
#
# Two tags mean similar things if they occur with the same others. {class}`~unseen.SPPMIEmbedding` gives each tag a vector by that rule, as
# word embeddings do, without looking at the words of the documents at all. Laid flat:

# %%
# alt: Map of tags: those about the web, about learning, about biology and about networks lie together.
counts = np.asarray(Y[train].sum(axis=0)).ravel()
embedding = SPPMIEmbedding(30, label_correlations=(Y[train].T @ Y[train]), random_state=0).fit(Y[train])
vectors = embedding.label_embedding_
units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
flat = TSNE(perplexity=12, random_state=0, init="pca").fit_transform(units)
fig, ax = plt.subplots(figsize=(9, 6.5), layout="constrained")
ax.scatter(*flat.T, s=0.35 * counts, color="#1f6fb4", alpha=0.35, lw=0)
for place in np.argsort(-counts)[:70]:
    ax.annotate(names[place], flat[place], fontsize=7.5, ha="center", color="#1f3a5f")
ax.set(xticks=[], yticks=[], title="tags by what they occur with; area: documents")
plt.show()

# %% [markdown]
# ## Two ways to tag
#
# One ridge regression for each tag is hard to beat on a set of this size. {class}`~unseen.ExMLDS` takes the other road: documents
# that share tags are put near each other, that place is found from the words, and the nearest documents vote. The measure is the share of the
# first one, three and five tags that are right; the weighted one counts a rare tag for more, because rare tags are forgotten more often.

# %%
models = {"most frequent": None, "RidgeOvA": RidgeOvA(), "ExMLDS": ExMLDS(neighbor_power=4.0, random_state=0)}
known = label_propensities(counts, len(train))
lists = {}
for name, model in models.items():
    if model is None:
        lists[name] = np.tile(np.argsort(-counts)[:5], (len(test), 1))
    else:
        lists[name] = model.fit(X[train], Y[train]).predict_topk(X[test], k=5)[0]
    plain = "  ".join(f"P@{k} {100 * precision_at_k(Y[test], lists[name], k):4.1f}" for k in (1, 3, 5))
    rare = 100 * propensity_scored_precision_at_k(Y[test], lists[name], known, 5)
    print(f"{name:14s}{plain}   weighted P@5 {rare:4.1f}")

# %% [markdown]
# In words, for the document above:

# %%
place = int(np.flatnonzero(np.asarray(test) == document)[0])
for name, found in lists.items():
    print(f"{name:14s}", ", ".join(names[found[place]]))

# %% [markdown]
# ## Which tags are found?
#
# A mean over documents is a mean over frequent tags. Each dot below is a tag: how often it is in training, and which share of its
# documents get it among the first five.

# %%
# alt: Share of documents that get their tag, by how frequent the tag is: from near zero to one for rare tags, high for frequent ones.
truth = Y[test].tocoo()
fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for name, colour in (("RidgeOvA", "#d9822b"), ("ExMLDS", "#1f6fb4")):
    hit = (lists[name][truth.row] == truth.col[:, None]).any(axis=1)
    share = np.bincount(truth.col, hit, len(names)) / np.maximum(
        np.bincount(truth.col, minlength=len(names)), 1
    )
    ax.semilogx(counts, share, "o", ms=5, alpha=0.5, color=colour, label=name)
    quarter = counts <= np.quantile(counts, 0.25)
    print(
        f"{name}: of the rarest quarter of the tags {share[quarter].mean():.0%} are found, of the others {share[~quarter].mean():.0%}"
    )
ax.set(xlabel="training documents with the tag", ylabel="share found in five")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# ## What this does not show
#
# - One split. {doc}`/papers/exmlds` has the mean over the ten published ones, with settings chosen on a fifth of the training rows, and other
#   data sets; there the order of the methods changes.
# - A tag that nobody gave counts as wrong, though a reader might agree with it. The true precision is higher than any figure here.
# - Words of 2008. A model of sentences would know more of a document than which words occur in it; bring its vectors as `X`.
