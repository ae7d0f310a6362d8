"""The error averaged over queries, against a grid of queries of the exact moments."""

import pytest
import torch

from largeprompt.attention import Head
from largeprompt.attention.output_moments import output_moments
from largeprompt.attention.query_average import query_spectrum
from largeprompt.measures import Gaussian
from tests.attention.heads import random_gaussian, random_head
from tests.laws.normal_grid import normal_grid


def centred(scale: float, d: int) -> Gaussian:
    cov = scale * random_gaussian(1, d).cov
    return Gaussian(torch.zeros(d, dtype=torch.float64), cov)


def test_averaged_error_agrees_with_a_grid_of_queries():
    tokens, head, queries = random_gaussian(2, 2), random_head(3, 2), centred(0.5, 2)
    grid, probability = normal_grid(2)
    kept = probability > 1e-9
    asking = torch.as_tensor(grid[kept]) @ torch.linalg.cholesky(queries.cov).mT
    errors = [output_moments(head, tokens, z, 40).mean_square_error for z in asking]
    exact = float(torch.as_tensor(probability[kept]) @ torch.tensor(errors).double())
    curve = query_spectrum(head, tokens, queries).error_curve([40])
    assert curve.mean_square_error[0] == pytest.approx(exact, rel=1e-4)


def test_spectrum_of_an_isotropic_head_is_elementary():
    eye = torch.eye(3, dtype=torch.float64)
    law = Gaussian(torch.zeros(3, dtype=torch.float64), eye)
    spectrum = query_spectrum(Head(eye, eye, 2 * eye, 0.6), law, law)
    assert spectrum.variance == pytest.approx(12)
    torch.testing.assert_close(spectrum.eigenvalues, torch.full((3,), 0.36).double())
    torch.testing.assert_close(spectrum.responses, torch.full((3,), 1.44).double())
    assert spectrum.rate().mean_square == 1
    limit = 0.28**-1.5 * (12 + 3 * 1.44 / 0.28)
    assert spectrum.limit_constant() == pytest.approx(limit)


def test_singular_laws_are_admitted():
    cov = torch.diag(torch.tensor([1.0, 0.0], dtype=torch.float64))
    law = Gaussian(torch.zeros(2, dtype=torch.float64), cov)
    eye = torch.eye(2, dtype=torch.float64)
    curve = query_spectrum(Head(eye, eye, eye, 0.5), law, law).error_curve([10, 100])
    assert curve.mean_square_error[1] < curve.mean_square_error[0]


def test_queries_with_a_mean_are_refused():
    with pytest.raises(ValueError, match="queries must have mean zero"):
        query_spectrum(random_head(3, 2), random_gaussian(2, 2), random_gaussian(4, 2))
