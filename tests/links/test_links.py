"""Link prediction: scores against dense definitions, lists against brute force, the door of completers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

import unseen
from unseen import BiasMC, MatrixFactorization, Observations, SpectralFilter
from unseen.data import Vocabulary
from unseen.exceptions import DataWarning, InvalidDataError, NotFittedError, NotInductiveError, ParameterError
from unseen.links import (
    BlendedLinks,
    CommonNeighbors,
    Katz,
    SVDKatz,
    TruncatedSVDLinks,
    link_curve,
    top_links,
)
from unseen.links import blend as blend_module
from unseen.links import top as top_module

N = 40


def graph(n: int = N, density: float = 0.1, seed: int = 0, dtype: Any = np.float64) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) < density, k=1)
    upper[0, 1] = True
    return sparse.csr_array((upper | upper.T).astype(dtype))


def katz_of(dense: np.ndarray, beta: float) -> np.ndarray:
    return np.linalg.inv(np.eye(len(dense)) - beta * dense) - np.eye(len(dense))


def spectral_of(dense: np.ndarray, rank: int, weight: Any) -> np.ndarray:
    values, vectors = np.linalg.eigh(dense)
    order = np.argsort(-np.abs(values), kind="stable")[:rank]
    return (vectors[:, order] * weight(values[order])) @ vectors[:, order].T


DENSE = graph().toarray()
BETA = 0.3 / np.linalg.eigvalsh(DENSE)[-1]
DEGREES = np.maximum(DENSE.sum(axis=1), 1.0)
MODELS = {
    "neighbours": (CommonNeighbors(), DENSE @ DENSE),
    "neighbours-degree": (CommonNeighbors(1.0), DENSE @ np.diag(1 / DEGREES) @ DENSE),
    "katz": (Katz(tol=1e-9), katz_of(DENSE, BETA)),
    "katz-3": (Katz(0.05, length=3), sum(0.05**t * np.linalg.matrix_power(DENSE, t) for t in (1, 2, 3))),
    "svd": (TruncatedSVDLinks(5), spectral_of(DENSE, 5, lambda w: w)),
    "svd-katz": (SVDKatz(5), spectral_of(DENSE, 5, lambda w: 1 / (1 - BETA * w) - 1)),
    "blend": (
        BlendedLinks([CommonNeighbors(), TruncatedSVDLinks(5)], weights=[0.5, 2.0]),
        0.5 * DENSE @ DENSE + 2.0 * spectral_of(DENSE, 5, lambda w: w),
    ),
}


@pytest.fixture(params=MODELS)
def case(request: pytest.FixtureRequest) -> tuple[Any, np.ndarray]:
    model, truth = MODELS[request.param]
    return clone(model), truth


def pairs_of(n: int) -> tuple[np.ndarray, np.ndarray]:
    return tuple(part.ravel() for part in np.indices((n, n)))  # type: ignore[return-value]


def test_scores_are_those_of_the_definition(case: tuple[Any, np.ndarray]) -> None:
    model, truth = case
    model.fit(graph())
    predicted = model.predict_entries(*pairs_of(N)).reshape(N, N)
    np.testing.assert_allclose(predicted, truth, atol=1e-9)
    np.testing.assert_allclose(model.transform(graph()), truth, atol=1e-9)
    np.testing.assert_allclose(model.fold_in(graph()[3:5]) @ model.col_factors_.T, truth[3:5], atol=1e-9)
    np.testing.assert_allclose(model.predict_new(), truth, atol=1e-9)
    # The other way round: a graph with one link more has other scores.
    other = DENSE.copy()
    other[2, 3] = other[3, 2] = 1.0 - other[2, 3]
    assert np.abs(model.fit(sparse.csr_array(other)).transform(other) - truth).max() > 1e-3


def test_katz_error_bound_holds_and_is_not_idle() -> None:
    for share in (0.1, 0.5, 0.9):
        beta = share / np.linalg.eigvalsh(DENSE)[-1]
        truth = katz_of(DENSE, beta)
        for length in (1, 2, 4, 8):
            model = Katz(beta, length=length).fit(graph())
            error = np.abs(model.predict_new() - truth).max()
            assert error <= model.error_bound_ * (1 + 1e-9)
            assert model.error_bound_ <= 50 * error
    model = Katz(tol=1e-3).fit(graph())
    assert model.error_bound_ <= 1e-3 * model.beta_**2
    assert Katz(model.beta_, length=model.length_ - 1).fit(graph()).error_bound_ > 1e-3 * model.beta_**2


def brute_force(scores: np.ndarray, k: int, excluded: np.ndarray) -> np.ndarray:
    i, j = np.triu_indices(len(scores), k=1)
    free = ~(excluded | excluded.T)[i, j]
    i, j = i[free], j[free]
    order = np.lexsort((j, i, -scores[i, j]))[:k]
    return np.column_stack([i[order], j[order]])


@pytest.mark.parametrize("k", [1, 7, 100, 5000])
@pytest.mark.parametrize("small_blocks", [False, True])
def test_top_links_against_brute_force(
    case: tuple[Any, np.ndarray], k: int, small_blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if small_blocks:
        monkeypatch.setattr(top_module, "MAX_BLOCK_NODES", 7)
    model, _ = case
    model.fit(graph())
    scores = model.predict_new()
    found = top_links(model, k, exclude=graph())
    assert (found.pairs[:, 0] < found.pairs[:, 1]).all()
    assert (np.diff(found.scores) <= 0).all()
    wanted = brute_force(np.round(scores, 9), k, DENSE > 0)
    assert len(found.pairs) == len(wanted)
    np.testing.assert_allclose(found.scores, scores[wanted[:, 0], wanted[:, 1]], atol=1e-8)
    if isinstance(model, CommonNeighbors) and model.degree_power == 0:
        np.testing.assert_array_equal(found.pairs, wanted)  # whole numbers: ties are exact


def test_top_links_of_a_model_that_is_not_symmetric() -> None:
    model = BiasMC(4, alpha=0.9, random_state=0, cg_steps=None).fit(graph())
    scores = model.row_factors_ @ model.col_factors_.T
    assert np.abs(scores - scores.T).max() > 1e-6
    found = top_links(model, 50, exclude=graph())
    np.testing.assert_array_equal(found.pairs, brute_force((scores + scores.T) / 2, 50, DENSE > 0))
    one_sided = brute_force(scores, 50, DENSE > 0)
    assert not np.array_equal(found.pairs, one_sided)


@pytest.mark.parametrize("small_blocks", [False, True])
def test_rows_that_are_not_symmetric_are_averaged_over_both_directions(
    small_blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if small_blocks:
        monkeypatch.setattr(top_module, "MAX_BLOCK_NODES", 7)
        monkeypatch.setattr(blend_module, "ROWS_AT_A_TIME", 7)
    model = SpectralFilter(4, neighbor_power=1.5, list_power=0.0, random_state=0).fit(graph())
    scores = model.score_rows(np.arange(len(DENSE)))
    assert np.abs(scores - scores.T).max() > 1e-6
    both = np.round((scores + scores.T) / 2, 9)
    found = top_links(model, 50, exclude=graph())
    np.testing.assert_array_equal(found.pairs, brute_force(both, 50, DENSE > 0))
    assert not np.array_equal(found.pairs, brute_force(np.round(scores, 9), 50, DENSE > 0))
    blend = BlendedLinks([model], weights=[2.0]).fit(graph())
    np.testing.assert_allclose(blend.score_rows(np.arange(len(DENSE))), scores + scores.T, atol=1e-9)
    np.testing.assert_array_equal(top_links(blend, 50, exclude=graph()).pairs, found.pairs)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 30), k=st.integers(1, 60), levels=st.integers(1, 4))
def test_ties_go_to_the_smaller_pair(seed: int, n: int, k: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    model = MatrixFactorization(2, max_iter=1, reg=1.0, center="none")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(np.ones((n, n)))
    # Small whole numbers: many equal scores, no rounding.
    model.row_factors_ = rng.integers(0, levels, (n, 2)).astype(np.float32)
    model.col_factors_ = rng.integers(0, levels, (n, 2)).astype(np.float32)
    scores = model.row_factors_ @ model.col_factors_.T
    excluded = sparse.random_array((n, n), density=0.2, rng=rng, format="csr")
    found = top_links(model, k, exclude=excluded)
    wanted = brute_force((scores + scores.T) / 2, k, excluded.toarray() != 0)
    np.testing.assert_array_equal(found.pairs, wanted)


def test_same_list_for_any_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    model = BiasMC(3, alpha=0.9, random_state=0, cg_steps=None).fit(graph())
    # Wider than one block of columns, so that threads really share the work.
    model.row_factors_, model.col_factors_ = rng.standard_normal((2, 9000, 3)).astype(np.float32)
    big = sparse.random_array((9000, 9000), density=1e-3, rng=rng, format="csr")
    one = top_links(model, 500, exclude=big, n_jobs=1)
    two = top_links(model, 500, exclude=big, n_jobs=2)
    np.testing.assert_array_equal(one.pairs, two.pairs)
    np.testing.assert_array_equal(one.scores, two.scores)


def test_nan_scores_are_never_listed() -> None:
    model = TruncatedSVDLinks(3).fit(graph())
    model.row_factors_[4] = np.nan
    assert 4 not in top_links(model, 60).pairs


def test_link_curve_against_counting() -> None:
    whole = graph(60, 0.15, seed=3)
    i, j = sparse.triu(whole, k=1).nonzero()
    test = np.column_stack([j[::3], i[::3]])  # either order will do
    train = whole.tolil()
    for a, b in test:
        train[a, b] = train[b, a] = 0
    train = sparse.csr_array(train)
    train.eliminate_zeros()
    model = CommonNeighbors().fit(train)
    curve = link_curve(model, test, train=train, k=40)
    listed = {tuple(pair) for pair in top_links(model, 40, exclude=train).pairs.tolist()}
    hits = len(listed & {(int(b), int(a)) for a, b in test})
    assert curve.n_hits[-1] == hits
    assert curve.fnr[-1] == pytest.approx(1 - hits / len(test))
    candidates = 60 * 59 // 2 - train.nnz // 2
    assert curve.fpr[-1] == pytest.approx((40 - hits) / (candidates - len(test)))
    assert len(link_curve(model, test, train=train).fnr) == len(test)


def test_link_curve_refuses_leaks() -> None:
    train = graph()
    model = CommonNeighbors().fit(train)
    with pytest.raises(InvalidDataError, match=r"also in train: \(0, 1\)"):
        link_curve(model, [[1, 0]], train=train)
    free = np.argwhere((DENSE == 0) & ~np.eye(N, dtype=bool))[0]
    with pytest.raises(InvalidDataError, match="twice"):
        link_curve(model, [free, free[::-1]], train=train)
    with pytest.raises(InvalidDataError, match="itself"):
        link_curve(model, [[3, 3]], train=train)
    with pytest.raises(InvalidDataError, match="shape"):
        link_curve(model, [1, 2], train=train)


def test_recommend_leaves_out_the_node_itself(case: tuple[Any, np.ndarray]) -> None:
    model, _ = case
    model.fit(graph())
    scores = model.predict_new()
    ids, found = model.recommend([3, 17], k=N, exclude=None)
    for row, node in enumerate((3, 17)):
        assert node not in ids[row]
        assert (ids[row] == -1).sum() == 1
        real = ids[row] >= 0
        np.testing.assert_allclose(found[row][real], scores[node, ids[row][real]], atol=1e-12)
        assert (np.diff(found[row][real]) <= 1e-12).all()
    ids, _ = model.recommend([3], k=N, exclude=graph())
    assert set(ids[0][ids[0] >= 0]) == set(np.flatnonzero(DENSE[3] == 0)) - {3}
    ids, _ = model.recommend(3, k=4, candidates=[9, 2, 2], exclude=None)
    assert set(ids[0].tolist()) == {2, 9, -1}


def test_save_and_load(case: tuple[Any, np.ndarray], tmp_path: Any) -> None:
    model, _ = case
    model.fit(graph()).save(tmp_path / "model")
    loaded = unseen.load(tmp_path / "model")
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.predict_new(), model.predict_new())


def test_float32_stays_float32(case: tuple[Any, np.ndarray]) -> None:
    model, truth = case
    model.fit(graph(dtype=np.float32))
    assert model.predict_entries([0], [1]).dtype == np.float32
    assert top_links(model, 3).scores.dtype == np.float32
    np.testing.assert_allclose(model.predict_new(), truth, atol=1e-4)


def test_loops_and_one_way_links_are_read_with_a_warning() -> None:
    looped = graph().tolil()
    looped[5, 5] = 3.0
    with pytest.warns(DataWarning, match="1 self-loop"):
        model = CommonNeighbors().fit(sparse.csr_array(looped))
    np.testing.assert_array_equal(model.graph_.toarray(), DENSE)
    with pytest.warns(DataWarning, match="not symmetric"):
        model = CommonNeighbors().fit(sparse.triu(graph(), format="csr"))
    np.testing.assert_array_equal(model.graph_.toarray(), DENSE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CommonNeighbors().fit(graph())


def test_bad_input_is_named() -> None:
    with pytest.raises(InvalidDataError, match="40 x 39"):
        CommonNeighbors().fit(graph()[:, :-1])
    negative = DENSE.copy()
    negative[2, 7] = -1.0
    with pytest.raises(InvalidDataError, match="row 2, column 7"):
        Katz().fit(negative)
    with pytest.raises(InvalidDataError, match="no observed cell"):
        Katz().fit(np.zeros((4, 4)))
    with pytest.raises(ParameterError, match="1/lambda_1"):
        Katz(beta=10.0).fit(graph())
    with pytest.raises(ParameterError, match="beta"):
        SVDKatz(3, beta=-1.0).fit(graph())
    with pytest.raises(ParameterError, match="length"):
        Katz(length=0).fit(graph())
    with pytest.raises(ParameterError, match="degree_power"):
        CommonNeighbors(-1.0).fit(graph())
    with pytest.raises(ParameterError, match="weights"):
        BlendedLinks([CommonNeighbors()], weights=[1.0, 2.0]).fit(graph())
    with pytest.raises(ParameterError, match="row_features"):
        Katz().fit(graph(), row_features=np.ones((N, 2)))
    model = CommonNeighbors().fit(graph())
    with pytest.raises(NotInductiveError, match="row_features"):
        model.predict_new(row_features=np.ones((2, 2)))
    with pytest.raises(InvalidDataError, match="40"):
        model.predict_entries([40], [0])
    with pytest.raises(ParameterError, match="k"):
        top_links(model, 0)
    with pytest.raises(InvalidDataError, match="exclude"):
        top_links(model, 3, exclude=sparse.eye_array(3))
    with pytest.raises(InvalidDataError, match="30 rows and 20 columns"):
        top_links(MatrixFactorization(2, reg=1.0, center="none").fit(np.ones((30, 20))), 3)
    with pytest.raises(NotFittedError):
        top_links(CommonNeighbors(), 3)


def test_isolated_nodes_get_no_score(case: tuple[Any, np.ndarray]) -> None:
    model, _ = case
    lonely = DENSE.copy()
    lonely[7] = lonely[:, 7] = 0.0
    model.fit(Observations.from_sparse(sparse.csr_array(lonely)))
    np.testing.assert_allclose(model.predict_entries([7] * N, np.arange(N)), 0.0, atol=1e-9)


@pytest.mark.data
def test_published_graph(data_home: Any) -> None:
    """Figures of a prototype written apart, on split 0 of ca-GrQc."""
    from unseen.datasets import load_ca_grqc

    train, test = load_ca_grqc(data_home=data_home).split(0)
    lengths = np.array([1000, 6711, 20000]) - 1
    for model, expected in (
        (CommonNeighbors(), (0.855, 0.585, 0.431)),
        (TruncatedSVDLinks(50), (0.857, 0.680, 0.628)),
    ):
        curve = link_curve(model.fit(train), test, train=train, k=20000, positions=True)
        np.testing.assert_allclose(curve.fnr[lengths], expected, atol=6e-4)
    model = BiasMC(50, alpha=0.99, reg=0.3, random_state=0, max_iter=15, tol=1e-3, cg_steps=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(train)
    assert link_curve(model, test, train=train, positions=True).fnr[-1] < 0.575


def test_best_links_are_in_ids() -> None:
    names = Vocabulary([f"node {number:02d}" for number in range(N)])
    named = Observations.from_any(graph()).with_ids(names, names)
    plain, model = CommonNeighbors().fit(graph()), CommonNeighbors().fit(named)
    expected = top_links(plain, 20, exclude=graph())
    for exclude in (named, "seen"):
        found = top_links(model, 20, exclude=exclude)
        assert found.pairs.tolist() == names[expected.pairs].tolist()
    assert top_links(model, 20, exclude=named, positions=True).pairs.tolist() == expected.pairs.tolist()
    test = expected.pairs[[3, 7]]
    curve = link_curve(model, names[test], train=named)
    assert curve.fnr.tolist() == link_curve(plain, test, train=graph()).fnr.tolist()
    assert link_curve(model, test, train=named, positions=True).fnr.tolist() == curve.fnr.tolist()
    with pytest.raises(InvalidDataError, match="test holds integers"):
        link_curve(model, test, train=named)
    with pytest.raises(InvalidDataError, match="exclude has no ids of columns"):
        top_links(model, 20, exclude=graph())
