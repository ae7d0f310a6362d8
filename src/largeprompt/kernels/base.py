"""What a kernel is: one query step over a compressed or indexed prompt."""

import abc

from jaxtyping import Float
from torch import Tensor

from largeprompt.audit.limits import Answer
from largeprompt.compress.compact import Compact
from largeprompt.compress.indexed import Indexed
from largeprompt.kernels.tail import Tail


class Kernel(abc.ABC):
    """Decoding on one kind of machine.

    `b` counts batch entries times KV heads and `g` the query heads that read each; a
    tilt is the query times the attention scale. Sums are in float32, whatever the
    dtype of keys and values. A head that holds nothing has log-mass minus infinity and
    output zero.
    """

    @abc.abstractmethod
    def decode(
        self, tilt: Float[Tensor, "b g k"], compact: Compact, tail: Tail | None = None
    ) -> Answer:
        """Answer one query step over what is left of a prompt and its tail."""

    @abc.abstractmethod
    def decode_indexed(
        self,
        tilt: Float[Tensor, "b g k"],
        indexed: Indexed,
        keys: int,
        tail: Tail | None = None,
    ) -> Answer:
        """Answer one query step, reading few keys of the prompt.

        Args:
            tilt: The query times the attention scale.
            indexed: The prompt.
            keys: How many keys of a KV head may be read, those that are always read
                included and the tail not; `Indexed.choose` says which.
            tail: Later tokens, all read.
        """
