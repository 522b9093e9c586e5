"""The border of a run: calls of models and tools, recorded, not made twice, and played again.

Knows neither a journal nor a model or a tool: it stands between them.
"""

from weft.engine.cassette.book import CallBook, CallIds, Confirmation, Known
from weft.engine.cassette.client import RecordingClient
from weft.engine.cassette.key import idempotency_key
from weft.engine.cassette.log import CallLog
from weft.engine.cassette.once import OnceCall, once_calls
from weft.engine.cassette.redaction import Redactor, named_secrets
from weft.engine.cassette.tools import RecordingTools

__all__ = [
    "CallBook",
    "CallIds",
    "CallLog",
    "Confirmation",
    "Known",
    "OnceCall",
    "RecordingClient",
    "RecordingTools",
    "Redactor",
    "idempotency_key",
    "named_secrets",
    "once_calls",
]
