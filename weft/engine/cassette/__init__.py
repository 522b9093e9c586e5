"""The border of a run: calls of models and tools, recorded, not made twice, and played again.

Knows neither a journal nor a model or a tool: it stands between them.
"""

from weft.core.redaction import Redactor
from weft.engine.cassette.book import CallBook, CallIds, Confirmation, Known
from weft.engine.cassette.cassette import Cassette
from weft.engine.cassette.client import RecordingClient
from weft.engine.cassette.drift import Drift
from weft.engine.cassette.guard import GuardedTools
from weft.engine.cassette.kept import RecordRedactor
from weft.engine.cassette.log import CallLog
from weft.engine.cassette.once import OnceCall, once_calls
from weft.engine.cassette.replaying import Player, ReplayingClient, ReplayingTools
from weft.engine.cassette.tools import RecordingTools

__all__ = [
    "CallBook",
    "CallIds",
    "CallLog",
    "Cassette",
    "Confirmation",
    "Drift",
    "GuardedTools",
    "Known",
    "OnceCall",
    "Player",
    "RecordRedactor",
    "RecordingClient",
    "RecordingTools",
    "Redactor",
    "ReplayingClient",
    "ReplayingTools",
    "once_calls",
]
