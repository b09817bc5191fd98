"""Tables of the server's benchmark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from papers.display import markdown

__all__ = ["of_times", "under_load"]


def of_times(results: dict[str, Any]) -> str:
    """Times of lists, one line a run."""
    lines = [_line(f"{row['n_cols']:,}", "exact, a new row", row) for row in results.get("times", [])]
    for found in results.get("retrieval", []):
        how = f"index, recall {found['recall_at_10']:.4f}" if found["kind"] == "approximate" else "exact"
        of = f"{found['n_cols']:,} ({found['model']})"
        lines += [_line(of, f"{how}, a new row", row) for row in found["times"]]
    for row in results.get("cornac", []):
        lines.append(_line(f"{row['n_cols']:,}", f"{row['library']}, a known row", row))
    header = ["columns", "lists", "clients", "median, ms", "99 %, ms", "answers a second", "failed"]
    return markdown(header, lines)


def _line(columns: str, how: str, row: dict[str, Any]) -> list[str]:
    times = [f"{row[name]:.1f}" for name in ("p50_ms", "p99_ms")]
    return [columns, how, str(row["clients"]), *times, f"{row['a_second']:.0f}", str(row["failed"])]


def under_load(results: dict[str, Any]) -> str:
    """What was counted."""
    said: dict[str, Callable[[Any], str]] = {
        "memory": _memory,
        "reloads": lambda one: f"{one['requests']:,}, failed {one['failed']} ({one['reloads']} times)",
        "deaths": lambda one: (
            f"{one['killed']}; {one['answered']:,} answered, {one['lost_with_a_worker']} lost with a worker, "
            f"{one['failed_after']} failed later"
        ),
        "left_out": lambda one: f"{one['with_an_excluded_id']} of {one['answers']:,}",
        "hostile": lambda one: ", ".join(f"{status}: {count:,}" for status, count in one.items()),
    }
    what = {
        "memory": "memory of several workers beside one",
        "reloads": "requests while the model is loaded again and again",
        "deaths": "workers killed while clients ask",
        "left_out": "lists with a column that must not be in them",
        "hostile": "hostile requests, by status",
    }
    return markdown(
        ["", "measured"],
        [[what[part], say(results[part]) if part in results else "not yet"] for part, say in said.items()],
    )


def _memory(found: dict[str, Any]) -> str:
    one, several = found["processes"]
    return (
        f"{several['pss_mib']:.0f} MiB, {several['pss_mib'] / one['pss_mib']:.2f} times "
        f"({several['workers']} workers, {found['n_cols']:,} columns)"
    )
