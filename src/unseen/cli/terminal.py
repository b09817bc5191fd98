"""What a terminal must not see raw: ids and names come from files that anybody may have written."""

from __future__ import annotations

__all__ = ["visible"]


def visible(text: str, keep: str = "\n") -> str:
    r"""Text with control characters, marks of direction and other invisible characters spelt out.

    Parameters
    ----------
    text : str
        Whatever is to be shown.
    keep : str
        Such characters that stay.

    Examples
    --------
    >>> visible("ann\x1b[2J")
    'ann\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)
