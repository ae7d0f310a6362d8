"""A cell's random numbers: Philox by its published rounds, and nothing else."""

import pytest
import torch

from largeprompt.experiments.sweep import Key
from largeprompt.testing import refutes

WORD = 2**64
MULTIPLIERS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
WEYL = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B


def philox(counter: tuple[int, ...], key: tuple[int, int]) -> int:
    """The first word of ten rounds of Philox 4x64, in whole numbers."""
    for _ in range(10):
        high0, low0 = divmod(MULTIPLIERS[0] * counter[0], WORD)
        high1, low1 = divmod(MULTIPLIERS[1] * counter[2], WORD)
        counter = (high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0)
        key = ((key[0] + WEYL[0]) % WORD, (key[1] + WEYL[1]) % WORD)
    return counter[0]


@pytest.mark.parametrize("step", [0, 1, 17, 2**40])
def test_the_number_of_a_step_is_that_of_the_published_counter(step):
    key = Key.of({"n": 9, "seed": 4})
    # numpy's generator moves its counter on before it draws
    assert key.number(step) == philox((1, step, 0, 0), key.words) >> 1


def test_a_key_depends_on_every_value_and_not_on_their_order():
    key = Key.of({"n": 9, "seed": 4})
    assert key == Key.of({"seed": 4, "n": 9})
    others = [{"n": 9, "seed": 5}, {"n": 9}, {"n": 9.5, "seed": 4}]
    assert len({key, *map(Key.of, others)}) == 4


def test_a_generator_is_a_function_of_key_and_step():
    key = Key.of({"seed": 1})
    draws = [torch.randn(3, generator=key.generator(step)) for step in (0, 1, 0)]
    assert draws[0].equal(draws[2])
    assert not draws[0].equal(draws[1])
    with pytest.raises(ValueError, match="step must be at least 0"):
        key.generator(-1)


def disagreements(first: list[int], second: list[int]) -> int:
    return sum((a ^ b) >> 62 for a, b in zip(first, second, strict=True))


@pytest.mark.statistical
def test_neighbouring_cells_and_steps_draw_independently(alpha):
    trials = 4000
    cells = [Key.of({"seed": seed}).number(0) for seed in range(trials + 1)]
    steps = [Key.of({"seed": 0}).number(step) for step in range(trials + 1)]
    for numbers in (cells, steps):
        apart = disagreements(numbers[:-1], numbers[1:])
        for violations in (apart, trials - apart):
            assert not refutes(violations, trials, 0.5, alpha / 4)


@pytest.mark.statistical
def test_cells_that_share_their_draws_would_be_refuted(alpha):
    trials = 4000
    numbers = [Key.of({"seed": seed // 2}).number(0) for seed in range(trials + 1)]
    apart = disagreements(numbers[:-1], numbers[1:])
    assert refutes(trials - apart, trials, 0.5, alpha)
