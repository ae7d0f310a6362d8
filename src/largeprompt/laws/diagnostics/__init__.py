"""How Gaussian, and how sub-Gaussian, data are: numpy only, samples in."""

from largeprompt.laws.diagnostics.cumulant import (
    LogMgfBand,
    log_mgf_band,
    log_mgf_limits,
)
from largeprompt.laws.diagnostics.proxy import (
    ProxyVariance,
    WorstDirection,
    directional_proxy_variances,
    proxy_variance,
    worst_direction,
)
from largeprompt.laws.diagnostics.sample import reach, tilt_ess
from largeprompt.laws.diagnostics.tail import TailFit, tail_exponent

__all__ = [
    "LogMgfBand",
    "ProxyVariance",
    "TailFit",
    "WorstDirection",
    "directional_proxy_variances",
    "log_mgf_band",
    "log_mgf_limits",
    "proxy_variance",
    "reach",
    "tail_exponent",
    "tilt_ess",
    "worst_direction",
]
