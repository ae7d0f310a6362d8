"""Concentration: how fast output and gradients over a finite prompt reach the limit."""

import dataclasses
import statistics

import pyarrow as pa

from largeprompt.experiments.cells import Cell, measure_cells
from largeprompt.experiments.concentration import PUBLISHED
from largeprompt.experiments.slopes import fit_slopes
from largeprompt.experiments.verdicts import (
    Claim,
    Finding,
    Progress,
    Verdict,
    between,
    not_computable,
)

PROPOSITIONS = {
    "output": "Boursier and Boyer (2026), Proposition 3.1",
    "U gradient": "Boursier and Boyer (2026), Proposition 3.4",
    "V gradient": "Boursier and Boyer (2026), Proposition 3.4",
}
SLOPES = (-1.109, -0.832)  # an independent reproduction of the paper
FAST = {"seeds": 4, "queries": 8, "prompts": 16}


def concentration(*, fast: bool, progress: Progress) -> Finding:
    """Measure mean square errors against the length and fit their slopes."""
    experiment = dataclasses.replace(PUBLISHED, bounds=False, **(FAST if fast else {}))
    total = len(experiment.laws) * experiment.seeds
    cells: list[Cell] = []
    for done, group in enumerate(measure_cells(experiment), start=1):
        cells += group
        progress(done, total)
    claims = [
        between(
            f"slope-{slope.quantity.replace(' ', '-')}-{slope.law}",
            f"the mean square error of the {slope.quantity} falls about like one over "
            f"the prompt length, {slope.law} tokens (slope in logarithms)",
            f"{PROPOSITIONS[slope.quantity]}; range of a published reproduction",
            slope.slope,
            SLOPES,
        )
        for slope in fit_slopes(cells, experiment.confidence)
    ]
    return Finding(
        name="concentration",
        title="Output and gradients concentrate around their limits",
        note="Mean square distance to the limit against the prompt length: points are "
        f"geometric means over {experiment.seeds} random heads (d = 4, operator norm "
        "of U 0.22, of V 0.75), dashed lines the exact law.",
        table=pa.Table.from_pylist(_rows(cells)),
        claims=(*claims, *_as_printed()),
    )


def _rows(cells: list[Cell]) -> list[dict[str, object]]:
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.law.value, cell.quantity.value), []).append(cell)
    rows = []
    for (law, quantity), group in groups.items():
        for k, n in enumerate(group[0].lengths):
            exact = [cell.exact[k] for cell in group if cell.exact is not None]
            measured = [cell.mean_square[k] for cell in group]
            rows.append(
                {
                    "law": law,
                    "quantity": quantity,
                    "n": n,
                    "mean_square": statistics.geometric_mean(measured),
                    "exact": statistics.geometric_mean(exact) if exact else None,
                }
            )
    return rows


def _as_printed() -> tuple[Claim, ...]:
    """What the propositions say to the letter."""
    one_token = Claim(
        "proposition-3.1-one-token",
        "the bound c1 sigma^6 ln L / L^(c2/sigma^2) on the mean square error holds for "
        "every L, L = 1 among them, where it is 0 (error of one token: tr V G V' for "
        "V = G = 1 at z = 0)",
        PROPOSITIONS["output"],
        Verdict.FAIL,
        1.0,
        "at most 0; the statement needs L >= 2",
    )
    constants = not_computable(
        "proposition-3.1-constants",
        "E||T_L - T||^2 <= c1 sigma^6 ln L / L^(c2/sigma^2) with universal constants",
        PROPOSITIONS["output"],
        "the constants c1 and c2 are not given",
    )
    return one_token, constants
