"""Scripts as notebooks with what they print and draw.

    python docs/notebook.py [NAME ...]

runs ``docs/tutorials/NAME.py`` (all of them by default, and ``docs/examples/from_frame_to_lists.py``)
and writes ``docs/tutorials/NAME.ipynb``; ``UNSEEN_DATA`` points to the data. Tutorials are scripts with
cells (``# %%``) as jupytext reads them; a first line ``# alt: ...`` of a cell says in words what its
picture shows. In a script without such marks a comment at the beginning of a paragraph becomes the text
above the code that follows it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
TUTORIALS = DOCS / "tutorials"
SCRIPT = DOCS / "examples" / "from_frame_to_lists.py"
NOTEBOOK = TUTORIALS / "from_frame_to_lists.ipynb"
TITLE = re.compile(r'"""\n(.*)\n=+\n\n(.*?)\n"""\n', re.DOTALL)
ALT = re.compile(r"# alt: (.*)\n")


def scripts() -> dict[Path, Path]:
    """Scripts by the notebooks that are made of them."""
    found = {path.with_suffix(".ipynb"): path for path in sorted(TUTORIALS.glob("*.py"))}
    return {NOTEBOOK: SCRIPT, **found}


def notebook(script: str) -> Any:
    """Cells of text and code, not run."""
    made = _by_marks(script) if "# %%" in script else _by_paragraphs(script)
    for number, cell in enumerate(made.cells):
        cell["id"] = f"cell-{number}"  # the same each time
    made.metadata.clear()
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return made


def _by_marks(script: str) -> Any:
    import jupytext

    made = jupytext.reads(script, fmt="py:percent")
    for cell in made.cells:
        cell.metadata.clear()
        if alt := ALT.match(cell.source):
            cell.source = cell.source[alt.end() :]
            cell.metadata["mystnb"] = {"image": {"alt": alt[1]}}
    return made


def _by_paragraphs(script: str) -> Any:
    from nbformat import v4

    title = TITLE.match(script)
    assert title is not None, "a script begins with a title and a text"
    cells = [v4.new_markdown_cell(f"# {title[1]}\n\n{title[2]}")]
    for paragraph in re.split(r"\n\n(?=# )", script[title.end() :].strip()):
        text, code = re.fullmatch(r"((?:# [^\n]*\n)*)(.*)", paragraph, re.DOTALL).groups()  # type: ignore[union-attr]
        if text:
            cells.append(
                v4.new_markdown_cell(" ".join(line.removeprefix("# ") for line in text.splitlines()))
            )
        cells.append(v4.new_code_cell(code))
    return v4.new_notebook(cells=cells)


def executed(made: Any, folder: Path) -> Any:
    """The notebook with what its cells print and draw."""
    from nbclient import NotebookClient

    client = NotebookClient(made, timeout=600, resources={"metadata": {"path": str(folder)}})
    client.execute()
    for cell in made.cells:
        cell.metadata.pop("execution", None)  # times of this run
    made.metadata.pop("language_info", None)  # the version of this Python
    return made


def printed(made: Any) -> str:
    """What all cells print."""
    return "".join(
        output["text"]
        for cell in made.cells
        for output in cell.get("outputs", ())
        if output.output_type == "stream"
    )


def main(names: list[str]) -> None:
    import tempfile

    import nbformat

    for place, script in scripts().items():
        if names and place.stem not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = executed(notebook(script.read_text(encoding="utf-8")), Path(folder))
        place.write_text(nbformat.writes(found) + "\n", encoding="utf-8")
        print(place)


if __name__ == "__main__":
    main(sys.argv[1:])
