r"""Training curves of the population risk: softmax and linear attention, every length.

What stochastic gradient descent at a small step follows, without its noise: the
gradient flow of the exact risk, from one start for all lengths and both attentions.
"""

import concurrent.futures
import contextlib
import dataclasses
import math
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from typing import final

import numpy as np
import scipy.stats
import torch

from largeprompt.icl.flow import Loss, Trajectory, gradient_flow
from largeprompt.icl.law_splines import LawSpline, law_splines
from largeprompt.icl.parameters import Parameters
from largeprompt.icl.polynomial_risk import PolynomialRisk
from largeprompt.icl.risk import Array, Risk
from largeprompt.icl.softmax_risk import SoftmaxRisk
from largeprompt.icl.tasks import RegressionTask
from largeprompt.icl.wide_points import wide_points

SOFTMAX, LINEAR = "softmax", "linear"
REPLICATES = 8  # independent scramblings behind an error


@final
@dataclasses.dataclass(frozen=True, eq=False)
class CurveSettings:
    r"""What all curves share; with the lengths it determines every number.

    Attributes:
        task: The law of the prompts.
        start: The initial parameters, the same for all.
        logit_factor: What multiplies $U$, such as $1/\sqrt{d+1}$.
        times: When the risk is evaluated; the flow starts at 0.
        seed: Of the quasi-random points.
        points: How many the flow of softmax follows, a power of two.
        fresh_points: How many others its risk is evaluated on, a power of two of at
            least 16.
        confidence: Of the stated errors.
    """

    task: RegressionTask
    start: Parameters
    logit_factor: float
    times: tuple[float, ...]
    seed: int
    points: int = 2048
    fresh_points: int = 2**18
    confidence: float = 0.95


@final
@dataclasses.dataclass(frozen=True, eq=False)
class TrainingCurve:
    """The risk along the flow at one length.

    Attributes:
        attention: `softmax` or `linear`.
        n: The prompt length.
        trajectory: The parameters.
        risk: The mean square error at the times, target noise included.
        relative_error: Half the confidence interval over the risk; 0 where exact.
        largest_logit_variance: Over the points and the times; NaN for linear attention.
        seconds: How long it took.
        loss: What the flow descends, on its own points.
    """

    attention: str
    n: int
    trajectory: Trajectory
    risk: Array
    relative_error: Array
    largest_logit_variance: float
    seconds: float
    loss: Loss

    def risk_of(self, parameters: Parameters) -> float:
        """Return the risk of other parameters, on the points that the flow follows."""
        return self.loss.risk.value(self.loss.merged(parameters.flat().numpy()))


def training_curves(
    settings: CurveSettings,
    lengths: Sequence[int],
    *,
    pool: concurrent.futures.Executor | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[TrainingCurve]:
    """Return the curves of softmax and of linear attention at all lengths.

    Args:
        settings: What they share.
        lengths: The prompt lengths.
        pool: Where to compute them; here when None. The numbers do not depend on it.
        progress: Called with the number of curves done and their total.

    Raises:
        ValueError: A softmax flow leaves the range of the law: its logit variance
            exceeds 400.
    """
    laws = law_splines(lengths)
    jobs: list[tuple[int, LawSpline | None]] = [
        *((n, law) for n, law in zip(lengths, laws, strict=True)),
        *((n, None) for n in lengths),
    ]
    total, curves = len(jobs), []
    if pool is None:
        for n, law in jobs:
            curves.append(training_curve(settings, n, law))
            progress(len(curves), total)
        return curves
    futures = [pool.submit(training_curve, settings, n, law) for n, law in jobs]
    for done, _ in enumerate(concurrent.futures.as_completed(futures), start=1):
        progress(done, total)
    return [future.result() for future in futures]


@contextlib.contextmanager
def worker_pool(processes: int) -> Iterator[concurrent.futures.Executor]:
    """Open a pool of processes of one thread each; leaving it drops what is waiting."""
    pool = concurrent.futures.ProcessPoolExecutor(
        processes,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=torch.set_num_threads,
        initargs=(1,),
    )
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def training_curve(
    settings: CurveSettings, n: int, law: LawSpline | None
) -> TrainingCurve:
    """Return one curve: of softmax attention with its law, of linear attention without.

    Raises:
        ValueError: The logit variance of softmax attention exceeds 400.
    """
    began = time.perf_counter()
    if law is None:
        loss = _loss(settings, PolynomialRisk(settings.task, n))
        trajectory = gradient_flow(loss, settings.times)
        values = trajectory.risks(loss.risk)
        error, largest = np.zeros_like(values), math.nan
    else:
        generator = torch.Generator().manual_seed(settings.seed)
        dim = 2 * settings.task.dim
        (points,) = wide_points(settings.points, dim, generator)
        risk = SoftmaxRisk(settings.task, law, points)
        loss = _loss(settings, risk)
        trajectory = gradient_flow(loss, settings.times)
        largest = max(risk.logit_variances(m).max() for m in trajectory.merged)
        values, error = _fresh_risks(settings, law, trajectory, generator)
    return TrainingCurve(
        attention=LINEAR if law is None else SOFTMAX,
        n=n,
        trajectory=trajectory,
        risk=values,
        relative_error=error,
        largest_logit_variance=float(largest),
        seconds=time.perf_counter() - began,
        loss=loss,
    )


def _loss(settings: CurveSettings, risk: Risk) -> Loss:
    return Loss(risk, settings.start, settings.logit_factor)


def _fresh_risks(
    settings: CurveSettings,
    law: LawSpline,
    trajectory: Trajectory,
    generator: torch.Generator,
) -> tuple[Array, Array]:
    """Return the risks on fresh points, and their errors from the replicates."""
    count = settings.fresh_points // REPLICATES
    fresh = wide_points(count, 2 * settings.task.dim, generator, replicates=REPLICATES)
    drawn = np.array(
        [trajectory.risks(SoftmaxRisk(settings.task, law, each)) for each in fresh]
    )
    values = drawn.mean(axis=0)
    quantile = scipy.stats.t.isf((1 - settings.confidence) / 2, REPLICATES - 1)
    deviation = drawn.std(axis=0, ddof=1) / math.sqrt(REPLICATES)
    return values, quantile * deviation / values
