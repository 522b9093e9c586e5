"""Plans a deployment: which cut of a model over which GPUs serves given traffic best.

Reads configs, data sheets and traffic; loads no weights, starts nothing and needs no GPU.
"""

from weft.serving.plan.architecture import Architecture
from weft.serving.plan.command import command, note
from weft.serving.plan.hardware import DEVICES, Device, find_devices
from weft.serving.plan.layout import Layout
from weft.serving.plan.limits import Limits, default_limits
from weft.serving.plan.memory import RankMemory
from weft.serving.plan.outcome import Outcome
from weft.serving.plan.plans import Goal, Plan, Ranking, Rejected, rank
from weft.serving.plan.shapes import SHAPES, find_architecture
from weft.serving.plan.traffic import Traffic, default_traffic
from weft.serving.plan.traffic_file import read_traffic

__all__ = [
    "DEVICES",
    "SHAPES",
    "Architecture",
    "Device",
    "Goal",
    "Layout",
    "Limits",
    "Outcome",
    "Plan",
    "RankMemory",
    "Ranking",
    "Rejected",
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
