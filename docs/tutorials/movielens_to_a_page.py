# %% [markdown]
# # Ratings: from a log file to a served page
#
# MovieLens 100K is a log: who gave which film how many stars, and when. At the end of this page a browser shows lists for
# people, for films and for somebody who has just arrived. On the way we ask the question that matters more than any model: *would it
# have worked?*
#
# `UNSEEN_DATA` names the folder that holds `ml100k`, as it comes from GroupLens.

# %%
import os
import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import unseen
from unseen import BiasModel, MatrixFactorization, Observations
from unseen.model_selection import cross_validate, split_time
from unseen.serve import create_app

warnings.simplefilter("ignore")  # eighteen titles occur twice; their ratings are averaged
home = Path(os.environ["UNSEEN_DATA"]) / "ml100k"
log = pd.read_csv(home / "u.data.gz", sep="\t", names=["user", "film", "stars", "time"])
films = pd.read_csv(
    home / "u.item.gz", sep="|", encoding="latin-1", header=None, usecols=[0, 1], names=["film", "title"]
)
log = log.merge(films, on="film")
log.head(3)

# %% [markdown]
# ## Look before you fit
#
# Two things in this log decide what a model can do. Films are not alike: a few have hundreds of ratings and most have hardly any. And
# people come once: they rate for an evening, and are not seen again.

# %%
# alt: Left, the number of ratings of each film falls steeply; right, most people rate on a single day.
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
counts = log["title"].value_counts().to_numpy()
left.loglog(np.arange(1, len(counts) + 1), counts, color="#1f6fb4")
left.set(xlabel="films, the most rated first", ylabel="ratings of the film")
days = (log["time"] // 86400).groupby(log["user"]).nunique().clip(upper=10)
right.bar(*np.unique(days, return_counts=True), color="#d9822b")
right.set(xlabel="days on which somebody rated (10: or more)", ylabel="people")
plt.show()
print(
    f"{(counts < 10).mean():.0%} of the films have fewer than ten ratings; {(days == 1).mean():.0%} of the people came on one day"
)

# %% [markdown]
# ## Would it have worked?
#
# Holding out cells at random lets a model look into the future: it would know how people rated *next week*. A model in use predicts what
# comes later from what was before, so the latest fifth of the ratings is held out. `BiasModel`, a mean with a number for each person and film, is
# the line to beat.

# %%
cells = Observations.from_frame(log, row="user", col="title", value="stars", time="time")
models = {
    "biases": BiasModel(),
    "low rank": MatrixFactorization(
        rank=10, reg=10.0, center="joint", clip="observed", tol=1e-4, random_state=0
    ),
}
past, future = split_time(cells, test_fraction=0.2)
met = np.isin(future.rows, np.unique(past.rows))
for name, model in models.items():
    at_random = cross_validate(model, cells, cv=5, scoring="rmse").mean("rmse")
    predicted = model.fit(past).predict_entries(future.rows, future.indices, positions=True)
    squared = (predicted - future.values) ** 2
    print(
        f"{name:9s} cells at random {at_random:.2f}   the future {squared.mean() ** 0.5:.2f}   "
        f"of it, people seen before {squared[met].mean() ** 0.5:.2f}"
    )
print(f"{1 - met.mean():.0%} of the later ratings are of people who were not there before")

# %% [markdown]
# That is the honest figure. At random, low rank is clearly ahead. In the future most ratings are of newcomers, about whom neither
# model knows anything, and the two are nearly level. The lesson is not a better rank: it is to ask newcomers for a few ratings, and to use
# those at once. That is what folding in does, and the page below.
#
# ## What has it learned?
#
# The factors of the films, laid flat. Nobody told the model about genres.

# %%
# alt: A map of well-known films by their factors; children's films, thrillers and art films lie in different corners.
model = models["low rank"].fit(cells)
known = np.bincount(cells.indices, minlength=cells.shape[1]) >= 150
factors = model.col_factors_[known, : model.rank]
centred = factors - factors.mean(axis=0)
_, _, axes = np.linalg.svd(centred, full_matrices=False)
flat = centred @ axes[:2].T
titles = np.array([title.rsplit(" (", 1)[0] for title in model.col_ids_])[known]
fig, ax = plt.subplots(figsize=(8.5, 6), layout="constrained")
ax.scatter(*flat.T, s=12, color="#c3cad2")
far = np.argsort(-np.hypot(*flat.T))[:26]
for place in far:
    ax.annotate(titles[place], flat[place], fontsize=7.5, ha="center", color="#1f3a5f")
ax.set(xticks=[], yticks=[], title="films by their factors, the most pronounced named")
plt.show()
print(
    model.similar_cols("Star Wars (1977)", k=3, as_frame=True)[["similar", "score"]]
    .round(2)
    .to_string(index=False)
)

# %% [markdown]
# ## Lists, and somebody new
#
# Somebody likes *Alien* and *Blade Runner* and did not care for *Grease*. Three cells are enough for factors of their own; the films' factors
# stay as they are, so it takes no time. Three ratings move a list only a little: at its head are films that nearly everybody likes. What
# they do move shows in the second list, of the films that gain most.

# %%
mine = pd.DataFrame(
    {"user": "me", "title": ["Alien (1979)", "Blade Runner (1982)", "Grease (1978)"], "stars": [5, 5, 1]}
)
me = Observations.from_frame(mine, row="user", col="title", value="stars")
print(
    model.recommend(cells=me, k=4, as_frame=True)[["rank", "title", "score"]].round(2).to_string(index=False)
)
everybody = model.row_factors_.mean(axis=0) @ model.col_factors_.T
gain = (model.fold_in(me)[0] @ model.col_factors_.T - everybody)[known]
print("gain most:", ", ".join(titles[np.argsort(-gain)[:6]]))
print("lose most:", ", ".join(titles[np.argsort(gain)[:6]]))

# %% [markdown]
# ## Served
#
# Saved, and served to browsers and programs: `unseen serve model` does it from the command line. Here the same application answers without a
# socket.

# %%
place = Path(tempfile.mkdtemp()) / "model"
model.save(place)
from starlette.testclient import TestClient

with TestClient(create_app(unseen.load(place))) as client:
    body = {"cells": [{"col": "Alien (1979)", "value": 5}, {"col": "Grease (1978)", "value": 1}], "k": 3}
    answer = client.post("/v1/recommend", json=body).json()
    page = client.get("/").text
print([item["id"] for item in answer["lists"][0]["items"]])
print("the page has a title:", "<title>" in page)

# %% [markdown]
# ## What this does not show
#
# - A low error is not a good list. Films with few, high ratings can lead lists; `weighting` by popularity, `deny=` and `candidates=`
#   are decisions that somebody has to make, and only people who use the lists can judge them.
# - The data is from 1998, of people who chose to rate. What they did not watch is not missing at random.
# - {doc}`/how_good` has the figures of better and slower models on this set, {doc}`/guide/serving` what the server promises, and
#   {doc}`from_frame_to_lists` the same path in sixty lines.
