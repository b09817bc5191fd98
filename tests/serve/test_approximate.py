"""Lists from an index: what it finds, what it never lists, and when lists are exact after all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from starlette.testclient import TestClient

from unseen import MatrixFactorization, Observations
from unseen.exceptions import ParameterError
from unseen.serve import approximate, create_app
from unseen.serve.answers import Served, Wanted

pytest.importorskip("usearch")
N_ROWS, N_COLS = 120, 3000


@pytest.fixture(scope="module")
def model() -> Any:
    rng = np.random.default_rng(0)
    rows, cols = rng.normal(size=(N_ROWS, 8)), rng.normal(size=(N_COLS, 8))
    i, j = np.nonzero(rng.random((N_ROWS, N_COLS)) < 0.03)
    cells = Observations.from_triples(i, j, (rows[i] * cols[j]).sum(axis=1), (N_ROWS, N_COLS))
    return MatrixFactorization(8, reg=1.0, center="biases", random_state=0, max_iter=5, tol=1, n_jobs=1).fit(
        cells
    )


@pytest.fixture(scope="module")
def served(model: Any) -> Served:
    return Served(model, approximate=approximate.Approximate(1000))


def test_it_finds_nearly_all_and_nothing_that_is_left_out(served: Served, model: Any) -> None:
    deny = np.sort(np.random.default_rng(1).permutation(N_COLS)[:300])
    exact, lists = Served(model), []
    for one in (served, exact):
        lists.append(one.lists([Wanted(one, 10, rows=np.arange(N_ROWS), deny=deny)])[0])
    (ids, scores), (wanted, best) = lists
    assert served.recall is not None
    assert served.recall >= 0.99
    assert np.mean([np.isin(a, b).mean() for a, b in zip(wanted, ids, strict=True)]) >= 0.99
    assert (ids >= 0).all()
    for row, line in enumerate(ids):
        seen = model.seen_.rows(np.array([row]))[1]
        assert not np.isin(line, np.concatenate([seen, deny])).any()
    # Scores are the model's own, best first: where the lists are the same, so are they.
    same = (ids == wanted).all(axis=1)
    assert same.mean() > 0.9
    np.testing.assert_allclose(scores[same], best[same], rtol=1e-5)


def test_a_list_does_not_depend_on_its_company(served: Served) -> None:
    rng = np.random.default_rng(2)
    asked = [
        Wanted(served, int(rng.integers(1, 30)), rows=rng.integers(0, N_ROWS, size=1)) for _ in range(20)
    ]
    asked.append(Wanted(served, 5, cells=(np.array([3, 7]), np.array([1.0, 2.0]))))
    asked.append(Wanted(served, 5, rows=np.array([1]), candidates=np.arange(40)))
    for one, together in zip(asked, served.lists(asked), strict=True):
        np.testing.assert_array_equal(together[0], served.lists([one])[0][0])  # type: ignore[index]


def test_what_leaves_out_much_is_exact(served: Served, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served.index, "_walk", lambda *_: pytest.fail("it looked"))
    deny = np.arange(approximate.LONGEST)
    ids = served.lists([Wanted(served, 5, rows=np.array([0]), deny=deny)])[0][0]  # type: ignore[index]
    assert ids.min() >= approximate.LONGEST


def test_a_poor_index_is_not_used(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approximate, "REACHES", (1,))
    monkeypatch.setattr(approximate, "CONNECTIVITY", 2)
    monkeypatch.setattr(approximate.ColumnIndex, "_walk", lambda self, query, width: np.arange(width))
    poor = Served(model, approximate=approximate.Approximate(1000))
    assert poor.index is None
    assert poor.retrieval()["kind"] == "exact"
    assert poor.retrieval()["recall_at_10"] < 0.5


def test_it_is_told_and_off_by_default(model: Any) -> None:
    for above, kind in ((None, "exact"), (N_COLS, "exact"), (1000, "approximate")):
        with TestClient(create_app(model, approximate_above=above)) as client:
            told = client.get("/readyz").json()["retrieval"]
            metrics = client.get("/metrics").text
            answer = client.post("/v1/recommend", json={"rows": [0], "k": 3})
        assert len(answer.json()["lists"][0]["items"]) == 3
        assert told["kind"] == kind
        assert ("unseen_index_recall_at_10{" in metrics) is (kind == "approximate")


def test_workers_share_one_file(model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    how = approximate.Approximate(1000, tmp_path)
    first = Served(model, approximate=how)
    monkeypatch.setattr(approximate, "_made", lambda *_: pytest.fail("it is there already"))
    second = Served(model, approximate=how)
    assert len(list(tmp_path.iterdir())) == 1
    wanted = [one.lists([Wanted(one, 10, rows=np.arange(9))])[0][0] for one in (first, second)]  # type: ignore[index]
    np.testing.assert_array_equal(*wanted)
    monkeypatch.undo()
    # Other factors have a file of their own, and that of the ones before goes.
    other = MatrixFactorization(2, reg=1.0, max_iter=1, tol=1, random_state=0, n_jobs=1).fit(
        sparse.random_array((30, 2000), density=0.05, rng=np.random.default_rng(0), format="csr")
    )
    before = set(tmp_path.iterdir())
    Served(other, approximate=how)
    assert len(list(tmp_path.iterdir())) == 1
    assert set(tmp_path.iterdir()) != before
    np.testing.assert_array_equal(second.lists([Wanted(second, 10, rows=np.arange(9))])[0][0], wanted[0])  # type: ignore[index]


def test_what_is_missing_is_named(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(ParameterError, match=r"unseen\[ann\]"):
        Served(model, approximate=approximate.Approximate(1000))
