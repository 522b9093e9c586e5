"""What a recorded run would have come to under other conditions: its own scheduler, no clock."""

from weft.engine.simulate.advice import Advice, advise
from weft.engine.simulate.change import Change, Fault, Scale
from weft.engine.simulate.prediction import Prediction, Simulated, simulate
from weft.engine.simulate.recorded import recording
from weft.engine.simulate.script import Recording

__all__ = [
    "Advice",
    "Change",
    "Fault",
    "Prediction",
    "Recording",
    "Scale",
    "Simulated",
    "advise",
    "recording",
    "simulate",
]
