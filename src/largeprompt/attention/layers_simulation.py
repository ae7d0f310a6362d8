"""Finite prompts through layers of attention, and how far they are from the limit."""

import dataclasses
from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from largeprompt.attention.layers import AttentionLayer, gaussian_laws, limit_paths
from largeprompt.measures import Affine, Gaussian

BLOCK = 256  # queries at a time: never n x n at once


@torch.no_grad()
def run_layer(
    layer: AttentionLayer, tokens: Float[Tensor, "n d"], *, causal: bool
) -> Float64[Tensor, "n d"]:
    """Return where `n` tokens go that attend to one another.

    Args:
        layer: The layer.
        tokens: The tokens; each is among the keys of its own query.
        causal: Whether a token sees those before it only, and itself.
    """
    tokens = tokens.double()
    moved = layer.residual * tokens
    place = torch.arange(len(tokens), device=tokens.device)
    for head in layer.heads:
        tilts = head.tilt(tokens.to(head.key)).double()
        values = tokens @ head.value.double().mT
        for start in range(0, len(tokens), BLOCK):
            rows = slice(start, start + BLOCK)
            seen = start + BLOCK if causal else len(tokens)
            logits = tilts[rows] @ tokens[:seen].mT
            if causal:
                hidden = place[:seen] > place[rows, None]
                logits = logits.masked_fill(hidden, -torch.inf)
            moved[rows] += logits.softmax(-1) @ values[:seen]
    return moved


@torch.no_grad()
def run_layers(
    layers: Sequence[AttentionLayer], tokens: Float[Tensor, "n d"], *, causal: bool
) -> list[Float64[Tensor, "n d"]]:
    """Return the tokens before the first layer and after each."""
    states = [tokens.double()]
    for layer in layers:
        states.append(run_layer(layer, states[-1], causal=causal))
    return states


@final
@dataclasses.dataclass(frozen=True, eq=False)
class DepthErrors:
    r"""Mean squares over the tokens of each drawn prompt, after each layer.

    Attributes:
        path: $\|x^{(l)}_i - \bar x^{(l)}_i\|^2$: how far a token is from where the
            limit takes it.
        local: The error of layer $l$ alone, on tokens that the limit took up to it; for
            bidirectional attention over independent Gaussian tokens.
        mean: $\|\hat m_l - m_l\|^2$, of the tokens' mean from the law's.
        cov: $\|\hat G_l - G_l\|_F^2$, of their covariance from the law's.
    """

    path: Float64[Tensor, "prompts layers"]
    local: Float64[Tensor, "prompts layers"]
    mean: Float64[Tensor, "prompts layers"]
    cov: Float64[Tensor, "prompts layers"]


@torch.no_grad()
def depth_errors(
    layers: Sequence[AttentionLayer],
    gaussian: Gaussian,
    n: int,
    *,
    prompts: int,
    generator: torch.Generator,
    causal: bool = False,
    first: int = 0,
) -> DepthErrors:
    """Draw prompts and compare them, layer by layer, with the Gaussian recursion.

    Args:
        layers: The layers.
        gaussian: The law of the tokens before the first.
        n: Tokens a prompt.
        prompts: How many prompts to draw.
        generator: The source of the draws.
        causal: Whether tokens see earlier ones only.
        first: The first token that counts; early ones see a short prompt if `causal`.

    Raises:
        ValueError: No layer, no prompt, or no token that counts.
    """
    if not layers or prompts < 1 or not 0 <= first < n:
        raise ValueError(
            "there must be a layer, a prompt and a token that counts; got "
            f"{len(layers)} layers, {prompts} prompts, {n} tokens from {first}"
        )
    laws, paths = gaussian_laws(layers, gaussian), limit_paths(layers, gaussian)
    squares = torch.empty(4, prompts, len(layers), dtype=torch.float64)
    for prompt in range(prompts):
        tokens = gaussian.sample(n, generator).double()
        states = run_layers(layers, tokens, causal=causal)
        for i, layer in enumerate(layers):
            target, state = _apply(paths[i + 1], tokens), states[i + 1]
            alone = run_layer(layer, _apply(paths[i], tokens), causal=causal)
            centred = state - state.mean(0)
            law = laws[i + 1]
            differences = (
                state[first:] - target[first:],
                alone[first:] - target[first:],
                (state.mean(0) - law.mean.double())[None],
                (centred.mT @ centred / n - law.cov.double())[None],
            )
            for kind, difference in enumerate(differences):
                squares[kind, prompt, i] = difference.square().sum() / len(difference)
    return DepthErrors(*squares)


def _apply(path: Affine, tokens: Float64[Tensor, "n d"]) -> Float64[Tensor, "n d"]:
    return tokens @ path.weight.double().mT + path.bias.double()
