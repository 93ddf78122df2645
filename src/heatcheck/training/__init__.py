"""The fit loop on Lightning Fabric, losses for uncertain labels, and the selection of checkpoints."""

from heatcheck.training.batches import Examples, readable
from heatcheck.training.fit import FitSettings, Job, fit, steps_done
from heatcheck.training.labels import STRATEGIES
from heatcheck.training.machine import Machine
from heatcheck.training.memory_order import quick
from heatcheck.training.objective import LabelObjective, Objective
from heatcheck.training.selection import Candidate, Check

__all__ = [
    "STRATEGIES",
    "Candidate",
    "Check",
    "Examples",
    "FitSettings",
    "Job",
    "LabelObjective",
    "Machine",
    "Objective",
    "fit",
    "quick",
    "readable",
    "steps_done",
]
