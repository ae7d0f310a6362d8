import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
import torch
from numpy.typing import NDArray

from largeprompt.measures import (
    Laplace,
    Measure,
    Mixture,
    Prompt,
    Rademacher,
    UniformCube,
    UniformSphere,
    sample_tilted,
    tilt,
)
from largeprompt.testing import refutes
from tests.measures.zoo import NAMES, specimen

Array = NDArray[np.float64]
DRAWS = 40_000


def double(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def projection(measure: Measure) -> torch.Tensor:
    """A direction in general position."""
    return double(0.9, -0.4, 0.6, 0.2, -0.5, 0.3)[: measure.dim]


def chernoff_refutes(measure: Measure, draws: torch.Tensor, alpha: float) -> bool:
    r"""Whether the mean of the draws along a direction refutes `log_mgf` at `alpha`.

    Cramer and Chernoff, at every n: $P(n \sup_\lambda (\lambda \bar y -
    \Lambda(\lambda e)) > \log(2/\alpha)) \le \alpha$, the supremum over any set.
    """
    direction = projection(measure)
    sizes = torch.logspace(-3, -0.2, 60, dtype=torch.float64)
    sizes = torch.cat([sizes, -sizes])
    mean = (draws @ direction).mean()
    cumulants = measure.log_mgf(sizes.unsqueeze(-1) * direction)
    return bool(len(draws) * (sizes * mean - cumulants).max() > math.log(2 / alpha))


def dkw_refutes(values: Array, cdf: Callable[[Array], Array], alpha: float) -> bool:
    r"""Whether the draws refute a distribution function, continuous or not.

    Dvoretzky, Kiefer and Wolfowitz with Massart's constant, at every n:
    $P(\sup |F_n - F| > \sqrt{\log(2/\alpha)/(2n)}) \le \alpha$.
    """
    points, counts = np.unique(values, return_counts=True)
    above = np.cumsum(counts) / len(values)
    below = above - counts / len(values)
    distance = max(
        np.abs(above - cdf(points)).max(),
        np.abs(below - cdf(np.nextafter(points, -np.inf))).max(),
    )
    return bool(distance > math.sqrt(math.log(2 / alpha) / (2 * len(values))))


def tabulated(density: Callable[[Array], Array], low: float, high: float):
    """The distribution function of an unnormalised density, by quadrature."""
    grid = np.linspace(low, high, 20_001)
    mass = scipy.integrate.cumulative_trapezoid(density(grid), grid, initial=0)
    return lambda x: np.interp(x, grid, mass / mass[-1])


def marginals() -> dict[str, tuple[Measure, torch.Tensor, Callable[[Array], Array]]]:
    """Laws, a direction each, and the distribution function of the projection."""
    gaussian, singular = specimen("gaussian").measure, specimen("gaussian-singular")
    cube, sphere = UniformCube(double(1.5, 0.8)), specimen("sphere-4").measure
    prompt, rademacher = specimen("prompt"), Rademacher(double(0.5, 2))
    laplace, origin = Laplace(double(0.4, 0.7)), double(0, 0, 0, 0)
    fisher = UniformSphere(origin, double(1).squeeze())
    first, one = double(1, 0), double(1)
    spread = float(
        projection(gaussian) @ gaussian.tilted_cov(first) @ double(0.9, -0.4)
    )
    center = float(projection(gaussian) @ gaussian.tilted_mean(0 * first))
    height = tabulated(lambda h: np.exp(3 * h) * np.sqrt(1 - h**2), -1, 1)
    order = np.argsort(prompt.nodes.points[:, 0])
    steps = prompt.nodes.points[order, 0], np.cumsum(prompt.nodes.weights[order])
    return {
        "gaussian": (
            gaussian,
            projection(gaussian),
            scipy.stats.norm(center, math.sqrt(spread)).cdf,
        ),
        "gaussian-singular": (
            singular.measure,
            double(1, 0, 0),
            scipy.stats.norm(0.1, math.sqrt(1.04)).cdf,
        ),
        "uniform-cube": (cube, first, scipy.stats.uniform(-1.5, 3).cdf),
        "rademacher": (
            rademacher,
            double(0, 1),
            lambda x: 0.5 * (x >= -2) + 0.5 * (x >= 2),
        ),
        "laplace": (laplace, first, scipy.stats.laplace(0, 0.4).cdf),
        "sphere-1": (
            UniformSphere(0 * one, one.squeeze()),
            one,
            lambda x: 0.5 * (x >= -1) + 0.5 * (x >= 1),
        ),
        "sphere-4": (
            sphere,
            double(1, 0, 0, 0),
            scipy.stats.beta(1.5, 1.5, loc=-1.7, scale=2.8).cdf,
        ),
        "prompt": (
            prompt.measure,
            double(1, 0, 0),
            lambda x: np.append(0, steps[1])[np.searchsorted(steps[0], x, "right")],
        ),
        "tilted-cube": (
            tilt(cube, double(-1.2, 0)),
            first,
            tabulated(lambda x: np.exp(-1.2 * x), -1.5, 1.5),
        ),
        "tilted-cube-across": (
            tilt(cube, double(-1.2, 0)),
            double(0, 1),
            scipy.stats.uniform(-0.8, 1.6).cdf,
        ),
        "tilted-rademacher": (
            tilt(rademacher, double(0.6, -0.3)),
            double(0, 1),
            lambda x: (x >= -2) / (1 + math.exp(-1.2)) + (x >= 2) / (1 + math.exp(1.2)),
        ),
        "tilted-laplace": (
            tilt(laplace, double(1.5, 0)),
            first,
            tabulated(lambda x: np.exp(1.5 * x - np.abs(x) / 0.4), -12, 40),
        ),
        "tilted-sphere": (tilt(fisher, double(0, 3, 0, 0)), double(0, 1, 0, 0), height),
        "tilted-sphere-1": (
            tilt(UniformSphere(0 * one, one.squeeze()), -one),
            one,
            lambda x: (x >= -1) / (1 + math.exp(-2)) + (x >= 1) / (1 + math.exp(2)),
        ),
    }


@pytest.mark.statistical
@pytest.mark.parametrize("name", NAMES)
def test_draws_do_not_refute_log_mgf(name, alpha):
    measure = specimen(name).measure
    assert not chernoff_refutes(measure, measure.sample(DRAWS, seeded()), alpha)


@pytest.mark.statistical
@pytest.mark.parametrize("name", NAMES)
def test_draws_that_are_off_by_a_tenth_refute_log_mgf(name, alpha):
    measure = specimen(name).measure
    shifted = measure.sample(DRAWS, seeded()) + 0.1 * projection(measure)
    assert chernoff_refutes(measure, shifted, alpha)


@pytest.mark.statistical
@pytest.mark.parametrize("name", marginals())
def test_draws_do_not_refute_the_marginal_law(name, alpha):
    measure, direction, cdf = marginals()[name]
    values = (measure.sample(DRAWS, seeded()) @ direction).numpy()
    assert not dkw_refutes(values, cdf, alpha)


@pytest.mark.statistical
@pytest.mark.parametrize("name", marginals())
def test_draws_that_are_too_wide_by_a_tenth_refute_the_marginal_law(name, alpha):
    measure, direction, cdf = marginals()[name]
    values = (measure.sample(DRAWS, seeded()) @ direction).numpy()
    assert dkw_refutes(1.1 * values, cdf, alpha)


def quadrant_counts(draws: torch.Tensor) -> list[int]:
    """How many draws fall into each sign pattern of the first two coordinates."""
    up, right = draws[:, 0] > 0, draws[:, 1] > 0
    patterns = (up & right, up & ~right, ~up & right, ~up & ~right)
    return [int(pattern.sum()) for pattern in patterns]


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [Rademacher, UniformCube, Laplace])
def test_coordinates_fall_into_every_quadrant_equally_often(kind, alpha):
    draws = kind(double(0.5, 2)).sample(DRAWS, seeded())
    for count in quadrant_counts(draws):
        assert not refutes(count, DRAWS, 0.25, alpha / 8)
        assert not refutes(DRAWS - count, DRAWS, 0.75, alpha / 8)


