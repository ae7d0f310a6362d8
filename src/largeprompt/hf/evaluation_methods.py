"""The methods that an evaluation compares, by the names of the command line."""

import dataclasses
import difflib
from collections.abc import Sequence
from typing import Any, final

from largeprompt.compress.baselines import (
    ExpectedAttention,
    FeatureMap,
    Nystrom,
    OrderOneMoments,
    Performer,
    SinksAndWindow,
    SnapKV,
    Tova,
    WeightedCentroids,
)
from largeprompt.compress.calibrated import CalibratedLimit
from largeprompt.compress.prompt import Compressor
from largeprompt.hf.cache_budget import Share, SharedBudget


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Shared:
    """A method whose bytes are shared out among all KV heads of a model.

    Every other method gives each head the same.
    """

    method: Compressor


Cached = Compressor | Shared
Method = Cached | FeatureMap

METHODS: dict[str, Method] = {
    "shared": Shared(CalibratedLimit()),
    "calibrated": CalibratedLimit(),
    "sinks-window": SinksAndWindow(),
    "snapkv": SnapKV(),
    "tova": Tova(),
    "expected-attention": ExpectedAttention(),
    "moments": OrderOneMoments(),
    "plain-moments": OrderOneMoments(tilted=False),
    "centroids": WeightedCentroids(),
    "segments": WeightedCentroids(contiguous=True),
    "performer": Performer(),
    "nystrom": Nystrom(),
}


def chosen_methods(names: Sequence[str]) -> dict[str, Method]:
    """Return the methods of these names, in this order.

    Raises:
        ValueError: A name is unknown; the message says which is nearest.
    """
    for name in names:
        if name not in METHODS:
            near = difflib.get_close_matches(name, METHODS, 1)
            hint = (
                f"did you mean {near[0]!r}?" if near else "known: " + ", ".join(METHODS)
            )
            raise ValueError(f"no method is called {name!r}; {hint}")
    return {name: METHODS[name] for name in names}


def cache_settings(method: Cached | None, budget: float) -> dict[str, Any]:
    """Return the arguments of the cache that a method and its budget stand for.

    Without a method the cache is exact, whatever the budget.
    """
    if method is None:
        return {"budget": 1.0}
    if isinstance(method, Shared):
        return {"method": method.method, "budget": SharedBudget(budget)}
    return {"method": method, "budget": Share(budget)}
