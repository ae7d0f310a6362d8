"""What a model's configuration says each attention layer may see."""

from transformers import PretrainedConfig

from largeprompt.errors import UnsupportedModelError

FULL = "full_attention"
SLIDING = "sliding_attention"


def documented_window(config: PretrainedConfig, layer: int) -> int | None:
    """Return the width of a layer's sliding window, None where it sees every token.

    `layer_types` decides where the configuration has it; without, a `sliding_window`
    holds for every layer.

    Args:
        config: The configuration of the language model.
        layer: The layer's number.

    Raises:
        UnsupportedModelError: The layer's mask is neither causal nor sliding.
    """
    window = getattr(config, "sliding_window", None)
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
