"""A script of ``docs/examples`` as a notebook with what it prints.

    python docs/notebook.py

writes ``docs/tutorials/from_frame_to_lists.ipynb``; ``UNSEEN_DATA`` points to the data. A comment at the
beginning of a paragraph becomes the text above the code that follows it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
SCRIPT = DOCS / "examples" / "from_frame_to_lists.py"
NOTEBOOK = DOCS / "tutorials" / "from_frame_to_lists.ipynb"
TITLE = re.compile(r'"""\n(.*)\n=+\n\n(.*?)\n"""\n', re.DOTALL)


def notebook(script: str) -> Any:
    """Cells of text and code, not run."""
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
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # the same each time
    made = v4.new_notebook(cells=cells)
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return made


def executed(made: Any, folder: Path) -> Any:
    """The notebook with what its cells print."""
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


if __name__ == "__main__":
    import tempfile

    import nbformat

    with tempfile.TemporaryDirectory() as folder:
        found = executed(notebook(SCRIPT.read_text(encoding="utf-8")), Path(folder))
    NOTEBOOK.write_text(nbformat.writes(found) + "\n", encoding="utf-8")
