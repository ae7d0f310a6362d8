"""Moments of a head over a finite prompt: enumeration, quadrature and drawn prompts."""

import itertools

import pytest
import torch

from largeprompt.attention import attend_tokens
from largeprompt.attention.output_moments import OutputMoments, output_moments
from largeprompt.attention.simulation import Simulation
from largeprompt.laws.status import Status
from largeprompt.measures import (
    Affine,
    Gaussian,
    Mixture,
    Prompt,
    Pushforward,
    Rademacher,
    UniformSphere,
)
from largeprompt.testing import close, refutes, refutes_mean
from tests.attention.heads import (
    generator,
    random_gaussian,
    random_head,
    random_vector,
)
from tests.laws.normal_grid import normal_grid


def by_definition(head, prompts, probability, z, measure):
    """Moments over weighted prompts [many, n, d], from `attend` and its definition."""
    outputs = attend_tokens(
        z.unsqueeze(0), prompts, head.key, head.query, head.value, scale=head.scale
    ).squeeze(-2)
    limit = head.output(measure, z)
    deviations = outputs - limit
    weights = torch.softmax(prompts @ head.tilt(z), -1).unsqueeze(-1)
    centred = prompts - (weights * prompts).sum(1, keepdim=True)
    spreads = centred.mT @ (weights * centred)
    return OutputMoments(
        n=prompts.shape[1],
        limit=limit,
        mean=probability @ outputs,
        error=torch.einsum("p,pv,pw->vw", probability, deviations, deviations),
        jacobian=head.value @ torch.einsum("p,pde->de", probability, spreads),
        status=Status.EXACT,
        interval=(0.0, 0.0),
    )


def assert_same(found: OutputMoments, exact: OutputMoments) -> None:
    close(found.limit, exact.limit)
    close(found.mean, exact.mean)
    close(found.error, exact.error)
    close(found.jacobian, exact.jacobian)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_moments_over_a_finite_set_agree_with_enumeration(n):
    atoms = torch.stack([random_vector(seed, 3) for seed in (1, 2, 3)])
    measure = Prompt(atoms, torch.tensor([0.1, -1.0, 0.4], dtype=torch.float64))
    head, z = random_head(4, 3), random_vector(5, 3)
    chosen = torch.tensor(list(itertools.product(range(3), repeat=n)))
    probability = measure.log_weights[chosen].sum(-1).exp()
    exact = by_definition(head, atoms[chosen], probability, z, measure)
    assert_same(output_moments(head, measure, z, n), exact)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_moments_over_a_line_of_gaussian_tokens_agree_with_quadrature(n):
    measure = Gaussian(
        torch.tensor([0.3], dtype=torch.float64),
        torch.tensor([[1.7]], dtype=torch.float64),
    )
    head, z = random_head(6, 1), random_vector(7, 1)
    grid, probability = normal_grid(n)
    prompts = 0.3 + 1.7**0.5 * torch.as_tensor(grid).unsqueeze(-1)
    exact = by_definition(head, prompts, torch.as_tensor(probability), z, measure)
    assert_same(output_moments(head, measure, z, n), exact)


def test_moments_over_a_plane_of_gaussian_tokens_agree_with_quadrature():
    measure = random_gaussian(8, 2)
    head, z = random_head(9, 2), random_vector(10, 2)
    grid, probability = normal_grid(4, step=0.5)
    kept = probability > 1e-16
    root = torch.linalg.cholesky(measure.cov)
    prompts = torch.as_tensor(grid[kept]).reshape(-1, 2, 2) @ root.mT + measure.mean
    exact = by_definition(head, prompts, torch.as_tensor(probability[kept]), z, measure)
    assert_same(output_moments(head, measure, z, 2), exact)


