import numpy as np
import pytest
import torch
from scipy import stats

from largeprompt.audit.intervals import median_interval
from largeprompt.audit.operator import covariance, effective_rank


@pytest.mark.parametrize("m", [6, 7, 31, 32, 100])
def test_median_interval_keeps_its_level_and_no_narrower_one_does(m):
    low, high = median_interval(np.arange(m, 0, -1, dtype=np.float64))
    assert low + high == m + 1  # ranks: as many below as above

    def level(rank):  # the median of uniforms between the rank-th smallest and largest
        below = stats.beta(rank, m + 1 - rank).cdf(0.5)
        above = stats.beta(m + 1 - rank, rank).sf(0.5)
        return below + above - 1

    assert level(low) >= 0.95
    assert 2 * (low + 1) > m + 1 or level(low + 1) < 0.95


def test_median_interval_does_not_exist_for_five_queries():
    assert np.isnan(median_interval(np.ones((3, 5)))).all()


def test_covariance_is_that_of_numpy_whatever_the_pieces(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    one, other = (torch.randn(75, d, generator=generator) + 5 for d in (3, 4))
    expected = np.cov(torch.cat([one, other], 1).double().numpy().T, bias=True)[:3, 3:]
    np.testing.assert_allclose(covariance(one, other).numpy(), expected)
    monkeypatch.setattr("largeprompt.audit.operator.PIECE", 13)
    np.testing.assert_allclose(covariance(one, other).numpy(), expected)


def test_effective_rank_counts_equal_singular_values():
    assert effective_rank(torch.tensor([2.0, 2, 2, 0, 0]).double()) == 3
    assert effective_rank(torch.tensor([5.0, 0, 0]).double()) == 1
    assert np.isnan(effective_rank(torch.zeros(3).double()))
