"""Tasks, conventions and presets: laws of the draws, records, refusals."""

import dataclasses
import json
import math

import pytest
import torch
from scipy.stats import chi2

from largeprompt.icl import (
    PRESETS,
    Conventions,
    LogitScale,
    Normaliser,
    RegressionTask,
    TokenLaw,
    decaying_cov,
    preset,
)
from largeprompt.testing import close


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def refutes_covariance(draws, cov, alpha: float) -> bool:
    """Whether centred normal rows refute their covariance: exact chi-square tests.

    Along each whitened axis and along the sum of all, two sides each.
    """
    d = len(cov)
    root = torch.linalg.cholesky(cov)
    white = torch.linalg.solve_triangular(root, draws.reshape(-1, d).mT, upper=False)
    statistics = torch.cat([white, white.sum(0, keepdim=True) / math.sqrt(d)])
    squares = statistics.square().sum(-1).tolist()
    count = white.shape[1]
    share = alpha / (2 * (d + 1))
    low, high = chi2.ppf(share, count), chi2.isf(share, count)
    return any(not low <= s <= high for s in squares)


@pytest.mark.statistical
@pytest.mark.parametrize("name", PRESETS)
def test_draws_have_the_covariances_they_record(name, alpha):
    task = preset(name).task
    prompts = task.sample(3000, 7, generator())
    share = alpha / 4
    assert not refutes_covariance(prompts.x, task.token_cov, share)
    assert not refutes_covariance(prompts.x_query, task.query_cov, share)
    assert not refutes_covariance(prompts.w, task.task_cov, share)
    noise = prompts.y - (prompts.x * prompts.w.unsqueeze(1)).sum(-1)
    if task.noise_variance:
        cov = task.noise_variance * torch.eye(1, dtype=torch.float64)
        assert not refutes_covariance(noise.reshape(-1, 1), cov, share)
    else:
        close(noise, torch.zeros_like(noise))


@pytest.mark.statistical
def test_covariance_of_the_text_is_refuted_by_the_published_draws(alpha):
    published, intended = (
        preset(name).task for name in ("paper-as-published", "paper-intended")
    )
    prompts = published.sample(3000, 7, generator())
    assert refutes_covariance(prompts.x, intended.token_cov, alpha / 4)
    assert refutes_covariance(prompts.x_query, intended.query_cov, alpha / 4)


@pytest.mark.statistical
@pytest.mark.parametrize("target_noise", [True, False])
def test_answers_carry_noise_as_recorded(target_noise, alpha):
    task = dataclasses.replace(preset("he-et-al").task, target_noise=target_noise)
    prompts = task.sample(3000, 2, generator())
    noise = prompts.y_query - (prompts.w * prompts.x_query).sum(-1)
    if target_noise:
        cov = 0.1 * torch.eye(1, dtype=torch.float64)
        assert not refutes_covariance(noise.reshape(-1, 1), cov, alpha)
        assert refutes_covariance(noise.reshape(-1, 1), 1.5 * cov, alpha)
    else:
        close(noise, torch.zeros_like(noise))
    assert task.target_noise_variance == (0.1 if target_noise else 0.0)


def test_coordinates_stay_in_the_support_of_their_law():
    task = dataclasses.replace(
        preset("paper-intended").task, token_law=TokenLaw.RADEMACHER
    )
    root = torch.linalg.cholesky(task.token_cov)
    signs = torch.linalg.solve_triangular(
        root, task.sample(50, 3, generator()).x.mT, upper=False
    )
    close(signs.abs(), torch.ones_like(signs))
    uniform = dataclasses.replace(task, token_law=TokenLaw.UNIFORM)
    places = torch.linalg.solve_triangular(
        root, uniform.sample(500, 3, generator()).x.mT, upper=False
    )
    assert places.abs().max() <= math.sqrt(3) * (1 + 1e-12)
    # a variable in [0, 3]: Hoeffding at 1e-12
    radius = 3 * math.sqrt(math.log(2 / 1e-12) / (2 * places.numel()))
    assert abs(float(places.square().mean()) - 1) < radius


