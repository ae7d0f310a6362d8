"""The endpoint: the limit flow of in-context regression is Bayes optimal in the end."""

import numpy as np
import pyarrow as pa
import torch

from largeprompt.experiments.verdicts import Finding, Progress, at_least, at_most
from largeprompt.icl.flow import Loss, gradient_flow
from largeprompt.icl.limit_flow import Blocks, balanced, endpoint, theory_task
from largeprompt.icl.polynomial_risk import PolynomialRisk
from largeprompt.icl.presets import decaying_cov

THEOREM = "Boursier and Boyer (2026), Theorem 5.2"
DIM = 5
TIME = 400.0


def flow_endpoint(*, fast: bool, progress: Progress) -> Finding:
    """Follow the limit flow from balanced starts and compare with the closed form."""
    cov = decaying_cov(DIM, 0.5)
    risk = PolynomialRisk(theory_task(cov))
    end = endpoint(cov)
    starts = {
        "small": balanced(0.01 * torch.eye(DIM, dtype=torch.float64)),
        "large": balanced(torch.eye(DIM, dtype=torch.float64)),
        "rank one": balanced(torch.diag(torch.tensor([1.0, 0, 0, 0, 0]).double())),
    }
    times = [0.0, *np.geomspace(0.01, TIME, 25 if fast else 100).tolist()]
    rows, gaps, drifts, risks = [], [], [], []
    for name, start in starts.items():
        loss = Loss(risk, start, loss_factor=0.5)
        flow = gradient_flow(loss, times, accuracy=1e-8)
        gap = np.linalg.norm(flow.flat - end.flat().numpy(), axis=1)
        values = np.maximum(flow.risks(risk), 1e-18) / 2
        rows += [
            {"start": name, "t": t, "distance": float(d), "risk": float(r)}
            for t, d, r in zip(times, gap, values, strict=True)
        ]
        gaps.append(gap[-1] / np.linalg.norm(end.flat().numpy()))
        imbalances = [p.imbalance for p in flow.parameters if isinstance(p, Blocks)]
        drifts.append(max(abs(i) for i in imbalances))
        risks.append(values[-1])
        progress(len(risks), len(starts))
    return Finding(
        name="endpoint",
        title="The limit flow ends at the Bayes predictor",
        note="Half the limit risk R(A, b) along the flow from three balanced starts; "
        "in the end b = tr(S^-2)^(1/4) and A = S^-1 / b.",
        table=pa.Table.from_pylist(rows),
        claims=(
            at_most(
                "endpoint",
                "balanced starts lead to b = tr(S^-2)^(1/4), A = S^-1/b (relative "
                "distance in the end)",
                THEOREM,
                max(gaps),
                1e-5,
            ),
            at_most(
                "endpoint-risk",
                "the risk there is 0, that of the Bayes predictor",
                THEOREM,
                max(risks),
                1e-10,
            ),
            at_most(
                "balance",
                "||A||^2 - b^2 is conserved by the limit flow (largest drift)",
                THEOREM,
                max(drifts),
                1e-5,
            ),
            at_least(
                "saddle",
                "in one dimension the start A = -b = -1 leads to the saddle at 0 and "
                "nothing is learnt (risk in the end over the risk of predicting 0)",
                "negative control",
                _saddle_risk(),
                0.999,
            ),
        ),
    )


def _saddle_risk() -> float:
    cov = torch.ones(1, 1, dtype=torch.float64)
    risk = PolynomialRisk(theory_task(cov))
    start = Blocks(-cov, torch.ones(1, dtype=torch.float64))
    return float(gradient_flow(Loss(risk, start), [60.0]).risks(risk)[-1])
