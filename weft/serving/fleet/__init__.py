"""A client that schedules the calls of programs over several replicas of one model."""

from weft.serving.fleet.fleet import Fleet
from weft.serving.fleet.options import FleetOptions
from weft.serving.fleet.stats import FleetStats

__all__ = ["Fleet", "FleetOptions", "FleetStats"]
