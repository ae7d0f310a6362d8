"""What others do with the same bytes, one method a file."""

from largeprompt.compress.baselines.centroids import WeightedCentroids
from largeprompt.compress.baselines.expected_attention import ExpectedAttention
from largeprompt.compress.baselines.feature_map import FeatureMap, mapped
from largeprompt.compress.baselines.moments import OrderOneMoments
from largeprompt.compress.baselines.nystrom import Nystrom
from largeprompt.compress.baselines.performer import Performer
from largeprompt.compress.baselines.sinks_window import SinksAndWindow
from largeprompt.compress.baselines.snapkv import SnapKV
from largeprompt.compress.baselines.tova import Tova

__all__ = [
    "ExpectedAttention",
    "FeatureMap",
    "Nystrom",
    "OrderOneMoments",
    "Performer",
    "SinksAndWindow",
    "SnapKV",
    "Tova",
    "WeightedCentroids",
    "mapped",
]
