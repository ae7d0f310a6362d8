"""Fresh prompts for the steps of a training run: in full, white or in projection."""

import abc
import dataclasses
import math
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from largeprompt.icl.conventions import Conventions
from largeprompt.icl.parameters import Merged
from largeprompt.icl.tasks import Prompts, RegressionTask, TokenLaw
from largeprompt.icl.token_sums import TokenSums, append_query, project, show


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """Prompts seen through a head, their query tokens and answers.

    Attributes:
        prompts: The tokens, as far as this head and its gradient look at them.
        query: The query tokens $z = (x_q, 0)$.
        answer: What a prediction is compared with.
        tilt: $u = Uz$.
    """

    prompts: TokenSums
    query: Float[Tensor, "b e"]
    answer: Float[Tensor, " b"]
    tilt: Float[Tensor, "b e"]


class PromptSource(abc.ABC):
    """A way to draw fresh prompts; two sources of one task have the same law."""

    @abc.abstractmethod
    def draw(
        self,
        task: RegressionTask,
        batch: int,
        n: int,
        head: Merged,
        generator: torch.Generator,
    ) -> Batch:
        """Draw `batch` prompts of `n` tokens, seen through `head`.

        Raises:
            ValueError: `batch` or `n` is below 1, or the source does not know how to
                draw the tokens of this task.
        """

    @abc.abstractmethod
    def options(self) -> dict[str, Any]:
        """Return every option as JSON-able values, to be recorded with a result."""


@final
@dataclasses.dataclass(frozen=True)
class FullPrompts(PromptSource):
    """Every token is drawn: any token law; heads that differ see the same data.

    Attributes:
        dtype: Of the tokens.
    """

    dtype: torch.dtype = torch.float32

    @override
    def draw(
        self,
        task: RegressionTask,
        batch: int,
        n: int,
        head: Merged,
        generator: torch.Generator,
    ) -> Batch:
        prompts = task.sample(batch, n, generator, self.dtype)
        query = prompts.query.double()
        tilt = query @ head.bilinear.mT
        eye = torch.eye(task.dim + 1, dtype=torch.float64).expand(batch, -1, -1)
        tokens = show(eye, prompts.tokens.mT, tilt, head.value)
        return Batch(tokens, query, prompts.y_query.double(), tilt)

    @override
    def options(self) -> dict[str, Any]:
        return {"prompts": "full", "dtype": str(self.dtype)}


@final
@dataclasses.dataclass(frozen=True)
class WhitePrompts(PromptSource):
    """Every token is drawn in coordinates in which it is standard normal.

    Gaussian tokens only. Heads that differ see the same data, which is not the data of
    `FullPrompts` with the same seed; faster, as no input and no label is formed.

    Attributes:
        dtype: Of the coordinates; all else is float64.
    """

    dtype: torch.dtype = torch.float32

    @override
    def draw(
        self,
        task: RegressionTask,
        batch: int,
        n: int,
        head: Merged,
        generator: torch.Generator,
    ) -> Batch:
        given, tilt, root = _condition(task, batch, head, generator)
        shape = (batch, task.dim + 1, n)
        coordinates = torch.randn(shape, generator=generator, dtype=self.dtype)
        prompts = show(root, coordinates, tilt, head.value)
        return Batch(prompts, given.query, given.y_query, tilt)

    @override
    def options(self) -> dict[str, Any]:
        return {"prompts": "white", "dtype": str(self.dtype)}


@final
@dataclasses.dataclass(frozen=True)
class ProjectedPrompts(PromptSource):
    """Two numbers a token are drawn: Gaussian tokens only, the law of a step is exact.

    The fastest source. What is drawn depends on the head, so the
    data of two heads are independent in part even with equal seeds.

    Attributes:
        dtype: Of the two numbers; all else is float64.
    """

    dtype: torch.dtype = torch.float32

    @override
    def draw(
        self,
        task: RegressionTask,
        batch: int,
        n: int,
        head: Merged,
        generator: torch.Generator,
    ) -> Batch:
        given, tilt, root = _condition(task, batch, head, generator)
        prompts = project(root, n, tilt, head.value, generator, self.dtype)
        return Batch(prompts, given.query, given.y_query, tilt)

    @override
    def options(self) -> dict[str, Any]:
        return {"prompts": "projected", "dtype": str(self.dtype)}


@final
@dataclasses.dataclass(frozen=True, eq=False)
class PromptStream:
    """Where the batches of a training run come from.

    Attributes:
        task: The law of the prompts.
        n: The prompt length, the query not counted.
        conventions: How a model reads a prompt, and what its loss is.
        source: How prompts are drawn.
        batch: How many prompts a step takes.
    """

    task: RegressionTask
    n: int
    conventions: Conventions
    source: PromptSource = FullPrompts()
    batch: int = 128

    def __post_init__(self) -> None:
        """Check the sizes."""
        if self.n < 1 or self.batch < 1:
            raise ValueError(
                f"n and batch must be at least 1; got {self.n} and {self.batch}"
            )

    @property
    def logit_factor(self) -> float:
        """What the conventions multiply the logits by."""
        return self.conventions.logit_scale.factor(self.task.dim)

    @property
    def divisor(self) -> float:
        """What the conventions divide the sums of linear attention by."""
        return self.n / self.conventions.normaliser.share(self.n)

    def draw(self, head: Merged, generator: torch.Generator) -> Batch:
        """Draw the batch of one step, seen through `head`, and the query if told."""
        batch = self.source.draw(self.task, self.batch, self.n, head, generator)
        if not self.conventions.query_in_prompt:
            return batch
        longer = append_query(batch.prompts, batch.query, batch.tilt, head.value)
        return dataclasses.replace(batch, prompts=longer)

    def options(self) -> dict[str, Any]:
        """Return every option as JSON-able values, to be recorded with a result."""
        return {
            "task": self.task.options(),
            "n": self.n,
            "conventions": self.conventions.options(),
            "source": self.source.options(),
            "batch": self.batch,
        }


def token_root(
    task: RegressionTask, w: Float[Tensor, "b d"]
) -> Float[Tensor, "b d+1 d+1"]:
    r"""Return $F$ with $F F^\top$ the covariance of the tokens $(x, y)$ given $w$.

    With $S = C C^\top$, the rows are those of $C$, and $(C^\top w, \sigma)$ below.
    """
    chol = torch.linalg.cholesky(task.token_cov)
    root = torch.zeros(w.shape[0], task.dim + 1, task.dim + 1, dtype=torch.float64)
    root[:, :-1, :-1] = chol
    root[:, -1, :-1] = w @ chol
    root[:, -1, -1] = math.sqrt(task.noise_variance)
    return root


def _condition(
    task: RegressionTask, batch: int, head: Merged, generator: torch.Generator
) -> tuple[Prompts, Float[Tensor, "b e"], Float[Tensor, "b e e"]]:
    """Draw all but the tokens; return it, the tilts, and the roots of `token_root`."""
    if task.token_law is not TokenLaw.GAUSSIAN:
        raise ValueError(
            "white and projected prompts need Gaussian tokens; "
            f"got {task.token_law} tokens"
        )
    # one token is drawn and not used: the law of w and the query stays with the task
    given = task.sample(batch, 1, generator)
    return given, given.query @ head.bilinear.mT, token_root(task, given.w)
