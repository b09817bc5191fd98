"""The page in a real browser: every flow, by mouse and by keyboard, with a clean console."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn
from browser import Browser, browser, why_no_browser
from serve_models import COLS, ROWS, Small

import unseen
from unseen import IMC, BayesianMF, BiasModel, Observations, Vocabulary
from unseen.serve import create_app
from unseen.serve.run import open_socket

MISSING = why_no_browser()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(MISSING is not None, reason=f"no headless browser: {MISSING}"),
]


@contextmanager
def at_address(app: Any) -> Iterator[str]:
    listening = open_socket("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def address(small: Small) -> Iterator[str]:
    names = {"col": {number: f"Film <b>{number}</b>" for number in COLS[:20]}}
    with at_address(create_app(small.model, cells=small.cells, names=names)) as address:
        yield address


@pytest.fixture
def page(window: Browser, address: str) -> Iterator[Browser]:
    window.window(1280, 900)
    window.errors()
    window.open(address)
    window.until("document.body.dataset.ready")
    yield window
    assert not window.errors()


def texts(page: Browser, selector: str) -> list[str]:
    found: list[str] = page.run(
        "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)", selector
    )
    return found


def look_up(page: Browser, row: str) -> None:
    page.run("document.getElementById('row-find').value = ''")
    page.type("#row-find", row)
    page.until("document.querySelector('#row-find-options li[id]')?.textContent === arguments[0]", row)
    page.press("down", "enter")
    page.until("document.getElementById('row-title').textContent === arguments[0]", row)


def test_a_row_is_found_and_its_list_shown(page: Browser, small: Small) -> None:
    look_up(page, "user 7")
    ids, scores = Listed(small).of("user 7")
    shown = texts(page, "#row-list tbody .id")
    assert shown == [str(name) for name in ids if name in COLS[:20]]
    first = texts(page, "#row-list tbody tr:first-child .n")
    assert float(first[0]) == pytest.approx(scores[0], rel=1e-3)
    assert first[1].startswith("±")
    assert page.run("return document.activeElement.id") == "row-title"
    assert texts(page, "#row-near li")
    assert len(texts(page, "#row-seen li")) == len(small.cells.csr[[small.row("user 7")]].indices)


class Listed:
    """Lists by hand."""

    def __init__(self, small: Small) -> None:
        self.small = small

    def of(self, name: str) -> tuple[list[int], Any]:
        model, i = self.small.model, self.small.row(name)
        scores = model.row_factors_[i] @ model.col_factors_.T
        seen = self.small.cells.csr[[i]].indices
        order = [j for j in np.argsort(-scores, kind="stable") if j not in seen][:20]
        return model.col_ids_[order].tolist(), scores[order]


def test_why(page: Browser) -> None:
    look_up(page, "user 3")
    page.click("#row-list tbody tr:nth-child(2) td:last-child button")
    page.until("!document.getElementById('why').hidden")
    words = " ".join(texts(page, "#why"))
    assert "mean of all" in words
    assert "Known cells" in words
    assert "90 %" in words
    assert "undefined" not in words
    assert "Film <b>" in words
    assert "user alone" in words
    assert "item alone" in words


def test_an_id_cannot_run_anything(page: Browser) -> None:
    page.run("window.alert = () => { throw new Error('it ran'); }")
    look_up(page, ROWS[0])
    assert texts(page, "#row-title") == [ROWS[0]]
    assert page.run("return document.querySelectorAll('main script, main b').length") == 0


def test_neighbours_of_a_column(page: Browser) -> None:
    page.click("#tab-col")
    page.type("#col-find", "film <b>30")
    page.until("document.querySelector('#col-find-options li[id]')?.textContent.startsWith('Film <b>30')")
    page.press("enter")
    page.until("document.querySelectorAll('#col-list tbody tr').length === 20")
    page.click("#col-list tbody tr:first-child button")
    page.until("document.getElementById('col-title').textContent !== 'Film <b>30</b>'")


def test_a_list_follows_what_is_picked(page: Browser) -> None:
    page.click("#tab-try")
    page.type("#col-try", "film <b>50")
    page.until("document.querySelector('#col-try-options li[id]')?.textContent.startsWith('Film <b>50')")
    page.press("enter")
    page.until("document.querySelectorAll('#try-list tbody tr').length === 15")
    before = texts(page, "#try-list tbody tr")
    page.run(
        "const one = document.querySelector('#picked input'); one.value = '5';"
        "one.dispatchEvent(new Event('input'))"
    )
    page.until("document.querySelector('#try-list tbody').textContent !== arguments[0]", "".join(before))
    assert not any("Film <b>50</b>" in line for line in texts(page, "#try-list tbody tr"))
    page.click("#picked button")
    page.until("document.querySelectorAll('#try-list tbody tr').length === 0")


def test_the_map_is_walked_and_zoomed_with_the_keyboard(page: Browser) -> None:
    page.click("#tab-map")
    page.until("document.getElementById('map').width > 300")
    page.run("document.getElementById('map').focus()")
    page.press("right")
    first = page.until("document.getElementById('map-said').textContent")
    page.press("right", "+", "+", "left", "down", "0")
    assert page.until("document.getElementById('map-said').textContent") != ""
    page.press("enter")
    page.until("!document.getElementById('view-col').hidden")
    assert first


def test_one_may_begin_with_what_is_proposed(page: Browser) -> None:
    page.click("#view-row .starts button:nth-child(2)")
    page.until("document.querySelectorAll('#row-list tbody tr').length")
    proposed = texts(page, "#view-row .starts button")
    assert len(proposed) == 8
    assert texts(page, "#row-title") == proposed[1:2]
    assert page.run("return document.querySelectorAll('#row-list td.sure svg').length") > 0


def test_a_column_is_found_on_the_map(page: Browser) -> None:
    page.click("#tab-col")
    page.type("#col-find", "film <b>50")
    page.until("document.querySelector('#col-find-options li[id]')?.textContent.startsWith('Film <b>50')")
    page.press("enter")
    page.until("!document.getElementById('to-map').hidden")
    page.click("#to-map")
    page.until("document.getElementById('map-said').textContent === 'Film <b>50</b>'")
    page.type("#col-map", "film <b>70")
    page.until("document.querySelector('#col-map-options li[id]')?.textContent.startsWith('Film <b>70')")
    page.press("enter")
    page.until("document.getElementById('map-said').textContent === 'Film <b>70</b>'")


def test_tabs_go_by_arrow_keys(page: Browser) -> None:
    page.click("#tab-row")
    page.press("right")
    assert page.run("return document.activeElement.id") == "tab-col"
    page.press("left", "left")
    assert page.run("return document.querySelector('[aria-selected=true]').id") == "tab-map"


def test_every_control_has_a_name(page: Browser) -> None:
    look_up(page, "user 3")
    nameless = page.run("""
        return [...document.querySelectorAll('button, input, select, canvas, [role=listbox]')].filter((one) =>
            !(one.getAttribute('aria-label') || one.textContent.trim() || one.labels?.length)
        ).map((one) => one.outerHTML)""")
    assert nameless == []


def test_a_phone_shows_it_without_scrolling_sideways(page: Browser) -> None:
    page.window(390, 844)
    look_up(page, "user 3")
    for tab in ("row", "col", "try", "cold", "map"):
        box = page.run(f"return document.getElementById('tab-{tab}').getBoundingClientRect().toJSON()")
        assert 0 <= box["left"] < box["right"] <= 390, tab
        page.click(f"#tab-{tab}")
        assert page.run("return document.documentElement.scrollWidth") <= 390


def test_colours_can_be_read(page: Browser) -> None:
    for dark in (False, True):
        page.window(1280, 900, dark)
        for name in ("--ink", "--soft", "--mark", "--bad"):
            back, ink = (
                page.run(
                    "return getComputedStyle(document.documentElement).getPropertyValue(arguments[0])", key
                )
                for key in ("--back", name)
            )
            assert contrast(back, ink) >= 4.5, (dark, name)


def contrast(one: str, other: str) -> float:
    """By the rule of WCAG."""

    def light(colour: str) -> float:
        parts = [int(colour.strip()[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_a_new_row_by_its_features(window: Browser, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 30)
    features = np.column_stack([rng.normal(size=30), kind, 1 - kind])
    i, j = np.nonzero(rng.random((30, 12)) < 0.5)
    ids = {"row_ids": Vocabulary(np.arange(30)), "col_ids": Vocabulary([f"col {t}" for t in range(12)])}
    cells = Observations.from_triples(i, j, rng.normal(size=len(i)), **ids)
    model = IMC(2, reg=0.1, random_state=0).fit(
        cells, row_features=features, col_features=rng.normal(size=(12, 2))
    )
    model.source_ = {"row_feature_names": ["age", "kind=warm", "kind=cold"]}
    model.save(tmp_path / "model", cells=True)
    with at_address(create_app(unseen.load(tmp_path / "model"))) as address:
        window.errors()
        window.open(address)
        window.until("document.body.dataset.ready")
        window.click("#tab-cold")
        window.until("document.querySelectorAll('#cold-list tbody tr').length === 12")
        before = texts(window, "#cold-list tbody tr")
        begun = window.run(
            "return [...document.querySelectorAll('#cold-form [data-feature]')].map((o) => o.value)"
        )
        usual = ["warm", "cold"]
        assert begun == [f"{features[:, 0].mean():.3g}", usual[int(kind.mean() < 0.5)]]
        other = usual[begun[1] == "warm"]
        window.run(
            f"const one = document.querySelector('#cold-form select'); one.value = '{other}';"
            "one.dispatchEvent(new Event('input', { bubbles: true }))"
        )
        window.until(
            "document.querySelector('#cold-list tbody').textContent !== arguments[0]", "".join(before)
        )
        window.click("#tab-row")
        window.click("#view-row .starts button")
        window.until("document.querySelectorAll('#row-list tbody tr').length")
        window.click("#row-list tbody td:last-child button")
        window.until("!document.getElementById('why').hidden")
        assert "age (row)" in texts(window, "#why .bar > :first-child")
        assert not window.errors()


def test_a_model_without_factors_shows_what_it_has(window: Browser, small: Small) -> None:
    model = BiasModel().fit(small.cells)
    with at_address(create_app(model)) as address:
        window.errors()
        window.open(address)
        window.until("document.body.dataset.ready")
        assert texts(window, "[role=tab]:not([hidden])") == ["Look up a user", "Try it yourself", "New user"]
        window.click("#view-row .starts button")
        window.until("document.querySelectorAll('#row-list tbody tr').length")
        window.click("#row-list tbody td:last-child button")
        window.until("!document.getElementById('why').hidden")
        window.click("#tab-row")
        window.press("right")
        assert window.run("return document.activeElement.id") == "tab-try"
        assert not window.errors()


def test_how_sure_a_mean_over_draws_is(window: Browser, small: Small, tmp_path: Path) -> None:
    BayesianMF(2, n_samples=5, burn_in=5, random_state=0).fit(small.cells).save(
        tmp_path / "model", cells=True
    )
    with at_address(create_app(unseen.load(tmp_path / "model"))) as address:
        window.errors()
        window.open(address)
        window.until("document.body.dataset.ready")
        window.click("#view-row .starts button")
        window.until("document.querySelectorAll('#row-list tbody tr').length")
        assert texts(window, "#row-list th.sure") == ["90 % of values"]
        window.click("#row-list tbody td:last-child button")
        window.until("!document.getElementById('why').hidden")
        assert "of values lie between" in " ".join(texts(window, "#why .hint"))
        assert not window.errors()


def test_the_console_would_show_a_mistake(page: Browser) -> None:
    page.run("setTimeout(() => { throw new Error('planted'); }, 0)")
    page.until("true")
    assert any("planted" in message for message in page.errors() + page.errors())
