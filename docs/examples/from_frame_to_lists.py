"""
From a frame to lists, and back
===============================

MovieLens 100K: users and films have names, ratings have times, and there is a table of people. Every call
takes and returns names. ``UNSEEN_DATA`` points to the folder with ``ml100k``.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
import polars as pl

from unseen import IMC, BiasModel, MatrixFactorization, Observations
from unseen.model_selection import cross_validate, split_time

# Read: ratings with polars, people and titles with pandas.
data = Path(os.environ["UNSEEN_DATA"]) / "ml100k"
ratings = pl.read_csv(data / "u.data.gz", separator="\t", has_header=False)
ratings.columns = ["user", "film", "stars", "when"]
names = (pl.format("user {}", "user").alias("user"), pl.format("film {}", "film").alias("film"))
ratings = ratings.with_columns(*names, pl.from_epoch("when"))
people = pd.read_csv(data / "u.user.gz", sep="|", names=["user", "age", "gender", "job", "zip"])
people = people.assign(user="user " + people["user"].astype(str)).drop(columns="zip")
films = pd.read_csv(data / "u.item.gz", sep="|", usecols=[0, 1], names=["film", "title"], encoding="latin-1")
titles = pl.from_pandas(films.assign(film="film " + films["film"].astype(str)))

# Compare on the latest fifth of the ratings.
X = Observations.from_frame(ratings, row="user", col="film", value="stars", time="when")
common = {"center": "biases", "clip": "observed", "max_iter": 50, "tol": 1e-4, "random_state": 0}
factors, by_person = MatrixFactorization(rank=10, reg=8.0, **common), IMC(rank=4, reg=400.0, **common)
for model, side in [(BiasModel(), {}), (factors, {}), (by_person, {"row_features": people})]:
    error = cross_validate(model, X, cv=split_time(X), scoring="rmse", **side).mean("rmse")
    print(f"{type(model).__name__:20s} RMSE {error:.3f}")

# Fit; lists for a known user, what is like a film, and people who have rated nothing yet.
factors.fit(X)
by_person.fit(X, row_features=people)
print(factors.recommend("user 196", k=5, as_frame=True).join(titles, on="film").sort("rank"))
alike = factors.similar_cols("film 50", k=3, as_frame=True)
print(alike.join(titles, left_on="similar", right_on="film").sort("rank"))
cold = pd.DataFrame({"user": ["Kim", "Lee"], "job": ["student", "retired"], "age": [19, 70], "gender": "F"})
print(by_person.recommend(row_features=cold, k=3, as_frame=True).join(titles, on="film").sort("user", "rank"))

# Save, and load in another process.
factors.save((out := Path(tempfile.mkdtemp())) / "model")
ask = "import sys, unseen; print(unseen.load(sys.argv[1]).predict_entries('user 196', 'film 50'))"
print(subprocess.check_output([sys.executable, "-c", ask, str(out / "model")], text=True))

# Somebody new with two ratings; lists in a Parquet file.
mine = pl.DataFrame({"user": ["me", "me"], "film": ["film 50", "film 181"], "stars": [5, 4]})
cells = Observations.from_frame(mine, row="user", col="film", value="stars")
lists = factors.recommend(cells=cells, k=9, as_frame=True).join(titles, on="film")
lists.sort("rank").write_parquet(out / "lists.parquet")
print(pd.read_parquet(out / "lists.parquet").head(3))
