"""
Positives only
==============

Links, clicks and purchases come without a "no". A blank is not a zero: half of the positives here are
hidden among the blanks. A composition with the loss :class:`~unseen.Biased` counts blanks, but less than
positives.
"""

# %%
# Thirty groups of rows and columns. A cell is positive mostly where the groups agree, and half of the
# positives is hidden. The hidden ones are to be found.

import matplotlib.pyplot as plt
import numpy as np

from unseen import Background, Biased, Completion, LowRank, Ridge, Squared, Term
from unseen.datasets import make_positives
from unseen.metrics import recall_at_k

data = make_positives(400, 400, n_groups=30, inside=0.9, across=0.01, rho=0.5, random_state=0)
print(f"{data.observations.nnz} positives are seen, {data.hidden.nnz} are hidden")

# %%
# The same term with three readings of a blank cell. The fourth line of the table is popularity, which needs
# no model.

readings = {
    "missing": Squared(),
    "zero": Squared(background=Background(1.0, 0.0)),
    "unlabelled, alpha 0.9": Biased(alpha=0.9),
}
sizes = [1, 2, 5, 10, 20]
found = {}
for name, loss in readings.items():
    model = Completion(
        [Term(core=LowRank(30), reg=Ridge(0.3))], loss=loss, tol=1e-4, max_iter=300, random_state=0, n_jobs=1
    ).fit(data.observations)
    ids, _ = model.recommend(np.arange(400), k=max(sizes), exclude=data.observations)
    found[name] = [recall_at_k(data.hidden, ids, k=k, empty_rows="skip") for k in sizes]

popularity = np.asarray(data.observations.csr.sum(axis=0)).ravel()
scores = np.where(data.observations.csr.toarray() > 0, -1.0, popularity)
found["popularity"] = [recall_at_k(data.hidden, scores, k=k, empty_rows="skip") for k in sizes]
for name, values in found.items():
    shares = "  ".join(f"recall@{k} {value:.2f}" for k, value in zip(sizes, values, strict=True))
    print(f"{name:22s}{shares}")

# %%
# Read as missing, the blanks teach nothing: all seen cells are ones, and nothing speaks against ones
# everywhere. The other two rank nearly alike here; they differ in the level of the scores of hidden
# positives.

figure, ax = plt.subplots(layout="constrained")
for (name, values), marker in zip(found.items(), "osD^", strict=True):
    ax.plot(sizes, values, marker=marker, label=name)
ax.set(xlabel="length of the list", ylabel="share of the hidden positives that is found", ylim=(0, 1))
ax.set_xticks(sizes)
ax.legend(loc="center right")
plt.show()