@pytest.mark.statistical
def test_coordinates_that_share_their_sign_are_refuted(alpha):
    draws = UniformCube(double(0.5)).sample(DRAWS, seeded()).expand(-1, 2)
    counts = quadrant_counts(draws)
    assert any(refutes(count, DRAWS, 0.25, alpha / 8) for count in counts)


def first_half_in_the_left_cluster(draws: torch.Tensor) -> int:
    return int((draws[: DRAWS // 2, 0] < 0).sum())


def two_clusters() -> Mixture:
    clusters = Prompt(double(-5).reshape(1, 1)), Prompt(double(5).reshape(1, 1))
    return Mixture(clusters, double(0, 0))


@pytest.mark.statistical
def test_mixture_draws_come_in_no_order(alpha):
    count = first_half_in_the_left_cluster(two_clusters().sample(DRAWS, seeded()))
    assert not refutes(count, DRAWS // 2, 0.5, alpha / 2)
    assert not refutes(DRAWS // 2 - count, DRAWS // 2, 0.5, alpha / 2)


@pytest.mark.statistical
def test_mixture_draws_in_order_are_refuted(alpha):
    draws = two_clusters().sample(DRAWS, seeded()).sort(0).values
    assert refutes(first_half_in_the_left_cluster(draws), DRAWS // 2, 0.5, alpha / 2)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("size", [0.0, 1e-6, 1e4])
@pytest.mark.parametrize("name", ["uniform-cube", "rademacher", "sphere-1", "sphere-4"])
def test_tilted_draws_stay_on_the_support_at_every_tilt(name, size, dtype):
    measure = specimen(name, dtype).measure
    by = size * projection(measure).to(dtype)
    draws = tilt(measure, by).sample(50, seeded())
    assert draws.dtype == dtype
    centred = (draws - measure.tilted_mean(torch.zeros_like(by))).double()
    slack = 1 + 8 * torch.finfo(dtype).eps
    if isinstance(measure, UniformSphere):
        assert (centred.norm(dim=-1) <= 1.4 * slack).all()
        assert (centred.norm(dim=-1) * slack >= 1.4).all()
    else:
        extent = measure.tilted_mean(torch.full_like(by, 1e8))
        assert (centred.abs() <= extent * slack).all()


def test_sampler_of_a_tilted_law_that_nobody_registered_says_so():
    with pytest.raises(TypeError, match="register"):
        sample_tilted(specimen("gaussian").measure, double(0, 0), 3, seeded())
