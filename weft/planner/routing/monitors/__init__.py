"""Monitors that most errands can use: probes of tools, slow tools, risks, what is meant."""

from weft.planner.routing.monitors.intent import Intent
from weft.planner.routing.monitors.probes import Probes
from weft.planner.routing.monitors.risks import Risks
from weft.planner.routing.monitors.slowness import Slowness

__all__ = ["Intent", "Probes", "Risks", "Slowness"]
