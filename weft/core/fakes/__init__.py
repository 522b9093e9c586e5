"""Fakes of every port: real enough for a user's own tests, small enough to read."""

from weft.core.fakes.clock import FakeClock
from weft.core.fakes.journal import MemoryJournal
from weft.core.fakes.model import FakeModel, Reply
from weft.core.fakes.store import MemoryStore
from weft.core.fakes.token_model import TokenModel, TokenReply
from weft.core.fakes.tool import FakeTools

__all__ = [
    "FakeClock",
    "FakeModel",
    "FakeTools",
    "MemoryJournal",
    "MemoryStore",
    "Reply",
    "TokenModel",
    "TokenReply",
]
