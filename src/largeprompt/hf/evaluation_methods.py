"""The methods that an evaluation compares, by the names of the command line."""

import difflib
from collections.abc import Sequence

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

Method = Compressor | FeatureMap

METHODS: dict[str, Method] = {
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
