"""Bounds for heads: attacked by drawn prompts, their scalars by quadrature.

A mean square shrunk by half is refuted where the bound is within a factor 1.4 of the
truth: the output and the gradient in V. The gradient in U pays for its second-order
term (factor 1.5) and drift for four powers of 1 - r (factor 1.8): a third is refuted.
A radius comes from Chebyshev's inequality, which no norm that concentrates attains: a
quarter is refuted, a half is true of most laws.
"""

import functools
import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from largeprompt.attention import Head, attend_tokens
from largeprompt.attention.bounds import (
    bilinear_gradient_bound,
    nested_drift_bound,
    output_bound,
    query_averaged_bound,
    value_gradient_bound,
)
from largeprompt.attention.moments import fourth_moment, second_moment
from largeprompt.attention.value_moments import value_moments
from largeprompt.laws import gaussian_law
from largeprompt.laws.bounds import Bound
from largeprompt.measures import Gaussian, Laplace, Measure, Prompt, tilt
from largeprompt.testing import refutes
from tests.attention.attacks import (
    ADDED,
    HEAD,
    LAWS,
    TRIALS,
    N,
    Z,
    beyond,
    beyond_share,
    errors,
    tensor,
)
from tests.measures.zoo import NAMES, moments, specimen

THEOREMS = {
    "output": output_bound,
    "value_gradient": value_gradient_bound,
    "bilinear_gradient": bilinear_gradient_bound,
    "drift": lambda head, measure, z: nested_drift_bound(head, measure, z, ADDED),
}
TOO_SMALL = {"output": 2, "value_gradient": 2, "bilinear_gradient": 3, "drift": 3}
SHARE = 0.25


@functools.cache
def bound_of(law: str, theorem: str) -> Bound:
    return THEOREMS[theorem](HEAD, LAWS[law], Z)


@pytest.fixture(params=list(LAWS))
def law(request) -> str:
    return request.param


@pytest.fixture(params=list(THEOREMS))
def theorem(request) -> str:
    return request.param


@pytest.mark.statistical
def test_mean_square_bound_is_not_refuted(law, theorem, alpha):
    squares = getattr(errors(law), theorem)
    bound = bound_of(law, theorem).mse(N)
    assert math.isfinite(bound)
    assert not refutes(beyond_share(squares, bound, SHARE), TRIALS, SHARE, alpha)


@pytest.mark.statistical
def test_mean_square_bound_made_too_small_is_refuted(law, theorem, alpha):
    squares = getattr(errors(law), theorem)
    lie = bound_of(law, theorem).mse(N) / TOO_SMALL[theorem]
    assert refutes(beyond_share(squares, lie, SHARE), TRIALS, SHARE, alpha)


@pytest.mark.statistical
@pytest.mark.parametrize("delta", [0.5, 0.05])
def test_radius_is_not_refuted(law, theorem, delta, alpha):
    radius = bound_of(law, theorem).radius(N, delta)
    violations = beyond(getattr(errors(law), theorem), radius)
    assert not refutes(violations, TRIALS, delta, alpha)


@pytest.mark.statistical
def test_radius_shrunk_to_a_quarter_is_refuted(law, theorem, alpha):
    lie = bound_of(law, theorem).radius(N, 0.5) / 4
    violations = beyond(getattr(errors(law), theorem), lie)
    assert refutes(violations, TRIALS, 0.5, alpha)


@pytest.mark.statistical
def test_quantile_of_the_recorded_example_is_a_third_of_the_radius(alpha):
    head, law, z = recorded_example()
    generator = torch.Generator().manual_seed(3)
    limit = head.output(law, z)
    squares = []
    for _ in range(20):
        tokens = law.sample(30 * 4096, generator).reshape(30, 4096, 5)
        outputs = attend_tokens(
            z[None], tokens, head.key, head.query, head.value, scale=1.0
        )
        squares.append((outputs[:, 0] - limit).square().sum(-1))
    squares = torch.cat(squares)
    radius = output_bound(head, law, z).radius(4096, 0.05)
    assert round(radius, 3) == 0.324
    assert not refutes(beyond(squares, radius / 2.5), len(squares), 0.05, alpha)
    assert refutes(beyond(squares, radius / 4), len(squares), 0.05, alpha)


