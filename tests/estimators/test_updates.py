"""Cells that arrive after the fit: what an update gives, beside a fit to all cells and beside naive forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from unseen import (
    IMC,
    BayesianMF,
    BiasMC,
    BiasModel,
    Completion,
    DirtyIMC,
    LowRank,
    MatrixFactorization,
    Maxide,
    MixedLinear,
    Observations,
    Ridge,
    SoftImpute,
    SparseBilinear,
    Term,
)
from unseen.cores import Full
from unseen.data import Vocabulary
from unseen.data.merging import cells_at, merge_cells
from unseen.datasets import make_positives, make_power_law, make_ratings
from unseen.exceptions import (
    DriftWarning,
    InvalidDataError,
    NotInductiveError,
    ParameterError,
    UnknownIdError,
)
from unseen.losses import Background, Logistic, Squared
from unseen.maps import Constant, Identity
from unseen.solvers.worthwhile import LEFT

RATINGS = make_ratings(120, 80, random_state=0)


def split(cells: Observations, share: float = 0.02, seed: int = 0) -> tuple[Observations, Observations]:
    later = np.random.default_rng(seed).random(cells.nnz) < share
    return cells.select(~later), cells.select(later)


# -- merging ---------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_merging_is_what_a_dictionary_does(data: st.DataObject) -> None:
    cell = st.tuples(st.integers(0, 5), st.integers(0, 4))
    value = st.integers(1, 9).map(float)
    old = data.draw(st.dictionaries(cell, value, min_size=1))
    new = data.draw(st.dictionaries(cell, value))
    gone = data.draw(st.lists(st.sampled_from(sorted(old)), unique=True))
    decay = data.draw(st.sampled_from([1.0, 0.5]))
    first, second = (
        Observations.from_triples(
            [i for i, _ in part] or np.empty(0, int), [j for _, j in part] or np.empty(0, int),
            np.array(list(part.values())), shape=(6, 5),
        )
        for part in (old, new)
    )  # fmt: skip
    merged = merge_cells(first, second, cells_at(first, gone) if gone else None, decay=decay)
    wanted = {key: (old[key], decay) for key in old if key not in gone} | {
        key: (new[key], 1.0) for key in new
    }
    cells = merged.cells
    weights = np.ones(cells.nnz) if cells.weights is None else cells.weights
    found = {
        (int(i), int(j)): (float(v), float(w))
        for i, j, v, w in zip(cells.rows, cells.indices, cells.values, weights, strict=True)
    }
    assert found == wanted
    assert cells.csr.has_canonical_format
    touched = set(new) | set(gone) if decay == 1.0 else None
    if touched is not None:
        assert set(np.flatnonzero(merged.rows)) == {i for i, _ in touched}
        assert set(np.flatnonzero(merged.cols)) == {j for _, j in touched}


def test_unknown_ids_come_after_the_known_ones() -> None:
    old = Observations.from_triples(
        [0, 1], [0, 1], [1.0, 2.0], row_ids=Vocabulary(["m", "z"]), col_ids=Vocabulary([7, 9])
    )
    new = Observations.from_triples(
        [0, 1], [0, 0], [3.0, 4.0], row_ids=Vocabulary(["a", "z"]), col_ids=Vocabulary([8])
    )
    cells = merge_cells(old, new).cells
    assert cells.row_ids is not None
    assert cells.col_ids is not None
    assert cells.row_ids.values.tolist() == ["m", "z", "a"]
    assert cells.col_ids.values.tolist() == [7, 9, 8]
    assert cells.csr.toarray().tolist() == [[1, 0, 0], [0, 2, 4], [0, 0, 3]]


def test_what_cannot_be_matched_is_refused() -> None:
    named = Observations.from_triples([0], [0], [1.0], row_ids=Vocabulary(["a"]), col_ids=Vocabulary(["x"]))
    plain = Observations.from_triples([0], [0], [1.0])
    numbered = Observations.from_triples([0], [0], [1.0], row_ids=Vocabulary([1]), col_ids=Vocabulary(["x"]))
    with pytest.raises(InvalidDataError, match="have no ids of rows"):
        merge_cells(named, plain)
    with pytest.raises(InvalidDataError, match="was fitted without ids"):
        merge_cells(plain, named)
    with pytest.raises(InvalidDataError, match=r"by integers .* by strings"):
        merge_cells(named, numbered)
    with pytest.raises(UnknownIdError, match=r"'b' \(pair 0\) is no row"):
        cells_at(named, [("b", "x")])
    with pytest.raises(InvalidDataError, match=r"row 1, column 0 \(pair 0\) is not among"):
        cells_at(Observations.from_triples([0], [0], [1.0], shape=(2, 1)), [(1, 0)])


# -- columns from their cells ----------------------------------------------------------


FOLDED = [
    MatrixFactorization(3, reg=2.0, center="none", random_state=0),
    MatrixFactorization(3, reg=2.0, center="mean", random_state=0),
    MatrixFactorization(3, reg=2.0, center="biases", random_state=0),
    MatrixFactorization(3, reg=2.0, center="joint", random_state=0),
    Completion([Term(core=LowRank(3), reg=Ridge(2.0, degree_scaling=0.5))], random_state=0),
    Completion(
        [Term(core=LowRank(3), reg=Ridge(2.0))],
        loss=Squared(background=Background(0.1, 1.0, row_weights=np.linspace(0.5, 2.0, 120))),
        random_state=0,
    ),
]  # fmt: skip


@pytest.mark.parametrize("model", FOLDED, ids=lambda model: repr(model)[:60])
def test_columns_are_folded_in_as_rows_of_the_transposed_problem(model: Completion) -> None:
    """The exact minimum over a column, rows fixed: the gradient of its own objective vanishes."""
    seen = RATINGS.observations
    model.fit(seen)
    cols = np.arange(5, 9)
    at = np.isin(seen.indices, cols)
    picked = Observations.from_triples(
        seen.rows[at], seen.indices[at] - 5, seen.values[at], shape=(seen.shape[0], 4)
    )
    folded = model.fold_in_cols(picked)

    def objective(factors: np.ndarray) -> float:
        offsets = model.offsets_
        total = 0.0
        reg = 2.0
        k = 3
        for t in range(4):
            cell = picked.indices == t
            rows = picked.rows[cell]
            scores = model.row_factors_ @ factors[t]
            total += 0.5 * np.sum((scores[rows] - picked.values[cell]) ** 2)
            count = cell.sum()
            scale = count**0.5 if "degree_scaling" in repr(model) else 1.0
            total += 0.5 * reg * scale * np.sum(factors[t, :k] ** 2)
            if offsets.width == 2:
                total += 0.5 * offsets.reg_col * factors[t, -1] ** 2
            if len(model.terms_) == 3:  # the bias of the column has its own coordinate and ridge
                total += 0.5 * 5.0 * factors[t, k + 1] ** 2
            if "Background" in repr(model):
                blank = np.setdiff1d(np.arange(len(scores)), rows)
                weights = np.linspace(0.5, 2.0, 120)[blank]
                total += 0.05 * np.sum(weights * (scores[blank] - 1.0) ** 2)
        return total

    free = [0, 1, 2]
    if len(model.terms_) == 3:
        free.append(4)
    best = objective(folded)
    if model.offsets_.width < 2:  # biases that are subtracted first are solved for first, not together
        for column in free:
            for step in (1e-3, -1e-3):
                moved = folded.copy()
                moved[:, column] += step
                assert objective(moved) > best
    else:
        assert folded[:, 3].tolist() == [1.0] * 4
        assert np.isfinite(folded).all()


def test_columns_with_features_go_by_them() -> None:
    model = IMC(3, reg=2.0, random_state=0, center="none")
    model.fit(RATINGS.observations, row_features=RATINGS.row_features, col_features=RATINGS.col_features)
    same = model.fold_in_cols(RATINGS.observations, col_features=RATINGS.col_features)
    np.testing.assert_allclose(same, model.col_factors_, atol=1e-10)
    with pytest.raises(NotInductiveError):
        model.fold_in_cols(RATINGS.observations)


# -- updates ---------------------------------------------------------------------------

MODELS = [
    *(
        MatrixFactorization(3, reg=2.0, center=center, random_state=0, max_iter=100)
        for center in ("none", "mean", "biases", "joint")
    ),
    BiasModel(),
    SoftImpute(5.0, max_rank=None, center="none"),
    Completion([Term(core=LowRank(3), reg=Ridge(0.5))], loss=Logistic(), random_state=0, max_iter=300),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: repr(model)[:60])
def test_an_update_is_close_to_a_fit_to_all_cells(model: Completion) -> None:
    seen = RATINGS.observations
    if "Logistic" in repr(model):
        seen = seen.with_values((seen.values > 3).astype(float))
    first, later = split(seen)
    before = [entry["objective"] for entry in model.fit(first).history_]
    model.partial_fit(later)
    after = model.history_[-1]["objective"]
    refit = clone(model).fit(seen)
    wanted = refit.history_[-1]["objective"]
    assert after <= wanted * (1.005 + model.drift_)
    assert before[-1] < 0.995 * wanted  # the cells did change the objective
    assert model.drift_ >= 0.0
    i, j = later.rows, later.indices
    np.testing.assert_allclose(model.predict_entries(i, j), refit.predict_entries(i, j), atol=0.6)


def test_new_rows_and_columns_replaced_and_removed_cells() -> None:
    seen = RATINGS.observations
    inside = (seen.rows < 110) & (seen.indices < 75)
    small = seen.select(inside)
    old = Observations.from_triples(small.rows, small.indices, small.values, shape=(110, 75))
    model = MatrixFactorization(3, reg=2.0, center="joint", random_state=0, max_iter=100).fit(old)
    kept = model.row_factors_[:5].copy()
    model.partial_fit(seen.select(~inside))
    assert model.row_factors_.shape[0] == 120
    assert model.col_factors_.shape[0] == 80
    assert model.n_features_in_ == 80
    refit = MatrixFactorization(3, reg=2.0, center="joint", random_state=0, max_iter=100).fit(seen)
    assert model.history_[-1]["objective"] < 1.01 * refit.history_[-1]["objective"]
    assert np.abs(kept - model.row_factors_[:5]).max() < 1.0
    # A cell that is replaced and one that is removed: as if they had been so from the start.
    row, col = int(seen.rows[0]), int(seen.indices[0])
    changed = Observations.from_triples([row], [col], [1.0], shape=seen.shape)
    other = (int(seen.rows[7]), int(seen.indices[7]))
    model.partial_fit(changed, remove=[other])
    cells = model._training_data().cells
    assert cells.nnz == seen.nnz - 1
    assert cells.csr[row, col] == 1.0
    model.partial_fit(None, remove=[(row, col)])
    assert model._training_data().cells.nnz == seen.nnz - 2


def test_what_changed_is_solved_exactly_and_nothing_else_moves() -> None:
    first, later = split(RATINGS.observations, share=0.002)
    model = MatrixFactorization(3, reg=2.0, center="none", random_state=0).fit(first)
    rows, cols = model.row_factors_.copy(), model.col_factors_.copy()
    model.partial_fit(later)
    moved_rows = np.flatnonzero((model.row_factors_ != rows).any(axis=1))
    moved_cols = np.flatnonzero((model.col_factors_ != cols).any(axis=1))
    assert set(moved_rows) == set(later.rows.tolist())
    assert set(moved_cols) == set(later.indices.tolist())
    exact = model.fold_in(RATINGS.observations)
    np.testing.assert_allclose(model.row_factors_[moved_rows], exact[moved_rows], atol=1e-8)
    assert np.abs(rows[moved_rows] - exact[moved_rows]).max() > 1e-3


def test_positives_that_are_taken_back() -> None:
    seen = make_positives(100, 60, n_groups=4, random_state=0).observations
    model = BiasMC(4, alpha=0.9, reg=1.0, random_state=0, max_iter=100, cg_steps=None).fit(seen)
    alpha, row, col = model.alpha_, int(seen.rows[0]), int(seen.indices[0])
    zero = Observations.from_triples([row], [col], [0.0], shape=seen.shape)
    before = model.predict_entries([row], [col])
    model.partial_fit(zero)
    assert model._training_data().cells.nnz == seen.nnz - 1
    assert model.alpha_ == alpha
    assert model.predict_entries([row], [col]) < before


def test_drift_is_never_silent() -> None:
    """Cells of another matrix arrive, a few columns at a time; the model says that it has moved away."""
    seen = RATINGS.observations
    model = MatrixFactorization(3, reg=2.0, center="none", random_state=0, max_iter=200).fit(seen)
    upside_down = seen.with_values(6.0 - seen.values)
    some = upside_down.select((seen.indices < 20) & (seen.rows % 2 == 0))
    with pytest.warns(DriftWarning, match="fit it again"):
        model.partial_fit(some, drift_limit=1e-4)
    refit = MatrixFactorization(3, reg=2.0, center="none", random_state=0, max_iter=200).fit(
        model._training_data().cells
    )
    true = model.history_[-1]["objective"] / refit.history_[-1]["objective"] - 1
    assert model.drift_ > 0.3 * true


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_many_updates_tell_at_least_most_of_the_drift(seed: int) -> None:
    """Half of the cells, then a tenth in twenty updates: no new fit is much further down than is told."""
    rated = make_ratings(300, 200, density=0.2, random_state=seed).observations
    chosen = make_power_law(1500, 400, 40_000, exponent=0.9, random_state=seed).observations
    for model, cells in (
        (MatrixFactorization(4, reg=5.0, center="joint", max_iter=200, random_state=seed), rated),
        (BiasMC(8, alpha=0.9, reg=1.0, cg_steps=3, max_iter=100, random_state=seed), chosen),
        (BiasMC(8, alpha=0.9, reg=1.0, cg_steps=None, max_iter=100, random_state=seed), chosen),
    ):
        part = np.random.default_rng(seed).integers(0, 100, cells.nnz)
        model.fit(cells.select(part < 50))
        for count in range(20):
            model.partial_fit(cells.select(part == 50 + count))
            if count in (0, 9, 19):
                refit = clone(model).fit(model._training_data().cells)
                true = model.history_[-1]["objective"] / refit.history_[-1]["objective"] - 1
                assert model.drift_ > 0.7 * true
                assert model.drift_ < 0.01


@pytest.mark.parametrize("features", [False, True])
def test_a_chain_goes_on(features: bool) -> None:
    """New rows, columns and cells: fewer sweeps than a new chain, and predictions as good as its own."""
    seen, data = RATINGS.observations, RATINGS
    test = np.random.default_rng(5).random(seen.nnz) < 0.2
    train, judged = seen.select(~test), seen.select(test)
    inside = (train.rows < 110) & (train.indices < 76) & (np.random.default_rng(6).random(train.nnz) < 0.97)
    small = train.select(inside)
    old = Observations.from_triples(small.rows, small.indices, small.values, shape=(110, 76))
    how = {"n_samples": 40, "burn_in": 40, "random_state": 0}
    model, refit = BayesianMF(3, **how), BayesianMF(3, **how)
    if features:
        model.fit(old, row_features=data.row_features[:110])
        before = model.row_factors_.copy()
        model.partial_fit(train.select(~inside), row_features=data.row_features[110:])
        refit.fit(train, row_features=data.row_features)
    else:
        model.fit(old)
        before = model.row_factors_.copy()
        model.partial_fit(train.select(~inside))
        refit.fit(train)
    assert model.row_factors_.shape == refit.row_factors_.shape
    assert len(model.history_) == len(refit.history_) - 30
    assert np.abs(model.row_factors_[:110] - before).max() > 1e-3
    errors = [
        np.sqrt(np.mean((one.predict_entries(judged.rows, judged.indices) - judged.values) ** 2))
        for one in (model, refit, MatrixFactorization(3, center="mean", reg=1e6).fit(train))
    ]
    assert errors[0] < 1.02 * errors[1] < errors[2]
    with pytest.raises(NotInductiveError, match="fit it again"):
        model.fold_in_cols(seen)


def test_where_a_chain_ended_is_read_back_from_what_was_kept() -> None:
    model = BayesianMF(3, n_samples=5, burn_in=5, random_state=0).fit(RATINGS.observations)
    posterior = model.solver_.posterior_
    draws = posterior.last(model.row_factors_, model.col_factors_)
    i, j = RATINGS.observations.rows[:50], RATINGS.observations.indices[:50]
    layout = posterior.layout
    products = layout.widened("row", draws.rows)[i] * layout.widened("col", draws.cols)[j]
    scores = products.sum(axis=1) * posterior.scale + model.offsets_.mean
    np.testing.assert_allclose(scores, model._samples(i, j)[0][:, -1], rtol=1e-6)
    np.testing.assert_allclose(draws.alpha, posterior.noise[-1] * posterior.scale**2)


def test_the_past_fades() -> None:
    seen = RATINGS.observations
    model = MatrixFactorization(3, reg=2.0, random_state=0, center="none").fit(seen)
    model.partial_fit(None, decay=0.25)
    weights = model._training_data().cells.weights
    assert weights is not None
    assert np.all(weights == 0.25)
    assert np.linalg.norm(model.predict_new()) < 0.99 * np.linalg.norm(
        MatrixFactorization(3, reg=2.0, random_state=0, center="none").fit(seen).predict_new()
    )


def test_features_of_new_rows_are_asked_for() -> None:
    data = RATINGS
    seen = data.observations
    old = seen.select(seen.rows < 110)
    old = Observations.from_triples(old.rows, old.indices, old.values, shape=(110, 80))
    model = IMC(3, reg=2.0, random_state=0, center="none").fit(old, row_features=data.row_features[:110])
    with pytest.raises(InvalidDataError, match="10 new rows need row_features"):
        model.partial_fit(seen)
    with pytest.raises(InvalidDataError, match="row_features has 3 rows; 10 of 120 rows are new"):
        model.partial_fit(seen, row_features=data.row_features[:3])
    assert model.row_factors_.shape[0] == 110  # as it was
    model.partial_fit(seen, row_features=data.row_features[110:])
    refit = IMC(3, reg=2.0, random_state=0, center="none").fit(seen, row_features=data.row_features)
    assert model.history_[-1]["objective"] < 1.01 * refit.history_[-1]["objective"]


def test_an_update_needs_the_cells_of_the_fit(tmp_path) -> None:
    import unseen

    first, later = split(RATINGS.observations)
    model = MatrixFactorization(3, reg=2.0, random_state=0, center="none").fit(first)
    model.save(tmp_path / "without")
    with pytest.raises(ParameterError, match="cells=True"):
        unseen.load(tmp_path / "without").partial_fit(later)
    model.save(tmp_path / "with", cells=True)
    loaded = unseen.load(tmp_path / "with")
    loaded.partial_fit(later)
    model.partial_fit(later)
    np.testing.assert_array_equal(loaded.row_factors_, model.row_factors_)
    loaded.save(tmp_path / "with", cells=True)
    assert unseen.load(tmp_path / "with")._training_data().cells.nnz == RATINGS.observations.nnz


def test_an_update_that_fails_leaves_the_model_as_it_was() -> None:
    first, later = split(RATINGS.observations)
    model = MatrixFactorization(3, reg=2.0, random_state=0, center="none").fit(first)
    before = model.row_factors_.copy()
    broken = later.with_values(np.full(later.nnz, 1e308))
    with pytest.raises(ValueError), np.errstate(all="ignore"):
        model.partial_fit(broken)
    np.testing.assert_array_equal(model.row_factors_, before)
    assert model._training_data().cells.nnz == first.nnz
    with pytest.raises(InvalidDataError, match="expecting 80 features"):
        model.partial_fit(np.ones((120, 3)))
    with pytest.raises(ParameterError, match="decay"):
        model.partial_fit(later, decay=2.0)


def test_columns_with_a_bias_of_their_own_are_folded_in() -> None:
    """A bias of the columns as a term of its own is folded in with the factors."""
    terms = [Term(core=LowRank(2), reg=Ridge(1.0)), Term(Constant(), Identity(), Full(), Ridge(3.0))]
    model = Completion(terms, random_state=0).fit(RATINGS.observations)
    folded = model.fold_in_cols(RATINGS.observations)
    pulled = model.row_factors_ @ folded.T
    assert np.corrcoef(pulled.ravel(), model.predict_new().ravel())[0, 1] > 0.999


# -- quick updates: columns that are worth it, then all rows ---------------------------


def popular(seed: int = 0) -> Observations:
    """Positives whose columns are of very different length."""
    return make_power_law(1500, 400, 40_000, exponent=0.9, random_state=seed).observations


QUICK = BiasMC(8, alpha=0.9, reg=1.0, cg_steps=3, random_state=0, max_iter=60)


def exact_objective(model: BiasMC) -> float:
    bound = model._bind(model._training_data().cells, {"row": None, "col": None}, np.random.default_rng(0))
    return float(bound.problem.value(model._full_state(bound.problem)))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_quick_update_tells_its_objective(weighted: bool) -> None:
    seen = popular()
    if weighted:
        seen = seen.with_weights(np.random.default_rng(3).uniform(0.5, 2.0, seen.nnz))
    first, later = split(seen, share=0.01)
    model = clone(QUICK).fit(first).partial_fit(later)
    np.testing.assert_allclose(model.history_[-1]["objective"], exact_objective(model), rtol=1e-6)
    refit = clone(QUICK).fit(seen)
    assert model.history_[-1]["objective"] < 1.001 * refit.history_[-1]["objective"]


def test_columns_that_are_left_alone_had_little_to_gain() -> None:
    seen = popular()
    first, later = split(seen, share=0.01)
    model = clone(QUICK).fit(first)
    before = model.col_factors_.copy()
    model.partial_fit(later)
    touched = np.unique(later.indices)
    moved = np.flatnonzero((model.col_factors_ != before).any(axis=1))
    assert set(moved) < set(touched.tolist())  # some, and none but these
    counts = np.bincount(seen.indices, minlength=seen.shape[1])
    left = np.setdiff1d(touched, moved)
    assert counts[left].mean() > counts[moved].mean()
    # Solving those for which it did not pay, too, lowers the objective by next to nothing.
    bound = model._bind(seen, {"row": None, "col": None}, np.random.default_rng(0))
    state = model._full_state(bound.problem)
    value = bound.problem.value(state)
    folded = model.fold_in_cols(seen)
    key = bound.problem.terms[0].key("col")
    solved = state[key].copy()
    solved[left] = folded[left, : solved.shape[1]]
    assert 0 <= value - bound.problem.value({**state, key: solved}) < 3 * LEFT * value


def test_columns_that_are_new_or_lost_a_cell_are_always_solved() -> None:
    seen = popular()
    last = seen.shape[1] - 1
    inside = seen.indices < last
    old = Observations.from_triples(
        seen.rows[inside], seen.indices[inside], seen.values[inside], shape=(seen.shape[0], last)
    )
    model = clone(QUICK).fit(old)
    longest = int(np.argmax(np.bincount(old.indices)))
    gone = int(old.rows[old.indices == longest][0])
    before = model.col_factors_.copy()
    later = seen.select(~inside)
    model.partial_fit(later, remove=[(gone, longest)])
    assert later.nnz > 0
    assert model.col_factors_[last].any()
    assert (model.col_factors_[longest] != before[longest]).any()


# -- convex models ---------------------------------------------------------------------

CONVEX = [
    (SoftImpute(5.0, center="none", max_iter=1000), False),
    (Maxide(0.3, center="none", max_iter=1000), True),
    (DirtyIMC(3.0, 10.0, center="none", max_iter=1000), True),
    (MixedLinear(3.0, 5.0, constraint="soft", max_iter=1000), True),
    (SparseBilinear(0.5, max_iter=1000), True),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "features"), CONVEX, ids=lambda one: type(one).__name__)
def test_convex_models_go_on_to_a_certified_gap(model: Completion, features: bool) -> None:
    """From where they stand: no more sweeps than a new fit, and as near to the optimum."""
    first, later = split(RATINGS.observations)
    known = {"row_features": RATINGS.row_features, "col_features": RATINGS.col_features} if features else {}
    model = clone(model).fit(first, **known).partial_fit(later)
    refit = clone(model).fit(RATINGS.observations, **known)
    gaps = [one.certificate_.gap / one.certificate_.objective for one in (model, refit)]
    assert gaps[0] <= max(gaps[1], 1e-3) * 2
    assert model.n_iter_ <= refit.n_iter_
    best = max(one.certificate_.bound for one in (model, refit))
    for one in (model, refit):  # a bound holds for whatever was found for these cells
        assert best <= one.certificate_.objective * (1 + 1e-9)
    assert model.drift_ == 0.0


def test_a_penalty_that_was_chosen_is_kept_where_factors_are_solved_for() -> None:
    first, later = split(RATINGS.observations)
    model = MatrixFactorization(3, random_state=0).fit(first)
    chosen = model.reg_
    assert model.partial_fit(later).reg_ == chosen
