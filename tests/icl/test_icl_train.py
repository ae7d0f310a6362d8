"""Training: the same steps as a plain torch module takes, and its optimisers."""

import dataclasses
import math

import pytest
import torch

from largeprompt.icl import preset
from largeprompt.icl.batches import (
    FullPrompts,
    ProjectedPrompts,
    PromptStream,
    WhitePrompts,
)
from largeprompt.icl.estimators import BatchGradient, ControlledGradient
from largeprompt.icl.optimisers import SGD, Adam, Optimiser, Polyak
from largeprompt.icl.parameters import Merged, Separate
from largeprompt.icl.population import population_risk
from largeprompt.icl.responses import Attention, Linear, Softmax
from largeprompt.icl.token_sums import ShownTokens
from largeprompt.icl.train import Training, step_generator

PAPER = preset("paper-as-published")
FACTOR = PAPER.conventions.logit_scale.factor(5)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def run(
    optimiser: Optimiser, *, n: int = 11, attention: Attention | None = None, **options
) -> Training:
    source = options.pop("source", FullPrompts(torch.float64))
    stream = PromptStream(PAPER.task, n, PAPER.conventions, source, batch=13)
    estimator = options.pop("estimator", BatchGradient(attention or Softmax()))
    initial = options.pop("initial", Separate.draw(5, generator(1)))
    return Training(stream, estimator, optimiser, initial, seed=3)


class PlainHead(torch.nn.Module):
    """The model as one writes it in torch, with the weights of `initial`."""

    def __init__(self, initial: Separate, linear: bool) -> None:
        super().__init__()
        self.linear = linear
        self.key, self.query, self.value, self.output = (
            torch.nn.Parameter(t.clone()) for t in initial.tensors().values()
        )

    def forward(self, tokens, query):
        keys, values = tokens @ self.key.mT, tokens @ self.value.mT
        logits = keys @ (query @ self.query.mT)[:, :, None] / math.sqrt(6)
        if self.linear:
            weights = logits / tokens.shape[1]
        else:
            weights = torch.softmax(logits, dim=1)
        return ((weights * values).sum(1) @ self.output.mT)[:, 0]


@pytest.mark.parametrize("linear", [False, True], ids=["softmax", "linear"])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (SGD(0.05), lambda p: torch.optim.SGD(p, lr=0.05)),
        (Adam(0.02), lambda p: torch.optim.Adam(p, lr=0.02)),
    ],
    ids=["sgd", "adam"],
)
def test_training_takes_the_steps_of_a_plain_torch_module(ours, theirs, linear):
    training = run(ours, attention=Linear(11.0) if linear else Softmax())
    state = training.advance(training.start(), 6)
    initial = training.initial
    assert isinstance(initial, Separate)
    module = PlainHead(initial, linear)
    optimiser = theirs(module.parameters())
    for step in range(6):
        prompts = PAPER.task.sample(13, 11, step_generator(3, step))
        error = module(prompts.tokens, prompts.query) - prompts.y_query
        loss = error.square().mean()
        torch.testing.assert_close(state.losses[step], loss.detach())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    for name, tensor in state.parameters.tensors().items():
        torch.testing.assert_close(tensor, getattr(module, name).detach())


@pytest.mark.parametrize("source", [FullPrompts(), WhitePrompts()])
def test_softmax_and_linear_runs_of_one_seed_see_the_same_data_from_the_same_weights(
    source,
):
    one = run(SGD(0.1), source=source)
    other = run(SGD(0.1), source=source, attention=Linear(11.0))
    assert one.initial.flat().equal(other.initial.flat())
    heads = [t.initial.merge(scale) for t, scale in ((one, 1.0), (other, 3.0))]
    batches = [one.stream.draw(head, step_generator(3, 8)) for head in heads]
    assert batches[0].query.equal(batches[1].query)
    assert batches[0].answer.equal(batches[1].answer)
    prompts = [batch.prompts for batch in batches]
    assert isinstance(prompts[0], ShownTokens)
    assert isinstance(prompts[1], ShownTokens)
    assert prompts[0].root.equal(prompts[1].root)
    assert prompts[0].coordinates.equal(prompts[1].coordinates)


