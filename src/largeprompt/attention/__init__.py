"""Heads of softmax attention as operators on measures."""

from largeprompt.attention.asymptotic import (
    AsymptoticMoments,
    delta_method,
    long_run_moments,
)
from largeprompt.attention.bounds import (
    bilinear_gradient_bound,
    nested_drift_bound,
    output_bound,
    query_averaged_bound,
    value_gradient_bound,
)
from largeprompt.attention.finite_prompt import FinitePromptLaw, finite_prompt_law
from largeprompt.attention.head import Head
from largeprompt.attention.labelled import LabelledTokens, labelled
from largeprompt.attention.layers import AttentionLayer, gaussian_laws, limit_paths
from largeprompt.attention.layers_flow import ScalarValueFlow
from largeprompt.attention.layers_simulation import depth_errors, run_layers
from largeprompt.attention.output_moments import OutputMoments, output_moments
from largeprompt.attention.query_average import QuerySpectrum, query_spectrum
from largeprompt.attention.reference import attend, attend_tokens
from largeprompt.attention.self_attention import (
    SelfAttentionMoments,
    self_attention_moments,
)
from largeprompt.attention.simulation import Simulation

__all__ = [
    "AsymptoticMoments",
    "AttentionLayer",
    "FinitePromptLaw",
    "Head",
    "LabelledTokens",
    "OutputMoments",
    "QuerySpectrum",
    "ScalarValueFlow",
    "SelfAttentionMoments",
    "Simulation",
    "attend",
    "attend_tokens",
    "bilinear_gradient_bound",
    "delta_method",
    "depth_errors",
    "finite_prompt_law",
    "gaussian_laws",
    "labelled",
    "limit_paths",
    "long_run_moments",
    "nested_drift_bound",
    "output_bound",
    "output_moments",
    "query_averaged_bound",
    "query_spectrum",
    "run_layers",
    "self_attention_moments",
    "value_gradient_bound",
]
