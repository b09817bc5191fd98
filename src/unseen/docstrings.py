"""Options that many classes share, described once.

A class leaves them out of its docstring; :func:`share_options` writes them in when the class is made, with
the defaults of its own signature. What a class describes itself stays as it is.
"""

from __future__ import annotations

import inspect
import re

__all__ = ["ATTRIBUTES", "PARAMETERS", "share_options"]

PARAMETERS = {
    "bias_reg": ("float", "Ridge of the biases."),
    "max_iter": ("int", "Limit of sweeps."),
    "tol": ("float", "Stop when a sweep lowers the objective by less than this share."),
    "validation_fraction": (
        "float, optional",
        "Share of the cells held out for early stopping by the loss's own measure; the best sweep is kept.",
    ),
    "patience": ("int", "Sweeps without improvement on held-out cells before stopping."),
    "warm_start": ("bool", "Start from the previous fit."),
    "random_state": ("int or Generator, optional", "Seed of the start."),
    "clip": (
        'None, "observed" or (float, float)',
        "Keep predictions within these limits, or within those of the training values. Factors and "
        "``raw=True`` are not touched.",
    ),
    "n_jobs": ("int, optional", "Threads; None takes all cores. The result does not depend on it."),
    "device": (
        "str, optional",
        "'cpu', 'cuda', 'cuda:N' or 'auto', a GPU if there is one. None asks UNSEEN_DEVICE, else the CPU.",
    ),
    "verbose": ("int", "1 shows a progress bar."),
}
"""Type and meaning of shared parameters."""
ATTRIBUTES = {
    "history_": ("list of dict", "``objective`` and ``time_s`` of each sweep."),
    "n_iter_": ("int", "Sweeps done."),
    "converged_": ("bool", "Whether the objective settled before ``max_iter``."),
}
"""Type and meaning of shared learned attributes."""
ENTRY = re.compile(r"^    (\w+(?:, \w+)*) : ")


def share_options(cls: type, *, attributes: bool = True) -> None:
    """Complete the docstring of a class by the shared options of its signature that it does not describe."""
    text = cls.__dict__.get("__doc__")
    if not text or "\n    Parameters\n" not in text:
        return
    lines = text.split("\n")
    described = {name for line in lines if (found := ENTRY.match(line)) for name in found[1].split(", ")}
    wanted = []
    for name, parameter in inspect.signature(cls).parameters.items():
        if name in PARAMETERS and name not in described:
            kind, meaning = PARAMETERS[name]
            default = "" if kind.endswith("optional") else f", default={parameter.default!r}"
            wanted += [f"    {name} : {kind}{default}", f"        {meaning}"]
    _append(lines, "Parameters", wanted)
    if attributes:
        learned = [
            line
            for name, (kind, meaning) in ATTRIBUTES.items()
            if name not in described
            for line in (f"    {name} : {kind}", f"        {meaning}")
        ]
        _append(lines, "Attributes", learned)
    cls.__doc__ = "\n".join(lines)


def _append(lines: list[str], section: str, entries: list[str]) -> None:
    """Put entries at the end of a section, if there is one."""
    starts = [place for place, line in enumerate(lines) if line == f"    {section}"]
    if not starts or not entries:
        return
    end = starts[0] + 2
    while end < len(lines) and lines[end].strip():
        end += 1
    lines[end:end] = entries
