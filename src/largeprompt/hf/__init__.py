"""Models of Hugging Face transformers: load one, listen to it, audit it."""

from largeprompt.hf.ablation import Ablation, ablate_model
from largeprompt.hf.ablation_limit import Replacement
from largeprompt.hf.ablation_mass import Bulk
from largeprompt.hf.ablation_result import AblationResult
from largeprompt.hf.attention_cache import cache_attention
from largeprompt.hf.audit import audit_model
from largeprompt.hf.cache import LargePromptCache
from largeprompt.hf.cache_report import CacheReport
from largeprompt.hf.compressed_prompts import compressed
from largeprompt.hf.cost import Estimate, estimate
from largeprompt.hf.models import LoadedModel, ModelDescription, load_model
from largeprompt.hf.texts import Text, load_text
from largeprompt.hf.token_law import token_laws
from largeprompt.hf.token_law_result import TokenLawResult

__all__ = [
    "Ablation",
    "AblationResult",
    "Bulk",
    "CacheReport",
    "Estimate",
    "LargePromptCache",
    "LoadedModel",
    "ModelDescription",
    "Replacement",
    "Text",
    "TokenLawResult",
    "ablate_model",
    "audit_model",
    "cache_attention",
    "compressed",
    "estimate",
    "load_model",
    "load_text",
    "token_laws",
]
