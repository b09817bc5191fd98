"""Configuration of the documentation, read by Sphinx."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import matplotlib
from sphinx.ext import autosummary

import unseen

sys.path.insert(0, str(Path(__file__).parents[1]))
from docs import drawn, formulas, reference

matplotlib.use("agg")
# Pages of names that are gone would stay, and be reported as orphans.
shutil.rmtree(Path(__file__).parent / "api" / "generated", ignore_errors=True)

project = "unseen"
author = "The unseen developers"
copyright = "The unseen developers"
version = release = unseen.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # brings MathJax as a file: a page asks nobody else for anything
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "examples/*.rst",
    "gallery/*.ipynb",
    "gallery/**/*.ipynb",
    "**/sg_execution_times.rst",
]
templates_path = ["_templates"]
default_role = "py:obj"
smartquotes = False  # a quote mark in formulas is a transposition
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3
# Tutorials are stored with what they print and draw; with real data at hand they run again.
nb_execution_mode = "force" if os.environ.get("UNSEEN_DATA") else "off"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True

autosummary_generate = True
# "(GIMC eq. 2)" does not end the sentence that a table shows.
autosummary.WELL_KNOWN_ABBREVIATIONS = (*autosummary.WELL_KNOWN_ABBREVIATIONS, "eq.", "eqs.", "sec.")
maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # numpydoc's sections hold the types
numpydoc_show_class_members = False  # the class template lists them
numpydoc_validation_checks: set[str] = set()

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1e9,  # seconds differ from machine to machine
    "write_computation_times": False,
    "abort_on_example_error": True,
}

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["unseen.css"]
html_js_files = ["unseen.js"]
html_favicon = "_static/unseen.svg"
html_context = {"default_mode": "auto"}
html_title = "unseen"
html_show_sourcelink = False
# Pages without pages below them need no navigation on the left.
html_sidebars = {
    page: []
    for page in ("index", "glossary", "start", "methods", "design", "limits", "changelog", "contributing")
}
highlight_language = "none"
html_theme_options = {
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "logo": {
        "image_light": "_static/unseen.svg",
        "image_dark": "_static/unseen.svg",
        "text": "unseen",
        "alt_text": "unseen, front page",
    },
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
}

LITERAL = re.compile(r"(``.*?``|`.*?`)")
MARKUP = re.compile(r"\||(?<=\|_)\*|(?<=\w)_(?!\w)")
NAMES = re.compile(r"\w[\w, ]* : ")
SIGNATURE = re.compile(r'<dl>\n((?:<dd><em class="sig-param">.*?</dd>\n)+)</dl>')


def plain_formulas(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Take formulas in docstrings as they stand, though bars, stars and underscores are markup."""
    out: list[str] = []
    objective: list[str] = []
    literal = False
    for line in [*lines, ""]:
        literal = literal and (line.startswith("    ") or not line.strip())
        if line.strip() and (objective or formulas.STARTS.match(line)):
            objective.append(line)
            continue
        if objective:
            out += [".. math::", "", *(f"    {part}" for part in formulas.objective(objective)), ""]
            objective = []
        if literal or line.lstrip().startswith((">>>", "...")) or NAMES.match(line):
            out.append(line)
        else:
            literal = line.rstrip().endswith("::")
            text = LITERAL.split(line)
            text[::2] = [MARKUP.sub(lambda match: "\\" + match.group(), piece) for piece in text[::2]]
            # A full stop with blanks around it would end the one-line summary in the tables.
            text[1::2] = [piece.replace(" . ", " · ") for piece in text[1::2]]
            out.append("".join(text))
    lines[:] = out


def at_work(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Say of a class what it is good at, what does the same, and what it shares with the others."""
    if what != "class" or not name.startswith("unseen."):
        return
    short = name.rsplit(".", 1)[-1]
    lines[:] = reference.shared_apart(lines)
    if "See Also" not in lines:
        place = next(
            (n for n, line in enumerate(lines) if line in ("Notes", "References", "Examples")), len(lines)
        )
        lines[place:place] = reference.see_also(short)


def good_at(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """After numpydoc: what stored runs say of a class, or what it draws, before its parameters."""
    if what == "class" and name.startswith("unseen."):
        found = (n for n, line in enumerate(lines) if line.startswith(":Parameters:"))
        place = next(found, len(lines))
        lines[place:place] = reference.what_it_is_good_at(name.rsplit(".", 1)[-1])
        if name.startswith("unseen.plotting.") and name.endswith("Display"):
            lines[place:place] = drawn.picture(obj)


def line_signatures(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Parameters of a signature as lines, not as a list of definitions without terms."""

    def lines(found: re.Match[str]) -> str:
        inside = found[1].replace("<dd>", '<span class="sig-line">').replace("</dd>", "</span>")
        return f'<span class="sig-lines">{inside}</span>'

    if "body" in context:
        context["body"] = SIGNATURE.sub(lines, context["body"])


def offer_notebook(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Below the title of a tutorial, a link to the notebook."""
    source = Path(__file__).parent / f"{page}.ipynb"
    if page.startswith("tutorials/") and source.exists() and "body" in context:
        link = f'<a href="../_downloads/{source.name}" download>Download as a notebook</a>'
        context["body"] = context["body"].replace("</h1>", f'</h1><p class="download">{link}</p>', 1)


def copy_notebooks(app: Any, exception: Exception | None) -> None:
    """Put the notebooks where their links point to."""
    if exception is None and app.builder.format == "html":
        target = Path(app.outdir) / "_downloads"
        target.mkdir(exist_ok=True)
        for source in (Path(__file__).parent / "tutorials").glob("*.ipynb"):
            shutil.copy(source, target / source.name)


def skip_foreign(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn adds to every class; it is documented there."""
    origin = str(getattr(obj, "__module__", "") or "")
    if origin.startswith("sklearn") or name.endswith("_request"):
        return True
    return None


def setup(app: Any) -> None:
    """Connect the functions above; numpydoc stands at 500."""
    app.connect("autodoc-process-docstring", plain_formulas, priority=100)
    app.connect("autodoc-process-docstring", at_work, priority=200)
    app.connect("autodoc-process-docstring", good_at, priority=800)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("html-page-context", line_signatures)
    app.connect("html-page-context", offer_notebook)
    app.connect("build-finished", copy_notebooks)
