"""GIMC: the toy problem of figure 1, and one in which the features act through hidden waves.

Relative error on the unseen cells, against the truth without noise. A tenth of the seen cells chooses each
method's penalty; then the model is fitted to all of them. Random and learned maps have the same gamma and
start, and the same number of alternations over W and H.
"""

from __future__ import annotations

from functools import partial
from statistics import mean
from typing import Any

import numpy as np

from papers.display import Table, canvas, three
from papers.experiment import Claim, Experiment, Row, Unit, grouped, take_out
from unseen import GIMC, IMC, Fourier, MatrixFactorization
from unseen.datasets import Synthetic, make_fourier, make_gimc_toy

__all__ = ["EXPERIMENT"]

REGS: dict[str, dict[str, tuple[float, ...]]] = {
    "waves": {"MC": (0.1, 1.0, 10.0), "IMC": (0.1, 1.0, 10.0), "other": (0.01, 0.1, 1.0)},
    "figure 1": {"MC": (10.0, 30.0, 100.0), "IMC": (10.0, 100.0, 1000.0), "other": (0.3, 3.0, 30.0)},
}
ALTERNATIONS = {"start_sweeps": 10, "max_iter": 40, "tol": 0.0}
SHARES = {"waves": (0.1, 0.3), "figure 1": (0.05, 0.1, 0.2, 0.3)}
SEEDS = {"waves": (0, 1, 2), "figure 1": (0,)}
WIDE = "IMC, full rank"
COLOURS = {"MC": "0.5", "IMC": "C0", "IMC-RFF": "C1", "GIMC, armijo": "C4", "GIMC": "C3", WIDE: "C2"}


def models(rank: int, m: int, gamma: float) -> dict[str, Any]:
    """Each method."""
    shared: dict[str, Any] = {"random_state": 0, "n_jobs": 1, "center": "none"}
    fixed, learned = (Fourier(m, gamma, learnable=flag) for flag in (False, True))
    raw: dict[str, Any] = {**shared, **ALTERNATIONS, "standardize": False}
    linear: dict[str, Any] = {**shared, "intercept": False, "standardize": False, "max_iter": 50}
    return {
        "MC": MatrixFactorization(rank, max_iter=200, **shared),
        "IMC": IMC(rank, **linear),
        "IMC-RFF": GIMC(rank, row_map=fixed, col_map=fixed, **raw),
        "GIMC, armijo": GIMC(rank, row_map=learned, col_map=learned, solver="armijo", **raw),
        "GIMC": GIMC(rank, row_map=learned, col_map=learned, **raw),
    }


