"""Plans a deployment: the cut of a model over GPUs that serves given traffic best.

Reads configs, data sheets and traffic; loads no weights, starts nothing and needs no GPU.
"""

from weft.serving.plan.architecture import Architecture
from weft.serving.plan.config import SHAPES, find_architecture
from weft.serving.plan.hardware import DEVICES, Device, EngineLimits, default_limits, find_devices
from weft.serving.plan.layout import RankLayout, RankMemory
from weft.serving.plan.plans import (
    DeploymentPlan,
    Goal,
    Ranking,
    Rejected,
    SimulationResult,
    command,
    note,
    rank,
)
from weft.serving.plan.traffic import Traffic, default_traffic, read_traffic

__all__ = [
    "DEVICES",
    "SHAPES",
    "Architecture",
    "DeploymentPlan",
    "Device",
    "EngineLimits",
    "Goal",
    "RankLayout",
    "RankMemory",
    "Ranking",
    "Rejected",
    "SimulationResult",
    "Traffic",
    "command",
    "default_limits",
    "default_traffic",
    "find_architecture",
    "find_devices",
    "note",
    "rank",
    "read_traffic",
]