def recorded_example() -> tuple[Head, Gaussian, torch.Tensor]:
    places = torch.arange(5)
    cov = 0.5 ** (places[:, None] - places).abs().double()
    eye = torch.eye(5, dtype=torch.float64)
    return Head(eye, eye, eye, 1.0), Gaussian(torch.zeros_like(eye[0]), cov), eye[0]


def test_mean_square_bound_of_the_recorded_example_is_below_twice_the_exact_one():
    head, law, z = recorded_example()
    exact = gaussian_law(4096, 1.0).mean_square_error(
        float((law.cov @ z).norm() ** 2), 5
    )
    bound = output_bound(head, law, z).mse(4096)
    assert round(float(exact), 6) == 0.004189
    assert exact < bound < 0.00671 < 2 * exact


@pytest.mark.statistical
def test_query_averaged_bound_is_not_refuted_and_needs_its_ceilings(alpha):
    law, n, trials, share = LAWS["gaussian"], 600, 1200, 0.05
    queries = Prompt(torch.stack([Z, -Z / 2, 12 * Z]), tensor([0.5, 0.4, 0.1]).log())
    bound = query_averaged_bound(HEAD, law, queries)
    assert bound.bounds[2].mse(n) == math.inf, "a query beyond any bound of its own"
    generator = torch.Generator().manual_seed(4)
    asked = queries.sample(trials, generator)
    tokens = law.sample(n * trials, generator).reshape(trials, n, 3)
    answers = attend_tokens(
        asked[:, None], tokens, HEAD.key, HEAD.query, HEAD.value, scale=HEAD.scale
    )
    squares = (answers[:, 0] - HEAD.output(law, asked)).square().sum(-1)
    violations = beyond_share(squares, bound.mse(n), share)
    assert not refutes(violations, trials, share, alpha)
    without = 0.5 * bound.bounds[0].mse(n) + 0.4 * bound.bounds[1].mse(n)
    assert refutes(beyond_share(squares, without, share), trials, share, alpha)


@pytest.mark.parametrize("name", NAMES)
def test_moments_agree_with_quadrature_for_every_measure(name):
    measure, nodes = specimen(name)
    d = measure.dim
    places = torch.arange(d)
    at = 0.3 * torch.cos(places.double())
    center = 0.2 * torch.sin(1 + places.double())
    first = torch.eye(d, dtype=torch.float64) + 0.3
    second = torch.diag(1 + places.double())
    points = torch.as_tensor(nodes.points)
    masses = torch.as_tensor(nodes.weights) * torch.exp(points @ at)
    y = points - center

    def mean(values):
        return float((masses * values).sum() / masses.sum())

    squares = [((y @ form) * y).sum(-1) for form in (first, second)]
    assert_close(second_moment(measure, at, center, first), mean(squares[0]))
    assert_close(
        fourth_moment(measure, at, center, first, second), mean(squares[0] * squares[1])
    )
    log_mgf = moments(nodes, at.numpy()).log_mgf
    assert_close(float(measure.log_mgf(at)), float(log_mgf))


def test_gaussian_moments_agree_with_the_general_route_and_with_the_normal_ones():
    law = LAWS["gaussian"]
    assert isinstance(law, Gaussian)
    general = value_moments.dispatch(Measure)
    center = tensor([0.5, -1.0, 0.1])
    assert_close(
        torch.tensor(value_moments(law, HEAD.value, center)[:2]),
        torch.tensor(general(law, HEAD.value, center)),
    )
    line = Gaussian(tensor([0.0]), tensor([[2.0]]))
    normal = value_moments(line, tensor([[1.0]]), tensor([0.0]))
    powers = [2.0**p * math.prod(range(1, 2 * p, 2)) for p in range(1, len(normal) + 1)]
    np.testing.assert_allclose(normal, powers, rtol=1e-12)


