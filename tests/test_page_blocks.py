"""Blocks of Python on pages run, and print what stands below them."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from test_docs import FLAGS, PAGES, ROOT, page_test

BLOCK = re.compile(
    r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
WITH_BLOCKS = [
    page for page in [*PAGES, ROOT / "README.md"] if BLOCK.search(page.read_text(encoding="utf-8"))
]
LIBRARIES = ("implicit", "lightfm", "surprise", "cmfrec")
"""Other libraries: their blocks run where they are installed."""
MACHINES = {
    "SSHCluster": "machines that can be reached by SSH",
    "dask_kubernetes": "a Kubernetes cluster",
    "dask_yarn": "a Yarn cluster",
    "mlflow": "MLflow; what it calls is tested with the export of models",
    "fancyimpute": "its last release calls what scikit-learn has no more",
    "pecos": "its last release calls what SciPy has no more",
}
"""What no test has: here it is only seen that the blocks are Python."""
STATE_OF_PAGE = ("coming_from",)
"""Pages whose blocks go on where their sessions end."""


def missing(source: str) -> str | None:
    """What a block needs and is not here."""
    for name in (*LIBRARIES, *MACHINES):
        if re.search(rf"^(?:from|import) .*\b{name}\b", source, flags=re.MULTILINE):
            return name if name in MACHINES or find_spec(name) is None else None
    return None


@contextmanager
def places(page: Path, folder: Path) -> Iterator[dict[str, str]]:
    """A device, an address and a store that are here, by what stands on the page."""
    if page.stem == "gpu":
        yield {'device="cuda"': 'device="cpu"'}
    elif page.stem == "distributed":
        distributed = pytest.importorskip("distributed", reason="dask is not installed")
        write_clicks(folder / "clicks")
        local = {"processes": False, "dashboard_address": None, "protocol": "tcp", "host": "127.0.0.1"}
        with distributed.LocalCluster(n_workers=2, threads_per_worker=1, **local) as cluster:
            yield {"tcp://scheduler:8786": cluster.scheduler_address, "s3://bucket": str(folder)}
    else:
        yield {}


def close(names: dict[str, Any]) -> None:
    """End what a block has started."""
    client = names.get("client")
    if client is not None:
        cluster = client.cluster
        client.close()
        if cluster is not None:
            cluster.close()


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: page.stem)
def test_blocks_of_pages_print_what_stands_below_them(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_ratings(tmp_path / "ratings.csv")
    text = page.read_text(encoding="utf-8")
    before: dict[str, Any] = {}
    if page.stem in STATE_OF_PAGE:
        session = page_test(text, page.stem)
        doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(session, clear_globs=False)
        before = session.globs
    capsys.readouterr()
    with places(page, tmp_path) as known:
        for source, expected in BLOCK.findall(text):
            for there, here in known.items():
                source = source.replace(there, here)
            code = compile(source, str(page), "exec")
            if missing(source) is not None:
                continue
            names = {**before, "__name__": "__main__"}
            try:
                exec(code, names)
            finally:
                close(names)
            printed = capsys.readouterr().out
            assert (
                printed.strip() == expected.strip() if expected else printed.strip() or "print(" not in source
            )


def test_all_blocks_run_but_those_that_need_what_no_test_has() -> None:
    needed: dict[str, list[str]] = {}
    for page in WITH_BLOCKS:
        for source, _ in BLOCK.findall(page.read_text(encoding="utf-8")):
            name = missing(source)
            if name is not None:
                needed.setdefault(name, []).append(page.stem)
    elsewhere = {name: found for name, found in needed.items() if name in MACHINES}
    there = {"fancyimpute": "coming_from", "pecos": "coming_from", "mlflow": "serving"}
    assert elsewhere == {name: [there.get(name, "distributed")] for name in MACHINES}
    assert all(found == ["coming_from"] for name, found in needed.items() if name in LIBRARIES)


def test_a_block_of_another_library_is_noticed() -> None:
    assert missing("from dask.distributed import SSHCluster\n") == "SSHCluster"
    assert missing("import numpy as np\n") is None


def write_ratings(path: Path) -> None:
    """What a reader has at hand: people, films and stars."""
    people, films = ["Ann", "Bob", *"CDEFGHIJKLMNOPQRST"], ["Alien", "Brazil", *"cdefghijklmn"]
    lines = [
        f"{person},{film},{1 + (i * j) % 5}"
        for i, person in enumerate(people)
        for j, film in enumerate(films)
        if (i + 2 * j) % 3
    ]
    path.write_text("\n".join(["user,film,stars", *lines, ""]), encoding="utf-8")


def write_clicks(folder: Path) -> None:
    """A folder of Parquet files with who has chosen what."""
    import pandas as pd

    folder.mkdir()
    for part in range(3):
        clicks = [(i, j) for i in range(part, 90, 3) for j in range(40) if (i * j + i + j) % 7 == 0]
        pd.DataFrame(clicks, columns=["user", "item"]).to_parquet(folder / f"part.{part}.parquet")
