"""A head that sees its own token: quadrature over the definition."""

import pytest
import torch

from largeprompt.attention import Head, attend_tokens
from largeprompt.attention.self_attention import self_attention_moments
from largeprompt.testing import close
from tests.attention.heads import random_gaussian, random_head, random_vector
from tests.laws.normal_grid import normal_grid


@pytest.mark.parametrize(("d", "n"), [(1, 1), (1, 3), (2, 1)])
@pytest.mark.parametrize("scale", [0.2, 1.0])
def test_moments_of_self_attention_agree_with_quadrature(d, n, scale):
    gaussian, head = random_gaussian(1, d), random_head(2, d, scale=scale)
    z = random_vector(3, d)
    grid, probability = map(torch.as_tensor, normal_grid(n * d))
    root = torch.linalg.cholesky(gaussian.cov)
    tokens = grid.reshape(-1, n, d) @ root.mT + gaussian.mean
    prompts = torch.cat([z.expand(len(tokens), 1, d), tokens], dim=1)
    outputs = attend_tokens(
        z.unsqueeze(0), prompts, head.key, head.query, head.value, scale=head.scale
    ).squeeze(-2)
    found = self_attention_moments(head, gaussian, z, n)
    deviations = outputs - head.output(gaussian, z)
    close(found.limit, head.output(gaussian, z))
    close(found.mean, probability @ outputs)
    error = torch.einsum("p,pv,pw->vw", probability, deviations, deviations)
    close(found.error, error)
    assert found.mean_square_error == pytest.approx(float(error.trace()))


def test_a_query_from_another_space_is_refused():
    head = Head(torch.ones(1, 2), torch.ones(1, 3), torch.ones(1, 2), 1.0)
    with pytest.raises(ValueError, match="dimension of the keys' tokens"):
        self_attention_moments(head, random_gaussian(1, 2), torch.ones(3), 5)
