"""A head of softmax attention, as an operator on the law of the tokens."""

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.measures import Affine, Gaussian, Measure


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Head:
    r"""The map $T[\mu](z) = V\,\nabla\Lambda_\mu(U z)$ with $U = \lambda K^\top Q$.

    On a `Prompt` this is softmax attention over its tokens; on any other measure, its
    limit for long prompts (Boursier and Boyer (2026)). With $C$ the covariance and $m$
    the mean of the measure tilted by $U z$, the Jacobians are

    $$ \partial T_a/\partial U_{ij} = (V C)_{ai} z_j, \quad
       \partial T_a/\partial V_{bi} = \delta_{ab} m_i, \quad
       \partial T/\partial z = V C U . $$

    Attributes:
        key: The matrix $K$, from tokens to keys.
        query: The matrix $Q$, from the query's token to the query.
        value: The matrix $V$, from tokens to values.
        scale: The factor $\lambda$ of the logits, often $1/\sqrt{k}$; no default, as
            conventions differ.
    """

    key: Float[Tensor, "k d"]
    query: Float[Tensor, "k e"]
    value: Float[Tensor, "v d"]
    scale: float

    def __post_init__(self) -> None:
        """Check that the matrices fit together."""
        shapes = [tuple(m.shape) for m in (self.key, self.query, self.value)]
        if any(len(shape) != 2 for shape in shapes):
            raise ValueError(f"key, query and value must be matrices; got {shapes}")
        (k, d), (k_of_query, _), (_, d_of_value) = shapes
        if k != k_of_query or d != d_of_value:
            raise ValueError(
                "key [k, d], query [k, e] and value [v, d] must share k and d; "
                f"got {shapes}"
            )

    @classmethod
    def joint(
        cls,
        key_dim: int,
        value_dim: int,
        *,
        scale: float,
        dtype: torch.dtype = torch.float64,
    ) -> "Head":
        r"""Return the head that reads joint atoms $(k, v)$ with a query in key space.

        Its tilt is $(\lambda q, 0)$ and its output the value block of the tilted mean.
        Use it with `Prompt.joint`, or with any law on $\mathbb{R}^{k+v}$.
        """
        both = torch.eye(key_dim + value_dim, dtype=dtype)
        keys, values = both.split([key_dim, value_dim])
        return cls(keys, torch.eye(key_dim, dtype=dtype), values, scale)

    @property
    def bilinear_form(self) -> Float[Tensor, "d e"]:
        r"""The matrix $U$: the logit of a token $x$ is $x^\top U z$."""
        return self.scale * self.key.mT @ self.query

    def tilt(self, z: Float[Tensor, "*batch e"]) -> Float[Tensor, "*batch d"]:
        r"""Return $U z$, the tilt that the query's token causes."""
        return z @ self.bilinear_form.mT

    def output(
        self, measure: Measure, z: Float[Tensor, "*batch e"]
    ) -> Float[Tensor, "*batch v"]:
        r"""Return $T[\mu](z)$."""
        return measure.tilted_mean(self.tilt(z)) @ self.value.mT

    def jacobian_bilinear_form(
        self, measure: Measure, z: Float[Tensor, "*batch e"]
    ) -> Float[Tensor, "*batch v d e"]:
        r"""Return $\partial T_a / \partial U_{ij} = (V C)_{ai} z_j$."""
        response = self.value @ measure.tilted_cov(self.tilt(z))
        return response.unsqueeze(-1) * z[..., None, None, :]

    def jacobian_value(
        self, measure: Measure, z: Float[Tensor, "*batch e"]
    ) -> Float[Tensor, "*batch v v d"]:
        r"""Return $\partial T_a / \partial V_{bi} = \delta_{ab} m_i$."""
        mean = measure.tilted_mean(self.tilt(z))
        v = self.value.shape[0]
        eye = torch.eye(v, dtype=mean.dtype, device=mean.device)
        return eye.unsqueeze(-1) * mean[..., None, None, :]

    def jacobian_token(
        self, measure: Measure, z: Float[Tensor, "*batch e"]
    ) -> Float[Tensor, "*batch v e"]:
        r"""Return $\partial T / \partial z = V C U$."""
        return self.value @ measure.tilted_cov(self.tilt(z)) @ self.bilinear_form

    def linear_limit(self, gaussian: Gaussian) -> Affine:
        r"""Return $z \mapsto V m + V \Sigma U z$, the output on Gaussian tokens.

        Exact for the law itself, and the limit of long prompts drawn from it
        (Boursier and Boyer (2026), Lemma 2.1).
        """
        return Affine(
            self.value @ gaussian.cov @ self.bilinear_form, self.value @ gaussian.mean
        )
