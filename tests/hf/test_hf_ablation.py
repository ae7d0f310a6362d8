"""Heads replaced by their linear limit: against the definition, and end to end."""

import numpy as np
import pytest
import torch

from largeprompt.errors import UnsupportedModelError
from largeprompt.hf import ablation_limit, ablation_moments
from largeprompt.hf.ablation_attention import ablated
from largeprompt.hf.ablation_evaluation import Intact
from largeprompt.hf.ablation_limit import Replacement, replaced_attention
from largeprompt.hf.ablation_mass import Bulk, finite_response
from largeprompt.laws import gaussian_law
from largeprompt.testing import close
from tests.hf.tiny import tiny_model, tokens

SCALE = 0.31


def layer(n, groups=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)
    query, key, value = 2 * draw(groups, n, 5), draw(n, 5) + 3, draw(n, 4)
    return query, key, value


def by_definition(query, key, value, replacement, sliding):
    """Every query of every head by itself, from the logits of its own prefix."""
    return torch.stack(
        [
            torch.stack(
                [
                    one_query(q, key[: p + 1], value[: p + 1], replacement, sliding)
                    for p, q in enumerate(head)
                ]
            )
            for head in query
        ]
    )


def one_query(q, key, value, replacement, sliding):
    """Masses without logarithms: small numbers only."""
    p = len(key) - 1
    bulk = [
        j
        for j in range(p + 1)
        if replacement.sinks <= j <= p - replacement.window
        and (sliding is None or j > p - sliding)
    ]
    seen = [j for j in range(p + 1) if sliding is None or j > p - sliding]
    kept = [j for j in seen if j not in bulk]
    masses = [torch.exp(SCALE * q @ key[j]) for j in kept]
    outputs = [value[j] for j in kept]
    if bulk:
        logits, values = SCALE * key[bulk] @ q, value[bulk]
        s = float(logits.std(correction=0))
        shift = ((logits - logits.mean())[:, None] * values).mean(0)
        gain, shrinkage = s**2 / 2, 1.0
        if replacement.bulk is Bulk.FINITE:
            gain = integral(len(bulk), s)
            shrinkage = 1 - float(gaussian_law(len(bulk), s**2).inverse_ess)
        masses.append(len(bulk) * torch.exp(logits.mean() + gain))
        outputs.append(values.mean(0) + shrinkage * shift)
    weights = torch.stack(masses) / sum(masses)
    return weights @ torch.stack(outputs)