def test_gaussian_scalars_are_the_closed_forms():
    law = LAWS["gaussian"]
    assert isinstance(law, Gaussian)
    eye = torch.eye(3, dtype=torch.float64)
    u, cov = tensor([0.5, 0.2, -0.3]), law.cov
    bound = bilinear_gradient_bound(Head(eye, eye, eye, 1.0), law, u)
    shift = cov @ u
    s2, size = float(u @ shift), float(shift @ shift)
    trace, square = float(cov.trace()), float((cov @ cov).trace())
    cube = float(u @ cov @ cov @ cov @ u)
    assert_close(bound.kappa, s2)
    assert_close(bound.tau_squared, trace + size)
    fluctuation = (trace + size) ** 2 + square + 2 * cube
    assert_close(bound.fluctuation, math.exp(s2) * fluctuation)


def test_shifting_the_law_leaves_its_bounds_alone():
    law = LAWS["gaussian"]
    assert isinstance(law, Gaussian)
    shifted = Gaussian(law.mean + tensor([3.0, -1.0, 2.0]), law.cov)
    for bound in (output_bound, value_gradient_bound, bilinear_gradient_bound):
        assert_close(bound(HEAD, shifted, Z).mse(N), bound(HEAD, law, Z).mse(N))


def test_bounds_of_a_tilted_wrapper_exist():
    law = tilt(LAWS["laplace"], tensor([0.1, 0.0, 0.2]))
    assert math.isfinite(output_bound(HEAD, law, Z).mse(N))
    assert math.isfinite(bilinear_gradient_bound(HEAD, law, Z).radius(N, 0.05))


def test_law_of_a_single_token_has_bounds_of_zero():
    law = Prompt(tensor([[0.3, -1.7, 0.9]]))
    for theorem in THEOREMS.values():
        bound = theorem(HEAD, law, Z)
        assert bound.mse(N) == bound.radius(N, 0.05) == 0


def test_doubled_tilt_outside_the_domain_leaves_no_bound_and_says_so():
    eye = torch.eye(3, dtype=torch.float64)
    head, law = Head(eye, eye, eye, 1.0), Laplace(torch.ones(3, dtype=torch.float64))
    z = tensor([0.6, 0.0, 0.0])  # 2u = 1.2 is outside, u is not
    for theorem in THEOREMS.values():
        bound = theorem(head, law, z)
        assert bound.mse(1e12) == math.inf
        assert bound.radius(1e12, 0.05) == math.inf
        assert "at any length" in bound.obstacle(1e12)


def test_quadrupled_tilt_outside_the_domain_leaves_a_radius_and_no_mean_square():
    eye = torch.eye(3, dtype=torch.float64)
    head, law = Head(eye, eye, eye, 1.0), Laplace(torch.ones(3, dtype=torch.float64))
    bound = bilinear_gradient_bound(head, law, tensor([0.3, 0.0, 0.0]))
    assert bound.mse(1e9) == math.inf
    assert math.isfinite(bound.radius(1e9, 0.05))


def test_tilt_outside_the_domain_is_refused():
    eye = torch.eye(3, dtype=torch.float64)
    head, law = Head(eye, eye, eye, 1.0), Laplace(torch.ones(3, dtype=torch.float64))
    with pytest.raises(ValueError, match="must lie in the domain of log_mgf; got"):
        output_bound(head, law, tensor([1.0, 0.0, 0.0]))


def test_law_of_another_dimension_is_refused():
    law = Laplace(torch.ones(2, dtype=torch.float64))
    with pytest.raises(ValueError, match="share the tokens' dimension; got 2 and 3"):
        output_bound(HEAD, law, Z)


def test_covariance_that_is_not_positive_semidefinite_is_refused():
    with pytest.raises(ValueError, match="semidefinite"):
        Gaussian(torch.zeros(2, dtype=torch.float64), tensor([[1.0, 2.0], [2.0, 1.0]]))
