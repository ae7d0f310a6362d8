"""Closed-form gradients against autograd; ways to draw prompts against each other."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from scipy.stats import ks_2samp, ttest_1samp

from largeprompt.icl import preset
from largeprompt.icl.batches import (
    FullPrompts,
    ProjectedPrompts,
    PromptStream,
    WhitePrompts,
)
from largeprompt.icl.conventions import Conventions, LogitScale, Normaliser
from largeprompt.icl.estimators import BatchGradient, ControlledGradient, linear_loss
from largeprompt.icl.linear import linear_risk
from largeprompt.icl.parameters import Merged, Separate, merge_jacobian
from largeprompt.icl.responses import Linear, Softmax, responses
from largeprompt.icl.tasks import TokenLaw
from largeprompt.icl.token_sums import ProjectedTokens, TokenSums

INTENDED = preset("paper-intended")
CONVENTIONS = {
    "official": INTENDED.conventions,
    "query in prompt, half loss": Conventions(
        LogitScale.SQRT_INPUT_DIM, True, Normaliser.TOKENS_AND_QUERY, True
    ),
}
N, BATCH = 9, 7


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def stream(conventions: Conventions, **options) -> PromptStream:
    source = options.pop("source", FullPrompts(torch.float64))
    task = options.pop("task", INTENDED.task)
    return PromptStream(task, options.pop("n", N), conventions, source, BATCH)


def autograd_loss(where: PromptStream, parameters, attention: str, seed: int):
    """The loss written as one would: tokens in, matrices applied, mean of squares."""
    prompts = where.task.sample(BATCH, where.n, generator(seed))
    tokens, conventions = prompts.tokens, where.conventions
    if conventions.query_in_prompt:
        tokens = torch.cat([tokens, prompts.query[:, None, :]], dim=1)
    scale = {"none": 1.0, "sqrt(d)": 5, "sqrt(d+1)": 6}[str(conventions.logit_scale)]
    if isinstance(parameters, Separate):
        keys = torch.einsum("ke,bne->bnk", parameters.key, tokens)
        asked = torch.einsum("ke,be->bk", parameters.query, prompts.query)
        logits = torch.einsum("bnk,bk->bn", keys, asked)
        values = torch.einsum(
            "qo,oe,bne->bn", parameters.output, parameters.value, tokens
        )
    else:
        logits = torch.einsum(
            "bne,ef,bf->bn", tokens, parameters.bilinear, prompts.query
        )
        values = torch.einsum("e,bne->bn", parameters.value, tokens)
    logits = logits / math.sqrt(scale)
    if attention == "softmax":
        weights = torch.exp(logits) / torch.exp(logits).sum(1, keepdim=True)
    else:
        extra = conventions.normaliser is Normaliser.TOKENS_AND_QUERY
        weights = logits / (where.n + extra)
    errors = (weights * values).sum(1) - prompts.y_query
    return (0.5 if conventions.half_loss else 1.0) * (errors**2).mean()


@pytest.mark.parametrize("attention", ["softmax", "linear"])
@pytest.mark.parametrize("merged", [True, False], ids=["merged", "separate"])
@pytest.mark.parametrize("rules", CONVENTIONS.values(), ids=CONVENTIONS.keys())
def test_closed_form_gradient_is_the_one_of_autograd(rules, merged, attention):
    where = stream(rules)
    parameters = Separate.draw(5, generator(1))
    parameters = parameters.merge(2.0) if merged else parameters
    kind = Softmax() if attention == "softmax" else Linear(where.divisor)
    head = parameters.merge(where.logit_factor)
    ours = BatchGradient(kind).estimate(where, head, generator(2))
    gradient = parameters.pull_back(ours.gradient, where.logit_factor).flat()
    flat = parameters.flat().requires_grad_()
    theirs = autograd_loss(where, parameters.unflat(flat), attention, 2)
    (expected,) = torch.autograd.grad(theirs, flat)
    torch.testing.assert_close(ours.loss, theirs.detach())
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize("parameters", [Separate.draw(3, generator(3))])
def test_merge_jacobian_is_the_one_of_autograd(parameters):
    ours = merge_jacobian(parameters, 0.7)
    theirs = torch.autograd.functional.jacobian(
        lambda flat: parameters.unflat(flat).merge(0.7).flat(), parameters.flat()
    )
    torch.testing.assert_close(ours, theirs)


def test_projected_sums_agree_with_the_logits_and_the_values_they_come_with():
    where = stream(INTENDED.conventions, source=ProjectedPrompts(torch.float64))
    head = Separate.draw(5, generator(4)).merge(1.0)
    batch = where.draw(head, generator(5))
    rows = torch.randn(BATCH, 3, N, generator=generator(6), dtype=torch.float64)
    sums = batch.prompts.sums(rows)
    for read, seen in (
        (batch.tilt, batch.prompts.logits),
        (head.value.expand_as(batch.tilt), batch.prompts.values),
    ):
        through_sums = (sums * read[:, None, :]).sum(-1)
        torch.testing.assert_close(through_sums, (rows * seen[:, None, :]).sum(-1))


@pytest.mark.parametrize(
    "head",
    [
        Merged(torch.zeros(6, 6).double(), torch.ones(6).double()),
        Merged(torch.eye(6).double(), torch.zeros(6).double()),
    ],
    ids=["no tilt", "no value"],
)
def test_projected_prompts_of_a_degenerate_head_have_finite_gradients(head):
    where = stream(INTENDED.conventions, source=ProjectedPrompts())
    batch = where.draw(head, generator(7))
    for response in responses(batch, Softmax(), Linear(N)):
        for field in dataclasses.fields(response):
            assert getattr(response, field.name).isfinite().all()


def statistics(source, sums=None) -> np.ndarray:
    """Scalars of 30,000 prompts that the law of a step is made of, one a column."""
    head = Separate.draw(5, generator(8)).merge(1.5)
    where = PromptStream(INTENDED.task, 6, INTENDED.conventions, source, 30_000)
    batch = where.draw(head, generator(9 if sums else 10))
    if sums is not None:
        prompts = batch.prompts
        assert isinstance(prompts, ProjectedTokens)
        planted = Planted(prompts.logits, prompts.values, prompts, sums)
        batch = dataclasses.replace(batch, prompts=planted)
    columns = []
    for response in responses(batch, Softmax(), Linear(6)):
        along = response.value_gradient @ torch.arange(1.0, 7).double()
        across = (response.tilt_gradient * batch.query).sum(-1)
        columns += [response.prediction, along, across, along * across]
        columns += [
            response.prediction * along,
            (response.prediction - batch.answer) ** 2,
        ]
    soft, linear = responses(batch, Softmax(), Linear(6))
    columns.append(soft.prediction * linear.prediction)
    columns.append((soft.value_gradient * linear.value_gradient).sum(-1))
    columns.append((soft.value_gradient * soft.tilt_gradient).sum(-1))
    return torch.stack(columns, dim=1).numpy()


@dataclasses.dataclass(frozen=True)
class Planted(TokenSums):
    """Projected tokens whose sums are drawn wrongly."""

    logits: torch.Tensor
    values: torch.Tensor
    prompts: ProjectedTokens
    wrong: str

    def sums(self, coefficients):
        if self.wrong == "no rest":
            seen = coefficients @ self.prompts.coordinates.mT
            return seen @ self.prompts.frame.mT @ self.prompts.root.mT
        rows = [self.prompts.sums(row[:, None, :]) for row in coefficients.unbind(1)]
        return torch.cat(rows, dim=1)  # as if the sums were independent


def smallest_p(one: np.ndarray, other: np.ndarray) -> float:
    """The Bonferroni p-value of two-sample Kolmogorov-Smirnov tests of all columns."""
    columns = zip(one.T, other.T, strict=True)
    tests = [np.asarray(ks_2samp(a, b, method="asymp")) for a, b in columns]
    return len(tests) * min(p for _, p in tests)


@pytest.mark.statistical
@pytest.mark.parametrize("source", [WhitePrompts(), ProjectedPrompts()])
def test_white_and_projected_prompts_are_not_told_from_full_ones(alpha, source):
    full = statistics(FullPrompts(torch.float64))
    assert smallest_p(full, statistics(source)) > alpha


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", ["no rest", "independent sums"])
def test_projected_prompts_drawn_wrongly_are_told_from_full_ones(alpha, wrong):
    full = statistics(FullPrompts(torch.float64))
    planted = statistics(ProjectedPrompts(torch.float64), wrong)
    assert smallest_p(full, planted) < alpha


@pytest.mark.parametrize("source", [WhitePrompts(), ProjectedPrompts()])
def test_white_and_projected_prompts_refuse_tokens_that_are_not_gaussian(source):
    task = dataclasses.replace(INTENDED.task, token_law=TokenLaw.RADEMACHER)
    where = stream(INTENDED.conventions, source=source, task=task)
    head = Separate.draw(5, generator(0)).merge(1.0)
    with pytest.raises(ValueError, match="Gaussian tokens; got rademacher"):
        where.draw(head, generator(0))


@pytest.mark.parametrize("rules", CONVENTIONS.values(), ids=CONVENTIONS.keys())
def test_linear_loss_is_the_population_risk_in_the_convention_of_the_loss(rules):
    where = stream(rules)
    head = Separate.draw(5, generator(11)).merge(where.logit_factor)
    risk = linear_risk(where.task, N, head.bilinear, head.value, rules)
    torch.testing.assert_close(linear_loss(where, head).loss, risk * rules.loss_factor)


@pytest.mark.parametrize("coefficient", [1.0, 0.3])
def test_controlled_gradient_takes_off_what_linear_attention_exceeds_its_mean_by(
    coefficient,
):
    where = stream(INTENDED.conventions)
    head = Separate.draw(5, generator(12)).merge(where.logit_factor)
    kinds = Softmax(), Linear(where.divisor)
    softmax, linear = (
        BatchGradient(kind).estimate(where, head, generator(13)) for kind in kinds
    )
    mean = linear_loss(where, head)
    ours = ControlledGradient(coefficient).estimate(where, head, generator(13))
    excess = linear.gradient.flat() - mean.gradient.flat()
    expected = softmax.gradient.flat() - coefficient * excess
    torch.testing.assert_close(ours.gradient.flat(), expected)
    torch.testing.assert_close(
        ours.loss, softmax.loss - coefficient * (linear.loss - mean.loss)
    )


def mean_gradient_p(claimed_length: int) -> float:
    """Whether linear attention's gradient averages to the closed form at a length.

    A t-test on 200 means of 400 prompts each, which are close to normal.
    """
    where = PromptStream(
        INTENDED.task, N, INTENDED.conventions, WhitePrompts(), batch=200 * 400
    )
    labels = torch.eye(6, dtype=torch.float64)[-1]
    head = Merged(0.7 * torch.eye(6, dtype=torch.float64), labels)
    claimed = linear_loss(dataclasses.replace(where, n=claimed_length), head).gradient
    batch = where.draw(head, generator(14))
    (response,) = responses(batch, Linear(N))
    error = 2 * (response.prediction - batch.answer)
    along = response.value_gradient @ claimed.value
    along += ((response.tilt_gradient @ claimed.bilinear) * batch.query).sum(-1)
    means = (error * along).view(200, 400).mean(1)
    _, p = np.asarray(ttest_1samp(means, float(claimed.flat() @ claimed.flat())))
    return p


@pytest.mark.statistical
def test_expectation_of_the_control_is_not_refuted(alpha):
    assert mean_gradient_p(N) > alpha


@pytest.mark.statistical
def test_expectation_of_the_control_at_another_length_is_refuted(alpha):
    assert mean_gradient_p(4) < alpha


def test_coefficient_of_a_control_must_be_finite():
    with pytest.raises(
        ValueError, match="coefficient must be a finite number; got nan"
    ):
        ControlledGradient(math.nan)
