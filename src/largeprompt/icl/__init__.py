"""In-context learning of linear regression, exactly, at any prompt length."""

from largeprompt.icl.baselines import (
    bayes_risk,
    gradient_descent_risk,
    one_step_risk,
    ridge_risk,
)
from largeprompt.icl.conventions import Conventions, LogitScale, Normaliser
from largeprompt.icl.estimates import RiskEstimate
from largeprompt.icl.generalisation import LengthCurve, length_curve
from largeprompt.icl.head_overlap import HeadOverlap, head_overlap
from largeprompt.icl.law_functions import LawFunctions, law_functions
from largeprompt.icl.linear import (
    linear_optimum,
    linear_risk,
    principal_optimum,
    reading_head,
)
from largeprompt.icl.multihead import MultiheadRisk, multihead_risk
from largeprompt.icl.polynomials import LimitPrediction, limit_prediction, limit_risk
from largeprompt.icl.population import PopulationRisk, population_risk
from largeprompt.icl.predictors import linear_prediction, softmax_prediction
from largeprompt.icl.presets import PRESETS, Preset, decaying_cov, preset
from largeprompt.icl.proportional import ridgeless_risk
from largeprompt.icl.reduction import label_blind_risk
from largeprompt.icl.simulation import simulated_risk
from largeprompt.icl.single_location import LocatedPrompts, SingleLocationTask
from largeprompt.icl.tasks import Prompts, RegressionTask, TokenLaw

__all__ = [
    "PRESETS",
    "Conventions",
    "HeadOverlap",
    "LawFunctions",
    "LengthCurve",
    "LimitPrediction",
    "LocatedPrompts",
    "LogitScale",
    "MultiheadRisk",
    "Normaliser",
    "PopulationRisk",
    "Preset",
    "Prompts",
    "RegressionTask",
    "RiskEstimate",
    "SingleLocationTask",
    "TokenLaw",
    "bayes_risk",
    "decaying_cov",
    "gradient_descent_risk",
    "head_overlap",
    "label_blind_risk",
    "law_functions",
    "length_curve",
    "limit_prediction",
    "limit_risk",
    "linear_optimum",
    "linear_prediction",
    "linear_risk",
    "multihead_risk",
    "one_step_risk",
    "population_risk",
    "preset",
    "principal_optimum",
    "reading_head",
    "ridge_risk",
    "ridgeless_risk",
    "simulated_risk",
    "softmax_prediction",
]
