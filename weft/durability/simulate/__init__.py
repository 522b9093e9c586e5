"""Simulation of a recorded run under other conditions: its own scheduler, in virtual time."""

from weft.durability.simulate.change import Change, Fault, Scale
from weft.durability.simulate.cluster import ClusterPrediction, simulate_cluster
from weft.durability.simulate.cluster_costs import ClusterCosts, StepCost, measured_costs
from weft.durability.simulate.prediction import Advice, Prediction, SimulatedRun, advise, simulate
from weft.durability.simulate.recorded_run import recording
from weft.durability.simulate.script import RecordedRun

__all__ = [
    "Advice",
    "Change",
    "ClusterCosts",
    "ClusterPrediction",
    "Fault",
    "Prediction",
    "RecordedRun",
    "Scale",
    "SimulatedRun",
    "StepCost",
    "advise",
    "measured_costs",
    "recording",
    "simulate",
    "simulate_cluster",
]
