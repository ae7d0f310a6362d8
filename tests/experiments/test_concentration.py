"""The concentration experiment: what decides its draws, and the published slopes."""

import dataclasses
import functools
import math

import pytest
import torch
from scipy import stats

from largeprompt.attention.output_moments import output_moments
from largeprompt.experiments import (
    PUBLISHED,
    Concentration,
    RandomHeads,
    TokenLaw,
    measure_cells,
    token_law,
)
from largeprompt.experiments.cells import Cell
from largeprompt.experiments.reference_lines import exact_errors, rate_exponent
from largeprompt.experiments.simulation import Quantity
from largeprompt.experiments.slopes import fit_slopes, log_slope, student_interval

SMALL = Concentration(
    laws=(TokenLaw.GAUSSIAN, TokenLaw.SPHERE),
    lengths=(9, 40, 300),
    seeds=2,
    queries=3,
    prompts=4,
    heads=RandomHeads(dim=3, bilinear_norm=0.3, value_norm=0.75),
    bounds=False,
)


def cells_of(experiment: Concentration) -> list[Cell]:
    return [cell for group in measure_cells(experiment) for cell in group]


@functools.cache
def small_cells() -> list[Cell]:
    return cells_of(SMALL)


@functools.cache
def published_slopes(bilinear_norm: float):
    heads = RandomHeads(dim=4, bilinear_norm=bilinear_norm, value_norm=0.75)
    experiment = dataclasses.replace(PUBLISHED, heads=heads, prompts=8, bounds=False)
    return fit_slopes(cells_of(experiment), 0.95)


def test_published_settings_reproduce_the_published_slopes():
    slopes = published_slopes(PUBLISHED.heads.description()["bilinear_norm"])
    assert len(slopes) == 3 * 3
    for slope in slopes:
        assert -1.109 < slope.slope < -0.832
        assert slope.asymptotic == -1


def test_heads_ten_times_as_sharp_fall_outside_the_published_slopes():
    slopes = [slope for slope in published_slopes(2.2) if slope.quantity == "output"]
    assert all(slope.slope > -0.832 for slope in slopes)
    assert all(slope.asymptotic and slope.asymptotic > -0.5 for slope in slopes)


def test_exact_slopes_agree_with_the_measured_ones_where_they_are_known():
    for slope in published_slopes(0.22):
        assert (slope.exact is None) == (slope.quantity == "U gradient")
        if slope.exact is not None:
            assert slope.exact == pytest.approx(-0.998, abs=0.01)
            assert slope.least <= slope.exact <= slope.most


def test_equal_experiments_have_equal_cells_and_another_seed_has_others():
    assert cells_of(SMALL) == small_cells()
    other = cells_of(dataclasses.replace(SMALL, seed=1))
    pairs = zip(other, small_cells(), strict=True)
    assert all(a.mean_square != b.mean_square for a, b in pairs)


def test_cells_do_not_depend_on_other_laws_seeds_or_lengths():
    fewer = dataclasses.replace(SMALL, laws=(TokenLaw.SPHERE,), lengths=(40, 300))
    more = dataclasses.replace(fewer, seeds=3)
    whole = {(c.law, c.seed, c.quantity): c.mean_square for c in small_cells()}
    for cell in cells_of(more):
        if cell.seed < SMALL.seeds:
            expected = whole[cell.law, cell.seed, cell.quantity][1:]
            assert cell.mean_square == expected


def test_bounds_hold_and_are_left_out_on_request():
    assert {b for cell in small_cells() for b in cell.bound} == {math.inf}
    proven = dataclasses.replace(SMALL, bounds=True, laws=(TokenLaw.GAUSSIAN,))
    for cell in cells_of(proven):
        assert cell.bound[-1] < math.inf
        if cell.exact is not None:
            pairs = zip(cell.bound, cell.exact, strict=True)
            assert all(bound > exact for bound, exact in pairs)


@pytest.mark.parametrize("law", [TokenLaw.DECAYING, TokenLaw.CONDITION_8])
def test_exact_errors_are_the_traces_of_the_matrix_form(law):
    generator = torch.Generator().manual_seed(5)
    head = RandomHeads(3, 0.6, 0.9).draw(generator)
    measure = token_law(law, 3)
    queries = torch.randn(4, 3, generator=generator, dtype=torch.float64)
    whole = dataclasses.replace(head, value=torch.eye(3, dtype=torch.float64))
    for quantity, reader, copies in (
        (Quantity.OUTPUT, head, 1),
        (Quantity.VALUE_GRADIENT, whole, 3),
    ):
        ours = exact_errors(head, measure, queries, quantity, [20])
        theirs = [
            output_moments(reader, measure, z, 20).mean_square_error for z in queries
        ]
        assert ours == pytest.approx([copies * sum(theirs) / len(theirs)])


def test_no_exact_law_is_claimed_where_none_is_known():
    head = RandomHeads(3, 0.6, 0.9).draw(torch.Generator().manual_seed(5))
    z = torch.ones(1, 3, dtype=torch.float64)
    cube, normal = token_law(TokenLaw.CUBE, 3), token_law(TokenLaw.GAUSSIAN, 3)
    assert exact_errors(head, cube, z, Quantity.OUTPUT, [20]) is None
    assert exact_errors(head, normal, z, Quantity.BILINEAR_GRADIENT, [20]) is None
    assert rate_exponent(head, cube, Quantity.OUTPUT) is None
    sharp = RandomHeads(3, 3.0, 0.9).draw(torch.Generator().manual_seed(5))
    assert rate_exponent(sharp, normal, Quantity.BILINEAR_GRADIENT) is None
    assert rate_exponent(head, normal, Quantity.BILINEAR_GRADIENT) == 1


def test_slope_of_a_power_is_its_exponent():
    lengths = [3, 10, 50, 700]
    assert log_slope(lengths, [2 * n**-0.7 for n in lengths]) == pytest.approx(-0.7)
    with pytest.raises(ValueError, match=r"above 0 to have a slope; got 0\.0"):
        log_slope(lengths, [1.0, 0.5, 0.0, 0.1])


def test_interval_of_slopes_is_that_of_the_t_test():
    values = [-1.02, -0.97, -1.0, -0.91, -1.1]
    theirs = stats.ttest_1samp(values, 0.0).confidence_interval(0.9)
    assert student_interval(values, 0.9) == pytest.approx((theirs.low, theirs.high))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"lengths": (16,)},
            "lengths must be at least two, increasing, from 1; got 16",
        ),
        ({"lengths": (32, 16)}, "lengths must be at least two, increasing"),
        ({"lengths": (0, 16)}, "lengths must be at least two, increasing, from 1"),
        ({"laws": ()}, "laws must be at least one, each once; got none"),
        ({"laws": (TokenLaw.CUBE,) * 2}, "each once; got cube, cube"),
        ({"seeds": 1}, "seeds must be at least 2; got 1"),
        ({"queries": 0}, "queries must be at least 1; got 0"),
        ({"prompts": 1}, "prompts must be at least 2; got 1"),
        ({"seed": -1}, "seed must be at least 0; got -1"),
        ({"confidence": 1.0}, "confidence must lie strictly between 0 and 1; got 1.0"),
    ],
)
def test_experiment_without_slopes_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(SMALL, **change)
