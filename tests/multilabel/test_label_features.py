"""Dense and sparse features mean the same to every classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from unseen import (
    LEML,
    SLEEC,
    AnnexML,
    ExMLDS,
    FastXML,
    GIMCClassifier,
    LabelTree,
    LinearOvA,
    PDSparse,
    PfastreXML,
    PPDSparse,
    RidgeOvA,
)

CLASSIFIERS: dict[str, Any] = {
    "RidgeOvA": RidgeOvA(),
    "LinearOvA": LinearOvA(),
    "LEML": LEML(4, random_state=0, max_iter=200, tol=1e-12, intercept=False),
    "LEML with intercept": LEML(4, intercept=True, random_state=0, max_iter=200, tol=1e-12),
    "GIMCClassifier": GIMCClassifier(6, random_state=0, max_iter=3),
    "GIMCClassifier Nystrom": GIMCClassifier(6, map="nystrom", random_state=0, max_iter=3),
    "ExMLDS": ExMLDS(n_components=4, random_state=0, neighbor_power=0.0),
    "SLEEC": SLEEC(n_components=4, random_state=0),
    "AnnexML": AnnexML(4, n_learners=2, max_iter=2, random_state=0),
    "LabelTree": LabelTree(2, max_leaf=2, random_state=0),
    "PDSparse": PDSparse(random_state=0),
    "PPDSparse": PPDSparse(random_state=0),
    "FastXML": FastXML(5, random_state=0),
    "PfastreXML": PfastreXML(5, random_state=0),
}


def scores(model: Any, X: Any) -> Any:
    found = model.decision_function(X)
    return found.toarray() if sparse.issparse(found) else found


@pytest.mark.parametrize("density", [0.6, 0.05])
@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.filterwarnings("ignore")
def test_the_format_of_features_does_not_matter(name: str, density: float) -> None:
    rng = np.random.default_rng(0)
    X = (rng.random((150, 40)) < density) * (2.0 + rng.standard_normal((150, 40)))
    Y = sparse.csr_array((X @ rng.standard_normal((40, 12)) > np.sqrt(40 * density)).astype(float))
    dense = clone(CLASSIFIERS[name]).fit(X, Y)
    other = clone(CLASSIFIERS[name]).fit(sparse.csr_array(X), Y)
    wanted = scores(dense, X[:30])
    size = np.abs(wanted).max()
    np.testing.assert_allclose(scores(dense, sparse.csr_array(X[:30])), wanted, atol=1e-10 * size)
    np.testing.assert_allclose(scores(other, X[:30]), wanted, atol=1e-8 * size)
    np.testing.assert_allclose(scores(other, sparse.csr_array(X[:30])), wanted, atol=1e-8 * size)