def integral(n, s):
    """The gain of log-mass by Gauss-Legendre quadrature of the exact law."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    sigma = s * (nodes + 1) / 2
    shrinkage = 1 - gaussian_law(n, sigma**2).inverse_ess
    return float(weights @ (sigma * shrinkage) * s / 2)


@pytest.mark.parametrize("sliding", [None, 11])
@pytest.mark.parametrize(("sinks", "window"), [(2, 3), (0, 4), (5, 0), (0, 0), (2, 40)])
def test_replaced_attention_is_its_definition_query_by_query(
    monkeypatch, sinks, window, sliding
):
    for module in (ablation_limit, ablation_moments):
        monkeypatch.setattr(module, "BLOCK", 7)  # not a divisor: blocks meet inside
    query, key, value = layer(31)
    replacement = Replacement(sinks, window, Bulk.LIMIT)
    ours = replaced_attention(
        query, key, value, replacement, scale=SCALE, sliding=sliding
    )
    close(ours, by_definition(query, key, value, replacement, sliding))


def test_a_window_off_by_one_is_seen():
    query, key, value = layer(31)
    ours = replaced_attention(
        query, key, value, Replacement(2, 3, Bulk.LIMIT), scale=SCALE, sliding=None
    )
    planted = by_definition(query, key, value, Replacement(2, 4, Bulk.LIMIT), None)
    with pytest.raises(AssertionError, match="not close"):
        close(ours, planted)


def test_finite_bulk_is_the_exact_law_of_as_many_tokens():
    query, key, value = layer(18, seed=1)
    replacement = Replacement(2, 5, Bulk.FINITE)
    ours = replaced_attention(query, key, value, replacement, scale=SCALE, sliding=None)
    theirs = by_definition(query, key, value, replacement, None)
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)  # of the surface


def test_a_window_that_holds_the_prefix_leaves_softmax_attention():
    query, key, value = layer(20)
    ours = replaced_attention(
        query, key, value, Replacement(0, 20), scale=SCALE, sliding=None
    )
    theirs = torch.nn.functional.scaled_dot_product_attention(
        query,
        key.expand(3, -1, -1),
        value.expand(3, -1, -1),
        is_causal=True,
        scale=SCALE,
    )
    close(ours, theirs)


def test_a_bias_of_the_keys_changes_nothing():
    query, key, value = layer(60)
    once, shifted = (
        replaced_attention(
            query, k, value, Replacement(2, 5), scale=SCALE, sliding=None
        )
        for k in (key, key + 1e4)
    )
    torch.testing.assert_close(shifted, once, rtol=1e-7, atol=1e-7)


def test_the_finite_gain_is_the_integral_of_the_exact_law():
    n, s = np.array([2, 60, 1000, 30000]), np.array([0.0, 0.4, 2.0, 9.0])
    gain, shrinkage = finite_response(n[:, None] + 0 * s, s**2 + 0.0 * n[:, None])
    exact = [[integral(int(a), b) for b in s] for a in n]
    np.testing.assert_allclose(gain, exact, rtol=2e-4, atol=1e-9)
    np.testing.assert_allclose(
        shrinkage,
        1 - gaussian_law(n[:, None], s**2).inverse_ess,
        rtol=2e-4,
        atol=1e-6,
    )


def test_the_finite_gain_never_passes_the_largest_token():
    """log sum e^{s g} is at most log n + s max g, and E max g at most sqrt(2 log n)."""
    n = np.array([2.0, 100.0, 1e4])[:, None]
    s = np.array([0.5, 4.0, 19.0, 60.0])
    gain, _ = finite_response(*np.broadcast_arrays(n, s**2))
    assert (gain <= s * np.sqrt(2 * np.log(n))).all()
    literal = s**2 / 2
    assert (literal[-1] > s[-1] * np.sqrt(2 * np.log(n))).all()  # the limit does


def test_wrong_counts_are_refused():
    with pytest.raises(ValueError, match="sinks must be at least 0; got -1"):
        Replacement(sinks=-1)
    with pytest.raises(ValueError, match="window must be at least 0; got -2"):
        Replacement(window=-2)


@pytest.mark.parametrize("name", ["llama", "gemma3", "mistral", "qwen3"])
def test_a_model_with_no_head_replaced_is_bit_equal(name):
    model, text = tiny_model(name), tokens(60)
    with torch.inference_mode():
        before = model(input_ids=text[None]).logits
        with ablated(model, [], Replacement()):
            inside = model(input_ids=text[None]).logits
        with ablated(model, [(0, 1), (2, 5)], Replacement(1, 4)):
            replaced = model(input_ids=text[None]).logits
        after = model(input_ids=text[None]).logits
    assert torch.equal(before, inside)
    assert torch.equal(before, after)
    assert not torch.equal(before, replaced)


def test_replacement_reaches_the_chosen_head_alone():
    """Through a layer's output projection the change has the head's own block only."""
    model, text = tiny_model("llama"), tokens(50)
    seen = []
    projection = model.model.layers[1].self_attn.o_proj
    hook = projection.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    with torch.inference_mode():
        model.base_model(input_ids=text[None])
        with ablated(model, [(1, 4)], Replacement(1, 4)):
            model.base_model(input_ids=text[None])
    hook.remove()
    changed = ((seen[0] - seen[1]).abs() > 1e-5).reshape(50, 6, 10).any(-1)
    assert changed[:, [0, 1, 2, 3, 5]].sum() == 0
    assert changed[:5, 4].sum() == 0  # nothing between the sink and the window yet
    assert changed[8:, 4].all()


def test_effect_is_the_difference_of_two_plain_evaluations():
    model, text = tiny_model("llama"), tokens(90)
    heads, replacement = [(0, 0), (1, 3), (2, 5)], Replacement(2, 6)
    first = replacement.kept
    effect = Intact.read(model, text, first).effect(heads, replacement)
    with torch.inference_mode():
        plain = model(input_ids=text[None]).logits[0, first:-1].double()
        with ablated(model, heads, replacement):
            other = model(input_ids=text[None]).logits[0, first:-1].double()
    target = text[first + 1 :]
    losses = [
        torch.nn.functional.cross_entropy(x, target, reduction="none")
        for x in (plain, other)
    ]
    probabilities = plain.softmax(-1)
    kl = (probabilities * (plain.log_softmax(-1) - other.log_softmax(-1))).sum(-1)
    assert effect.loss == pytest.approx(float(losses[1].mean()), rel=1e-5)
    assert effect.loss_change == pytest.approx(
        float((losses[1] - losses[0]).mean()), rel=1e-3, abs=1e-6
    )
    assert effect.kl == pytest.approx(float(kl.mean()), rel=1e-3, abs=1e-7)
    agreement = (plain.argmax(-1) == other.argmax(-1)).double().mean()
    assert effect.top1_agreement == pytest.approx(float(agreement))
    assert effect.kl > 0


def test_no_head_replaced_has_no_effect():
    effect = Intact.read(tiny_model("gemma3"), tokens(90), 10).effect([], Replacement())
    assert (effect.loss_change, effect.kl, effect.top1_agreement) == (0, 0, 1)


def test_a_model_that_changes_its_logits_is_refused():
    model = tiny_model("llama")
    forward = model.forward

    def capped(*args, **options):
        answer = forward(*args, **options)
        answer.logits = answer.logits.tanh()
        return answer

    model.forward = capped
    with pytest.raises(UnsupportedModelError, match="more to its final hidden states"):
        Intact.read(model, tokens(20), 4)
