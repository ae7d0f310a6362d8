"""Sweeps: many cells of one experiment, finished whatever happens.

A specification names an experiment and a grid; every cell of it is identified by a
hash of its configuration and of the code, draws from a key of its own, and is saved
whole or not at all.
"""

from largeprompt.experiments.sweep.cluster import Cluster
from largeprompt.experiments.sweep.experiment import Drawing, Experiment, Row
from largeprompt.experiments.sweep.key import Key
from largeprompt.experiments.sweep.presence import Lease
from largeprompt.experiments.sweep.processes import Processes
from largeprompt.experiments.sweep.run import Demand, State, run_sweep
from largeprompt.experiments.sweep.shard import Shard
from largeprompt.experiments.sweep.specification import (
    Cell,
    Specification,
    read_specification,
    specification,
)
from largeprompt.experiments.sweep.status import Status, read_status
from largeprompt.experiments.sweep.workers import Workers

__all__ = [
    "Cell",
    "Cluster",
    "Demand",
    "Drawing",
    "Experiment",
    "Key",
    "Lease",
    "Processes",
    "Row",
    "Shard",
    "Specification",
    "State",
    "Status",
    "Workers",
    "read_specification",
    "read_status",
    "run_sweep",
    "specification",
]
