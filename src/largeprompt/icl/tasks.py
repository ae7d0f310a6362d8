r"""In-context linear regression: the law that prompts, queries and answers come from.

A task vector $w \sim N(0, W)$ is drawn for every prompt; its tokens are pairs $(x_i,
y_i)$ with $y_i = w \cdot x_i + \sqrt{\sigma^2}\, \varepsilon_i$, the query is
$(x_q, 0)$ and the answer $w \cdot x_q$, with or without noise of its own.
"""

import dataclasses
import enum
import math
from collections.abc import Mapping
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor


class TokenLaw(enum.StrEnum):
    r"""The law of the independent, centred, unit-variance coordinates of an input.

    | law          | coordinate                          |
    |--------------|-------------------------------------|
    | `GAUSSIAN`   | standard normal                     |
    | `RADEMACHER` | -1 or 1 with probability one half   |
    | `UNIFORM`    | uniform on $[-\sqrt 3, \sqrt 3]$     |
    """

    GAUSSIAN = "gaussian"
    RADEMACHER = "rademacher"
    UNIFORM = "uniform"

    def coordinates(
        self, *shape: int, generator: torch.Generator, dtype: torch.dtype
    ) -> Tensor:
        """Draw independent coordinates, of mean 0 and variance 1."""
        device = generator.device
        if self is TokenLaw.GAUSSIAN:
            return torch.randn(shape, generator=generator, dtype=dtype, device=device)
        uniform = torch.rand(shape, generator=generator, dtype=dtype, device=device)
        if self is TokenLaw.RADEMACHER:
            return torch.where(uniform < 0.5, -1.0, 1.0).to(dtype)
        return math.sqrt(12) * (uniform - 0.5)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Prompts:
    """A batch of prompts of `n` labelled tokens, each with a query and its answer.

    Attributes:
        x: The inputs of the tokens.
        y: Their labels.
        x_query: The input of the query.
        y_query: The answer that a prediction is compared with.
        w: The task vectors: not shown to any model.
    """

    x: Float[Tensor, "b n d"]
    y: Float[Tensor, "b n"]
    x_query: Float[Tensor, "b d"]
    y_query: Float[Tensor, " b"]
    w: Float[Tensor, "b d"]

    @property
    def tokens(self) -> Float[Tensor, "b n d+1"]:
        """The tokens $(x_i, y_i)$."""
        return torch.cat([self.x, self.y.unsqueeze(-1)], dim=-1)

    @property
    def query(self) -> Float[Tensor, "b d+1"]:
        """The query token $(x_q, 0)$."""
        return torch.nn.functional.pad(self.x_query, (0, 1))


