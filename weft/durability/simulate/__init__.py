"""Simulation of a recorded run under other conditions: its own scheduler, in virtual time."""

from weft.durability.simulate.change import Change, Fault, Scale
from weft.durability.simulate.prediction import Advice, Prediction, SimulatedRun, advise, simulate
from weft.durability.simulate.recorded_run import recording
from weft.durability.simulate.script import RecordedRun

__all__ = [
    "Advice",
    "Change",
    "Fault",
    "Prediction",
    "RecordedRun",
    "Scale",
    "SimulatedRun",
    "advise",
    "recording",
    "simulate",
]
