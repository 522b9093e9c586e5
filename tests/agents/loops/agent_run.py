"""Agents in virtual time: runs one, and looks at everything a run must leave in order behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.engine.event_stream import assert_well_formed
from tests.engine.virtual_run import WatchedClock, assert_nothing_left
from weft.agents.agent import Agent, AgentResult, Answer, Observation, run_agent
from weft.agents.loops.joiner import Finish, Replan
from weft.core.events import Event, NodeFinished, NodeStarted, Outcome
from weft.core.ports import Capabilities, ModelEvent, ModelRequest, TextDelta
from weft.core.values import Completion, Usage
from weft.engine import NodeContext, RunOptions

E = TypeVar("E")
FOR_EVER_S = 1e6


@dataclass
class PlayedAgent:
    """An agent's run that is over, and its events."""

    result: AgentResult
    events: list[Event] = field(repr=False)

    @property
    def answer(self) -> Answer:
        assert self.result.answer is not None, self.result.result.reasons
        return self.result.answer

    def __getitem__(self, node: str) -> Outcome:
        """The outcome of a node inside the agent's."""
        outcomes = {str(name): outcome for name, outcome in self.result.result.outcomes.items()}
        return outcomes[next(name for name in outcomes if name.partition("/")[2] == node)]

    @property
    def steps(self) -> dict[int, Outcome]:
        """The outcomes of the steps, by number."""
        found = {}
        for node, outcome in self.result.result.outcomes.items():
            name = node.rpartition("/")[2]
            if name.startswith("s") and name[1:].isdecimal():
                found[int(name[1:])] = outcome
        return found

    def all(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def started_s(self, node: str) -> float:
        return next(e.at_s for e in self.all(NodeStarted) if e.node.endswith(f"/{node}"))

    def ended_s(self, node: str) -> float:
        return next(e.at_s for e in self.all(NodeFinished) if e.node.endswith(f"/{node}"))


def play_agent(agent: Agent, question: str = "What is it?", **options: Any) -> PlayedAgent:
    """Run `agent` to its end. `options` are `RunOptions`.

    Asserts that it ends, that its events are well formed and that nothing is left behind.
    """
    events: list[Event] = []
    result = _played(agent, question, events, None, options)
    assert result is not None
    assert_well_formed(events, result.result)
    return PlayedAgent(result, events)


def cancel_agent(agent: Agent, after_s: float) -> list[Event]:
    """The events of a run of `agent` whose caller was cancelled; nothing is left behind."""
    events: list[Event] = []
    _played(agent, "What is it?", events, after_s, {})
    return events


def _played(
    agent: Agent,
    question: str,
    events: list[Event],
    cancel_after_s: float | None,
    options: Mapping[str, Any],
) -> AgentResult | None:
    clock = WatchedClock()

    async def main() -> AgentResult | None:
        work = run_agent(
            agent, question, options=RunOptions(**options), listeners=[events.append], clock=clock
        )
        task = asyncio.ensure_future(work)
        await asyncio.wait([task], timeout=FOR_EVER_S if cancel_after_s is None else cancel_after_s)
        assert task.done() or cancel_after_s is not None, "it never ends"
        task.cancel()
        await asyncio.wait([task])
        await assert_nothing_left(clock)
        return None if task.cancelled() else task.result()

    return clock.run(main())


Pause = tuple[float, str]
"""Seconds to wait, and the text that comes then."""


class ScriptedModel:
    """A `ModelClient` that writes given texts, each in pieces with pauses of their own.

    `script` has one reply for each request, in turn, or makes it of the request; a plain text comes
    line by line at once. A script that runs out repeats its last reply.
    """

    model = "scripted"

    def __init__(
        self,
        *script: str | Sequence[Pause],
        reply: Callable[[ModelRequest], str | Sequence[Pause]] | None = None,
    ) -> None:
        self._script = list(script)
        self._reply = reply
        self.requests: list[ModelRequest] = []
        self.open = 0

    async def capabilities(self) -> Capabilities:
        return Capabilities()

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        if self._reply is not None:
            reply = self._reply(request)
        else:
            reply = self._script[min(len(self.requests), len(self._script)) - 1]
        if isinstance(reply, str):
            reply = [(0.0, line) for line in reply.splitlines(keepends=True)]
        self.open += 1
        try:
            for seconds, text in reply:
                await asyncio.sleep(seconds)
                yield TextDelta(text)
        finally:
            self.open -= 1
        text = "".join(text for _, text in reply)
        usage = Usage(100, len(text.split()), requests=1)
        yield Completion(text, usage=usage, model=self.model)

    async def aclose(self) -> None:
        """Holds nothing."""


class ContentWhenDone:
    """A joiner that asks for another round as long as something new that it sees has failed.

    `seen` lists what it was told, round by round.
    """

    def __init__(self) -> None:
        self.seen: list[tuple[Observation, ...]] = []

    async def decide(
        self,
        context: NodeContext,
        question: str,
        observations: Sequence[Observation],
        last_round: bool,
        *,
        round: int = 1,  # noqa: A002 - the word for it
    ) -> Finish | Replan:
        known = {one.number for before in self.seen for one in before}
        self.seen.append(tuple(observations))
        news = [one for one in observations if one.number not in known]
        bad = [one for one in news if one.outcome.failure and not one.outcome.ok]
        if bad and not last_round:
            return Replan(f"{len(bad)} calls went wrong")
        values = [(one.number, one.outcome.value) for one in observations if one.outcome.ok]
        return Finish(values, f"after round {round} of {question}, in {context.node}")
