"""Conformance to GEM as a score: an adversarial trajectory, ground truth per turn, and checks of C1 to C6.

Works on any memory system behind a small adapter (`memstate_core.conformance.system`). What belongs here knows nothing
of how memstate stores or folds; the memory under test is asked through its adapter alone. Invariant: a run is a
function of the seed, the number of turns and the answers of the system.
"""

from memstate_core.conformance.report import Report
from memstate_core.conformance.run import run
from memstate_core.conformance.scenario import Trajectory, trajectory
from memstate_core.conformance.system import Found, Limits, Refused, Statement, System, Value, Version

__all__ = [
    "Found",
    "Limits",
    "Refused",
    "Report",
    "Statement",
    "System",
    "Trajectory",
    "Value",
    "Version",
    "run",
    "trajectory",
]
