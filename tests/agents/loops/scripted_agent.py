"""Runs an agent on a scripted model in virtual time, and keeps everything that was said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from weft.agents.agent import AgentOptions, Answer, run_agent
from weft.agents.loops import make_agent
from weft.core.events import Event, NodeFinished, NodeLogged
from weft.core.ports import Capabilities, ModelRequest
from weft.core.values import Message
from weft.engine import RunOptions, RunResult
from weft.testing import FakeClock, FakeModel, FakeTools, Reply

Script = Iterable[Reply | str] | Callable[[ModelRequest], Reply | str]
CAPABLE = Capabilities(structured_output=True, tools=True)
PRICES = {"tea": 3, "coffee": 4, "milk": 1}


@dataclass
class Talked:
    """A talk that is over."""

    result: RunResult
    given: Answer | None
    model: FakeModel
    events: list[Event] = field(default_factory=list)

    @property
    def answer(self) -> Answer:
        assert self.given is not None, self.result.reasons
        return self.given

    @property
    def reason(self) -> str:
        assert self.given is None, self.given
        return "; ".join(self.result.reasons)

    @property
    def requests(self) -> list[ModelRequest]:
        return self.model.requests

    @property
    def heard(self) -> list[str]:
        """What the model was told last in each of its requests."""
        return [request.messages[-1].content for request in self.requests]

    @property
    def logs(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, NodeLogged)]

    @property
    def nodes(self) -> list[str]:
        return [event.node for event in self.events if isinstance(event, NodeFinished)]

    def assert_stable_prefix(self) -> None:
        """Each request begins with all messages of the one before."""
        for before, after in zip(self.requests, self.requests[1:], strict=False):
            assert after.messages[: len(before.messages)] == before.messages
            assert after.tools == before.tools


def price(item: str) -> int:
    """What an item costs."""
    return PRICES[item]


def talk(
    agent: str,
    script: Script,
    tools: FakeTools | None = None,
    *,
    run: RunOptions | None = None,
    offered: Capabilities | None = None,
    **options: Any,
) -> Talked:
    """Let `agent` answer a question with the scripted model."""
    model = FakeModel(script, capabilities=offered or CAPABLE)
    toolbox = tools or FakeTools(price=price)
    events: list[Event] = []

    clock = FakeClock()

    async def main() -> Talked:
        made = make_agent(agent, toolbox, model, AgentOptions(**options))
        end = await run_agent(
            made,
            "which is cheaper?",
            options=run or RunOptions(),
            listeners=[events.append],
            clock=clock,
        )
        return Talked(end.result, end.answer, model, events)

    return clock.run(main())


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"name": tool, "arguments": arguments}


def cost(*items: str) -> list[dict[str, Any]]:
    return [call("price", item=item) for item in items]


def says(**following: Any) -> str:
    """A reply in the JSON form."""
    return json.dumps({"thought": "so", "next": following})


def roles(messages: Iterable[Message]) -> str:
    return " ".join(message.role for message in messages)
