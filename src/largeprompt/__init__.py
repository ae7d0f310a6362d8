r"""Softmax attention over a long prompt, as an operator on the law of its tokens.

The output of a softmax head is the mean of its token measure, exponentially tilted by
the query; for a Gaussian law that is an affine map, and a finite prompt concentrates
around it at a rate known exactly. Public names are resolved on first use, so that
importing the package costs nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from largeprompt.attention import Head as Head
    from largeprompt.attention import attend as attend
    from largeprompt.audit import AuditResult as AuditResult
    from largeprompt.audit import audit_arrays as audit_arrays
    from largeprompt.audit import load_audit as load_audit
    from largeprompt.hf import LargePromptCache as LargePromptCache
    from largeprompt.hf import ablate_model as ablate_model
    from largeprompt.hf import audit_model as audit_model
    from largeprompt.hf import compressed as compressed
    from largeprompt.hf import load_model as load_model
    from largeprompt.laws import gaussian_law as gaussian_law
    from largeprompt.laws import law_table as law_table
    from largeprompt.laws import phase as phase
    from largeprompt.laws import solve as solve
    from largeprompt.measures import Gaussian as Gaussian
    from largeprompt.measures import Measure as Measure
    from largeprompt.measures import Prompt as Prompt
    from largeprompt.report import write_report as write_report

__version__ = "0.1.0"

_ROOM_OF = {
    "AuditResult": "audit",
    "Gaussian": "measures",
    "Head": "attention",
    "LargePromptCache": "hf",
    "Measure": "measures",
    "Prompt": "measures",
    "ablate_model": "hf",
    "attend": "attention",
    "audit_arrays": "audit",
    "audit_model": "hf",
    "compressed": "hf",
    "gaussian_law": "laws",
    "law_table": "laws",
    "load_audit": "audit",
    "load_model": "hf",
    "phase": "laws",
    "solve": "laws",
    "write_report": "report",
}

__all__ = [*sorted(_ROOM_OF), "__version__"]  # pyright: ignore[reportUnsupportedDunderAll] - the names are those imported above


def __getattr__(name: str) -> Any:
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'largeprompt' has no attribute {name!r}")
    return getattr(importlib.import_module(f"largeprompt.{_ROOM_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
