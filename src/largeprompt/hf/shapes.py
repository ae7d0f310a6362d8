"""What a model's configuration says of its size, whatever its architecture."""

import dataclasses
from typing import Self, final

from transformers import PreTrainedModel

from largeprompt.errors import UnsupportedModelError


@final
@dataclasses.dataclass(frozen=True)
class ModelShape:
    """The size of a model.

    Attributes:
        layers: How many layers it has.
        heads: Query heads of a layer.
        kv_heads: Key/value heads of a layer.
        head_dim: Width of a head's queries and keys.
        hidden: Width of the hidden state.
        inner: Width inside a feed-forward layer.
        context: Most tokens of a text; None where the configuration names no limit.
    """

    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    hidden: int
    inner: int
    context: int | None

    @classmethod
    def of(cls, model: PreTrainedModel) -> Self:
        """Return the shape of a model.

        Raises:
            UnsupportedModelError: The model has no attention heads.
        """
        config = model.config.get_text_config()
        heads = getattr(config, "num_attention_heads", None)
        if heads is None:
            raise UnsupportedModelError(
                f"{type(model).__name__} has no attention heads"
            )
        hidden = config.hidden_size
        return cls(
            layers=config.num_hidden_layers,
            heads=heads,
            kv_heads=getattr(config, "num_key_value_heads", None) or heads,
            head_dim=getattr(config, "head_dim", None) or hidden // heads,
            hidden=hidden,
            inner=getattr(config, "intermediate_size", None) or 4 * hidden,
            context=getattr(config, "max_position_embeddings", None),
        )
