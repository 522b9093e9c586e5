"""Fakes of every port, for tests of programs: scripted models, tools, an in-memory journal, a fake
clock.
"""

from weft.core.ports.clock import FakeClock
from weft.core.ports.store import MemoryStore
from weft.testing.journal import MemoryJournal
from weft.testing.model import FakeModel, FakeTools, Reply
from weft.testing.token_model import TokenModel, TokenReply

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
