"""Stored figures of the library beside the best that others have published, for the page "How good is it?".

Nothing is run here: ``averaged``, ``lists`` and ``unseen reproduce`` store what is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks._store import STORED, stored
from papers.display import markdown
from papers.exmlds_labels import PAPER, PAPER_ONLY

__all__ = ["main", "tables"]


@dataclass(frozen=True)
class Published:
    """What others have reached, and who says so."""

    figure: str
    source: str


RATINGS = {
    "ids only": Published("0.905", "GC-MC (van den Berg et al., 2017) and IGMC (Zhang and Chen, 2020)"),
    "with histories": Published("0.890", "GLocal-K (Han et al., 2021)"),
    "with histories and side tables": Published("0.8833", "myFM (Ohtsuki, 2020), with dates"),
    "the same, ordinal": Published("0.8808", "myFM (Ohtsuki, 2020), ordinal, with dates"),
}
"""RMSE on the first published fold of MovieLens-100K."""
GOWALLA = Published("0.1920 / 0.1597", "BSPM-EM (Choi et al., 2023)")
LABELS = {"bibtex": "Bibtex", "delicious": "Delicious"}
HEAD = [
    "data and protocol",
    "measure",
    "best published",
    "who",
    "here",
    "model and settings",
    "seconds",
    "GiB",
    "command",
]


def tables() -> dict[str, str]:
    """What docs/how_good.md shows."""
    return {
        "ratings": markdown(HEAD, list(_ratings())),
        "lists": markdown(HEAD, list(_lists())),
        "drift": _drift(),
        "labels": markdown(HEAD, list(_labels())),
        "degrees": _by_power("degrees"),
        "backgrounds": _by_power("backgrounds"),
        "searches": _searches(),
        "links": _links(),
    }


def _parts() -> dict[str, Any]:
    return dict(stored("lists")["results"]) if (STORED / "lists.json").exists() else {}


def _ratings() -> Iterator[list[str]]:
    results = stored("averaged")
    for variant, best in RATINGS.items():
        runs = [run for run in results["results"] if run["variant"] == variant and run["fold"] == 1]
        if not runs:
            continue
        errors = [run["rmse"] for run in runs]
        settings = results["settings"]
        yield [
            f"MovieLens-100K, fold u1, {variant}", "RMSE", best.figure, best.source,
            f"{np.mean(errors):.4f} ({_seeds(len({run['seed'] for run in runs}))})",
            f"`BayesianMF`, rank {settings['rank']}, {settings['n_samples']} samples, "
            f"{settings['precision']} precision",
            f"{np.mean([run['cpu_seconds'] for run in runs]):.0f}", "", "`python -m benchmarks averaged`",
        ]  # fmt: skip


def _lists() -> Iterator[list[str]]:
    parts = _parts()
    command = "`python -m benchmarks lists`"
    protocol = "Gowalla, the split of published work"
    for name, title, best in (
        ("gowalla", "`SpectralFilter`", GOWALLA),
        ("gowalla_blend_narrow", "`Blend` of the first and `BiasMC`", GOWALLA),
        ("gowalla_blend", "the same, `BiasMC` chosen among more settings", GOWALLA),
        ("gowalla_by_row", "`SpectralFilter`, chosen on a fifth of the cells of every row", GOWALLA),
        ("gowalla_blend_by_row", "`Blend` of that and of the `BiasMC` above", GOWALLA),
    ):
        if name in parts:
            part = parts[name]
            yield [
                protocol, "recall@20 / NDCG@20", best.figure, best.source,
                f"{part['scores']['recall@20']:.4f} / {part['scores']['ndcg@20']:.4f}",
                f"{title}, {_settings(part['settings'])}", f"{part['part']['cpu_seconds']:.0f}",
                f"{part['peak_gib']:.1f}", command,
            ]  # fmt: skip
    if "gowalla_blend" in parts:
        alone = parts["gowalla_blend"]["alone"]
        yield [
            protocol, "recall@20 / NDCG@20", GOWALLA.figure, GOWALLA.source,
            f"{alone['recall@20']:.4f} / {alone['ndcg@20']:.4f}", "`BiasMC` of the last blend, alone", "", "",
            command,
        ]  # fmt: skip
    if "liked" in parts:
        for method, entry in parts["liked"]["entries"].items():
            if entry["error"] or method == "popular":
                continue
            scores = entry["scores"]["ndcg@10"]
            yield [
                "MovieLens-100K, ratings of 4 and 5, three random fifths", "NDCG@10", "", "",
                f"{np.mean(scores):.4f} ± {np.std(scores):.4f}", f"`{method}`, settings inside each part",
                f"{np.mean(entry['fit_s']) + np.mean(entry['search_s']):.0f}",
                f"{parts['liked']['peak_gib']:.1f}", command,
            ]  # fmt: skip


def _drift() -> str:
    """Share of each kind of place that went to the test file."""
    part = _parts().get("gowalla_drift")
    if part is None:
        return "Not measured yet: `python -m benchmarks lists`."
    lines = [
        [f"{line['from']} to {line['to']}", str(line["columns"]), f"{line['share']:.3f}"]
        for line in part["shares"]
    ]
    return markdown(["training cells of the place", "places", "share of its cells in the test file"], lines)


def _labels() -> Iterator[list[str]]:
    parts = _parts()
    for name, title in LABELS.items():
        if name in parts:
            best = _best_labels(title)
            runs = parts[name]["runs"]
            found = 100 * np.mean([run["precision"] for run in runs], axis=0)
            models = sorted({model.partition("(")[0] for model in parts[name]["models"]})
            yield [
                f"{title}, {len(runs)} published split{'s' if len(runs) > 1 else ''}", "P@1 / P@3 / P@5",
                best.figure, best.source, " / ".join(f"{value:.2f}" for value in found),
                f"`Blend` of {', '.join(models)}", f"{np.mean([run['cpu_seconds'] for run in runs]):.0f}",
                f"{parts[name]['peak_gib']:.1f}",
                "`python -m benchmarks lists`",
            ]  # fmt: skip


def _best_labels(data: str) -> Published:
    """The highest P@1 that the ExMLDS paper quotes."""
    quoted = {method: figures for (name, method), figures in PAPER.items() if name == data} | PAPER_ONLY[data]
    method = max(quoted, key=lambda name: quoted[name][0])
    figure = " / ".join(f"{value:.2f}" for value in quoted[method])
    return Published(figure, f"{method}, in table 3 of the ExMLDS paper")


def _by_power(name: str) -> str:
    """What power 0 and the power that held-out cells choose give on test cells."""
    part = _parts().get(name)
    if part is None:
        return "Not measured yet: `python -m benchmarks lists`."
    lines = []
    for data, runs in part.items():
        if not isinstance(runs, list):
            continue
        sign = 1 if runs[0]["scoring"] == "rmse" else -1
        plain = [line["test"] for run in runs for line in run["powers"] if line["power"] == 0]
        best = [min(run["powers"], key=lambda line: sign * line["validation"]) for run in runs]
        chosen = [line["test"] for line in best]
        lines.append(
            [data, runs[0]["scoring"], f"{np.mean(plain):.4f}", f"{np.mean(chosen):.4f}",
             ", ".join(f"{line['power']:g}" for line in best),
             f"{np.mean([run['cpu_seconds'] for run in runs]):.0f}"]
        )  # fmt: skip
    head = ["data", "measure on test cells", "power 0", "power chosen", "powers", "seconds a seed"]
    return markdown(head, lines)


def _searches() -> str:
    part = _parts().get("searches", {})
    lines = []
    for name, runs in part.items():
        if not isinstance(runs, list) or not runs:
            continue
        by_kind = [[run for run in runs if run["search"] == kind] for kind in ("GridSearch", "HalvingSearch")]
        scores = [f"{np.mean([run['score'] for run in found]):.4f}" for found in by_kind]
        seconds = [np.array([run["cpu_seconds"] for run in found]) for found in by_kind]
        spent = [f"{found.mean():.1f}" for found in seconds]
        ratios = seconds[0] / seconds[1]
        lines.append(
            [name, str(runs[0]["candidates"]), str(len(ratios)), *scores, *spent,
             f"{ratios.mean():.1f} ({ratios.min():.1f} to {ratios.max():.1f})"]
        )  # fmt: skip
    if not lines:
        return "Not measured yet: `python -m benchmarks lists`."
    kinds = ("grid", "halving")
    head = [*(f"validation, {kind}" for kind in kinds), *(f"CPU s, {kind}" for kind in kinds)]
    return markdown(["data", "candidates", "draws", *head, "times less"], lines)


def _links() -> str:
    """Share of test links that one model misses."""
    part = _parts().get("links", {})
    lines = []
    for graph, runs in part.items():
        if not isinstance(runs, list) or not runs:
            continue
        for place, model in enumerate(line["model"] for line in runs[0]["models"]):
            own = [run["models"][place] for run in runs]
            missed = [line["fnr"] for line in own]
            lines.append(
                [graph, model, str(len(runs)), f"{np.mean(missed):.3f} ± {np.std(missed):.3f}",
                 f"{np.mean([line['cpu_seconds'] for line in own]):.0f}",
                 f"{max(line['peak_gib'] for line in own):.1f}"]
            )  # fmt: skip
    if not lines:
        return "Not measured yet: `python -m benchmarks lists`."
    return markdown(["graph", "model", "splits", "test links missed", "CPU s a split", "GiB"], lines)


def _settings(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _seeds(n: int) -> str:
    return "one seed" if n == 1 else f"mean of {n} seeds"


def main() -> None:
    """Print the tables."""
    for name, table in tables().items():
        print(f"\n{name}\n\n{table}")


if __name__ == "__main__":
    main()
