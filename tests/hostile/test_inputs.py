"""Input that points outside of itself, or hides something."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from tests.hostile import inputs, zoo
from tests.hostile.saving import in_a_process
from unseen import (
    IMC,
    LEML,
    MCCC,
    AugmentedMF,
    BiasMC,
    BiasModel,
    Blend,
    ExMLDS,
    ItemNeighbors,
    LinearOvA,
    MatrixFactorization,
    Observations,
    PfastreXML,
    PUClustering,
    RidgeOvA,
    ShiftMC,
    SoftImpute,
    SpectralFilter,
    SPPMIEmbedding,
    Vocabulary,
)
from unseen.baselines import MMMF
from unseen.exceptions import DivergedError, InvalidDataError, ParameterError, TooLargeError
from unseen.learned import LIBRARY_ERRORS
from unseen.linalg.balance import balancing
from unseen.linalg.blocked import matmul
from unseen.linalg.normal_draws import wishart
from unseen.linalg.svt import spectral_norm
from unseen.links import BlendedLinks, Katz, SVDKatz, TruncatedSVDLinks, top_links
from unseen.metrics import precision_at_k, ranked_hits

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((20, 5))
RATINGS = np.where(RNG.random((20, 10)) < 0.6, RNG.standard_normal((20, 10)), np.nan)
LABELS = sparse.csr_array((RNG.random((20, 6)) < 0.4).astype(float))
SPARSE = sparse.csr_array(np.where(ROWS > 1.0, ROWS, 0.0))


def pointing(matrix: Any, index: int) -> Any:
    """The matrix with an index that leads elsewhere."""
    out = matrix.copy()
    out.indices[0] = index
    return out


@pytest.mark.parametrize("index", [-1, 10**6])
@pytest.mark.parametrize(
    "call",
    [
        lambda index: IMC(2).fit(RATINGS, row_features=pointing(SPARSE, index)),
        lambda index: IMC(2).fit(RATINGS, row_features=pointing(SPARSE.tocsc(), index)),
        lambda index: RidgeOvA().fit(ROWS, pointing(LABELS, index)),
        lambda index: LinearOvA().fit(pointing(SPARSE, index), LABELS),
        lambda index: ExMLDS().fit(ROWS, pointing(LABELS, index)),
        lambda index: SPPMIEmbedding(2).fit(pointing(LABELS, index)),
        lambda index: Observations.from_sparse(LABELS, weights=pointing(LABELS, index)),
        lambda index: Observations.from_sparse(pointing(LABELS, index)),
    ],
)
def test_sparse_matrices_that_point_outside_are_refused(call: Callable[[int], Any], index: int) -> None:
    with pytest.raises(InvalidDataError, match="not a valid sparse matrix"):
        call(index)


def test_what_is_masked_is_missing_or_refused() -> None:
    mask = np.eye(3, dtype=bool)
    cells = Observations.from_any(np.ma.masked_array(np.ones((3, 3)), mask=mask))
    np.testing.assert_array_equal(cells.csr.toarray(), 1.0 - mask)
    with pytest.raises(InvalidDataError, match="row_features is a masked array"):
        IMC(2).fit(RATINGS, row_features=np.ma.masked_array(ROWS, mask=ROWS > 1))


def test_matrices_of_numpy_are_arrays() -> None:
    filled = np.nan_to_num(RATINGS)
    one, other = (BiasModel().fit(X).row_factors_ for X in (filled, np.matrix(filled)))
    np.testing.assert_array_equal(one, other)


def test_sides_without_end_are_refused() -> None:
    wide = sparse.csr_array((np.ones(1), np.array([2**40]), np.array([0, 1])), shape=(1, 2**41))
    with pytest.raises(TooLargeError, match="from_frame"):
        BiasModel().fit(wide)


def test_many_kinds_of_odd_input_and_settings(tmp_path: Path) -> None:
    count = 3 * len(zoo.MODELS)
    found = in_a_process("attack", tmp_path, "inputs", first=0, count=count)
    assert found["answered"] > 20
    assert found["refused"] > 50
    assert found["answered"] + found["refused"] + found["no memory"] == count, found


TAKES_ANYTHING = {
    "random_state",
    "label_correlations",
    "label_features",
    "models",
    "terms",
    "solver",
    "weights",
}
"""Checked where they are used: what they accept has no short name."""


@pytest.mark.parametrize("name", zoo.MODELS)
def test_settings_of_another_kind_are_refused_by_their_name(name: str) -> None:
    fitted = zoo.fitted(name)
    given, sides = inputs.arguments(fitted)
    for setting in fitted.get_params(deep=False):
        for value in (np.eye(2), np.ones((2, 1, 1)), {"a": 1}):
            model = clone(fitted).set_params(**{setting: value})
            if setting not in TAKES_ANYTHING:
                with pytest.raises(LIBRARY_ERRORS, match=setting):
                    model.fit(*given, **sides)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RidgeOvA(threshold=np.nan), "threshold must be"),
        (RidgeOvA(threshold="high"), "threshold must be"),
        (PfastreXML(propensity=0.5), "propensity must be a pair"),
        (Katz(n_jobs="all"), "n_jobs must be"),
        (ItemNeighbors(n_jobs=0), "n_jobs must be"),
        (AugmentedMF(max_nonzeros=-1.5), "max_nonzeros must be an integer"),
        (SPPMIEmbedding(2, shift=1e-320), "is `shift` extreme"),
        (Blend([RidgeOvA(), LEML(3)], scoring=np.eye(2)), "scoring"),
    ],
)  # fmt: skip
def test_settings_that_were_never_looked_at(model: Any, message: str) -> None:
    given, _ = inputs.arguments(zoo.fitted(type(model).__name__))
    with pytest.raises((ParameterError, DivergedError), match=message):
        model.fit(*given)


def test_a_wrong_answer_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "spoil", lambda model, given, sides, rng: None)
    assert inputs.trial(0) == "answered"
    monkeypatch.setattr(BiasModel, "predict_entries", lambda *_, **__: np.array([np.nan]))
    with pytest.raises(FloatingPointError):
        inputs.trial(0)


class Infinite:
    """An operator that squares of large numbers would make."""

    shape = (3, 3)

    def toarray(self) -> Any:
        return np.full((3, 3), np.inf)


GRAPH = zoo.GRAPH
PAIRED = zoo.fitted("BiasMC")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Katz().fit(GRAPH * 1e200), "weights of links from"),
        (lambda: SVDKatz(2).fit(GRAPH * 1e308), "weights of links from"),
        (lambda: TruncatedSVDLinks(2).fit(GRAPH * 1e-320), "weights of links from"),
        (lambda: IMC(2).fit(RATINGS, row_features=ROWS * 1e200), "squares are finite"),
        (lambda: IMC(2).fit(RATINGS, row_features=SPARSE * 1e200), "squares are finite"),
        (lambda: MatrixFactorization(2, verbose="loud", max_iter=0).fit(RATINGS), "verbose must be 0"),
        (lambda: BiasModel().fit(np.full((3, 4), 1e308)), "up to 1e[+]308, whose sum is no number"),
        (lambda: MatrixFactorization(2).fit(np.full((3, 4), 1e308)), "whose sum is no number"),
        (lambda: IMC(2, standardize="yes").fit(RATINGS, row_features=ROWS), "standardize must be True"),
        (lambda: MatrixFactorization(2**62).fit(RATINGS), "rank must be at most"),
        (lambda: MatrixFactorization(2**63).fit(RATINGS), "rank must be at most"),
        (lambda: PAIRED.recommend([0], candidates=[99]), r"candidates\[0\] is 99"),
        (lambda: PUClustering(2).fit(ROWS, pairs=[[0, 1], [0, 99]]), r"pairs\[1\] is \(0, 99\)"),
        (lambda: ranked_hits(LABELS, [[0, 99]]), r"pairs\[0\] is \(0, 99\)"),
        (lambda: precision_at_k(LABELS, LABELS.toarray(), 7), "only 6 columns"),
        (lambda: precision_at_k(LABELS, LABELS.toarray(), 2**63), "k must be at most"),
        (lambda: MCCC(21).fit(ROWS), "n_clusters=21 is more than the 20 items"),
        (lambda: BiasModel().fit(in_a_list(-1)), "not a valid sparse matrix"),
        (lambda: BiasModel().fit(in_a_list(7)), "not a valid sparse matrix"),
        (lambda: BiasModel().fit(in_a_dict(7)), "not a valid sparse matrix"),
        (lambda: PAIRED.predict_entries(np.ma.masked_array([0, 1], mask=[1, 0]), [0, 1]), "rows is a masked"),
        (lambda: Vocabulary(np.ma.masked_array([0, 1], mask=[1, 0])), "ids is a masked"),
        (lambda: Observations.from_triples([0], [0], np.ma.masked_array([1], mask=[1])), "values is a"),
        (lambda: Katz(0.1, length=10**9).fit(GRAPH), "length must be at most"),
        (lambda: Katz(np.nextafter(1 / zoo.fitted("Katz").lambda_max_, 0)).fit(zoo.GRAPH), "steps of a walk"),
        (lambda: wishart(5.0, np.full((2, 2), np.nan), RNG), "squares are too large"),
        (lambda: wishart(5.0, -np.eye(2), RNG), "squares are too large"),
        (lambda: matmul(np.eye(3), np.eye(2)), "3 columns cannot be multiplied with 2 rows"),
        (lambda: spectral_norm(Infinite(), RNG), "holds NaN or infinity"),
        (lambda: BlendedLinks(["m"]).fit(GRAPH), "models must be completers"),
        (lambda: SpectralFilter(3, degree_power=2**70).fit(zoo.POSITIVES), "leave no cell any weight"),
        (lambda: balancing(np.full((2, 2), np.inf), np.eye(2)), "factors became NaN or infinite"),
        (lambda: BiasMC(2, weights=np.eye(2)).fit(LABELS), "weights must be None, True or False"),
        (lambda: Blend(3).fit(RATINGS), "models must be"),
        (lambda: Blend(itertools.count()).fit(RATINGS), "models must be"),
        (lambda: next(SoftImpute().path(RATINGS, itertools.count())), "regs must be"),
        (lambda: PAIRED.recommend(itertools.count()), "rows|must"),
        (lambda: ExMLDS(mu=3).fit(ROWS, LABELS), "mu must be"),
        (lambda: ExMLDS(neighbor_power=1e300).fit(ROWS, LABELS), "neighbor_power must be"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_called_by_its_name(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((InvalidDataError, ParameterError, DivergedError), match=message):
        call()


def test_steps_of_a_walk_that_are_too_small_to_be_squared() -> None:
    model = Katz(1e-200).fit(zoo.GRAPH)
    assert model.length_ == 2
    assert np.isfinite(model.predict_entries([0], [1])).all()


def test_doubts_of_a_model_that_learned_from_no_cell() -> None:
    model = ShiftMC(2, rho=0.3, max_iter=2, random_state=0).fit(np.zeros((4, 5)))
    assert np.isfinite(model.predict_entries([0], [1], return_std=True)[1]).all()


def in_a_list(index: int) -> Any:
    matrix = sparse.lil_array((3, 3))
    matrix[0, 0] = 1.0
    matrix.rows[0] = [index]
    return matrix


def in_a_dict(index: int) -> Any:
    matrix = sparse.dok_array((3, 3))
    matrix._dict[(0, index)] = 1.0
    return matrix


@pytest.mark.parametrize("k", [2**31, 2**62, 2**63, 99])
def test_lists_are_never_longer_than_what_there_is_to_list(k: int) -> None:
    n, m = zoo.POSITIVES.shape
    assert PAIRED.recommend([0, 1], k, exclude=None)[0].shape == (2, m)
    assert PAIRED.similar_rows([0], k)[0].shape == (1, n)
    assert PAIRED.similar_cols([0], k)[1].shape == (1, m)
    assert RidgeOvA().fit(ROWS, LABELS).predict_topk(ROWS, k)[0].shape == (20, 6)
    assert len(top_links(zoo.fitted("Katz"), k).pairs) <= zoo.N * (zoo.N - 1) // 2


def test_more_memory_than_there_is_is_a_memory_error_of_the_library() -> None:
    wide = sparse.coo_array((np.ones(1), ([0], [2**40])), shape=(1, 2**41))
    with pytest.raises(MemoryError, match="a side of at most") as caught:
        RidgeOvA().fit(wide, np.ones((1, 1)))
    assert isinstance(caught.value, TooLargeError)


def test_thresholds_at_both_ends_of_what_numbers_can_be() -> None:
    levels = np.where(RATINGS > 0, 1e300, -1e300)
    assert np.isfinite(MMMF(2, max_iter=3, random_state=0).fit(levels).predict_entries([0], [0])).all()
