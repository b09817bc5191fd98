"""The imputer: what it fills, what it keeps, and its place among scikit-learn's transformers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes, load_wine
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from unseen import Imputer, MatrixFactorization
from unseen.exceptions import InvalidDataError, ParameterError
from unseen.imputation.gaussian import Gaussian, fill_gaps


def with_gaps(X: Any, share: float, seed: int = 0) -> tuple[Any, Any]:
    mask = np.random.default_rng(seed).random(X.shape) < share
    return np.where(mask, np.nan, X), mask


def error(filled: Any, X: Any, mask: Any) -> float:
    return float(np.sqrt(np.mean(((filled - X) / X.std(axis=0))[mask] ** 2)))


def test_gaps_are_filled_by_their_conditional_mean() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    model = Gaussian(rng.normal(size=4), root @ root.T + np.eye(4))
    X, mask = with_gaps(rng.normal(size=(30, 4)), 0.4)
    filled = fill_gaps(np.where(mask, 0.0, X), ~mask, model)
    for row, gaps, ours in zip(X, mask, filled, strict=True):
        known = ~gaps
        weights = np.linalg.solve(model.covariance[np.ix_(known, known)], (row - model.mean)[known])
        want = row.copy()
        want[gaps] = model.mean[gaps] + model.covariance[np.ix_(gaps, known)] @ weights
        np.testing.assert_allclose(ours, want, atol=1e-10)


@pytest.mark.parametrize("load", [load_wine, load_diabetes])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_it_beats_the_means_and_keeps_what_is_there(load: Any, share: float) -> None:
    X = load().data
    holes, mask = with_gaps(X, share)
    filled = Imputer(random_state=0).fit_transform(holes)
    np.testing.assert_array_equal(filled[~mask], X[~mask])
    assert error(filled, X, mask) < 0.87 * error(SimpleImputer().fit_transform(holes), X, mask)


def test_units_of_columns_do_not_matter() -> None:
    X = load_wine().data
    holes, mask = with_gaps(X, 0.3)
    units = 10.0 ** np.arange(-6, 7)
    one = Imputer(random_state=0).fit_transform(holes)
    other = Imputer(random_state=0).fit_transform(holes * units + 5) - 5
    np.testing.assert_allclose((other / units)[mask], one[mask], rtol=1e-4)


def test_noise_is_filled_with_the_means() -> None:
    X = np.random.default_rng(0).normal(size=(60, 5))
    holes, mask = with_gaps(X, 0.3)
    imputer = Imputer(random_state=0)
    filled = imputer.fit_transform(holes)
    assert imputer.choices_[0]["shrinkage"] == np.inf
    assert error(filled, X, mask) < 1.1 * error(SimpleImputer().fit_transform(holes), X, mask)


def test_constant_and_empty_columns_have_a_meaning() -> None:
    X = np.column_stack([np.arange(10.0), np.full(10, 7.0), np.full(10, np.nan)])
    X[3, 0] = X[4, 1] = np.nan
    with pytest.warns(UserWarning, match=r"columns \[.*2.*\] have no observed cell"):
        filled = Imputer().fit(X).transform(X)
    assert filled.shape == (10, 2)
    assert filled[4, 1] == 7.0
    kept = Imputer(keep_empty_features=True).fit_transform(X)
    np.testing.assert_array_equal(kept[:, 2], 0.0)


def test_indicators_and_names() -> None:
    frame = pd.DataFrame(
        {"a": [1.0, np.nan, 3.0, 4.0], "b": [2.0, 4.0, 6.0, 8.0], "c": [1.0, 0.0, np.nan, 1.0]}
    )
    imputer = Imputer(add_indicator=True).set_output(transform="pandas")
    out = imputer.fit_transform(frame)
    assert list(out.columns) == ["a", "b", "c", "missingindicator_a", "missingindicator_c"]
    assert list(out["missingindicator_a"]) == [0, 1, 0, 0]
    assert list(imputer.get_feature_names_out()) == list(out.columns)
    with pytest.raises(ValueError, match="feature names"):
        imputer.transform(frame[["b", "a", "c"]])


def test_pipeline_and_column_transformer() -> None:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    holes = X.mask(np.random.default_rng(0).random(X.shape) < 0.2)
    parts = ColumnTransformer(
        [("measured", Imputer(random_state=0), ["bmi", "bp", "s1", "s5"])], remainder="drop"
    )
    model = make_pipeline(parts, StandardScaler(), Ridge())
    assert model.fit(holes[:300], y[:300]).score(holes[300:], y[300:]) > 0.25
    assert next(iter(model[:-1].get_feature_names_out())) == "measured__bmi"


def test_any_completer_can_do_the_work() -> None:
    X = load_wine().data
    holes, mask = with_gaps(X, 0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        filled = Imputer(MatrixFactorization(3, center="none", random_state=0)).fit_transform(holes)
    np.testing.assert_array_equal(filled[~mask], X[~mask])
    assert error(filled, X, mask) < error(SimpleImputer().fit_transform(holes), X, mask)
    with pytest.raises(ParameterError, match="completer"):
        Imputer(Ridge()).fit(X)


def test_new_rows_and_any_number_of_threads() -> None:
    X, _ = with_gaps(load_wine().data, 0.3)
    one, two = (Imputer(random_state=0, n_jobs=n).fit(X[:100]) for n in (1, 2))
    np.testing.assert_array_equal(one.transform(X[100:]), two.transform(X[100:]))
    assert not np.isnan(one.transform(np.full((1, 13), np.nan))).any()


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([[1.0, np.inf], [2.0, 3.0]], "row 0, column 1"),
        ([["a"], ["b"]], "numbers"),
        ([[np.nan]], "no observed cell"),
    ],
)
def test_refusals(X: Any, words: str) -> None:
    with pytest.raises(InvalidDataError, match=words):
        Imputer().fit(X)


def test_checks_of_scikit_learn() -> None:
    own = {
        "check_dtype_object": "text is an InvalidDataError",
        "check_estimators_nan_inf": "NaN is a gap",
        "check_estimator_sparse_tag": "sparse tables are refused",
    }
    check_estimator(Imputer(), expected_failed_checks=own, on_skip=None, on_fail="raise")


def test_what_is_no_number_is_named_by_column_and_row() -> None:
    table = pd.DataFrame({"age": [1.0, np.nan, 3.0], "town": ["7", "Rome", None]})
    with pytest.raises(InvalidDataError, match="column 'town' has 'Rome' in row 1"):
        Imputer().fit(table)
    with pytest.raises(InvalidDataError, match="infinity at row 2, column 'age'"):
        Imputer().fit(pd.DataFrame({"age": [1.0, np.nan, np.inf], "size": [1.0, 2.0, 3.0]}))
