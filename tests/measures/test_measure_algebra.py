import pytest
import torch

from largeprompt.measures import (
    Affine,
    Gaussian,
    Measure,
    Mixture,
    Product,
    Prompt,
    Pushforward,
    Rademacher,
    Tilted,
    UniformCube,
    pushforward,
    tilt,
)
from largeprompt.testing import assert_is_measure, close
from tests.measures.zoo import NAMES, specimen, tilts

CLOSED_UNDER_TILTING = (Gaussian, Mixture, Product, Prompt, Pushforward, Tilted)
CLOSED_UNDER_PUSHING = (Gaussian, Mixture, Prompt, Pushforward)


def map_from(dim: int) -> Affine:
    generator = torch.Generator().manual_seed(5)
    weight = torch.randn(3, dim, generator=generator, dtype=torch.float64)
    bias = torch.randn(3, generator=generator, dtype=torch.float64)
    return Affine(weight / 4, bias)


def assert_same_law(one: Measure, other: Measure) -> None:
    t = tilts(one) / 2
    close(one.log_mgf(t), other.log_mgf(t))
    close(one.tilted_mean(t), other.tilted_mean(t))
    close(one.tilted_cov(t), other.tilted_cov(t))


@pytest.mark.parametrize("name", NAMES)
def test_tilt_keeps_closed_families_and_equals_the_definition(name):
    measure = specimen(name).measure
    by = tilts(measure)[1, 0] / 2
    tilted = tilt(measure, by)
    assert isinstance(measure, CLOSED_UNDER_TILTING) == (type(tilted) is type(measure))
    assert_is_measure(tilted, tilts(measure) / 2)
    assert_same_law(tilted, Tilted(measure, by))


@pytest.mark.parametrize("name", NAMES)
def test_pushforward_keeps_closed_families_and_equals_the_definition(name):
    measure = specimen(name).measure
    image = pushforward(measure, map_from(measure.dim))
    assert isinstance(measure, CLOSED_UNDER_PUSHING) == (type(image) is type(measure))
    assert_is_measure(image, tilts(image) / 2)
    assert_same_law(image, Pushforward(measure, map_from(measure.dim)))


@pytest.mark.parametrize("name", NAMES)
def test_tilting_twice_is_tilting_by_the_sum(name):
    measure = specimen(name).measure
    first, second = tilts(measure)[1] / 3
    assert_same_law(tilt(tilt(measure, first), second), tilt(measure, first + second))


@pytest.mark.parametrize("name", NAMES)
def test_pushing_twice_is_pushing_by_the_composition(name):
    measure = specimen(name).measure
    first, second = map_from(measure.dim), map_from(3)
    assert_same_law(
        pushforward(pushforward(measure, first), second),
        pushforward(measure, second.after(first)),
    )


@pytest.mark.parametrize("name", NAMES)
def test_tilting_an_image_is_tilting_before_the_map(name):
    measure = specimen(name).measure
    by = map_from(measure.dim)
    t = torch.tensor([0.2, -0.1, 0.3], dtype=torch.float64)
    assert_same_law(
        tilt(pushforward(measure, by), t),
        pushforward(tilt(measure, t @ by.weight), by),
    )


def test_tilted_gaussian_moves_its_mean_and_keeps_its_covariance():
    gaussian = specimen("gaussian").measure
    assert isinstance(gaussian, Gaussian)
    by = torch.tensor([0.5, 2.0], dtype=torch.float64)
    tilted = tilt(gaussian, by)
    assert isinstance(tilted, Gaussian)
    close(tilted.mean, gaussian.mean + gaussian.cov @ by)
    assert tilted.cov is gaussian.cov


def test_image_of_a_singular_gaussian_under_a_map_that_kills_it_is_a_point():
    factor = torch.tensor([[0.1], [0.3], [0.7]], dtype=torch.float64)
    gaussian = Gaussian(factor.squeeze(), factor @ factor.mT)
    kill = Affine.linear(torch.tensor([[3.0, -1.0, 0.0]], dtype=torch.float64))
    image = pushforward(gaussian, kill)
    t = 1e4 * torch.ones(1, dtype=torch.float64)
    close(image.tilted_mean(t), torch.zeros_like(t))
    assert image.sample(5, torch.Generator().manual_seed(0)).isfinite().all()


def test_product_of_signs_is_the_law_of_several_signs():
    scale = torch.tensor([1.0, 0.5, 2.0], dtype=torch.float64)
    assert_same_law(
        Product(tuple(Rademacher(s.reshape(1)) for s in scale)), Rademacher(scale)
    )


def test_mixture_of_one_is_its_component_and_of_twins_too():
    cube = UniformCube(torch.tensor([1.0, 2.0], dtype=torch.float64))
    weights = torch.tensor([0.3, -1.2], dtype=torch.float64)
    assert_same_law(Mixture((cube,), weights[:1]), cube)
    assert_same_law(Mixture((cube, cube), weights), cube)


def test_tilting_out_of_the_domain_is_refused():
    laplace = specimen("laplace").measure
    outside = torch.tensor([0.0, 2.0], dtype=torch.float64)
    inside = torch.tensor([0.0, 1.0], dtype=torch.float64)
    mixture = Mixture((laplace, specimen("gaussian").measure), inside)
    image = pushforward(laplace, Affine.linear(torch.eye(2, dtype=torch.float64)))
    for measure in (laplace, mixture, image, tilt(laplace, inside)):
        with pytest.raises(ValueError, match="log_mgf is finite"):
            tilt(measure, outside)


def families() -> list[Measure]:
    """A measure of dimension 2 of each kind that `tilt` and `pushforward` know."""
    zeros, eye = torch.zeros(2).double(), torch.eye(2).double()
    gaussian, cube = Gaussian(zeros, eye), UniformCube(torch.ones(2).double())
    return [
        gaussian,
        cube,
        Prompt(eye),
        Mixture((gaussian, cube), zeros),
        Product((UniformCube(torch.ones(1).double()),) * 2),
        Pushforward(cube, Affine.linear(eye)),
        Tilted(cube, zeros),
    ]


@pytest.mark.parametrize("measure", families(), ids=lambda m: type(m).__name__)
def test_a_tilt_or_a_map_of_another_dimension_is_refused(measure, without_shape_checks):
    for wrong in (1, 3):
        with pytest.raises(ValueError, match="vector of dimension 2"):
            tilt(measure, torch.zeros(wrong).double())
        with pytest.raises(ValueError, match="start from dimension 2"):
            pushforward(measure, Affine.linear(torch.ones(2, wrong).double()))
