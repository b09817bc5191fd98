"""
Rows that were not there
========================

A fifth of the people is held out whole. They can be predicted from their features at once, and from their
own ratings as these come in.
"""

# %%
# The training part has the other rows only; the model never sees a rating of the new ones.

import matplotlib.pyplot as plt
import numpy as np

from unseen import Completion, LowRank, Ridge, Term, WithOnes
from unseen.datasets import make_ratings
from unseen.metrics import rmse
from unseen.model_selection import split_rows

data = make_ratings(500, 300, density=0.2, random_state=1)
X = data.observations
split = split_rows(X, test_fraction=0.2, random_state=0)
options = {"center": "biases", "tol": 1e-4, "max_iter": 300, "random_state": 0, "n_jobs": 1}
by_features = Term(WithOnes(), WithOnes(), LowRank(6), Ridge(5.0))
rest = Term(core=LowRank(4), reg=Ridge(5.0))
model = Completion([by_features, rest], **options)
model = model.fit(split.train, row_features=data.row_features, col_features=data.col_features)
plain = Completion([rest], **options).fit(split.train)

# %%
# Of each new row the last cells are for testing. The first ``n`` of the others are shown to ``fold_in``,
# together with the features, and to the model that knows none.

rng = np.random.default_rng(0)
new = split.test
place = np.empty(new.nnz)  # random place of each cell within its row
for row in split.rows:
    cells = slice(new.indptr[row], new.indptr[row + 1])
    place[cells] = rng.permutation(cells.stop - cells.start)
asked = new.select(place >= 40)


def error(fitted, factors):
    """RMSE on the cells set aside."""
    predicted = np.einsum("ij,ij->i", factors[asked.rows], fitted.col_factors_[asked.indices])
    return rmse(asked, predicted)


counts = [0, 1, 2, 5, 10, 20, 40]
with_features, without = [], []
for n in counts:
    known = new.select(place < n)
    with_features.append(error(model, model.fold_in(known, row_features=data.row_features)))
    without.append(error(plain, plain.fold_in(known)))
    print(f"{n:2d} ratings  with features {with_features[-1]:.2f}  without {without[-1]:.2f}")

# %%
# The features of a new row are worth more than five of its ratings, and keep their worth as ratings come
# in.

figure, ax = plt.subplots(layout="constrained")
ax.plot(counts, without, marker="o", label="ratings only")
ax.plot(counts, with_features, marker="s", label="ratings and features")
ax.set(xlabel="known ratings of a new row", ylabel="RMSE on its other ratings")
ax.legend()
plt.show()
