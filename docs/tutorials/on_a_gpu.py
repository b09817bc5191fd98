# %% [markdown]
# # On a GPU: when it pays
#
# One word, `device="cuda"`, puts the sweeps of a fit on a card. Whether that helps is a question of size, and this page shows how to answer it for your
# own data. It runs on any machine: with `device="auto"` it takes a card if there is one and says so if there is none. **What is stored below was computed
# without a card**; figures of an H200 are in {doc}`/guide/gpu`.

# %%
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np

from unseen import BiasMC
from unseen.datasets import make_scale_bipartite
from unseen.kernels import get_provider

try:
    get_provider("cuda")
    device = "cuda"
except Exception as error:  # no card, or the extra is not installed: the message says which
    device = "cpu"
    print("no card here:", type(error).__name__)

# %% [markdown]
# ## Will it fit?
#
# Cells in both orders, factors, a table to gather from, and a start: the need can be written down, and is compared with what is free before anything is
# sent.


# %%
# alt: Memory that a fit needs against the number of cells, with lines for cards of 16, 24, 80 and 141 gigabytes.
def need(cells, rows, cols, rank, bytes_of_a_cell):
    """Bytes of a fit in float32."""
    return cells * bytes_of_a_cell + 4 * rank * (rows + cols + 2 * max(rows, cols)) + 24 * (rows + cols)


sizes = np.logspace(6, 10, 50)
fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for kind, each, style in (("positives", 8, "-"), ("values", 16, "--"), ("values and weights", 24, ":")):
    gigabytes = [need(size, size / 50, size / 200, 100, each) / 1e9 for size in sizes]
    ax.loglog(sizes, gigabytes, style, color="#1f6fb4", lw=2.5, label=kind)
for card in (16, 24, 80, 141):
    ax.axhline(0.9 * card, color="0.75", lw=1, zorder=0)
    ax.annotate(f"card of {card} GB", (1.1e6, 0.95 * card), fontsize=8, color="0.35")
ax.set(xlabel="cells (50 for each row, rank 100)", ylabel="GB")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# ## The same model
#
# The code of the device also exists as NumPy, called "twin". It is slow and runs everywhere, so that what the card computes can be checked without one:
# here one product, against the kernel of the processor.

# %%
rng = np.random.default_rng(0)
cells = make_scale_bipartite(3000, 1000, 20, random_state=0).observations
left, right = rng.standard_normal((3000, 16)), rng.standard_normal((1000, 16))
answers = {}
for name in ("native", "twin", *(["cuda"] if device == "cuda" else [])):
    place = get_provider(name)
    pattern = place.pattern(cells.indptr, cells.indices, n_cols=1000)
    answers[name] = place.to_host(place.spmm(pattern, 1.0, place.asarray(right)))
for name, found in answers.items():
    print(f"{name:7s} agrees with the processor: {np.allclose(found, answers['native'])}")

# %% [markdown]
# ## When does it pay?
#
# Starting CUDA takes about a second and compiling for a new rank some seconds once. So time a fit of your own size twice, and take the second. This cell
# does it on whatever is there; run it on both machines and compare.

# %%
seconds = {}
for number in (1, 2):
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BiasMC(16, alpha=0.9, max_iter=5, random_state=0, device=device).fit(cells)
    seconds[number] = time.perf_counter() - began
print(
    f"fitted on {device}; objective falls in every sweep:",
    bool(np.all(np.diff([s["objective"] for s in model.history_]) <= 0)),
)
print("seconds were taken:", len(seconds))

# %% [markdown]
# ## What this does not show
#
# - Below a few million cells a start costs more than the fit; this page is such a case on purpose.
# - Only alternating least squares, averages by Gibbs sampling and lists run on the card; the guide says what stays on the processor.
# - Results agree to rounding, not to the bit: a card adds in another order than a processor. On one card the same input gives the same bits.
