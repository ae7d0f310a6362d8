import itertools

import numpy as np
from scipy import special

from largeprompt.audit.bands import band_edges, band_weights
from largeprompt.audit.dependence import autocorrelation, independent_share
from largeprompt.audit.drift_surface import drift_surface
from largeprompt.audit.growth import doublings, shorter_lengths
from largeprompt.laws.correlated import long_run
from largeprompt.laws.drift import drift_law


def walks(n=200, rows=3):
    noise = np.random.default_rng(4).normal(size=(rows, n + 2))
    rows = noise[:, 2:] + 0.8 * noise[:, 1:-1] + 0.3 * noise[:, :-2]
    return rows - rows.mean(-1, keepdims=True)


def test_autocorrelation_is_a_sum_over_pairs():
    rows = walks()
    found = autocorrelation(rows, 50)
    for row, ours in zip(rows, found, strict=True):
        pairs = [(row[: len(row) - lag] * row[lag:]).sum() for lag in range(51)]
        np.testing.assert_allclose(ours, np.array(pairs) / pairs[0], atol=1e-14)
    flat = autocorrelation(np.zeros((1, 9)), 3)
    np.testing.assert_array_equal(flat, [[1, 0, 0, 0]])


def test_independent_share_is_that_of_the_long_run_of_tapered_correlations():
    rows, variance = walks(), np.array([0.0, 1.3, 6.0])
    correlation = autocorrelation(rows, 14)
    tapered = correlation[:, 1:] * (1 - np.arange(1, 15) / 15)
    for index, share in enumerate(independent_share(correlation, variance)):
        law = long_run(variance[index], tapered[index])
        np.testing.assert_allclose(share, min(1.0, law.across_share))
    assert independent_share(correlation, variance)[0] < 0.6  # neighbours are alike


def test_doublings_are_differences_of_softmax_outputs():
    draw = np.random.default_rng(5)
    logits, value = 3 * draw.normal(size=(2, 77)), draw.normal(size=(77, 4))
    lengths = shorter_lengths(77)
    assert lengths == [9, 19, 38]
    found = doublings(logits, value, lengths)
    for row in range(2):
        outputs = [special.softmax(logits[row, :n]) @ value[:n] for n in (*lengths, 77)]
        moved = [((b - a) ** 2).sum() for a, b in itertools.pairwise(outputs)]
        np.testing.assert_allclose(found[row], moved)
    logits[0, :9] = -2000  # a weight that no number holds
    assert np.isnan(doublings(logits, value, lengths)[0, 0])


def test_bands_hold_every_token_once():
    edges = band_edges(100)
    assert edges.tolist() == [0, 1, 2, 3, 4, 8, 16, 32, 64, 100]
    weights = np.random.default_rng(6).dirichlet(np.ones(60), size=2)
    found, share = band_weights(weights, 30, edges)  # tokens 30 to 89
    tokens = np.arange(30, 90)
    for band, (low, high) in enumerate(itertools.pairwise(edges)):
        inside = (tokens >= low) & (tokens < high)
        np.testing.assert_allclose(found[:, band], weights[:, inside].sum(-1))
        np.testing.assert_allclose(share[band], inside.mean())
    np.testing.assert_allclose(found.sum(-1), 1)
    np.testing.assert_allclose(share.sum(), 1)


def test_drift_surface_is_the_exact_law_to_two_percent():
    surface, draw = drift_surface(), np.random.default_rng(7)
    for _ in range(60):
        n, s = np.exp(draw.uniform(np.log(4), np.log(1e5))), draw.uniform(0, 15)
        law = drift_law(n, n, s**2)
        for response, variance in ((0.0, 1.0), (s**2 / 8, 1.0)):
            found = surface.mean_square(n, s**2, response, variance)
            np.testing.assert_allclose(
                found, law.mean_square(response, variance), rtol=0.02
            )
