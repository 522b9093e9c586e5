"""What is recorded, and what is played again, is to its users what it was."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any

import pytest

from tests.conformance.model_client import ScriptedModelConformance
from tests.conformance.tokenizing import Client, TokenizingConformance
from tests.conformance.tool_runner import ToolRunnerConformance
from weft.agents.tools import Toolbox, tool
from weft.core.calls import CallEvent
from weft.core.ids import NodeId, RunId
from weft.core.ports import ModelClient
from weft.durability.calls import CallLog, RecordingClient, RecordingTools
from weft.engine.scheduler.effects import CALL_SITE, CallSite
from weft.testing import FakeModel, Reply, TokenModel


@pytest.fixture(autouse=True)
def _place() -> Iterator[None]:
    token = CALL_SITE.set(CallSite(NodeId("node"), 1))
    yield
    CALL_SITE.reset(token)


def log(events: list[CallEvent]) -> CallLog:
    async def write(event: CallEvent, durable: bool) -> None:
        events.append(event)

    return CallLog(RunId("run"), lambda: 0.0, write)


class TestRecordingTools(ToolRunnerConformance):
    def make(self, *functions: Callable[..., Any]) -> RecordingTools:
        return RecordingTools(Toolbox(*(tool(function) for function in functions)), log([]))


class TestRecordingOnceTools(ToolRunnerConformance):
    def make(self, *functions: Callable[..., Any]) -> RecordingTools:
        once = (tool(effect="once")(function) for function in functions)
        return RecordingTools(Toolbox(*once), log([]))


class TestRecordingClient(ScriptedModelConformance):
    fake: FakeModel
    # A script is not held to the schema.
    test_a_wrong_schema_is_a_request_error = None  # type: ignore[assignment]

    @asynccontextmanager
    async def playing(self, script: Callable[[bool], Reply]) -> AsyncIterator[ModelClient]:
        self.fake = FakeModel(lambda request: script(request.schema is not None))
        async with aclosing(RecordingClient(self.fake, "main", log([]))) as client:
            yield client

    def running(self) -> int:
        return self.fake.running


class TestRecordingTokenizer(TokenizingConformance):
    tag = "<Thread>"

    # It is told to be fast, not to be shut.
    test_a_closed_client_says_so = None  # type: ignore[assignment]

    def tokenizing(self) -> AbstractAsyncContextManager[Client]:
        inner = TokenModel(lambda _ids, _request: (), tags=["<Thread>"])
        client: Any = RecordingClient(inner, "main", log([]))
        return aclosing(client)
