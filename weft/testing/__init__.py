"""Fakes of every port, for tests of programs: scripted models and agents, tools, an in-memory
journal with assertions, a fake clock, recorded answers.
"""

from weft.core.ports.clock import FakeClock
from weft.core.ports.store import MemoryStore
from weft.testing.cassette import CassetteModel
from weft.testing.journal import MemoryJournal
from weft.testing.model import FakeModel, FakeTools, ScriptedAgent
from weft.testing.script import Reply, call_tool
from weft.testing.spy import RunSpy
from weft.testing.token_model import TokenModel, TokenReply

__all__ = [
    "CassetteModel",
    "FakeClock",
    "FakeModel",
    "FakeTools",
    "MemoryJournal",
    "MemoryStore",
    "Reply",
    "RunSpy",
    "ScriptedAgent",
    "TokenModel",
    "TokenReply",
    "call_tool",
]
