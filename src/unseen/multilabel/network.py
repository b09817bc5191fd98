"""A small network from features to embeddings, learned by PyTorch and applied by NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from unseen.exceptions import DivergedError, ParameterError
from unseen.linalg.designs import as_design
from unseen.multilabel.regression import LinearMap
from unseen.typing import Features, FloatArray

__all__ = ["NetworkMap", "fit_network"]


@dataclass(frozen=True)
class NetworkMap(LinearMap):
    """``x -> W2' max(W1'x + b1, 0) + b2``.

    Attributes
    ----------
    features : int64 array of shape (u,)
        Features that are used: all.
    weights : array of shape (h, r)
        W2.
    inner : array of shape (u, h)
        W1.
    inner_bias : array of shape (h,)
        b1.
    bias : array of shape (r,)
        b2.
    """

    inner: FloatArray
    inner_bias: FloatArray
    bias: FloatArray

    def apply(self, X: Features, *, n_threads: int = 1) -> FloatArray:
        """Embeddings of rows of X."""
        hidden = np.maximum(as_design(X, n_threads).dot(self.inner) + self.inner_bias, 0)
        out: FloatArray = (hidden @ self.weights + self.bias).astype(X.dtype, copy=False)
        return np.ascontiguousarray(out)

    @property
    def n_stored(self) -> int:
        """Weights that are kept."""
        return sum(part.size for part in (self.inner, self.inner_bias, self.weights, self.bias))


def torch_or_advice() -> Any:
    """PyTorch, or how to get it."""
    try:
        import torch
    except ImportError as error:
        raise ParameterError("DXML learns its network by PyTorch: pip install 'unseen[deep]'") from error
    return torch


def fit_network(
    X: Features,
    Z: FloatArray,
    *,
    hidden: int,
    dropout: float,
    rate: float,
    batch_size: int,
    max_iter: int,
    rng: np.random.Generator,
) -> tuple[NetworkMap, list[float]]:
    """Learn a network of one hidden layer with the smooth absolute error (Huber's loss) by Adam.

    Works on one thread of the processor in 32 bits, so that a seed gives the same bits.

    Parameters
    ----------
    X : array or csr_array of shape (n, d)
        Features.
    Z : array of shape (n, r)
        Embeddings to be found.
    hidden : int
        Units of the hidden layer.
    dropout : float
        Share of the hidden units that are left out in a step.
    rate : float
        Adam's step length.
    batch_size, max_iter : int
        Rows of a step, and passes over the rows.
    rng : Generator
        Draws the start, the order of the rows and the units that are left out.

    Returns
    -------
    NetworkMap
    list of float
        Mean loss of each pass.
    """
    torch = torch_or_advice()
    threads = torch.get_num_threads()
    state = torch.get_rng_state()
    torch.set_num_threads(1)
    try:
        torch.manual_seed(int(rng.integers(1 << 62)))
        layers = torch.nn.Sequential(
            torch.nn.Linear(X.shape[1], hidden),
            torch.nn.ReLU(),
            torch.nn.Dropout(dropout),
            torch.nn.Linear(hidden, Z.shape[1]),
        )
        steps = torch.optim.Adam(layers.parameters(), lr=rate)
        loss, losses = torch.nn.SmoothL1Loss(), []
        for _ in range(max_iter):
            order, total = rng.permutation(X.shape[0]), 0.0
            for first in range(0, len(order), batch_size):
                rows = order[first : first + batch_size]
                own = X[rows].toarray() if sparse.issparse(X) else X[rows]
                found = loss(layers(_tensor(torch, own)), _tensor(torch, Z[rows]))
                steps.zero_grad()
                found.backward()
                steps.step()
                total += float(found.detach()) * len(rows)
            losses.append(total / len(order))
    finally:
        torch.set_num_threads(threads)
        torch.set_rng_state(state)
    first, last = layers[0], layers[3]
    parts = [p.detach().numpy().astype(X.dtype) for p in (last.weight, first.weight, first.bias, last.bias)]
    if not all(np.isfinite(part).all() for part in parts):
        raise DivergedError(f"the network overflowed; try a smaller rate than {rate}")
    outer, inner, inner_bias, bias = parts
    everything = np.arange(X.shape[1])
    return NetworkMap(
        everything, np.ascontiguousarray(outer.T), np.ascontiguousarray(inner.T), inner_bias, bias
    ), losses


def _tensor(torch: Any, values: FloatArray) -> Any:
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))
