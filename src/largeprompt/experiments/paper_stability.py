"""Stability: training at a finite length stays near the flow of the limit."""

import dataclasses
import itertools

import numpy as np
import pyarrow as pa
import torch

from largeprompt.experiments.verdicts import Finding, Progress, at_least, at_most
from largeprompt.icl.flow import Loss, gradient_flow
from largeprompt.icl.law_splines import law_splines
from largeprompt.icl.limit_flow import balanced, theory_task
from largeprompt.icl.polynomial_risk import PolynomialRisk
from largeprompt.icl.presets import decaying_cov
from largeprompt.icl.softmax_risk import SoftmaxRisk
from largeprompt.icl.stability import seen_variances, stability
from largeprompt.icl.wide_points import wide_points

THEOREM = "Boursier and Boyer (2026), Theorem 4.3 and Lemma D.1"
DIM = 5
LENGTHS = (100, 1000, 10_000, 100_000)
SEED = 327


def trajectory_stability(*, fast: bool, progress: Progress) -> Finding:
    """Follow the flow of the limit and of finite lengths from one balanced start."""
    task = theory_task(decaying_cov(DIM, 0.5))
    start = balanced(torch.eye(DIM, dtype=torch.float64) / 5)
    limit = Loss(PolynomialRisk(task), start, loss_factor=0.5)
    times = np.linspace(0, 3, 16 if fast else 61).tolist()
    limit_flow = gradient_flow(limit, times)
    generator = torch.Generator().manual_seed(SEED)
    (points,) = wide_points(1024 if fast else 8192, 2 * DIM, generator)
    rows, ratios, farthest, tails = [], [], [], []
    for n, law in zip(LENGTHS, law_splines(LENGTHS), strict=True):
        risk = SoftmaxRisk(task, law, points)
        loss = dataclasses.replace(limit, risk=risk)
        flow = gradient_flow(loss, times)
        seen = stability(loss, limit, flow, limit_flow)
        tail = seen_variances(risk, flow)["logits"][:, 2]
        ratios.append((seen.distance[1:] / seen.envelope[1:]).max())
        farthest.append(seen.distance.max())
        tails.append(tail.max())
        progress(len(tails), len(LENGTHS))
        rows += [
            {
                "n": n,
                "t": float(t),
                "distance": float(seen.distance[k]),
                "envelope": float(seen.envelope[k]),
                "gronwall": float(min(seen.gronwall[k], 1e300)),
                "logit_variance_99": float(tail[k]),
            }
            for k, t in enumerate(times)
        ]
    return Finding(
        name="stability",
        title="Training at a finite length stays near the flow of the limit",
        note="Distance of the parameters (A, b) from the limit's flow, from one "
        "balanced start, with the envelope of Gronwall's inequality (one-sided "
        "constant, measured along the two flows).",
        table=pa.Table.from_pylist(rows),
        claims=(
            at_most(
                "stability-envelope",
                "the distance to the flow of the limit stays below its Gronwall "
                "envelope at every checkpoint and length (largest ratio)",
                THEOREM,
                max(ratios),
                1 + 1e-3,
            ),
            at_most(
                "stability-length",
                "the longer the prompts, the smaller the largest distance (largest "
                f"ratio of neighbours among {', '.join(map(str, LENGTHS))})",
                THEOREM,
                max(b / a for a, b in itertools.pairwise(farthest)),
                1.0,
            ),
            at_least(
                "stability-control",
                "an envelope from a quarter of the gradient gap is violated (largest "
                "ratio)",
                "negative control",
                4 * max(ratios),
                1.0,
            ),
            at_most(
                "stability-tokens",
                "what the head sees stays sub-Gaussian along training: 99% quantile "
                "over tasks and queries of the logits' proxy variance",
                THEOREM,
                max(tails),
                400.0,
            ),
        ),
    )
