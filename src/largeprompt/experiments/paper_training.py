"""Training softmax against linear attention: the paper's curves, from exact risks."""

import itertools
import time
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import torch

from largeprompt.experiments.sgd_cost import sgd_seconds
from largeprompt.experiments.verdicts import (
    Claim,
    Finding,
    Progress,
    at_least,
    at_most,
)
from largeprompt.icl.batches import ProjectedPrompts, PromptStream
from largeprompt.icl.curves import (
    LINEAR,
    SOFTMAX,
    CurveSettings,
    TrainingCurve,
    training_curves,
    worker_pool,
)
from largeprompt.icl.estimators import BatchGradient
from largeprompt.icl.optimisers import SGD
from largeprompt.icl.parameters import Separate
from largeprompt.icl.presets import Preset, preset
from largeprompt.icl.responses import Linear, Softmax
from largeprompt.icl.train import Training

EXPERIMENTS = "Boursier and Boyer (2026), experiments on in-context regression"
SEED = 327  # of the official code
TIME, RATE = 300.0, 1e-3  # 300,000 steps
CHECKPOINTS = 30
LONG = 10**6
SAMPLED = (20, 100)
PROCESSES = 2
NAMES = {"paper-as-published": "published", "paper-intended": "intended"}


def training(*, fast: bool, progress: Progress) -> Finding:
    """Follow the population risk at 19 lengths, softmax and linear, from one start.

    Quickly, for the covariance of the published code alone, on fewer points.
    """
    settings = [preset(name) for name in NAMES][: 1 if fast else None]
    rows, claims = [], []
    for k, setting in enumerate(settings):
        shared = curve_settings(setting, sgd_steps(fast) * RATE, fast=fast)
        lengths = [*setting.lengths, LONG]
        done = 2 * len(lengths) * k

        def report(count: int, total: int, done: int = done) -> None:
            progress(done + count, len(settings) * total)

        name = NAMES[setting.name]
        with worker_pool(PROCESSES) as pool:
            began = time.perf_counter()
            curves = training_curves(shared, lengths, pool=pool, progress=report)
            seconds = time.perf_counter() - began
            chosen = [curve for curve in curves if curve.n in SAMPLED]
            ends = [
                pool.submit(sampled_end, setting, curve, sgd_steps(fast))
                for curve in chosen
            ]
            sampled = [end.result() for end in ends]
            cost = pool.submit(_cost, name, setting, shared, seconds).result()
        rows += [row for curve in curves for row in _rows(name, curve)]
        rows += [{"covariance": name, **row} for row in sampled]
        claims += _claims(name, curves, sampled)
        claims.append(cost)
    return Finding(
        name="training",
        title="Training softmax and linear attention at 19 prompt lengths",
        note="Population risk, target noise included, along the gradient flow in "
        f"(K, Q, V, O) from one start (seed {SEED}, entries uniform as in the official "
        "code); dots are SGD on sampled prompts, step 0.001, batch 128.",
        table=pa.Table.from_pylist(rows),
        claims=tuple(claims),
    )


def sgd_steps(fast: bool) -> int:
    """Return how many steps of SGD are compared with the curves."""
    return 2_000 if fast else 20_000


def curve_settings(
    setting: Preset, sampled_time: float, *, fast: bool
) -> CurveSettings:
    """Return the official parametrisation, start and time for a preset."""
    dim = setting.task.dim
    marks = np.geomspace(0.5, TIME, CHECKPOINTS).tolist()
    return CurveSettings(
        task=setting.task,
        start=Separate.draw(dim, torch.Generator().manual_seed(SEED)),
        logit_factor=setting.conventions.logit_scale.factor(dim),
        times=tuple(sorted({0.0, sampled_time, *marks})),
        seed=SEED,
        points=2048 if fast else 4096,
        fresh_points=2**17 if fast else 2**18,
    )


