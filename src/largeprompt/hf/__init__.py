"""Models of Hugging Face transformers: load one, listen to it, audit it."""

from largeprompt.hf.audit import audit_model
from largeprompt.hf.cost import Estimate, estimate
from largeprompt.hf.models import LoadedModel, ModelDescription, load_model
from largeprompt.hf.texts import Text, load_text

__all__ = [
    "Estimate",
    "LoadedModel",
    "ModelDescription",
    "Text",
    "audit_model",
    "estimate",
    "load_model",
    "load_text",
]