def test_merged_training_follows_the_gradient_in_bilinear_and_value():
    initial = Separate.draw(5, generator(1)).merge(1.0)
    training = run(SGD(0.1), initial=initial)
    state = training.advance(training.start(), 1)
    estimate = training.estimator.estimate(
        training.stream, initial.merge(FACTOR), step_generator(3, 0)
    )
    moved = (initial.flat() - state.parameters.flat()) / 0.1
    assert isinstance(state.parameters, Merged)
    bilinear = estimate.gradient.bilinear.flatten() * FACTOR
    torch.testing.assert_close(moved, torch.cat([bilinear, estimate.gradient.value]))


def test_polyak_step_is_the_gap_over_the_squared_gradient_up_to_its_cap():
    flat, gradient = torch.ones(3).double(), torch.tensor([1.0, 2.0, 2.0]).double()
    loss = torch.tensor(1.9, dtype=torch.float64)
    free = Polyak(0.1, 10.0).update(flat, loss, gradient, {}).parameters
    capped = Polyak(0.1, 0.05).update(flat, loss, gradient, {}).parameters
    below = Polyak(2.0, 10.0).update(flat, loss, gradient, {}).parameters
    torch.testing.assert_close(free, flat - 0.2 * gradient)
    torch.testing.assert_close(capped, flat - 0.05 * gradient)
    assert below.equal(flat)
    still = Polyak(0.1, 10.0).update(flat, loss, torch.zeros_like(flat), {}).parameters
    assert still.equal(flat)


@pytest.mark.parametrize("controlled", [False, True], ids=["batch", "controlled"])
def test_training_on_projected_prompts_brings_the_exact_risk_down(controlled):
    estimator = ControlledGradient(1.0) if controlled else BatchGradient(Softmax())
    task, rules = preset("paper-intended").task, PAPER.conventions
    stream = PromptStream(task, 60, rules, ProjectedPrompts(), batch=64)
    initial = Separate.draw(5, generator(0))
    training = Training(stream, estimator, SGD(0.15), initial)
    state = training.advance(training.start(), 150)
    risk = population_risk(task, 60, generator(2), count=256, replicates=2)
    before, after = (
        float(risk(head.bilinear, head.value))
        for head in (p.merge(FACTOR) for p in (initial, state.parameters))
    )
    assert before > 1
    assert after < 0.6


def test_progress_is_told_every_step_and_its_loss():
    told = []
    training = run(SGD(0.01))
    state = training.advance(training.start(), 4)
    state = training.advance(state, 3, lambda step, loss: told.append((step, loss)))
    assert [step for step, _ in told] == [5, 6, 7]
    assert [loss for _, loss in told] == state.losses[4:].tolist()


def test_training_that_diverges_says_at_which_step():
    training = run(SGD(1e9))
    with pytest.raises(FloatingPointError, match=r"the loss is (nan|inf) at step \d+"):
        training.advance(training.start(), 50)


def test_options_of_a_run_record_every_convention():
    options = run(Adam(0.1)).options()
    assert options["stream"]["conventions"] == PAPER.conventions.options()
    assert options["stream"]["task"] == PAPER.task.options()
    assert options["optimiser"]["square_decay"] == 0.999
    assert options["parametrisation"] == "Separate"
    assert options["estimator"] == {"gradient": "batch", "attention": "softmax"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SGD(0.0), "rate must be a positive finite number; got 0.0"),
        (lambda: Adam(0.1, decay=1.0), "decay must be at least 0 and below 1; got 1.0"),
        (lambda: Polyak(0.1, math.inf), "largest must be a positive finite number"),
        (lambda: run(SGD(1.0), n=0), "n and batch must be at least 1; got 0 and 13"),
        (
            lambda: run(SGD(1.0), initial=Separate.draw(4, generator(0))),
            "the head must read tokens of width 6; got parameters of width 5",
        ),
        (
            lambda: run(SGD(1.0), initial=Merged(torch.eye(6), torch.ones(6))),
            "parameters must be float64; got torch.float32",
        ),
        (
            lambda: dataclasses.replace(run(SGD(1.0)), seed=-1),
            "seed must be at least 0",
        ),
        (lambda: Merged(torch.eye(3), torch.ones(2)), r"got \(3, 3\) and \(2,\)"),
        (
            lambda: Separate(*(torch.eye(3) for _ in range(4))),
            r"\(1, o\); got \(3, 3\), \(3, 3\), \(3, 3\), \(3, 3\)",
        ),
    ],
)
def test_bad_input_is_refused_with_what_was_given(make, message):
    with pytest.raises(ValueError, match=message):
        make()
