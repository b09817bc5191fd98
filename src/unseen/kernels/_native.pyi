"""Compiled kernels; the arguments are those of :mod:`unseen.kernels.reference`, already unified."""

from unseen.typing import Array, FloatArray, IndexArray

def isa() -> str: ...
def gram(dense: FloatArray, n_threads: int) -> FloatArray: ...
def sddmm(
    indptr: IndexArray, indices: IndexArray, left: FloatArray, right: FloatArray, n_threads: int
) -> FloatArray: ...
def spmm(
    indptr: IndexArray, indices: IndexArray, data: FloatArray, dense: FloatArray, n_threads: int
) -> FloatArray: ...
def spmm_t(
    indptr: IndexArray, indices: IndexArray, data: FloatArray, dense: FloatArray, n_cols: int, n_threads: int
) -> FloatArray: ...
def als_solve(
    indptr: IndexArray,
    indices: IndexArray,
    curvature: FloatArray,
    linear: FloatArray,
    other: FloatArray,
    gram: FloatArray,
    offset: FloatArray | None,
    out: FloatArray,
    ridge: FloatArray | None,
    shift: FloatArray | None,
    row_values: FloatArray | None,
    method: str,
    cg_steps: int,
    n_threads: int,
    gram_scale: FloatArray | None = None,
) -> None: ...
def als_draw(
    indptr: IndexArray,
    indices: IndexArray,
    curvature: FloatArray,
    linear: FloatArray,
    other: FloatArray,
    precision: FloatArray,
    offset: FloatArray | None,
    shift: FloatArray | None,
    noise: FloatArray,
    out: FloatArray,
    means: FloatArray | None,
    sizes: FloatArray | None,
    n_threads: int,
) -> None: ...
def normals(seed: int, sweep: int, block: int, first_row: int, out: FloatArray, n_threads: int) -> None: ...
def signs(
    seed: int,
    block: int,
    first_row: int,
    length: int,
    rate: float,
    size: float,
    skip: IndexArray,
    indptr: IndexArray,
    indices: IndexArray,
    values: FloatArray,
    n_threads: int,
) -> int: ...
def ccd_sweep(
    indptr: IndexArray,
    indices: IndexArray,
    csc_indptr: IndexArray,
    csc_indices: IndexArray,
    csc_order: IndexArray,
    curvature: FloatArray,
    linear: FloatArray,
    scores: FloatArray,
    left: FloatArray,
    right: FloatArray,
    background: float,
    target: float,
    reg: float,
    l1: float,
    lower: float,
    upper: float,
    inner: int,
    n_threads: int,
) -> None: ...
def topk(
    left: FloatArray,
    right: FloatArray,
    k: int,
    exclude: tuple[IndexArray, IndexArray] | None,
    col_ids: IndexArray,
    n_threads: int,
) -> tuple[IndexArray, FloatArray]: ...
def cooccurrence(
    indptr: IndexArray,
    indices: IndexArray,
    index_indptr: IndexArray,
    index_indices: IndexArray,
    k: int,
    similarity: str,
    recount: bool,
    n_threads: int,
) -> tuple[IndexArray, IndexArray, IndexArray]: ...
def sgns(
    words: FloatArray,
    contexts: FloatArray,
    centers: IndexArray,
    positives: IndexArray,
    negatives: IndexArray,
    first_rate: float,
    last_rate: float,
    n_threads: int,
) -> None: ...
def joint(
    indptr: IndexArray,
    indices: IndexArray,
    values: FloatArray,
    regressor: FloatArray,
    squares: FloatArray,
    visits: IndexArray,
    positives: IndexArray,
    negatives: IndexArray,
    reg: FloatArray,
    gamma: float,
    negative_weight: float,
    rate: float,
    cosine: bool,
    n_threads: int,
) -> None: ...
def label_splits(
    indptr: IndexArray,
    indices: IndexArray,
    values: FloatArray,
    gain_indptr: IndexArray,
    gain_indices: IndexArray,
    gain_values: FloatArray,
    starts: IndexArray,
    rows: IndexArray,
    sides: Array,
    weights: FloatArray,
    C: float,
    tol: float,
    max_passes: int,
    max_rounds: int,
    n_labels: int,
    n_threads: int,
) -> None: ...
def linear_duals(
    indptr: IndexArray,
    indices: IndexArray,
    values: FloatArray,
    starts: IndexArray,
    rows: IndexArray,
    signs: Array,
    alpha: FloatArray,
    weights: FloatArray,
    C_positive: float,
    C_negative: float,
    margin_positive: float,
    margin_negative: float,
    l1: float,
    tol: float,
    squared: bool,
    max_passes: int,
    seed: int,
    n_threads: int,
) -> None: ...
def margin_sweep(
    indptr: IndexArray,
    indices: IndexArray,
    values: FloatArray,
    label_indptr: IndexArray,
    label_indices: IndexArray,
    visits: IndexArray,
    slots: IndexArray,
    active: IndexArray,
    alpha: FloatArray,
    weights: FloatArray,
    costs: FloatArray,
    gaps: FloatArray,
    l1: float,
    feature_share: float,
    label_share: float,
    n_candidates: int,
    seed: int,
    n_threads: int,
) -> None: ...
