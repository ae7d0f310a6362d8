"""A prompt is a measure: finitely many weighted atoms."""

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from largeprompt.measures import categorical
from largeprompt.measures.base import Measure


@final
@dataclasses.dataclass(frozen=True, eq=False, init=False)
class Prompt(Measure):
    r"""The empirical law of a prompt: $\Lambda(t) = \log \sum_i w_i e^{t \cdot x_i}$.

    Its tilted mean is softmax attention over the atoms. Weights are kept as normalised
    logarithms; an atom of weight zero (a padding token) has log-weight minus infinity.

    Keys that are no linear image of a token (rotary ones, say) need joint atoms
    $(k_i, v_i)$, see `joint`: tilt by $(q, 0)$ and read the value block.

    Attributes:
        atoms: The tokens, one a row.
        log_weights: Logarithms of their probabilities.
    """

    atoms: Float[Tensor, "n d"]
    log_weights: Float[Tensor, " n"]

    def __init__(
        self,
        atoms: Float[Tensor, "n d"],
        log_weights: Float[Tensor, " n"] | None = None,
    ) -> None:
        """Check the atoms and normalise the weights.

        Args:
            atoms: The tokens, one a row.
            log_weights: Logarithms of weights up to a common constant; equal weights
                when left out.

        Raises:
            ValueError: If there is no atom, if shapes disagree, if an atom is not
                finite, or if no weight is positive.
        """
        precise = atoms.is_floating_point() and atoms.dtype.itemsize > 1
        if atoms.ndim != 2 or not precise or atoms.shape[1] == 0:
            raise ValueError(
                "atoms must be a floating-point matrix [n, d] with d >= 1; "
                f"got {atoms.dtype} of shape {tuple(atoms.shape)}"
            )
        n = atoms.shape[0]
        if n == 0:
            raise ValueError("a probability measure needs at least one atom; got n=0")
        if not atoms.isfinite().all():
            raise ValueError("atoms must be finite; got NaN or infinity")
        if log_weights is None:
            log_weights = categorical.uniform(n, like=atoms)
        if log_weights.shape != (n,):
            raise ValueError(
                f"log_weights must hold one number an atom, {n}; "
                f"got shape {tuple(log_weights.shape)}"
            )
        object.__setattr__(self, "atoms", atoms)
        object.__setattr__(self, "log_weights", categorical.normalised(log_weights))

    @classmethod
    def joint(
        cls,
        keys: Float[Tensor, "n k"],
        values: Float[Tensor, "n v"],
        log_weights: Float[Tensor, " n"] | None = None,
    ) -> "Prompt":
        r"""Return the prompt of joint atoms $(k_i, v_i)$ in $\mathbb{R}^{k + v}$."""
        return cls(torch.cat([keys, values], dim=-1), log_weights)

    @property
    @override
    def dim(self) -> int:
        return self.atoms.shape[1]

    @override
    def log_mgf(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        return self._tilted_logits(t).logsumexp(-1)

    @override
    def tilted_mean(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        return self.tilted_weights(t) @ self.atoms

    @override
    def tilted_cov(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d d"]:
        weights = self.tilted_weights(t).unsqueeze(-1)
        centred = self.atoms - self.tilted_mean(t).unsqueeze(-2)  # *batch n d
        return (weights * centred).mT @ centred

    @override
    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        return self.atoms[categorical.draw(self.log_weights, n, generator)]

    def tilted_weights(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch n"]:
        r"""Return the attention weights $w_i e^{t \cdot x_i - \Lambda(t)}$."""
        return self._tilted_logits(t).softmax(-1)

    def _tilted_logits(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch n"]:
        return t @ self.atoms.mT + self.log_weights
