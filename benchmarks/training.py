"""Training on sampled prompts: steps per second, and what the limit is worth.

The baseline of the speed is the model as one writes it in torch, with autograd and
fresh prompts; the baseline of the transfer is the published step of 1e-3. One thread.
"""

import dataclasses
import math
import statistics
import time

import torch

from benchmarks.record import Row
from largeprompt.icl.batches import (
    FullPrompts,
    ProjectedPrompts,
    PromptSource,
    PromptStream,
    WhitePrompts,
)
from largeprompt.icl.estimators import (
    BatchGradient,
    ControlledGradient,
    GradientEstimator,
)
from largeprompt.icl.optimisers import SGD, Optimiser, Polyak
from largeprompt.icl.parameters import Parameters, Separate
from largeprompt.icl.population import population_risk
from largeprompt.icl.presets import preset
from largeprompt.icl.responses import Softmax
from largeprompt.icl.train import Training, TrainingState, step_generator
from largeprompt.icl.transfer import LimitCurvature, limit_curvature
from largeprompt.icl.variance import variance_reduction

TESTS = [
    "tests/icl/test_icl_gradients.py",
    "tests/icl/test_icl_train.py",
    "tests/icl/test_icl_transfer.py",
]
DISTRIBUTIONS = ["largeprompt", "torch", "numpy", "scipy"]
PAPER = preset("paper-intended")
FACTOR = PAPER.conventions.logit_scale.factor(PAPER.task.dim)
BATCH, LONG = 128, 1000
BLOCKS, BLOCK = 15, 20
PUBLISHED_RATE, CURVE_RATE = 1e-3, 0.1
LENGTHS = [50, 200, 1000]
CHECKPOINTS = [0, 50, 100, 200, 400, 800]
SEEDS = [0, 1, 2]
PATIENCE = 40_000  # steps after which the baseline has had its chance


class PlainHead(torch.nn.Module):
    """Softmax attention over the tokens of a batch, four matrices, float32."""

    def __init__(self, initial: Separate) -> None:
        super().__init__()
        self.key, self.query, self.value, self.output = (
            torch.nn.Parameter(tensor.float()) for tensor in initial.tensors().values()
        )

    def forward(self, tokens, query):
        """Return the predictions for a batch."""
        keys, values = tokens @ self.key.mT, tokens @ self.value.mT
        logits = keys @ (query @ self.query.mT)[:, :, None] / math.sqrt(keys.shape[-1])
        return ((logits.softmax(1) * values).sum(1) @ self.output.mT)[:, 0]


class PlainTraining:
    """The straightforward loop: draw, forward, backward, step."""

    def __init__(self, initial: Separate, seed: int) -> None:
        self.head, self.seed, self.losses = PlainHead(initial), seed, []
        self.optimiser = torch.optim.SGD(self.head.parameters(), lr=CURVE_RATE)

    def advance(self, steps: int) -> None:
        """Make some steps."""
        for _ in range(steps):
            generator = step_generator(self.seed, len(self.losses))
            prompts = PAPER.task.sample(BATCH, LONG, generator, torch.float32)
            error = self.head(prompts.tokens, prompts.query) - prompts.y_query
            loss = error.square().mean()
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()
            self.losses.append(float(loss.detach()))


def initial() -> Separate:
    """The one initial head of every run."""
    return Separate.draw(PAPER.task.dim, torch.Generator().manual_seed(0))


def training(
    n: int,
    optimiser: Optimiser,
    *,
    estimator: GradientEstimator | None = None,
    source: PromptSource | None = None,
    seed: int = 0,
) -> Training:
    """A run of ours in the paper's setting."""
    prompts = source or ProjectedPrompts()
    stream = PromptStream(PAPER.task, n, PAPER.conventions, prompts, BATCH)
    gradient = estimator or BatchGradient(Softmax())
    return Training(stream, gradient, optimiser, initial(), seed)


