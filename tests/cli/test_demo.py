"""The demonstration: its page stands alone, its plots show something, and features help."""

from __future__ import annotations

import base64
import io
import json
import re
from contextlib import redirect_stdout
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import unseen
from unseen.cli.demo_page import NEXT
from unseen.cli.demo_tasks import Scale, missing_cells
from unseen.cli.main import main
from unseen.report import Report
from unseen.serve.answers import Served, Wanted

SVG = "{http://www.w3.org/2000/svg}"


TINY = Scale(60, 40, 0.3, 2, (4.0,), (10.0,), (0.9,), 8, (1.0,), 120, 200)


@dataclass(frozen=True)
class Demonstration:
    page: Path
    html: str
    document: dict[str, Any]


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory):
    page = tmp_path_factory.mktemp("demo") / "report" / "index.html"
    with redirect_stdout(io.StringIO()) as said:
        assert main(["demo", "--quick", "--quiet", "--json", "--out", str(page.parent)]) == 0
    return Demonstration(page, page.read_text(encoding="utf-8"), json.loads(said.getvalue()))


def pictures(html: str) -> list[ElementTree.Element]:
    sources = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    return [ElementTree.fromstring(base64.b64decode(source)) for source in sources]


def test_plots_are_not_empty(demonstration):
    drawn = pictures(demonstration.html)
    assert len(drawn) == 12
    for picture in drawn:
        assert len(picture.findall(f".//{SVG}use")) > 20  # glyphs and marks
        assert picture.findall(f".//{SVG}image") or len(picture.findall(f".//{SVG}path")) > 20


def test_it_ends_with_three_commands(demonstration):
    assert len(NEXT) == 3
    for command, _ in NEXT:
        assert f">{command}</code>" in demonstration.html


def test_an_empty_plot_would_be_noticed():
    from matplotlib.figure import Figure

    picture = pictures(Report("x").figures([(Figure(), "nothing")]).html())[0]
    assert len(picture.findall(f".//{SVG}path")) <= 20


def test_its_model_can_be_served(demonstration):
    served = Served(unseen.load(demonstration.document["model"]))
    assert served.about()["spread"]
    ids, scores = served.lists([Wanted(served, 5, rows=np.array([0]))])[0]
    assert ids.shape == scores.shape == (1, 5)


def test_the_page_stands_alone(demonstration):
    html = demonstration.html
    assert sorted(path.name for path in demonstration.page.parent.iterdir()) == ["index.html", "model"]
    outside = re.findall(r'(?:src|href|url)\s*[=(]\s*["\']?(?!data:)[^"\')\s]+', html)
    assert outside == []
    assert "<script" not in html
    assert "width=device-width" in html

    open_tags: list[str] = []

    class Balance(HTMLParser):
        def handle_starttag(self, tag, attrs):
            if tag not in ("meta", "img"):
                open_tags.append(tag)

        def handle_endtag(self, tag):
            assert open_tags.pop() == tag

    Balance().feed(html)
    assert open_tags == []


def test_the_page_says_how_it_was_run(demonstration):
    html = demonstration.html
    for said in ("seed", "numpy", "scikit-learn", "Seconds", "alpha tried", "Hidden positives", "Cold rows"):
        assert said in html


def test_models_beat_what_they_must_beat(demonstration):
    document = demonstration.document
    picture, digits, table, cells, cold, hidden = (
        {line["method"]: line[task["measure"]] for line in task["methods"]} for task in document["tasks"]
    )
    means, biases, plain, _, smooth = picture.values()
    assert means > biases > plain > smooth
    assert digits["Mean of each pixel"] > digits["Nearest digits (KNNImputer)"] > digits["Imputer"]
    assert table["Mean of each column"] > table["Nearest rows (KNNImputer)"] > table["Imputer"]
    assert cells["Mean of all ratings"] > cells["Biases"] > cells["Features (IMC)"]
    assert cells["Low rank"] > cells["Features and low rank"]
    assert cold["Mean of the column"] > cold["Features (IMC)"]
    assert hidden["Blank = unlabelled (biased loss)"] > 1.5 * hidden["Popularity"]


def test_the_seed_decides():
    scores = [[o.scores for o in missing_cells(TINY, seed).outcomes] for seed in (1, 1, 2)]
    assert scores[0] == scores[1]
    assert scores[0] != scores[2]


def test_report_escapes_text():
    html = Report("a < b").section("<i>", "x & y").table(["<h>"], [["<td>"], ["\"'"]]).html()
    assert "<i>" not in html
    assert "&lt;td&gt;" in html
    assert "x &amp; y" in html


def test_report_marks_numbers_and_the_best():
    html = Report("t").table(["name", "score"], [["a", 1.0], ["b", 0.25]], best=1).html()
    first = '<td>b <span class="badge good">best</span></td>'
    assert f'<tr class="best">{first}<td class="number">0.250</td></tr>' in html
    assert '<th scope="col">name</th><th scope="col" class="number">score</th>' in html