def test_prompts_hold_tokens_and_a_query_without_a_label():
    prompts = preset("he-et-al").task.sample(3, 7, generator())
    assert prompts.tokens.shape == (3, 7, 6)
    assert torch.equal(prompts.tokens[..., -1], prompts.y)
    assert torch.equal(prompts.query[:, -1], torch.zeros(3, dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_draws_follow_the_generator_alone(dtype):
    task = preset("paper-as-published").task
    first, second = (task.sample(3, 5, generator(4), dtype) for _ in range(2))
    assert first.x.dtype == first.y_query.dtype == dtype
    assert torch.equal(first.tokens, second.tokens)
    assert torch.equal(first.y_query, second.y_query)
    assert not torch.equal(first.x, task.sample(3, 5, generator(5), dtype).x)


@pytest.mark.parametrize("name", PRESETS)
def test_options_come_back_from_json(name):
    setting = preset(name)
    record = json.loads(json.dumps(setting.task.options()))
    task = RegressionTask.from_options(record)
    drawn = (t.sample(2, 3, generator()).tokens for t in (setting.task, task))
    assert torch.equal(*drawn)
    assert task.options() == setting.task.options()
    record = json.loads(json.dumps(setting.conventions.options()))
    assert Conventions.from_options(record) == setting.conventions


def test_options_that_are_missing_or_unknown_are_refused():
    options = preset("he-et-al").task.options()
    for record in (
        {k: v for k, v in options.items() if k != "target_noise"},
        {**options, "seed": 0},
    ):
        with pytest.raises(ValueError, match="the options of a task are"):
            RegressionTask.from_options(record)


def condition(cov) -> float:
    values = torch.linalg.eigvalsh(cov)
    return float(values[-1] / values[0])


def test_both_variants_of_the_paper_stand_side_by_side():
    published, intended = (
        preset(name).task for name in ("paper-as-published", "paper-intended")
    )
    assert condition(published.token_cov) == pytest.approx(38.4, abs=0.05)
    assert condition(intended.token_cov) == pytest.approx(6.3, abs=0.05)
    close(intended.query_cov, decaying_cov(5, 0.5))
    close(published.query_cov, torch.eye(5, dtype=torch.float64))
    assert len(preset("paper-intended").lengths) == 19


@pytest.mark.parametrize("name", PRESETS)
def test_presets_answer_to_their_names(name):
    assert preset(name).name == name


def test_an_unknown_preset_names_the_nearest():
    with pytest.raises(ValueError, match="the nearest is 'paper-as-published'"):
        preset("paper_published")


def test_conventions_say_their_numbers():
    assert [scale.factor(4) for scale in LogitScale] == pytest.approx(
        [1.0, 0.5, 1 / math.sqrt(5)]
    )
    assert [n.divisor(7) for n in Normaliser] == [7, 8]
    assert [n.share(math.inf) for n in Normaliser] == [1.0, 1.0]
    assert [Conventions(half_loss=half).loss_factor for half in (True, False)] == [
        0.5,
        1.0,
    ]


EYE = torch.eye(2, dtype=torch.float64)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"token_cov": torch.ones(2, 2).double()}, "token_cov must be positive def"),
        ({"query_cov": -EYE}, "query_cov must be positive definite; got the eigenv"),
        ({"task_cov": torch.eye(3).double()}, "task_cov must be a square matrix"),
        ({"task_cov": EYE + torch.triu(EYE + 1, 1)}, "finite and symmetric"),
        ({"task_cov": EYE * math.nan}, "finite and symmetric"),
        ({"noise_variance": -1.0}, "noise_variance must be a finite number"),
        ({"noise_variance": math.nan}, "noise_variance must be a finite number"),
    ],
)
def test_tasks_refuse_what_is_no_law(change, message):
    task = RegressionTask(EYE, EYE, EYE, 0.1)
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(task, **change)


@pytest.mark.parametrize(("batch", "n"), [(0, 3), (3, 0)])
def test_sample_refuses_empty_batches_and_prompts(batch, n):
    with pytest.raises(ValueError, match="batch and n must be at least 1"):
        RegressionTask(EYE, EYE, EYE, 0.1).sample(batch, n, generator())