@final
@dataclasses.dataclass(frozen=True, eq=False)
class RegressionTask:
    r"""The law of prompts of in-context linear regression; nothing is left implicit.

    An input of covariance $S$ is $C g$, with $C$ the Cholesky factor of $S$ and $g$
    independent coordinates of the token law. A shift of the inputs or of the task is
    another `RegressionTask`: evaluate the same head on it.

    Attributes:
        token_cov: $S$, covariance of the inputs of the tokens.
        query_cov: $S_q$, covariance of the query's input.
        task_cov: $W$, covariance of the Gaussian task vector.
        noise_variance: $\sigma^2 \ge 0$, of the labels in the prompt.
        target_noise: Whether the answer carries noise of the same variance.
        token_law: The law of the coordinates of all inputs.
    """

    token_cov: Float[Tensor, "d d"]
    query_cov: Float[Tensor, "d d"]
    task_cov: Float[Tensor, "d d"]
    noise_variance: float
    target_noise: bool = True
    token_law: TokenLaw = TokenLaw.GAUSSIAN

    def __post_init__(self) -> None:
        """Check the covariances and the noise.

        Raises:
            ValueError: Shapes disagree, a covariance is not symmetric positive
                definite, or the noise variance is negative or not finite.
        """
        shape = self.token_cov.shape
        for name in ("token_cov", "query_cov", "task_cov"):
            check_covariance(name, getattr(self, name), shape)
        if not 0 <= self.noise_variance < math.inf:
            raise ValueError(
                "noise_variance must be a finite number of at least 0; "
                f"got {self.noise_variance}"
            )

    @property
    def dim(self) -> int:
        """$d$, the dimension of an input."""
        return self.token_cov.shape[-1]

    @property
    def target_noise_variance(self) -> float:
        """The variance of the noise on the answer: no predictor's risk is below it."""
        return self.noise_variance if self.target_noise else 0.0

    def inputs(
        self,
        cov: Float[Tensor, "d d"],
        shape: tuple[int, ...],
        generator: torch.Generator,
        dtype: torch.dtype = torch.float64,
    ) -> Float[Tensor, "*shape d"]:
        """Draw inputs of the task's token law and of covariance `cov`."""
        root = torch.linalg.cholesky(cov).to(generator.device, dtype)
        law = self.token_law
        draws = law.coordinates(*shape, self.dim, generator=generator, dtype=dtype)
        return draws @ root.mT

    @torch.no_grad()
    def sample(
        self,
        batch: int,
        n: int,
        generator: torch.Generator,
        dtype: torch.dtype = torch.float64,
    ) -> Prompts:
        """Draw prompts, on the generator's device.

        Args:
            batch: How many prompts.
            n: The prompt length, in tokens, the query not counted.
            generator: The source of the draws.
            dtype: Of the draws.

        Raises:
            ValueError: `batch` or `n` is below 1.
        """
        if batch < 1 or n < 1:
            raise ValueError(f"batch and n must be at least 1; got {batch} and {n}")

        def normals(*shape: int) -> Tensor:
            law = TokenLaw.GAUSSIAN
            return law.coordinates(*shape, generator=generator, dtype=dtype)

        task_root = torch.linalg.cholesky(self.task_cov).to(generator.device, dtype)
        w = normals(batch, self.dim) @ task_root.mT
        x = self.inputs(self.token_cov, (batch, n), generator, dtype)
        noise = math.sqrt(self.noise_variance) * normals(batch, n)
        y = (x @ w.unsqueeze(-1)).squeeze(-1) + noise
        x_query = self.inputs(self.query_cov, (batch,), generator, dtype)
        target_noise = math.sqrt(self.target_noise_variance) * normals(batch)
        return Prompts(x, y, x_query, (w * x_query).sum(-1) + target_noise, w)

    def options(self) -> dict[str, Any]:
        """Return every option as JSON-able values, to be recorded with a result."""
        return {
            "token_cov": self.token_cov.tolist(),
            "query_cov": self.query_cov.tolist(),
            "task_cov": self.task_cov.tolist(),
            "noise_variance": self.noise_variance,
            "target_noise": self.target_noise,
            "token_law": str(self.token_law),
        }

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> "RegressionTask":
        """Return the task that recorded these `options`.

        Raises:
            ValueError: An option is missing, unknown or has a wrong value.
        """
        expected = {field.name for field in dataclasses.fields(cls)}
        if set(options) != expected:
            raise ValueError(
                f"the options of a task are {', '.join(sorted(expected))}; "
                f"got {', '.join(sorted(options))}"
            )
        token_cov, query_cov, task_cov = (
            torch.tensor(options[name], dtype=torch.float64)
            for name in ("token_cov", "query_cov", "task_cov")
        )
        return cls(
            token_cov=token_cov,
            query_cov=query_cov,
            task_cov=task_cov,
            noise_variance=float(options["noise_variance"]),
            target_noise=bool(options["target_noise"]),
            token_law=TokenLaw(options["token_law"]),
        )


def check_covariance(name: str, cov: Tensor, shape: torch.Size) -> None:
    """Raise a ValueError unless `cov` is a positive definite matrix of this shape."""
    if cov.ndim != 2 or cov.shape[0] != cov.shape[1] or cov.shape != shape:
        raise ValueError(
            f"{name} must be a square matrix of the shape of token_cov; got "
            f"{tuple(cov.shape)} against {tuple(shape)}"
        )
    if not cov.isfinite().all() or float((cov - cov.mT).abs().max()) > 1e-12 * float(
        cov.abs().max()
    ):
        raise ValueError(f"{name} must be finite and symmetric; got {cov.tolist()}")
    lowest, highest = torch.linalg.eigvalsh(cov)[[0, -1]].tolist()
    if lowest <= 1e-14 * abs(highest):
        raise ValueError(
            f"{name} must be positive definite; got the eigenvalue {lowest:g}"
        )
