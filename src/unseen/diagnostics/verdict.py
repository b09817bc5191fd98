"""What the counts of a diagnosis mean, in plain words."""

from __future__ import annotations

__all__ = ["make_verdict"]


def make_verdict(
    asked_rank: int,
    rank: int,
    counts: tuple[int, int, float],
    n_blocks: int,
    largest: int,
    empty: tuple[int, int],
    below_rank: tuple[float, float],
    across_unknown: float,
    only_value: float | None,
) -> list[str]:
    """Write a few sentences, the most important first.

    Parameters
    ----------
    asked_rank, rank : int
        As asked, and as the shape allows.
    counts : (int, int, float)
        Known cells, degrees of freedom, and r (n + m) ln(n m).
    n_blocks : int
        Connected blocks.
    largest : int
        Cells of the largest block.
    empty : (int, int)
        Rows and columns without a cell.
    below_rank : (float, float)
        Shares of rows and columns with fewer cells than the rank.
    across_unknown : float
        Share of the unknown cells that lie between blocks.
    only_value : float or None
        The value of all known cells, where they are equal.

    Returns
    -------
    list of str
        Sentences.
    """
    cells, freedom, needed = counts
    out = []
    if rank < asked_rank:
        out.append(f"Rank {asked_rank} is more than the shape allows; {rank} is used.")
    if only_value is not None:
        out.append(
            f"All known values are {only_value:g}, so a constant fits them. As values to complete they say "
            "nothing; as positives only, see BiasMC."
        )
    if cells < freedom:
        out.append(
            f"Too few cells for rank {rank}: {cells:,} known, {freedom:,} degrees of freedom. Many different "
            "matrices fit them exactly; what a model says about other cells rests on its penalty."
        )
    elif cells < needed:
        out.append(
            f"Enough cells to count, too few to be safe for rank {rank}: {cells / freedom:.2g} for each "
            f"degree of freedom, {cells / needed:.2g} times r(n+m)ln(nm). Use a penalty, choose it on "
            "held-out cells, and compare with a bias model."
        )
    else:
        times = f": {cells / needed:.2g} times r(n+m)ln(nm)" if needed else ""
        out.append(f"Enough cells for rank {rank} if they are spread evenly{times}.")
    for share, name in zip(below_rank, ("rows", "columns"), strict=True):
        if share >= 0.1 and rank > 1:  # with rank 1 these are the empty ones
            out.append(
                f"{_percent(share)} of the {name} have fewer than {rank} known cells, so their factors are "
                "decided by the penalty in part."
            )
    missing = [
        f"{count:,} {name if count > 1 else name.removesuffix('s')}"
        for count, name in zip(empty, ("rows", "columns"), strict=True)
        if count
    ]
    if missing:
        out.append(f"{' and '.join(missing)} without any known cell: only a baseline can be predicted there.")
    if n_blocks > 1:
        out.append(
            f"The known cells fall into {n_blocks:,} blocks that share no row or column; the largest has "
            f"{_percent(largest / cells)} of them."
        )
    if across_unknown > 0:
        out.append(
            f"{_percent(across_unknown)} of the unknown cells lie between blocks, or in an empty row or "
            "column. No known cell speaks about them: without side features the best prediction there is the "
            "baseline, and what low-rank factors give is arbitrary."
        )
    else:
        out.append("All rows and columns are connected by known cells.")
    return out


def _percent(share: float) -> str:
    """Never 0% for something, nor 100% for less than all."""
    percent = 100 * share
    if 0 < percent < 0.1:
        return "less than 0.1%"
    if 99.9 < percent < 100:
        return "more than 99.9%"
    return f"{percent:.2g}%" if percent < 99.5 else f"{percent:.3g}%"