def measure(model: Any, data: Synthetic, regs: tuple[float, ...]) -> Row:
    """Choose the penalty on a tenth of the seen cells, fit to all, compare with the truth elsewhere."""
    seen = data.observations
    sides = {"row_features": data.row_features, "col_features": data.col_features}
    sides = {} if isinstance(model, MatrixFactorization) else sides
    order = np.random.default_rng(0).permutation(seen.nnz)
    training, validation = take_out(seen, order[: seen.nnz // 10])
    tried = []
    for reg in regs:
        fitted = model.set_params(reg=reg).fit(training, **sides)
        off = fitted.predict_entries(validation.rows, validation.indices, positions=True) - validation.values
        tried.append((float(off @ off), reg))
    reg = min(tried)[1]
    fitted = model.set_params(reg=reg).fit(seen, **sides)
    truth = data.row_factors @ data.col_factors.T
    unseen = np.ones(truth.shape, dtype=bool)
    unseen[seen.rows, seen.indices] = False
    off = (fitted.row_factors_ @ fitted.col_factors_.T - truth)[unseen]
    return {
        "reg": reg,
        "error": float(np.linalg.norm(off) / np.linalg.norm(truth[unseen])),
        "objective": float(fitted.history_[-1]["objective"]),
    }


def one(toy: str, share: float, seed: int, n: int) -> list[Row]:
    """All methods on one draw of n rows and columns; features and ranks of figure 1 go with n."""
    if toy == "waves":
        data = make_fourier(n, n, density=share, random_state=seed)
        chosen = models(5, 20, 0.2)
    else:
        data = make_gimc_toy(n, n, n // 4, fraction=share, random_state=seed)
        chosen = models(n // 10, n // 4, 0.003)
        del chosen["GIMC, armijo"]
        chosen[WIDE] = models(n // 4, n // 4, 0.003)["IMC"]
    rows = []
    for method, model in chosen.items():
        regs = REGS[toy].get(method.split(",")[0], REGS[toy]["other"])
        name = {"toy": toy, "share": share, "seed": seed, "method": method}
        rows.append({**name, **measure(model, data, regs)})
    return rows


def units(quick: bool) -> list[Unit]:
    return [
        Unit(f"{toy} seen={share} seed={seed}", partial(one, toy, share, seed, 100 if quick else 200))
        for toy, shares in SHARES.items()
        for share in (shares[1::2] if quick else shares)
        for seed in (SEEDS[toy][:1] if quick else SEEDS[toy])
    ]


def by_method(rows: list[Row], toy: str) -> dict[tuple[float, int], dict[str, float]]:
    """Errors of the methods on each draw."""
    own = [row for row in rows if row["toy"] == toy]
    return {
        key: {row["method"]: row["error"] for row in draw}
        for key, draw in grouped(own, "share", "seed").items()
    }


def tables(rows: list[Row]) -> dict[str, Table]:
    made = {}
    for toy in SHARES:
        found = by_method(rows, toy)
        methods = list(dict.fromkeys(method for errors in found.values() for method in errors))
        lines = [
            [f"{100 * share:.0f} %", seed, *(three(errors[method]) for method in methods)]
            for (share, seed), errors in found.items()
        ]
        made[toy] = Table.of(["seen", "seed", *methods], lines, "Relative error on unseen cells.")
    return made


def claims(rows: list[Row]) -> list[Claim]:
    figure, waves = by_method(rows, "figure 1").values(), by_method(rows, "waves").values()
    why = "relative error on unseen cells of the problem of figure 1"
    return [
        Claim.judged("features help: IMC is below MC", [e["IMC"] < e["MC"] for e in figure], why),
        Claim.judged(
            "a learned map is clearly best: GIMC is below IMC and IMC-RFF",
            [e["GIMC"] < e[other] for e in figure for other in ("IMC", "IMC-RFF")],
            f"{why}; its features span the matrix, so that there is nothing for a map to add",
        ),
        Claim.judged(
            "random features are level with linear ones or better",
            [e["IMC-RFF"] <= e["IMC"] for e in figure],
            why,
        ),
        Claim.ours(
            "where features act through hidden waves, a learned map is below all others",
            [e["GIMC"] < e[other] for e in waves for other in ("MC", "IMC", "IMC-RFF")],
            "relative error on unseen cells",
        ),
        Claim.ours(
            "so it is with the paper's gradient steps",
            [e["GIMC, armijo"] < e[other] for e in waves for other in ("MC", "IMC", "IMC-RFF")],
            "relative error on unseen cells after 40 sweeps",
        ),
    ]


def figures(rows: list[Row]) -> list[tuple[Any, str]]:
    toys = [toy for toy in reversed(SHARES) if by_method(rows, toy)]
    figure, panels = canvas((3.8 * len(toys), 4.0), len(toys))
    titles = {"figure 1": "problem of figure 1", "waves": "hidden waves"}
    for axes, toy in zip(panels, toys, strict=True):
        own = [row for row in rows if row["toy"] == toy]
        shares = sorted({row["share"] for row in own})
        for (method,), runs in grouped(own, "method").items():
            means = [mean(row["error"] for row in runs if row["share"] == share) for share in shares]
            axes.plot([100 * share for share in shares], means, "o-", color=COLOURS[method], label=method)
        axes.set(title=titles[toy], xlabel="cells seen, %", ylim=(0, None))
        axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, fontsize=8)
    panels[0].set_ylabel("relative error on unseen cells")
    return [(figure, "Error against the share of seen cells, mean over the seeds.")]


EXPERIMENT = Experiment(
    name="gimc-toy",
    paper="gimc",
    shows="figure 1: error against the share of seen cells",
    differences="The paper does not give widths, penalties and numbers of features: 50 features and width "
    "0.003 here, penalties chosen on a tenth of the seen cells. N(0, 0.1) is read as a variance. Errors are "
    "against the truth without noise. One seed. A second problem, in which the features act through hidden "
    "directions, is ours. L-BFGS steps for the maps unless said.",
    units=units,
    tables=tables,
    claims=claims,
    figures=figures,
)
