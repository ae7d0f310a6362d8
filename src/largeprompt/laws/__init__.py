"""What is known of attention over a finite prompt, from a few scalars; numpy only."""

from largeprompt.laws.asymptotic import DeltaMethod
from largeprompt.laws.bounds import (
    BilinearGradientBound,
    Bound,
    LargestTokenCeiling,
    MomentRateBound,
    NestedDriftBound,
    OutputBound,
    QueryAveragedBound,
    SubGaussianGradientBound,
    SubGaussianOutputBound,
    TriangleDriftBound,
    UniformRateBound,
)
from largeprompt.laws.correlated import LongRun, geometric_autocorrelation, long_run
from largeprompt.laws.curve import ErrorCurve, error_curve
from largeprompt.laws.diagnostics import (
    LogMgfBand,
    ProxyVariance,
    TailFit,
    WorstDirection,
    directional_proxy_variances,
    log_mgf_band,
    log_mgf_limits,
    proxy_variance,
    reach,
    tail_exponent,
    tilt_ess,
    worst_direction,
)
from largeprompt.laws.drift import DriftLaw, drift_law
from largeprompt.laws.exact import GaussianLaw, gaussian_law
from largeprompt.laws.phases import Phase, frozen_length, linear_length, phase
from largeprompt.laws.plan import Plan, smallest_n, solve
from largeprompt.laws.rates import RateExponents, limit_constant, rate_exponents
from largeprompt.laws.self_attention import SelfAttentionLaw, self_attention_law
from largeprompt.laws.status import Status
from largeprompt.laws.table import LawTable, law_table
from largeprompt.laws.weights import WeightMoments, weight_moments

__all__ = [
    "BilinearGradientBound",
    "Bound",
    "DeltaMethod",
    "DriftLaw",
    "ErrorCurve",
    "GaussianLaw",
    "LargestTokenCeiling",
    "LawTable",
    "LogMgfBand",
    "LongRun",
    "MomentRateBound",
    "NestedDriftBound",
    "OutputBound",
    "Phase",
    "Plan",
    "ProxyVariance",
    "QueryAveragedBound",
    "RateExponents",
    "SelfAttentionLaw",
    "Status",
    "SubGaussianGradientBound",
    "SubGaussianOutputBound",
    "TailFit",
    "TriangleDriftBound",
    "UniformRateBound",
    "WeightMoments",
    "WorstDirection",
    "directional_proxy_variances",
    "drift_law",
    "error_curve",
    "frozen_length",
    "gaussian_law",
    "geometric_autocorrelation",
    "law_table",
    "limit_constant",
    "linear_length",
    "log_mgf_band",
    "log_mgf_limits",
    "long_run",
    "phase",
    "proxy_variance",
    "rate_exponents",
    "reach",
    "self_attention_law",
    "smallest_n",
    "solve",
    "tail_exponent",
    "tilt_ess",
    "weight_moments",
    "worst_direction",
]
