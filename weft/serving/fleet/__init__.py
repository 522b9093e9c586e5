"""Many replicas as one client that knows the programs its calls are part of."""

from weft.serving.fleet.fleet import Fleet
from weft.serving.fleet.options import FleetOptions
from weft.serving.fleet.stats import FleetStats

__all__ = ["Fleet", "FleetOptions", "FleetStats"]
