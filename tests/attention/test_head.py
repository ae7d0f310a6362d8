import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from largeprompt.attention import Head, attend, attend_tokens, finite_prompt_law
from largeprompt.measures import (
    Gaussian,
    Measure,
    Prompt,
    Rademacher,
    UniformCube,
    pushforward,
)
from largeprompt.testing import close

SCALE = 0.37


def normal(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(7)


@pytest.fixture
def head(generator) -> Head:
    """Tokens of width 3, keys of width 5, values of width 2, queries from width 4."""
    return Head(
        normal(generator, 5, 3), normal(generator, 5, 4), normal(generator, 2, 3), SCALE
    )


@pytest.fixture
def gaussian(generator) -> Gaussian:
    factor = normal(generator, 3, 3)
    return Gaussian(normal(generator, 3), factor @ factor.mT / 3)


def laws(generator: torch.Generator) -> list[Measure]:
    factor = normal(generator, 3, 2)
    return [
        Prompt(normal(generator, 9, 3), normal(generator, 9)),
        Gaussian(normal(generator, 3), factor @ factor.mT),
        UniformCube(torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)),
    ]


@pytest.mark.parametrize("n", [1, 2, 61])
def test_head_on_a_prompt_is_scaled_dot_product_attention(head, generator, n):
    tokens, z = normal(generator, n, 3), normal(generator, 6, 4)
    keys, values = tokens @ head.key.mT, tokens @ head.value.mT
    theirs = scaled_dot_product_attention(z @ head.query.mT, keys, values, scale=SCALE)
    matrices = (head.key, head.query, head.value)
    close(head.output(Prompt(tokens), z), theirs)
    close(attend_tokens(z, tokens, *matrices, scale=SCALE), theirs)


@pytest.mark.parametrize("masked", [False, True])
def test_attend_is_scaled_dot_product_attention(generator, masked):
    query, keys = normal(generator, 2, 3, 6, 5), normal(generator, 2, 3, 17, 5)
    values = normal(generator, 2, 3, 17, 7)
    mask = torch.rand(2, 3, 6, 17, generator=generator) < 0.4 if masked else None
    theirs = scaled_dot_product_attention(query, keys, values, mask, scale=SCALE)
    close(attend(query, keys, values, scale=SCALE, mask=mask), theirs)


def test_attend_shares_a_mask_over_the_batch(generator):
    query, keys = normal(generator, 3, 6, 5), normal(generator, 3, 6, 5)
    causal = torch.ones(6, 6, dtype=torch.bool).tril()
    theirs = scaled_dot_product_attention(query, keys, keys, is_causal=True, scale=1.0)
    close(attend(query, keys, keys, scale=1.0, mask=causal), theirs)


def test_attend_raises_low_precision_to_float64(generator):
    low = normal(generator, 6, 5).bfloat16()
    high = low.double()
    close(attend(low, low, low, scale=1.0), attend(high, high, high, scale=1.0))


def test_attend_survives_logits_of_any_size(generator):
    query, keys = 1e6 * normal(generator, 6, 5), normal(generator, 17, 5)
    chosen = (query @ keys.mT).argmax(-1)
    close(attend(query, keys, keys, scale=1.0), keys[chosen])


def test_attend_refuses_a_query_that_sees_nothing(generator):
    x = normal(generator, 2, 3)
    mask = torch.tensor([[True, False], [False, False]])
    with pytest.raises(ValueError, match="every query must see an atom"):
        attend(x, x, x, scale=1.0, mask=mask)


def test_joint_head_on_joint_atoms_is_attention_over_keys_and_values(generator):
    keys, values = normal(generator, 23, 5), normal(generator, 23, 2)
    queries = normal(generator, 4, 5)
    head = Head.joint(5, 2, scale=SCALE)
    close(
        head.output(Prompt.joint(keys, values), queries),
        attend(queries, keys, values, scale=SCALE),
    )


def test_joint_head_on_a_gaussian_regresses_values_on_keys(generator):
    factor = normal(generator, 7, 7)
    gaussian = Gaussian(normal(generator, 7), factor @ factor.mT)
    limit = Head.joint(5, 2, scale=SCALE).linear_limit(gaussian)
    close(limit.weight, SCALE * gaussian.cov[5:, :5])
    close(limit.bias, gaussian.mean[5:])


@pytest.mark.parametrize("case", range(3))
def test_jacobians_are_those_of_automatic_differentiation(head, generator, case):
    measure, z = laws(generator)[case], normal(generator, 4)
    by_form = lambda u: measure.tilted_mean(u @ z) @ head.value.mT
    by_value = lambda v: Head(head.key, head.query, v, SCALE).output(measure, z)
    by_token = lambda token: head.output(measure, token)
    jacobian = torch.func.jacrev
    close(
        head.jacobian_bilinear_form(measure, z), jacobian(by_form)(head.bilinear_form)
    )
    close(head.jacobian_value(measure, z), jacobian(by_value)(head.value))
    close(head.jacobian_token(measure, z), jacobian(by_token)(z))


