"""Simulated errors: against the head's Jacobians, and against exact quadrature."""

import math

import pytest
import torch

from largeprompt.attention import Head
from largeprompt.attention.output_moments import output_moments
from largeprompt.experiments.simulation import (
    Quantity,
    prompt_errors,
    squared_errors,
)
from largeprompt.measures import Laplace, Measure, Prompt, Rademacher, UniformSphere
from largeprompt.testing import close, refutes_mean

PROMPTS = 20_000


def tensor(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


HEAD = Head(
    key=tensor([[1.0, 0.2, 0.0], [0.0, 1.0, -0.3]]),
    query=tensor([[0.5, 0.1], [-0.2, 0.4]]),
    value=tensor([[1.0, 0.0, 0.5], [-0.4, 1.2, 0.0]]),
    scale=0.8,
)
Z = tensor([0.7, 0.4])
LAWS: dict[str, Measure] = {
    "rademacher": Rademacher(tensor([1.0, 0.5, 2.0])),
    "sphere": UniformSphere(tensor([0.1, 0.0, -0.2]), tensor(1.7)),
    "laplace": Laplace(tensor([0.7, 0.5, 0.6])),
}


@pytest.mark.parametrize("law", LAWS)
def test_errors_of_a_prompt_are_those_of_its_jacobians(law):
    measure = LAWS[law]
    tokens = measure.sample(5 * 37, torch.Generator().manual_seed(3))
    batch = tokens.reshape(5, 37, 3)
    ours = prompt_errors(HEAD, measure, HEAD.tilt(Z), Z, batch)
    theirs = []
    for tokens in batch:
        prompt = Prompt(tokens)
        differences = (
            HEAD.output(prompt, Z) - HEAD.output(measure, Z),
            HEAD.jacobian_bilinear_form(prompt, Z)
            - HEAD.jacobian_bilinear_form(measure, Z),
            HEAD.jacobian_value(prompt, Z) - HEAD.jacobian_value(measure, Z),
        )
        theirs.append([float(d.square().sum()) for d in differences])
    close(torch.stack(ours, dim=-1), tensor(theirs))


def four_atoms() -> Prompt:
    return Prompt(
        tensor([[0.0, 1.0, 0.5], [1.0, -1.0, 0.0], [-1.5, 0.0, 1.0], [0.5, 0.5, -1.0]])
    )


def drawn_and_exact(n: int) -> tuple[torch.Tensor, float, float]:
    """Errors drawn, the largest an output can have, and the exact mean square."""
    measure = four_atoms()
    generator = torch.Generator().manual_seed(20261203)
    errors = squared_errors(HEAD, measure, Z.unsqueeze(0), n, PROMPTS, generator)
    values = measure.atoms @ HEAD.value.mT
    width = float((values - HEAD.output(measure, Z)).square().sum(-1).max())
    exact = output_moments(HEAD, measure, Z, n).mean_square_error
    return errors.output.squeeze(0), width, exact


@pytest.mark.statistical
@pytest.mark.parametrize("n", [3, 30])
def test_simulated_mean_square_does_not_refute_exact_quadrature(n, alpha):
    drawn, width, exact = drawn_and_exact(n)
    assert not refutes_mean(drawn.numpy(), exact, width, alpha)


@pytest.mark.statistical
@pytest.mark.parametrize("n", [3, 30])
def test_mean_square_a_quarter_too_large_is_refuted(n, alpha):
    drawn, width, exact = drawn_and_exact(n)
    assert refutes_mean(drawn.numpy(), 1.25 * exact, width, alpha)


@pytest.mark.parametrize("block", [1, 50, 10**6])
def test_every_query_has_its_own_prompts_whatever_the_block_size(block, monkeypatch):
    monkeypatch.setattr("largeprompt.experiments.simulation.BLOCK", block)
    generator = torch.Generator().manual_seed(1)
    queries = torch.stack([Z, Z, 2 * Z])
    errors = squared_errors(HEAD, LAWS["sphere"], queries, 7, 5, generator)
    for quantity in Quantity:
        assert errors.of(quantity).shape == (3, 5)
        assert len(errors.of(quantity).unique()) == 15


def test_query_without_a_limit_is_refused():
    generator = torch.Generator().manual_seed(0)
    with pytest.raises(ValueError, match="every tilt U z must lie in the domain"):
        squared_errors(HEAD, LAWS["laplace"], 50 * Z.unsqueeze(0), 5, 2, generator)


def test_one_token_has_no_spread():
    atoms = four_atoms().atoms[:1].unsqueeze(0)
    _, bilinear, _ = prompt_errors(HEAD, four_atoms(), HEAD.tilt(Z), Z, atoms)
    limit = HEAD.jacobian_bilinear_form(four_atoms(), Z)
    assert float(bilinear) == pytest.approx(float(limit.square().sum()))
    assert math.isfinite(float(bilinear))