def test_moments_over_a_mixture_of_gaussians_agree_with_quadrature():
    parts = (random_gaussian(11, 1), random_gaussian(12, 1), random_gaussian(13, 1))
    measure = Mixture(parts, torch.tensor([0.2, -0.5, 0.0], dtype=torch.float64))
    head, z = random_head(14, 1), random_vector(15, 1)
    grid, density = map(torch.as_tensor, normal_grid(2))
    prompts, probability = [], []
    for pair in itertools.product(range(3), repeat=2):
        tokens = [
            parts[k].mean + parts[k].cov.sqrt() * grid[:, i : i + 1]
            for i, k in enumerate(pair)
        ]
        prompts.append(torch.stack(tokens, dim=1))
        probability.append(measure.log_weights[list(pair)].sum().exp() * density)
    exact = by_definition(
        head,
        torch.cat(prompts),
        torch.cat(probability),
        z,
        measure,
    )
    assert_same(output_moments(head, measure, z, 2), exact)


def circle(radius: float, center: torch.Tensor) -> UniformSphere:
    return UniformSphere(center, torch.tensor(radius, dtype=torch.float64))


def test_moments_over_a_circle_agree_with_quadrature_over_two_angles():
    measure = circle(1.4, random_vector(16, 2))
    head, z = random_head(17, 2), random_vector(18, 2)
    angles = 2 * torch.pi * torch.arange(120, dtype=torch.float64) / 120
    points = measure.center + 1.4 * torch.stack([angles.cos(), angles.sin()], -1)
    pairs = torch.cartesian_prod(torch.arange(120), torch.arange(120))
    probability = torch.full((120**2,), 120.0**-2, dtype=torch.float64)
    exact = by_definition(head, points[pairs], probability, z, measure)
    assert_same(output_moments(head, measure, z, 2), exact)


def test_moments_over_two_points_are_those_of_a_sphere_in_one_dimension():
    sphere = circle(0.8, torch.tensor([0.1], dtype=torch.float64))
    points = Prompt(torch.tensor([[0.9], [-0.7]], dtype=torch.float64))
    head, z = random_head(19, 1), random_vector(20, 1)
    assert_same(output_moments(head, sphere, z, 9), output_moments(head, points, z, 9))


@pytest.mark.parametrize("d", [2, 3, 7])
def test_moments_over_an_image_are_those_of_the_image_law(d):
    sphere = circle(1.0, torch.zeros(d, dtype=torch.float64))
    center = random_vector(21, d)
    turn = torch.linalg.qr(torch.randn(d, d, generator=generator(22)).double())[0]
    image = Pushforward(sphere, Affine(1.7 * turn, center))
    head, z = random_head(23, d), random_vector(24, d)
    expected = output_moments(head, circle(1.7, center), z, 30)
    assert_same(output_moments(head, image, z, 30), expected)


@pytest.mark.parametrize("n", [1, 2, 40, 10**6])
@pytest.mark.parametrize("scale", [0.0, 0.5, 3.0, 25.0])
def test_two_routes_to_the_moments_over_gaussian_tokens_agree(n, scale):
    gaussian = random_gaussian(25, 3)
    split = Mixture((gaussian, gaussian), torch.zeros(2, dtype=torch.float64))
    head, z = random_head(26, 3, scale=scale), random_vector(27, 3)
    close(
        output_moments(head, split, z, n).error * n,
        output_moments(head, gaussian, z, n).error * n,
    )
    assert_same(output_moments(head, split, z, n), output_moments(head, gaussian, z, n))


def test_expected_jacobian_is_the_derivative_of_the_expected_output():
    gaussian, head = random_gaussian(28, 3), random_head(29, 3)
    z, n, step = random_vector(30, 3), 12, 1e-4
    jacobian = output_moments(head, gaussian, z, n).jacobian @ head.bilinear_form
    for i, axis in enumerate(torch.eye(3, dtype=torch.float64)):
        ahead, behind = (
            output_moments(head, gaussian, z + sign * step * axis, n).mean
            for sign in (1, -1)
        )
        torch.testing.assert_close(
            (ahead - behind) / (2 * step), jacobian[:, i], rtol=1e-6, atol=1e-7
        )


def drawn_errors(measure, head, z, n: int, prompts: int) -> torch.Tensor:
    tokens = measure.sample(prompts * n, generator(31)).reshape(prompts, n, -1)
    outputs = attend_tokens(
        z.unsqueeze(0), tokens, head.key, head.query, head.value, scale=head.scale
    )
    return (outputs.squeeze(-2) - head.output(measure, z)).square().sum(-1)