@pytest.mark.parametrize("case", range(3))
def test_jacobians_of_a_batch_are_those_of_its_members(head, generator, case):
    measure, z = laws(generator)[case], normal(generator, 2, 6, 4)
    for jacobian in (
        head.jacobian_bilinear_form,
        head.jacobian_value,
        head.jacobian_token,
    ):
        close(jacobian(measure, z)[1, 3], jacobian(measure, z[1, 3]))


def test_head_on_a_gaussian_is_its_linear_limit(head, gaussian, generator):
    z = normal(generator, 6, 4)
    limit = head.linear_limit(gaussian)
    close(limit(z), head.output(gaussian, z))
    close(limit.weight, head.jacobian_token(gaussian, z)[0])


def test_head_on_signs_saturates_where_the_gaussian_formula_does_not():
    one = torch.ones(1, 1, dtype=torch.float64)
    head, z = Head(one, one, one, 1.0), torch.full((1,), 2.0, dtype=torch.float64)
    signs, gaussian = Rademacher(one[0]), Gaussian(0 * one[0], one)
    close(head.output(signs, z), torch.tensor([0.9640275800758169], dtype=z.dtype))
    close(head.linear_limit(gaussian)(z), z)


def test_outputs_over_gaussian_queries_are_gaussian(head, gaussian, generator):
    factor = normal(generator, 4, 4)
    queries = Gaussian(normal(generator, 4), factor @ factor.mT)
    outputs = pushforward(queries, head.linear_limit(gaussian))
    assert isinstance(outputs, Gaussian)
    close(outputs.mean, head.output(gaussian, queries.mean))


def test_wrong_matrices_are_refused():
    wide, tall = torch.ones(2, 3), torch.ones(3, 2)
    with pytest.raises(ValueError, match="share k and d"):
        Head.__post_init__(unchecked_head(wide, wide, tall))
    with pytest.raises(ValueError, match="share k and d"):
        Head.__post_init__(unchecked_head(wide, tall, wide))
    with pytest.raises(ValueError, match="must be matrices"):
        Head.__post_init__(unchecked_head(wide[0], wide, wide))


def unchecked_head(key: torch.Tensor, query: torch.Tensor, value: torch.Tensor) -> Head:
    """A head whose shapes nobody looked at yet."""
    head = object.__new__(Head)
    for name, matrix in (("key", key), ("query", query), ("value", value)):
        object.__setattr__(head, name, matrix)
    return head


def test_finite_prompt_law_of_one_token_is_the_law_of_its_value(head, gaussian):
    z = torch.tensor([0.2, -0.1, 0.3, 0.1], dtype=torch.float64)
    law = finite_prompt_law(head, gaussian, z, n=1)
    response = head.linear_limit(gaussian).weight @ z
    variance = torch.trace(head.value @ gaussian.cov @ head.value.mT)
    close(law.mean, head.value @ gaussian.mean)
    close(law.mean_square_error, variance + response @ response)


def test_finite_prompt_law_of_two_tokens_is_an_integral_over_both(generator):
    # Gauss and Hermite over the four coordinates of two tokens, softmax written out
    factor = np.array([[0.8, 0.0], [-0.3, 0.5]])
    mean, value = np.array([0.4, -0.2]), np.array([[1.0, 0.5], [-0.2, 2.0]])
    u = np.array([0.6, 0.9])
    points, masses = np.polynomial.hermite_e.hermegauss(24)
    axes = np.meshgrid(*[points] * 4, indexing="ij")
    standard = np.stack([axis.ravel() for axis in axes], axis=1)
    weights = np.prod(np.meshgrid(*[masses / masses.sum()] * 4), axis=0).ravel()
    first = mean + standard[:, :2] @ factor.T
    second = mean + standard[:, 2:] @ factor.T
    share = 1 / (1 + np.exp((second - first) @ u))[:, None]
    outputs = (share * first + (1 - share) * second) @ value.T
    limit = value @ (mean + factor @ factor.T @ u)
    square = weights @ ((outputs - limit) ** 2).sum(1)

    tensor = lambda values: torch.tensor(values, dtype=torch.float64)
    eye = torch.eye(2, dtype=torch.float64)
    head = Head(eye, eye, tensor(value), 1.0)
    law = finite_prompt_law(
        head, Gaussian(tensor(mean), tensor(factor @ factor.T)), tensor(u), n=2
    )
    close(law.mean, tensor(weights @ outputs))
    close(law.mean_square_error, tensor(square))


def test_finite_prompt_law_tends_to_the_linear_limit(head, gaussian, generator):
    z = normal(generator, 3, 2, 4) / 10
    law = finite_prompt_law(head, gaussian, z, n=10**12)
    close(law.mean, head.linear_limit(gaussian)(z))
    assert law.mean_square_error.shape == (3, 2)
    assert (law.mean_square_error < 1e-8).all()