def measure() -> list[Row]:
    """Measure on one thread, and give the threads back."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        curvature = limit_curvature(PAPER.task, initial(), logit_factor=FACTOR)
        rows = _speed()
        for n in LENGTHS:
            rows += _transfer(n, curvature)
            rows.append(_variance(n, curvature))
        return rows
    finally:
        torch.set_num_threads(threads)


def _speed() -> list[Row]:
    """Interleave blocks of steps of the plain loop and of ours, and compare losses."""
    sources = {"full": FullPrompts(), "white": WhitePrompts()}
    sources["projected"] = ProjectedPrompts()
    runs = {k: training(LONG, SGD(CURVE_RATE), source=s) for k, s in sources.items()}
    states = {name: run.start() for name, run in runs.items()}
    plain = PlainTraining(initial(), seed=0)
    seconds: dict[str, list[float]] = {name: [] for name in ["plain", *runs]}
    for _ in range(BLOCKS):
        start = time.perf_counter()
        plain.advance(BLOCK)
        seconds["plain"].append(time.perf_counter() - start)
        for name, run in runs.items():
            start = time.perf_counter()
            states[name] = run.advance(states[name], BLOCK)
            seconds[name].append(time.perf_counter() - start)
    theirs = torch.tensor(plain.losses, dtype=torch.float64)
    return [
        _ratio(name, seconds["plain"], seconds[name], states[name].losses, theirs)
        for name in runs
    ]


def _ratio(
    name: str,
    theirs: list[float],
    ours: list[float],
    losses: torch.Tensor,
    their_losses: torch.Tensor,
) -> Row:
    """The steps per second over the baseline's, the loss curves beside it."""
    ratios = [t / o for t, o in zip(theirs, ours, strict=True)]
    difference = losses - their_losses
    late = difference[len(difference) // 2 :]
    return Row(
        "training",
        f"steps per second over plain torch, {name} prompts, n = {LONG}",
        "x",
        statistics.median(ratios),
        min(ratios),
        max(ratios),
        {
            "steps": BLOCKS * BLOCK,
            "rate": CURVE_RATE,
            "batch": BATCH,
            "steps per second": BLOCK / statistics.median(ours),
            "steps per second of the baseline": BLOCK / statistics.median(theirs),
            "largest difference of the losses": float(difference.abs().max()),
            "mean difference of the losses, second half, in standard errors": float(
                late.mean() / (late.std() / math.sqrt(len(late)))
            ),
        },
    )


def _transfer(n: int, curvature: LimitCurvature) -> list[Row]:
    """The exact risk along runs with the published step and with those of the limit."""
    risk = population_risk(PAPER.task, n, torch.Generator().manual_seed(1))

    def value(parameters: Parameters) -> float:
        head = parameters.merge(FACTOR)
        with torch.no_grad():
            return float(risk(head.bilinear, head.value))

    def along(run: Training) -> list[float]:
        state, risks = run.start(), []
        for step in CHECKPOINTS:
            state = run.advance(state, step - state.step)
            risks.append(value(state.parameters))
        return risks

    optimum = PAPER.task.target_noise_variance
    limit = SGD(curvature.rate)
    methods: dict[str, tuple[Optimiser, GradientEstimator]] = {
        "published step": (SGD(PUBLISHED_RATE), BatchGradient(Softmax())),
        "limit step": (limit, BatchGradient(Softmax())),
        "Polyak, at most the limit step": (
            Polyak(optimum, curvature.rate),
            BatchGradient(Softmax()),
        ),
        "Polyak, at most 1": (Polyak(optimum, 1.0), BatchGradient(Softmax())),
        "limit step, controlled": (limit, ControlledGradient()),
        "Polyak, at most 1, controlled": (Polyak(optimum, 1.0), ControlledGradient()),
    }
    rows = []
    for name, (optimiser, estimator) in methods.items():
        runs = [
            along(training(n, optimiser, estimator=estimator, seed=seed))
            for seed in SEEDS
        ]
        last = [risks[-1] for risks in runs]
        details = {
            "steps": CHECKPOINTS,
            "risk at the steps, median": [
                statistics.median(column) for column in zip(*runs, strict=True)
            ],
            "seeds": SEEDS,
            "optimiser": optimiser.options(),
            "estimator": estimator.options(),
        }
        rows.append(
            Row(
                "training",
                f"risk after {CHECKPOINTS[-1]} steps, n = {n}, {name}",
                "",
                statistics.median(last),
                min(last),
                max(last),
                details,
            )
        )
    rows.append(_patience(n, curvature, value))
    return rows


def _patience(n: int, curvature: LimitCurvature, value) -> Row:
    """How many published steps the first 100 steps of the limit are worth."""
    quick = training(n, SGD(curvature.rate))
    target = value(quick.advance(quick.start(), 100).parameters)
    slow = training(n, SGD(PUBLISHED_RATE))
    state: TrainingState = slow.start()
    while state.step < PATIENCE and value(state.parameters) > target:
        state = slow.advance(state, 500)
    reached = value(state.parameters) <= target
    worth = state.step / 100
    return Row(
        "training",
        f"published steps that one limit step is worth, n = {n}",
        "x",
        worth,
        worth,
        worth,
        {"risk to reach": target, "reached": reached, "limit step": curvature.rate},
    )


def _variance(n: int, curvature: LimitCurvature) -> Row:
    """The variance of the plain gradient over the controlled one, along training."""
    run = training(n, SGD(curvature.rate))
    state, found = run.start(), []
    large = dataclasses.replace(run.stream, batch=4096)
    for step in CHECKPOINTS:
        state = run.advance(state, step - state.step)
        generator = torch.Generator().manual_seed(step)
        found.append(variance_reduction(large, state.parameters, generator))
    factors = [one.factor_at_one for one in found]
    return Row(
        "training",
        f"gradient variance over the controlled one, n = {n}",
        "x",
        statistics.median(factors),
        min(factors),
        max(factors),
        {
            "steps": CHECKPOINTS,
            "factor at coefficient 1": factors,
            "factor at the best coefficient": [one.factor for one in found],
            "best coefficient": [one.coefficient for one in found],
            "prompts": 4096,
        },
    )
