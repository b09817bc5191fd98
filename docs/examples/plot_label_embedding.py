"""
A map of labels
===============

Labels that occur together lie together: a picture of the embeddings that ``ExMLDS`` learns, and what
they are good for.
"""

# %%
# Topics bring words with them, and labels. Each label belongs to one of eight topics; a ninth group of labels
# goes with everything.

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from sklearn.manifold import TSNE

from unseen import ExMLDS, RidgeOvA
from unseen.metrics import precision_at_k

rng = np.random.default_rng(0)
n_rows, n_topics, n_labels, n_words = 2000, 8, 90, 200
label_topic = np.arange(n_labels) // 10
topic = rng.integers(0, n_topics, n_rows)
word_topic = rng.integers(0, n_topics, n_words)
X = sparse.csr_array(rng.poisson(np.where(word_topic == topic[:, None], 0.6, 0.15)).astype(float))
chance = np.where(label_topic == topic[:, None], 0.25, 0.005)
chance[:, label_topic == n_topics] = 0.03
Y = sparse.csr_array((rng.random((n_rows, n_labels)) < chance).astype(float))
train, test = slice(0, 1500), slice(1500, n_rows)

# %%
# With counts of labels that occur together, rows and labels are embedded in one space.

model = ExMLDS(
    n_components=16,
    n_neighbors=200,
    k=25,
    label_correlations=Y[train].T @ Y[train],
    random_state=0,
    n_jobs=1,
    neighbor_power=0.0,
).fit(X[train], Y[train])
labels = model.learners_[0].parts[0].label_points

# %%
# Their unit vectors, laid out in the plane so that near labels stay near. Colours are the true topics,
# which the model has not seen; grey labels go with everything.

units = labels / np.maximum(np.linalg.norm(labels, axis=1, keepdims=True), 1e-12)
flat = TSNE(perplexity=8, random_state=0).fit_transform(units)
sizes = np.asarray(Y[train].sum(axis=0)).ravel()
fig, ax = plt.subplots(figsize=(6, 5))
for number in range(n_topics + 1):
    own = label_topic == number
    colour = plt.cm.Dark2(number) if number < n_topics - 1 else "gold" if number < n_topics else "0.7"
    ax.scatter(*flat[own].T, s=0.4 * sizes[own], color=colour, label=f"topic {number}")
ax.set(xticks=[], yticks=[], title="labels by what they occur with")
plt.show()

# %%
# The nearest labels of a label share its topic.

cosines = units @ units.T
np.fill_diagonal(cosines, -1)
inside = label_topic < n_topics
same = label_topic[np.argsort(-cosines, axis=1)[:, :3]] == label_topic[:, None]
print(f"{100 * same[inside].mean():.0f} % of the three nearest labels are of the same topic")

# %%
# Does it help to find labels? One ridge regression a label is the rival to beat.

for name, rival in {"ExMLDS": model, "RidgeOvA": RidgeOvA().fit(X[train], Y[train])}.items():
    ids, _ = rival.predict_topk(X[test], 5)
    print(f"{name:9s}" + "".join(f"  P@{k} {100 * precision_at_k(Y[test], ids, k):.1f}" for k in (1, 3, 5)))
