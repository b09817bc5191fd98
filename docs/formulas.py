"""Objectives of docstrings, written as in a terminal, as formulas for MathJax.

>>> for line in objective(["min over W, H   sum_observed (w_i . h_j - x_ij)^2 + reg/2 ||W||_F^2"]):
...     print(line)
\\begin{aligned}
& \\min_{W, H}\\; \\sum_{\\text{observed}} (w_{i} \\cdot h_{j} - x_{ij})^{2} \\\\
& \\quad + \\tfrac{\\mathtt{reg}}{2} \\lVert W\\rVert_{F}^{2}
\\end{aligned}
"""

from __future__ import annotations

import re

__all__ = ["STARTS", "objective", "tex"]

STARTS = re.compile(r"min\b.*\S   +\S")
"""The first line of an objective: what is minimised over, some blanks, and what is minimised."""
GREEK = ("alpha", "mu", "phi", "rho", "theta")
FUNCTIONS = ("exp", "log")
ROOM = 34
"""Letters of a first part that stand beside "min" on a phone."""
TOKEN = re.compile(
    r"(?P<done>\\[a-z]+(?:\{1\})?)|(?P<half>(?P<over>\w+)/2\b)|(?P<share>1/\((?P<below>[^()]*)\))|(?P<norm>\|\|)"
    r"|(?P<name>[A-Za-z]+(?:_[A-Za-z]+)*(?:_\*)?)|(?P<sub>_[*\w])|(?P<power>\^\w+)"
    r"|(?P<dot>(?<=\s)\.(?=\s))|(?P<least>>=)"
)


def name(word: str) -> str:
    """A symbol with its place, an option by its name, or a word.

    >>> name("x_ij"), name("sum_known"), name("reg_e"), name("blank"), name("Xa")
    ('x_{ij}', '\\\\sum_{\\\\text{known}}', '\\\\mathtt{reg\\\\_e}', '\\\\text{ blank }', 'X_{a}')
    """
    first, _, rest = word.partition("_")
    if first == "sum":
        below = rest if len(rest) < 3 else rf"\text{{{rest}}}"
        return rf"\sum_{{{below}}}"
    place = f"_{{{rest}}}" if rest else ""
    if first in GREEK:
        return rf"\{first}{place}"
    if word in FUNCTIONS:
        return rf"\{word}"
    if first == "reg" and re.fullmatch("[A-Z]", rest):
        return rf"\mathtt{{reg}}{place}"
    if re.search(r"reg|prior", word):
        return r"\mathtt{" + word.replace("_", r"\_") + "}"
    if word == "l":
        return r"\ell"
    if len(first) == 1 or first.isupper():
        return f"{first}{place}"
    if re.fullmatch("[A-Z][a-z]", word):
        return f"{word[0]}_{{{word[1]}}}"
    return rf"\text{{ {word} }}"


def tex(text: str) -> str:
    """What stands on one line.

    >>> tex("reg/2 ||x_i' D||_* + 1/(1 - rho)")
    "\\\\tfrac{\\\\mathtt{reg}}{2} \\\\lVert x_{i}' D\\\\rVert_{*} + \\\\tfrac{1}{1 - \\\\rho}"
    """
    opened = False

    def one(found: re.Match[str]) -> str:
        nonlocal opened
        if found["done"]:
            return found["done"]
        if found["half"]:
            over = found["over"]
            return rf"\tfrac{{{over if over.isdigit() else name(over)}}}{{2}}"
        if found["share"]:
            return rf"\tfrac{{1}}{{{tex(found['below'])}}}"
        if found["norm"]:
            opened = not opened
            return r"\lVert " if opened else r"\rVert"
        if found["name"]:
            return name(found["name"])
        if found["sub"]:
            return f"_{{{found['sub'][1:]}}}"
        if found["power"]:
            return f"^{{{found['power'][1:]}}}"
        return r"\cdot" if found["dot"] else r"\ge"

    ones = re.sub(r"\b1 (?=[a-z]')", r"\\mathbf{1} ", re.sub(r"(?<=\w) 1\]", r"\\; 1]", text.strip()))
    return TOKEN.sub(one, ones).replace(r" } \text{ ", " ")


def parts(text: str) -> list[str]:
    """Terms of a sum that stand outside of all brackets, with their signs.

    >>> parts("a + (b + c) + d")
    ['a', '+ (b + c)', '+ d']
    """
    out, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if depth == 0 and text[place : place + 3] == " + ":
            out.append(text[start:place].strip())
            start = place + 1
    return [*out, text[start:].strip()]


def objective(lines: list[str]) -> list[str]:
    """A formula of several lines, a part of the sum on each, so that it can be read on a phone."""
    text = " ".join([lines[0].strip(), *(line.strip() for line in lines[1:])])
    head, _, rest = re.sub(r" {3,}", "\0", lines[0].strip(), count=1).partition("\0")
    rest = " ".join([rest, text[len(lines[0].strip()) + 1 :]])
    body, *where = re.split(r", {3,}", rest)
    over = head.removeprefix("min").removeprefix(" over").strip()
    least = rf"\min_{{{tex(over)}}}\;" if over else r"\min\;"
    first, *others = parts(body)
    shown = [rf"& {least} {tex(first)}"] if len(first) < ROOM else [f"& {least}", rf"& \quad {tex(first)}"]
    shown += [rf"& \quad {tex(part)}" for part in others]
    shown += [rf"& \text{{where }} {tex(part)}" for part in where]
    return [r"\begin{aligned}", *(f"{line} \\\\" for line in shown[:-1]), shown[-1], r"\end{aligned}"]
