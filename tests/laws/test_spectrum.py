"""Anisotropic heads: one number of a spectrum stands for the dimension."""

import math

import pytest
import torch

from largeprompt.attention import Head, finite_prompt_law
from largeprompt.laws import gaussian_law, solve
from largeprompt.laws.spectrum import QueryLawSpectrum, ValueSpectrum
from largeprompt.measures import Gaussian


def anisotropic_head(seed: int) -> tuple[Head, Gaussian, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    root = normal(5, 5)
    head = Head(key=normal(5, 5), query=normal(5, 5), value=normal(3, 5), scale=0.1)
    return (
        head,
        Gaussian(torch.zeros(5, dtype=torch.float64), root @ root.mT),
        normal(5),
    )


def spectrum_of(head: Head, tokens: Gaussian, z: torch.Tensor) -> ValueSpectrum:
    """By the definition: the singular values of V G^(1/2), and the whitened tilt."""
    variances, axes = torch.linalg.eigh(tokens.cov)
    root = (axes * variances.sqrt()) @ axes.mT
    _, sizes, right = torch.linalg.svd(head.value @ root, full_matrices=False)
    whitened = root @ head.tilt(z)
    shares = (right @ whitened / whitened.norm()).square()
    return ValueSpectrum(tuple(sizes.square().tolist()), tuple(shares.tolist()))


@pytest.mark.parametrize("seed", range(4))
def test_plan_of_a_spectrum_is_the_exact_error_of_the_head(seed):
    head, tokens, z = anisotropic_head(seed)
    spectrum = spectrum_of(head, tokens, z)
    tilt = head.tilt(z)
    variance = float(tilt @ tokens.cov @ tilt)
    plan = solve(n=300, logit_variance=variance, dim=spectrum.effective_dim)
    size = float(torch.trace(head.value @ tokens.cov @ head.value.mT))
    theirs = float(finite_prompt_law(head, tokens, z, 300).mean_square_error) / size
    assert plan.eps == pytest.approx(math.sqrt(theirs), rel=1e-9)
    wrong = solve(n=300, logit_variance=variance, dim=3)
    assert wrong.eps != pytest.approx(math.sqrt(theirs), rel=1e-3)


def test_equal_eigenvalues_have_their_number_as_effective_dimension():
    assert ValueSpectrum((0.3,) * 7).effective_dim == pytest.approx(7)


def test_effective_dimension_without_shares_is_the_participation_ratio():
    assert ValueSpectrum((4.0, 2.0, 1.0)).effective_dim == pytest.approx(49 / 21)


def test_values_that_do_not_show_the_tilt_leave_the_inverse_effective_sample_size():
    dim = ValueSpectrum((1.0, 2.0), (0.0, 0.0)).effective_dim
    assert dim == math.inf
    plan = solve(n=100, logit_variance=3.0, dim=dim)
    assert plan.eps**2 == pytest.approx(float(gaussian_law(100, 3.0).inverse_ess))


@pytest.mark.parametrize(
    ("eigenvalues", "shares", "message"),
    [
        ((), (), "value_eigenvalues must hold at least one number"),
        ((1.0, -2.0), (), "value_eigenvalues must be finite numbers of at least 0"),
        ((math.nan,), (), "value_eigenvalues must be finite"),
        ((0.0, 0.0), (), "some value eigenvalue must be above 0"),
        ((1.0, 2.0), (0.5,), "as many; got 2 and 1"),
        ((1.0, 2.0), (0.7, 0.7), r"sum to at most 1; got 1\.4"),
        ((1.0,), (math.inf,), "shares must be finite"),
    ],
)
def test_value_spectrum_refuses_what_no_head_has(eigenvalues, shares, message):
    with pytest.raises(ValueError, match=message):
        ValueSpectrum(eigenvalues, shares)


@pytest.mark.parametrize(
    ("eigenvalues", "responses", "variance", "message"),
    [
        ((), (), 1.0, "logit_eigenvalues must hold"),
        ((0.2,), (-0.1,), 1.0, "responses must be finite"),
        ((0.2,), (0.1, 0.1), 1.0, "as many; got 1 and 2"),
        ((0.2,), (0.1,), 0.0, "variance must be a finite number above 0"),
    ],
)
def test_query_spectrum_refuses_what_no_head_has(
    eigenvalues, responses, variance, message
):
    with pytest.raises(ValueError, match=message):
        QueryLawSpectrum(eigenvalues, responses, variance)
