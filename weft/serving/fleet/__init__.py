"""A client that schedules the calls of programs over several replicas of one model."""

from weft.serving.fleet.discovery import (
    DnsEndpoints,
    EndpointSource,
    FollowingFleet,
    ReplicaPool,
    autoscale,
)
from weft.serving.fleet.fleet import Fleet
from weft.serving.fleet.options import FleetOptions
from weft.serving.fleet.scaling import ScalingOptions, ScalingState, decide
from weft.serving.fleet.stats import FleetLoad, FleetStats

__all__ = [
    "DnsEndpoints",
    "EndpointSource",
    "Fleet",
    "FleetLoad",
    "FleetOptions",
    "FleetStats",
    "FollowingFleet",
    "ReplicaPool",
    "ScalingOptions",
    "ScalingState",
    "autoscale",
    "decide",
]