def sampled_end(setting: Preset, curve: TrainingCurve, steps: int) -> dict[str, object]:
    """Train on sampled prompts from the curve's start; return the risk in the end."""
    stream = PromptStream(
        setting.task, curve.n, setting.conventions, ProjectedPrompts()
    )
    softmax = curve.attention == SOFTMAX
    attention = Softmax() if softmax else Linear(stream.divisor)
    run = Training(
        stream=stream,
        estimator=BatchGradient(attention),
        optimiser=SGD(RATE),
        initial=curve.trajectory.parameters[0],
        seed=SEED,
    )
    end = run.advance(run.start(), steps).parameters
    at = curve.trajectory.times.tolist().index(steps * RATE)
    return {
        "attention": curve.attention,
        "n": curve.n,
        "t": steps * RATE,
        "risk": curve.risk_of(end),
        "flow": float(curve.risk[at]),
        "sampled": True,
    }


def _rows(name: str, curve: TrainingCurve) -> list[dict[str, object]]:
    return [
        {
            "covariance": name,
            "attention": curve.attention,
            "n": curve.n,
            "t": float(t),
            "risk": float(risk),
            "relative_error": float(error),
            "sampled": False,
        }
        for t, risk, error in zip(
            curve.trajectory.times, curve.risk, curve.relative_error, strict=True
        )
    ]


def _claims(
    name: str, curves: Sequence[TrainingCurve], sampled: Sequence[dict]
) -> list[Claim]:
    of = {
        kind: {c.n: c for c in curves if c.attention == kind}
        for kind in (SOFTMAX, LINEAR)
    }
    lengths = [n for n in of[SOFTMAX] if n != LONG]
    claims = [
        at_most(
            f"training-{kind}-{name}",
            f"the longer the prompts, the lower the risk of {kind} attention at time "
            f"{TIME:g} (largest ratio of neighbouring lengths), {name} covariance",
            EXPERIMENTS,
            _largest_ratio([of[kind][n].risk[-1] for n in lengths]),
            1.0,
        )
        for kind in (SOFTMAX, LINEAR)
    ]
    gaps = {n: of[SOFTMAX][n].risk - of[LINEAR][n].risk for n in of[SOFTMAX]}
    relative = gaps[LONG] / of[LINEAR][LONG].risk
    return [
        *claims,
        at_most(
            f"training-gap-{name}",
            "from 100 tokens on the gap between softmax and linear attention at time "
            f"{TIME:g} shrinks with the length (largest ratio), {name} covariance",
            EXPERIMENTS,
            _largest_ratio([gaps[n][-1] for n in lengths if n >= 100]),
            1.0,
        ),
        at_most(
            f"training-limit-{name}",
            f"at {LONG:,} tokens softmax trains like linear attention (largest "
            f"relative gap over time), {name} covariance",
            EXPERIMENTS,
            float(np.abs(relative).max()),
            0.01,
        ),
        at_most(
            f"training-accuracy-{name}",
            "largest relative error of a risk of the figure (95% interval, fresh "
            f"quasi-random points), {name} covariance",
            "this reproduction",
            max(float(of[SOFTMAX][n].relative_error.max()) for n in lengths),
            1e-3,
        ),
        at_most(
            f"training-sampled-{name}",
            "SGD on sampled prompts ends on the population curve (largest relative "
            f"difference of risks, {sampled[0]['t']:g} time units), {name} covariance",
            "this reproduction",
            max(abs(row["risk"] / row["flow"] - 1) for row in sampled),
            0.02,
        ),
    ]


def _largest_ratio(values: Sequence[float]) -> float:
    return float(max(b / a for a, b in itertools.pairwise(values)))


def _cost(name: str, setting: Preset, shared: CurveSettings, seconds: float) -> Claim:
    assert isinstance(shared.start, Separate), "the official parametrisation"
    steps = round(TIME / RATE)
    sgd = sgd_seconds(setting.task, shared.start, setting.lengths, steps)
    return at_least(
        f"training-cost-{name}",
        f"{2 * len(setting.lengths)} curves of {steps:,} plain SGD steps would take "
        f"{sgd / 3600:.1f} hours on one process (steps timed at three lengths, rest "
        f"interpolated), the population curves took {seconds:.0f} s on {PROCESSES} "
        "(ratio)",
        "this reproduction",
        sgd / seconds,
        10.0,
    )
