import math
from typing import Any

import mpmath
import pytest
import torch

from largeprompt.measures import (
    Affine,
    Gaussian,
    Laplace,
    Measure,
    Mixture,
    Product,
    Prompt,
    Pushforward,
    Rademacher,
    Tilted,
    UniformCube,
    UniformSphere,
    autodiff,
)
from largeprompt.testing import assert_is_measure, close
from tests.measures.zoo import NAMES, specimen

SIZES = [1e-8, 1e-3, 0.5, 1.0, 30.0, 49.99, 50.01, 1e3, 1e4, 1e6]
BOUNDED = [
    *("prompt", "prompt-of-one-number", "rademacher", "tilted-rademacher"),
    *("uniform-cube", "tilted-cube", "tilted-sphere"),
    *("sphere-1", "sphere-2", "sphere-3", "sphere-4"),
]


def double(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def agrees(actual: torch.Tensor, expected: Any, rounding: float = 0.0) -> bool:
    """Whether eleven digits are right, or the first fifteen decimals."""
    slack = 1e-11 * abs(expected) + 1e-15 + rounding
    return bool(abs(mpmath.mpf(float(actual)) - expected) <= slack)


def outside_laplace() -> list[tuple[Measure, torch.Tensor]]:
    laplace = Laplace(double(0.5, 0.25))
    square = Gaussian(double(0, 0), torch.eye(2, dtype=torch.float64))
    shear = Affine.linear(torch.tensor([[1.0, 0.0], [1.0, 1.0]], dtype=torch.float64))
    t = torch.tensor(
        [[2.0, 0.0], [1e4, 0.0], [1.0, -4.0], [0.3, 0.1]], dtype=torch.float64
    )
    return [
        (laplace, t),
        (Mixture((laplace, square), double(0, 0)), t),
        (Product((laplace, square)), torch.cat([t, t], dim=-1)),
        (Pushforward(laplace, shear), t @ torch.linalg.inv(shear.weight)),
        (Tilted(laplace, double(0.5, -0.5)), t - double(0.5, -0.5)),
    ]


def test_rademacher_head_gives_the_published_value():
    close(Rademacher(double(1)).tilted_mean(double(2)), double(0.9640275800758169))


@pytest.mark.parametrize("size", SIZES)
def test_rademacher_keeps_eleven_digits_at_every_tilt(size):
    measure, t = Rademacher(double(1)), double(size)
    with mpmath.workdps(60):
        x = mpmath.mpf(size)
        assert agrees(measure.log_mgf(t), mpmath.log(mpmath.cosh(x)))
        assert agrees(measure.tilted_mean(t)[0], mpmath.tanh(x))
        assert agrees(measure.tilted_cov(t)[0, 0], 1 / mpmath.cosh(x) ** 2)


@pytest.mark.parametrize("size", SIZES)
def test_uniform_cube_keeps_eleven_digits_at_every_tilt(size):
    measure, t = UniformCube(double(1)), double(size)
    with mpmath.workdps(60):
        x = mpmath.mpf(size)
        assert agrees(measure.log_mgf(t), mpmath.log(mpmath.sinh(x) / x))
        assert agrees(measure.tilted_mean(t)[0], mpmath.coth(x) - 1 / x)
        assert agrees(measure.tilted_cov(t)[0, 0], 1 / x**2 - 1 / mpmath.sinh(x) ** 2)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("d", [1, 2, 3, 5, 101, 102, 257])
def test_uniform_sphere_keeps_eleven_digits_of_the_bessel_functions(d, size):
    measure = UniformSphere(double(*[0] * d), double(1).squeeze())
    t = double(size, *[0] * (d - 1))
    cov = measure.tilted_cov(t)
    with mpmath.workdps(60):
        x, a = mpmath.mpf(size), mpmath.mpf(d) / 2
        zeroth, first, second = (mpmath.hyp0f1(a + i, x**2 / 4) for i in range(3))
        ratio = first / zeroth / d  # I_{d/2}(x) / (x I_{d/2-1}(x))
        along = ratio + x**2 * (second / zeroth / (d * (d + 2)) - ratio**2)
        rounding = 1e-16 * float(ratio)  # of the entries that the matrix adds
        assert agrees(measure.log_mgf(t), mpmath.log(zeroth))
        assert agrees(measure.tilted_mean(t)[0], x * ratio)
        assert agrees(cov[0, 0], along, rounding)
        assert d == 1 or agrees(cov[1, 1], ratio)


def test_uniform_sphere_has_no_seam_where_its_two_routes_meet():
    measure = UniformSphere(double(0, 0, 0), double(1).squeeze())
    border = math.sqrt(50**2 - 0.5**2)
    t = torch.zeros(2, 3, dtype=torch.float64)
    t[:, 1] = border * double(1 - 1e-13, 1 + 1e-13)
    for moment in (measure.log_mgf, measure.tilted_mean, measure.tilted_cov):
        below, above = moment(t)
        torch.testing.assert_close(below, above, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", NAMES)
def test_measure_is_never_nan_under_a_tilt_of_ten_thousand(name, dtype):
    measure = specimen(name, dtype).measure
    for sign in (1, -1):
        t = torch.full((measure.dim,), sign * 1e4, dtype=dtype, requires_grad=True)
        moments = (
            measure.log_mgf(t),
            measure.tilted_mean(t),
            measure.tilted_cov(t),
            *torch.autograd.grad(measure.log_mgf(t), t),
        )
        assert not any(moment.isnan().any() for moment in moments)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", BOUNDED)
def test_bounded_measure_satisfies_the_contract_under_a_tilt_of_ten_thousand(
    name, dtype
):
    measure = specimen(name, dtype).measure
    directions = torch.tensor([[1.0, 0.5, 2.0, -1.0], [-2.0, 1.0, 0.3, 1.0]])
    assert_is_measure(measure, 1e4 * directions[:, : measure.dim].to(dtype))


@pytest.mark.parametrize("case", range(5))
def test_moments_are_infinite_outside_the_domain_and_right_inside(case):
    measure, t = outside_laplace()[case]
    t = t.clone().requires_grad_()
    assert_is_measure(measure, t.detach())
    moments = (measure.log_mgf(t), measure.tilted_mean(t), measure.tilted_cov(t))
    for moment in moments:
        assert moment[:3].isposinf().all()
        assert moment[3].isfinite().all()
        slope = torch.autograd.grad(moment[3].sum(), t, retain_graph=True)[0]
        assert slope.isfinite().all()
    assert autodiff.tilted_mean(measure, t.detach())[:3].isposinf().all()


def test_laplace_is_finite_up_to_the_edge_of_its_domain():
    edge = math.nextafter(2.0, 0.0)
    laplace = Laplace(double(0.5))
    for moment in (laplace.log_mgf, laplace.tilted_mean, laplace.tilted_cov):
        assert moment(double(edge)).isfinite().all()
        assert moment(double(2.0)).isposinf().all()


def test_nan_tilt_gives_nan_and_not_a_number_that_looks_right():
    for measure, _ in outside_laplace():
        t = torch.full((measure.dim,), math.nan, dtype=torch.float64)
        assert measure.tilted_mean(t).isnan().all()


def test_singular_gaussian_stays_a_point_in_the_directions_it_lacks():
    cov = torch.tensor([[1.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
    gaussian = Gaussian(double(3, -2), cov)
    close(gaussian.tilted_mean(1e4 * double(1, -1)), double(3, -2))
    draws = gaussian.sample(20, torch.Generator().manual_seed(3))
    close(draws[:, 0] - draws[:, 1], torch.full((20,), 5.0, dtype=torch.float64))


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Gaussian(double(0), double(1)), "covariance"),
        (lambda: Gaussian(double(0), -torch.ones(1, 1).double()), "semidefinite"),
        (lambda: Gaussian(double(0, 0), double(1, 2, 0, 1).reshape(2, 2)), "symmetric"),
        (lambda: Gaussian(double(math.nan), torch.ones(1, 1).double()), "finite"),
        (lambda: Gaussian(double(0), torch.ones(1, 1)), "one dtype"),
        (lambda: Prompt(torch.zeros(0, 3)), "at least one atom"),
        (lambda: Prompt(torch.zeros(2, 0)), "d >= 1"),
        (lambda: Prompt(torch.full((2, 2), math.inf)), "finite"),
        (lambda: Prompt(torch.zeros(2, 2), torch.zeros(3)), "one number an atom"),
        (lambda: Prompt(torch.zeros(1, 2), torch.tensor([-math.inf])), "positive"),
        (lambda: Prompt(torch.zeros(1, 2), torch.tensor([math.nan])), "NaN"),
        (lambda: Rademacher(double(0)), "positive"),
        (lambda: UniformCube(torch.zeros(0)), "d >= 1"),
        (lambda: Laplace(double(math.inf)), "finite"),
        (lambda: UniformSphere(double(0), double(1)), "radius"),
        (lambda: UniformSphere(double(0), double(-1).squeeze()), "positive"),
        (lambda: Mixture((), torch.zeros(0)), "at least one component"),
        (lambda: Mixture((Laplace(double(1)),), double(0, 0)), "one number"),
        (lambda: Mixture((Laplace(double(1)),), double(-math.inf)), "finite"),
        (lambda: Product(()), "at least one factor"),
        (lambda: Tilted(Laplace(double(1)), double(1)), "log_mgf is finite"),
        (lambda: Tilted(Laplace(double(1)), double(0, 0)), "dimension 1"),
        (
            lambda: Pushforward(Laplace(double(1)), Affine.linear(torch.ones(1, 2))),
            "dimension 1",
        ),
        (lambda: Affine(torch.ones(2, 1), torch.ones(3)), "matrix"),
    ],
)
def test_wrong_parameters_are_refused_with_what_must_hold(
    build, words, without_shape_checks
):
    with pytest.raises(ValueError, match=words):
        build()
