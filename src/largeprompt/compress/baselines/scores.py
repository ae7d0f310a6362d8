"""What tokens weigh in the attention of queries that the prompt has produced itself."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from largeprompt.compress.prompt import LayerPrompt


def mean_weights(prompt: LayerPrompt, queries: int) -> Float[Tensor, "b g n"]:
    """Return the mean attention weight of each token over the last `queries` queries.

    Causal softmax attention over the whole prompt, in float32.
    """
    query = prompt.query[:, :, -queries:].float()
    w, n = query.shape[2], prompt.key.shape[1]
    later = torch.ones(w, n, dtype=torch.bool, device=query.device).triu(n - w + 1)
    return torch.stack(
        [
            (prompt.scale * q @ k.float().mT)
            .masked_fill(later | ~valid, -torch.inf)
            .softmax(-1)
            .mean(-2)
            for q, k, valid in zip(query, prompt.key, prompt.valid, strict=True)
        ]
    )


def pooled_weights(
    prompt: LayerPrompt, queries: int, kernel: int
) -> Float[Tensor, "b n"]:
    """Return the score of [snapkv:24]: mean weights, smoothed in position.

    Args:
        prompt: The layer's prompt.
        queries: How many of the last queries observe.
        kernel: Width of the averaging over neighbouring positions, odd.
    """
    weights = mean_weights(prompt, queries)
    if kernel > 1:
        weights = functional.avg_pool1d(weights, kernel, 1, kernel // 2)
    return weights.mean(1)
