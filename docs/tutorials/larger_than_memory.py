# %% [markdown]
# # Larger than memory: from disk, and on Dask
#
# A fit in memory holds all cells at once. The same model can be fitted from Parquet files, some at a time, on one machine or on a cluster; and it is
# *the same model*, which this page checks. The data is MovieLens 100K written as files, so that both ways can be run here; what it takes at a
# billion cells is at the end. `UNSEEN_DATA` names the folder that holds `ml100k`.

# %%
import os
import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

from unseen import MatrixFactorization, Observations
from unseen.distributed import DaskCompleter, DiskCompleter, cluster_memory, local_memory

home = Path(os.environ["UNSEEN_DATA"]) / "ml100k"
log = pd.read_csv(home / "u.data.gz", sep="\t", names=["user", "film", "stars", "time"])
folder = Path(tempfile.mkdtemp())
for number, part in enumerate(np.array_split(np.arange(len(log)), 8)):
    log.iloc[part].to_parquet(folder / f"part-{number}.parquet")
print(sorted(path.name for path in folder.glob("*.parquet"))[:3], "...")

# %% [markdown]
# ## Choose in memory, fit on disk
#
# A search fits a model many times, so it is done on a sample in memory: a third of the *people*, with all that they have rated. A third of the cells
# would leave each person with a third of the ratings, and choose too strong a penalty. The fit by blocks then takes numbers: it refuses
# `reg="auto"`, with the reason.

# %%
sample = Observations.from_frame(log[log["user"] % 3 == 0], row="user", col="film", value="stars")
reg = MatrixFactorization(rank=8, random_state=0).fit(sample).reg_
settings = {"rank": 8, "reg": reg, "center": "biases", "max_iter": 20, "tol": 1e-12, "random_state": 0}
print(f"penalty chosen on the sample: {reg:.3g}")

# %%
warnings.simplefilter("ignore")  # twenty sweeps on purpose: the same for all three
cells = Observations.from_frame(log, row="user", col="film", value="stars")
whole = MatrixFactorization(**settings).fit(cells)
disk = DiskCompleter(MatrixFactorization(**settings), memory="512MiB")
disk.fit(str(folder), row="user", col="film", value="stars")
from_disk = disk.to_local()
disk.close()

workers = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
with LocalCluster(**workers) as cluster, Client(cluster) as client:
    fit = DaskCompleter(MatrixFactorization(**settings), client=client)
    fit.fit(str(folder), row="user", col="film", value="stars")
    from_dask = fit.to_local()

asked = log.head(5)
for name, model in {"memory": whole, "disk": from_disk, "Dask": from_dask}.items():
    print(f"{name:7s}", np.round(model.predict_entries(asked["user"], asked["film"]), 4))

# %% [markdown]
# ## The same objective, sweep by sweep
#
# The blocks change the order of sums and nothing else.

# %%
# alt: The objective falls along the same curve in memory, from disk and on Dask.
fig, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
for (name, model), style in zip(
    {"memory": whole, "disk": from_disk, "Dask": from_dask}.items(), ("-", "--", ":"), strict=True
):
    values = [sweep["objective"] for sweep in model.history_]
    ax.semilogy(np.arange(1, len(values) + 1), values, style, lw=3, alpha=0.7, label=name)
ax.set(xlabel="sweep", ylabel="objective")
ax.legend(frameon=False)
plt.show()
gap = max(
    abs(other.history_[-1]["objective"] / whole.history_[-1]["objective"] - 1)
    for other in (from_disk, from_dask)
)
print("the objectives agree to ten digits:", gap < 1e-10)

# %% [markdown]
# ## What would a billion cells need?
#
# Before anything is read the need for memory can be told, and a fit that cannot go on is refused at once. More blocks need less memory and read the
# files as often.

# %%
# alt: Memory against the number of cells, for a fit in one piece, from disk in 64 blocks, and for one of eight workers of a cluster.
sizes = np.logspace(6, 10, 30)


def shape(cells):
    """Rows and columns grow more slowly than cells."""
    return int(10 * cells**0.6), int(10 * cells**0.5)


ways = {
    "disk, 1 block": lambda c: local_memory(int(c), shape(c), 64, 1).peak,
    "disk, 64 blocks": lambda c: local_memory(int(c), shape(c), 64, 64).peak,
    "a worker of 8, 64 blocks": lambda c: cluster_memory(int(c), shape(c), 64, 64, 8).peak,
}
fig, ax = plt.subplots(figsize=(8, 3.8), layout="constrained")
for (name, need), colour in zip(ways.items(), ("#aab4c0", "#1f6fb4", "#d9822b"), strict=True):
    ax.loglog(sizes, [need(size) / 2**30 for size in sizes], color=colour, lw=2.5, label=name)
ax.axhline(16, color="0.7", lw=1)
ax.annotate("16 GiB", (1.2e6, 18), color="0.4")
ax.set(xlabel="cells (rank 64)", ylabel="GiB of memory")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# ## What this does not show
#
# - Seconds. A hundred thousand cells say nothing about a billion; {doc}`/guide/distributed` has measured runs, with what was sent over the network.
# - Only one low-rank term with a ridge goes by blocks, with or without features; the table in the guide says what is refused and why.
# - If the cells fit into memory, the fit in memory is faster. Blocks are for when they do not.
