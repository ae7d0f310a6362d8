"""The experiment: how fast finite prompts concentrate around the limit, measured."""

import dataclasses
from typing import Any, final

from largeprompt.experiments.heads import HeadSource, RandomHeads
from largeprompt.experiments.token_laws import TokenLaw


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Concentration:
    r"""A measurement of mean square errors against the prompt length.

    Every seed has a head and queries $z \sim N(0, I)$, the same for all laws and
    lengths; every query has its own prompts at every length.

    Attributes:
        laws: The token laws.
        lengths: The prompt lengths, at least two and increasing.
        seeds: How many heads, at least 2.
        queries: How many queries a head is asked.
        prompts: How many prompts a query is asked of at each length, at least 2.
        heads: Where heads come from.
        seed: The one number from which all draws follow.
        confidence: Of the intervals of slopes.
        bounds: Whether proven bounds are computed; they take most of the time.
    """

    laws: tuple[TokenLaw, ...]
    lengths: tuple[int, ...]
    seeds: int
    queries: int
    prompts: int
    heads: HeadSource
    seed: int = 0
    confidence: float = 0.95
    bounds: bool = True

    def __post_init__(self) -> None:
        """Check that slopes and their intervals can be had.

        Raises:
            ValueError: If they cannot.
        """
        lengths = list(self.lengths)
        if len(lengths) < 2 or lengths[0] < 1 or lengths != sorted(set(lengths)):
            raise ValueError(
                "lengths must be at least two, increasing, from 1; "
                f"got {', '.join(map(str, lengths)) or 'none'}"
            )
        if not self.laws or len(set(self.laws)) != len(self.laws):
            raise ValueError(
                "laws must be at least one, each once; "
                f"got {', '.join(self.laws) or 'none'}"
            )
        for name, least in (("seeds", 2), ("queries", 1), ("prompts", 2), ("seed", 0)):
            if (value := getattr(self, name)) < least:
                raise ValueError(f"{name} must be at least {least}; got {value}")
        if not 0 < self.confidence < 1:
            raise ValueError(
                f"confidence must lie strictly between 0 and 1; got {self.confidence}"
            )

    def description(self) -> dict[str, Any]:
        """Return the arguments as plain data."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {
            **fields,
            "laws": [law.value for law in self.laws],
            "lengths": list(self.lengths),
            "heads": self.heads.description(),
        }


PUBLISHED = Concentration(
    laws=(TokenLaw.GAUSSIAN, TokenLaw.DECAYING, TokenLaw.CONDITION_8),
    lengths=(16, 32, 64, 128, 256, 512, 1024),
    seeds=8,
    queries=16,
    prompts=32,
    heads=RandomHeads(dim=4, bilinear_norm=0.22, value_norm=0.75),
)
"""The settings of the published reproduction of Boursier and Boyer (2026).

There the slopes of the output and of both gradients lie between -1.109 and -0.832 over
the three covariances.
"""

PRESETS = {"published": PUBLISHED}