SHELLS = Mixture(  # an elliptical law: spheres of three radii
    tuple(
        circle(radius, torch.zeros(3, dtype=torch.float64)) for radius in (0.5, 1, 2)
    ),
    torch.tensor([0.0, 0.7, -0.4], dtype=torch.float64),
)


@pytest.mark.statistical
def test_error_over_an_elliptical_law_is_not_refuted_by_drawn_prompts(alpha):
    head, z = random_head(32, 3), random_vector(33, 3)
    errors = drawn_errors(SHELLS, head, z, 17, 30_000)
    claim = output_moments(head, SHELLS, z, 17).mean_square_error
    width = (4 * float(torch.linalg.matrix_norm(head.value, 2))) ** 2
    assert not refutes_mean(errors.numpy(), claim, width, alpha)


@pytest.mark.statistical
def test_error_of_the_gaussian_of_equal_covariance_is_refuted_on_an_elliptical_law(
    alpha,
):
    head, z = random_head(32, 3), random_vector(33, 3)
    errors = drawn_errors(SHELLS, head, z, 17, 30_000)
    zero = torch.zeros(3, dtype=torch.float64)
    gaussian = Gaussian(zero, SHELLS.tilted_cov(zero))
    claim = 2 * output_moments(head, gaussian, z, 17).mean_square_error
    width = (4 * float(torch.linalg.matrix_norm(head.value, 2))) ** 2
    assert refutes_mean(errors.numpy(), claim, width, alpha)


CUBE = Rademacher(torch.ones(3, dtype=torch.float64))
CORNERS = Prompt(
    torch.tensor(list(itertools.product([-1.0, 1.0], repeat=3)), dtype=torch.float64)
)


def misses(shrink: float, repeats: int) -> int:
    """How often the interval of a simulation misses the exact error."""
    head, z, g = random_head(34, 3), random_vector(35, 3), generator(36)
    exact = output_moments(head, CORNERS, z, 6).mean_square_error
    count = 0
    for _ in range(repeats):
        low, high = output_moments(
            head, CUBE, z, 6, simulation=Simulation(400, g)
        ).interval
        middle, radius = (low + high) / 2, shrink * (high - low) / 2
        count += not middle - radius <= exact <= middle + radius
    return count


@pytest.mark.statistical
def test_interval_of_a_simulation_is_not_refuted(alpha):
    assert not refutes(misses(1.0, 300), 300, 0.02, alpha)


@pytest.mark.statistical
def test_half_the_interval_of_a_simulation_is_refuted(alpha):
    assert refutes(misses(0.5, 300), 300, 0.02, alpha)


def test_a_law_without_a_reduction_is_simulated_only_when_asked():
    head, z = random_head(34, 3), random_vector(35, 3)
    with pytest.raises(ValueError, match="no exact finite-prompt law of Rademacher"):
        output_moments(head, CUBE, z, 6)
    mixture = Mixture((CUBE, SHELLS), torch.zeros(2, dtype=torch.float64))
    with pytest.raises(ValueError, match="no exact finite-prompt law of Mixture"):
        output_moments(head, mixture, z, 6)
    simulation = Simulation(50, generator(37))
    found = output_moments(head, CUBE, z, 6, simulation=simulation)
    assert found.status is Status.MONTE_CARLO
    assert found.interval[0] < found.mean_square_error < found.interval[1]
    assert output_moments(head, CORNERS, z, 6).status is Status.EXACT


def test_bad_input_is_refused():
    head, z = random_head(34, 3), random_vector(35, 3)
    with pytest.raises(ValueError, match="n must be a number from 1"):
        output_moments(head, CORNERS, z, 0)
    with pytest.raises(ValueError, match="prompts must be at least 2"):
        Simulation(1, generator(0))
    with pytest.raises(ValueError, match="confidence must be strictly between"):
        Simulation(10, generator(0), confidence=1.0)
