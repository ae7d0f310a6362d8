"""One layer's prompt as attention saw it: what every method of compression is given."""

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import final

from jaxtyping import Bool, Float
from torch import Tensor

from largeprompt.compress.compact import Compact

# what the model's rotary embedding does to queries moved by a number of positions
Rotation = Callable[[Float[Tensor, "*b k"], int], Float[Tensor, "*b k"]]


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LayerPrompt:
    """The keys, values and last queries of one layer; `b` is batch times KV heads.

    Attributes:
        key: Keys after rotary embedding and norms, in the model's dtype.
        value: Values.
        valid: Which positions are tokens; padding is on the left and is no token.
        query: The queries of the last `w` positions, for the `g` query heads that read
            each KV head; all are tokens.
        scale: Logits are `scale * query . key`.
        rotate: Moves queries to later positions; None where positions are not rotary.
    """

    key: Float[Tensor, "b n k"]
    value: Float[Tensor, "b n v"]
    valid: Bool[Tensor, "b n"]
    query: Float[Tensor, "b g w k"]
    scale: float
    rotate: Rotation | None = None


class Compressor(abc.ABC):
    """A method: the whole of a layer's prompt in, fewer numbers out.

    Subclasses are final frozen dataclasses whose fields are the method's settings.
    """

    @abc.abstractmethod
    def compress(self, prompt: LayerPrompt, budget: Float[Tensor, " b"]) -> Compact:
        """Compress a layer.

        Args:
            prompt: The layer's prompt.
            budget: What each KV head may hold, in tokens: `budget * (k + v)` numbers
                of the model's dtype, float32 statistics counted by their bytes. A
                head whose budget is at least its number of tokens is kept exact.

        Raises:
            ValueError: A budget is too small for what the method always keeps.
        """

    def compress_each(
        self, prompt: LayerPrompt, budgets: Sequence[Float[Tensor, " b"]]
    ) -> list[Compact]:
        """Compress a layer once for each of several budgets.

        Methods that can share work between budgets override this.

        Args:
            prompt: The layer's prompt.
            budgets: Budgets that do not decrease, each as in `compress`.

        Raises:
            ValueError: As `compress`, before anything long is done.
        """
        return [self.compress(prompt, budget) for budget in budgets]
