"""What a model's configuration says each attention layer may see."""

from transformers import PretrainedConfig

from largeprompt.errors import UnsupportedModelError

FULL = "full_attention"
SLIDING = "sliding_attention"
BOTH_WAYS = frozenset({"modernbert"})  # whose window reaches as far ahead as back


def documented_window(config: PretrainedConfig, layer: int) -> int | None:
    """Return how many tokens a layer's sliding window holds, None where it sees all.

    `layer_types` decides where the configuration has it; without, a `sliding_window`
    holds for every layer. It counts the query's own token and those before it; in a
    model that reads both ways it is the reach to either side (ModernBERT), or that and
    the query's own token (Gemma).

    Args:
        config: The configuration of the language model.
        layer: The layer's number.

    Raises:
        UnsupportedModelError: The layer's mask is neither causal nor sliding.
    """
    window = _width(config)
    types = getattr(config, "layer_types", None)
    if types is None:
        return window
    if types[layer] == SLIDING:
        return window
    if types[layer] != FULL:
        raise UnsupportedModelError(
            f"layer {layer} is of type {types[layer]}; {FULL} and {SLIDING} are handled"
        )
    return None


def _width(config: PretrainedConfig) -> int | None:
    window = getattr(config, "sliding_window", None)
    if window is None:
        return None
    if getattr(config, "use_bidirectional_attention", False):
        return 2 * window - 1
    return 2 * window + 1 if config.model_type in BOTH_WAYS else window
