"""Published settings of in-context linear regression, by name."""

import dataclasses
import difflib
import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.icl.conventions import Conventions, LogitScale
from largeprompt.icl.tasks import RegressionTask


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Preset:
    """A published setting.

    Attributes:
        name: How it is called here.
        task: The law of its prompts.
        conventions: How its model predicts and what its loss is.
        lengths: The prompt lengths it was published with.
        source: Where it comes from.
    """

    name: str
    task: RegressionTask
    conventions: Conventions
    lengths: tuple[int, ...]
    source: str


def decaying_cov(dim: int, ratio: float) -> Float[Tensor, "d d"]:
    r"""Return the covariance $S_{ij} = r^{|i-j|}$, for a `ratio` $r$ in (-1, 1)."""
    index = torch.arange(dim, dtype=torch.float64)
    return ratio ** (index[:, None] - index).abs()


def paper(*, intended: bool) -> Preset:
    """Return the setting of the paper's code, or the one that its text describes."""
    eye = torch.eye(5, dtype=torch.float64)
    cov = decaying_cov(5, 0.5)
    root = torch.linalg.cholesky(cov)
    twice = root @ cov @ root.mT
    return Preset(
        name="paper-intended" if intended else "paper-as-published",
        task=RegressionTask(
            token_cov=cov if intended else (twice + twice.mT) / 2,
            query_cov=cov if intended else eye,
            task_cov=eye / 5,
            noise_variance=0.1,
        ),
        conventions=Conventions(logit_scale=LogitScale.SQRT_TOKEN_DIM),
        lengths=(*range(10, 100, 10), *range(100, 1001, 100)),
        source=(
            "Boursier and Boyer (2026), as the text says: covariance S = 0.5^|i-j| of "
            "tokens and queries"
            if intended
            else "official code of Boursier and Boyer (2026): prompts are multiplied "
            "by the Cholesky factor C of S = 0.5^|i-j| twice, so their covariance is "
            "C S C'; queries never, so theirs is I"
        ),
    )


def he_et_al() -> Preset:
    """Return the setting of the published notebook of He et al. (2025)."""
    eye = torch.eye(5, dtype=torch.float64)
    return Preset(
        name="he-et-al",
        task=RegressionTask(eye, eye, eye / 5, noise_variance=0.1),
        conventions=Conventions(),
        lengths=(10, 20, 40, 100),
        source="He, Pan, Chen and Yang (2025), arXiv:2503.12734, published notebook",
    )


def zhang_frei_bartlett() -> Preset:
    """Return the setting of Zhang, Frei and Bartlett (2024), in dimension 5."""
    eye = torch.eye(5, dtype=torch.float64)
    return Preset(
        name="zhang-frei-bartlett",
        task=RegressionTask(eye, eye, eye, noise_variance=0.0),
        conventions=Conventions(query_in_prompt=True, half_loss=True),
        lengths=(20, 40, 100),
        source="Zhang, Frei and Bartlett (2024), JMLR 25(49); the covariance, general "
        "there, is the identity here",
    )


def zhang_singh() -> Preset:
    """Return the setting of the saddle plateaus of Zhang, Singh et al. (2025)."""
    spread = torch.diag(torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64))
    eye = torch.eye(4, dtype=torch.float64)
    return Preset(
        name="zhang-singh",
        task=RegressionTask(spread, spread, eye, noise_variance=0.0),
        conventions=Conventions(query_in_prompt=True),
        lengths=(31,),
        source="Zhang, Singh, Latham and Saxe (2025), arXiv:2501.16265: d = 4, "
        "covariance diag(4, 3, 2, 1)/10",
    )


PRESETS: Mapping[str, Callable[[], Preset]] = MappingProxyType(
    {
        "paper-as-published": functools.partial(paper, intended=False),
        "paper-intended": functools.partial(paper, intended=True),
        "he-et-al": he_et_al,
        "zhang-frei-bartlett": zhang_frei_bartlett,
        "zhang-singh": zhang_singh,
    }
)


def preset(name: str) -> Preset:
    """Return the published setting called `name`, one of the keys of `PRESETS`.

    Raises:
        ValueError: There is none of this name; the nearest is named.
    """
    if name in PRESETS:
        return PRESETS[name]()
    nearest = difflib.get_close_matches(name, PRESETS, n=1, cutoff=0.0)[0]
    raise ValueError(
        f"a preset must be one of {', '.join(PRESETS)}; got {name!r}; "
        f"the nearest is {nearest!r}"
    )
