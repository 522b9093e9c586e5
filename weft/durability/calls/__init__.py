"""The I/O boundary of a run: model and tool calls, recorded, made once, and replayed."""

from weft.core.redaction import Redactor
from weft.durability.calls.cassette import Cassette
from weft.durability.calls.client import RecordingClient
from weft.durability.calls.drift import Drift
from weft.durability.calls.history import CallIds, Confirmation, RecordedCall
from weft.durability.calls.log import CallLog
from weft.durability.calls.once import OnceCall, once_calls
from weft.durability.calls.player import CassettePlayer, ReplayingClient, ReplayingTools
from weft.durability.calls.record_redactor import RecordRedactor
from weft.durability.calls.tools import GuardedTools, RecordingTools

__all__ = [
    "CallIds",
    "CallLog",
    "Cassette",
    "CassettePlayer",
    "Confirmation",
    "Drift",
    "GuardedTools",
    "OnceCall",
    "RecordRedactor",
    "RecordedCall",
    "RecordingClient",
    "RecordingTools",
    "Redactor",
    "ReplayingClient",
    "ReplayingTools",
    "once_calls",
]
