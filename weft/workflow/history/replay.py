"""Repeats a recorded run without its models and tools, and compares.

Containers, templates and plain functions run; models, tools and people answer from the record.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal

from weft.agents.tools.threads import threads_awaited
from weft.core.calls import ModelCalled
from weft.core.codec import encode
from weft.core.errors import BuildError, UnknownReference
from weft.core.events import Event, NodeFinished, Outcome, RunFinished
from weft.core.ids import NodeId
from weft.core.ports import ModelClient, StoreEntry, ToolRunner
from weft.core.ports.clock import FakeClock
from weft.core.ports.store import MemoryStore
from weft.core.values import JsonSchema, ToolSpec
from weft.durability.calls import (
    Cassette,
    CassettePlayer,
    Drift,
    Redactor,
    ReplayingClient,
    ReplayingTools,
)
from weft.durability.journal.resume_state import RecordedResumeState
from weft.engine.scheduler.resume_state import RestoredNode
from weft.workflow.document.secrets import replaying_redactor
from weft.workflow.document.tool_servers import ToolServer
from weft.workflow.document.unit import Unit
from weft.workflow.history.recorded_workflow import recorded_tools, result_of
from weft.workflow.history.run_history import RunHistory
from weft.workflow.runtime.boundary import BoundaryModels, ReplayBoundary
from weft.workflow.runtime.models.think import ThoughtModel
from weft.workflow.runtime.options import RunSettings, settings_of
from weft.workflow.runtime.recording import PriorRun
from weft.workflow.runtime.results.result import FlowResult
from weft.workflow.runtime.run import FlowRun


def replay_boundary(player: CassettePlayer, asked: Container[str]) -> ReplayBoundary:
    """Models and tools that answer from the record; nothing else is asked.

    `asked` are the models that were: one of them is not made of others, whatever its declaration.
    """

    def leaf(unit: Unit, name: str) -> ModelClient:
        client, own = ReplayingClient(player, name), unit.clients.get(name)
        return own.over(lambda _: client) if isinstance(own, ThoughtModel) else client

    return ReplayBoundary(_ReplayToolBoundary(player), BoundaryModels(leaf, asked))


class _ReplayToolBoundary:
    """Implements `Border`: calls of tools are answered from the record."""

    def __init__(self, player: CassettePlayer) -> None:
        self._player = player

    def tools(self, inner: ToolRunner, source: str = "") -> ToolRunner:
        return ReplayingTools(self._player, inner.specs, source)

    def source(self, unit: Unit, name: str) -> ToolServer:  # noqa: ARG002 - the port
        return _ReplayedServer(self._player, source=name)

    async def listed(self, tools: ToolRunner) -> Sequence[ToolSpec]:
        return tools.specs()


class _ReplayedServer(ReplayingTools):
    """Implements `ToolServer`: a server that is not there, with the tools that it had."""

    async def start(self) -> None:
        """Nothing has to be started."""

    async def aclose(self) -> None:
        """Nothing is open."""


_PATIENCE_S: Final = 3600.0
"""How long after the end of the record a repetition is given up; nobody waits for it."""
_ADDRESS: Final = re.compile(r"\b0x[0-9a-f]{6,}\b")
_LONGEST: Final = 300


@dataclass(frozen=True, slots=True)
class ReplayDifference:
    """A node, or an output, that came to something else. `then` and `now` are texts, cut."""

    what: Literal["node", "output"]
    name: str
    then: str
    now: str


@dataclass(frozen=True, slots=True)
class RunReplay:
    """What a repetition came to.

    `identical`: so many nodes ended as they had, to the last bit. `open`: nodes without an end in
    the record, which nothing is said of. `drifts`: calls that were made otherwise.
    """

    result: FlowResult
    identical: int
    differences: tuple[ReplayDifference, ...]
    drifts: tuple[Drift, ...]
    open: tuple[NodeId, ...]

    @property
    def ok(self) -> bool:
        """True when nothing differs."""
        return not self.differences and not self.drifts

    def report(self, most: int = 20) -> str:
        """What differs, in lines; the first `most` of each kind."""
        lines = [f"{len(self.differences)} differences, {len(self.drifts)} other calls"]
        lines += [f"  {drift}" for drift in self.drifts[:most]]
        for each in self.differences[:most]:
            lines += [f"  {each.what} {each.name}", f"    - {each.then}", f"    + {each.now}"]
        untold = [max(0, len(found) - most) for found in (self.differences, self.drifts)]
        if any(untold):
            lines += [f"  … and {untold[0]:,} differences and {untold[1]:,} calls more"]
        return "\n".join(lines)


def replay(story: RunHistory, unit: Unit, *, strict: bool = False) -> RunReplay:
    """Repeat a run on `unit`, the workflow as it is now, and compare.

    strict: a call that differs from its record fails, instead of getting the recorded answer.

    In the event loop of the caller there is no place for it: raises `BuildError` where one runs.
    Raises: `BuildError`, `InputError`.
    """
    clock = FakeClock(busy=_threads_at_work)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return clock.run(_replayed(story, unit, clock, strict=strict))
    raise BuildError("replay inside an event loop", hint="write: await asyncio.to_thread(...)")


async def _replayed(story: RunHistory, unit: Unit, clock: FakeClock, *, strict: bool) -> RunReplay:
    redactor = replaying_redactor(story.header.secrets)
    records = [numbered.record for numbered in story.records]
    cassette = Cassette(records, strict=strict, redactor=redactor)
    ends: dict[NodeId, Outcome] = {}

    def hear(event: Event) -> None:
        if isinstance(event, NodeFinished):
            ends[event.node] = event.outcome

    player = CassettePlayer(cassette, lambda: clock.now() - began_s, clock)
    began_s = clock.now()
    settings = RunSettings(
        **{**settings_of(story.header.settings), "durability": "none"},
        listeners=[hear],
        clock=clock,
        store=MemoryStore(clock),
        tools=recorded_tools(story.header, unit),
        run=story.run,
    )
    past = PriorRun(_ReplayRecall(story, redactor), redactor)
    inputs: dict[str, Any] = redactor.restore(dict(story.header.inputs))
    asked = {call.model for call in story.calls if isinstance(call, ModelCalled)}
    run = FlowRun(unit, inputs, settings, past, replay_boundary(player, asked))
    loop = asyncio.get_running_loop()
    for after_s, reason in _ends(story, cassette.ended_s):
        loop.call_later(after_s, run.cancel, reason)
    for event in _called_off(story):
        loop.call_later(event.at_s, _call_off, run, event)
    result = await run.wait()
    return _compared(story, result, ends, cassette.drifts, redactor)


class _ReplayRecall:
    """Implements `Recall`: what had not run when it was recorded does not run now."""

    part = 1
    elapsed_s = 0.0

    def __init__(self, story: RunHistory, redactor: Redactor) -> None:
        self._recorded = RecordedResumeState(story.records, part=1, restore=redactor.restore)
        self._whole = _not_run(story)

    def outcome(self, node: NodeId, digest: str) -> RestoredNode | None:
        return self._recorded.outcome(node, digest) if node in self._whole else None

    def called_off(self, node: NodeId) -> None:
        del node  # it waited then until it was cancelled, and so it does now

    def winners(self, node: NodeId, among: Collection[NodeId]) -> tuple[NodeId, ...] | None:
        return self._recorded.winners(node, among)

    def asks(
        self, node: NodeId, attempt: int, number: int, question: str, schema: JsonSchema
    ) -> bool:
        del node, attempt, number, question, schema
        return False

    def answer(self, node: NodeId, attempt: int, number: int) -> StoreEntry | None:
        return self._recorded.answer(node, attempt, number)


def _not_run(story: RunHistory) -> frozenset[NodeId]:
    """The nodes whose value came from a store, or from another run."""
    ran: set[NodeId] = set()
    taken: set[NodeId] = set()
    for event in story.events:
        if isinstance(event, NodeFinished):
            known = event.recalled or event.outcome.via == "cache"
            (taken if known else ran).add(event.node)
    return frozenset(taken - ran)


def _ends(story: RunHistory, ended_s: float) -> Iterator[tuple[float, str]]:
    """When somebody ended the run, and why; and when it is given up."""
    end = story.ended
    if isinstance(end, RunFinished) and end.status == "cancelled":
        first_s = min((e.at_s for e in story.events if _cut_off(e)), default=end.at_s)
        yield first_s, end.reasons[0] if end.reasons else "cancelled"
    yield ended_s + _PATIENCE_S, "its record ends here"


def _called_off(story: RunHistory) -> Iterator[NodeFinished]:
    """The ends of nodes that somebody cancelled."""
    for event in story.events:
        if isinstance(event, NodeFinished) and event.by_name and not event.recalled:
            yield event


def _call_off(run: FlowRun, event: NodeFinished) -> None:
    why = event.outcome.failure
    with suppress(UnknownReference):  # another workflow may not have it
        run.cancel("cancelled" if why is None else why.message, event.node)


def _cut_off(event: Event) -> bool:
    return isinstance(event, NodeFinished) and event.run_ended


def _compared(
    story: RunHistory,
    result: FlowResult,
    ends: Mapping[NodeId, Outcome],
    drifts: list[Drift],
    redactor: Redactor,
) -> RunReplay:
    differences: list[ReplayDifference] = []
    identical = 0
    for node, outcome in story.outcomes.items():
        then, now = _text(outcome), _shown(ends.get(node))
        if then == now:
            identical += 1
        else:
            differences.append(ReplayDifference("node", node, _cut(then), _cut(now)))
    ended = story.ended is not None
    for node, outcome in ends.items():
        if ended and node not in story.outcomes:
            now = _cut(_shown(outcome))
            differences.append(ReplayDifference("node", node, "it was not there", now))
    if ended:
        differences += _outputs(story, result, redactor)
    open_nodes = tuple(node for node in story.trace.nodes if node not in story.outcomes)
    return RunReplay(result, identical, tuple(differences), tuple(drifts), open_nodes)


def _outputs(
    story: RunHistory, result: FlowResult, redactor: Redactor
) -> Iterator[ReplayDifference]:
    then = result_of(story)
    for name in dict.fromkeys((*then.outputs, *result.outputs)):
        texts = []
        for one in (then, result):
            there = name in one.outputs
            value = one.outputs[name] if there else None
            shown = redactor.redact(value) if one is result else value  # the record's has marks
            texts.append(_text(Outcome("succeeded", shown)) if there else "missing")
        if texts[0] != texts[1]:
            yield ReplayDifference("output", name, _cut(texts[0]), _cut(texts[1]))


def _shown(outcome: Outcome | None) -> str:
    return "it did not end" if outcome is None else _text(outcome)


def _text(outcome: Outcome) -> str:
    # Where an object of a foreign class lies in memory is nothing of what it is.
    return _ADDRESS.sub("0x…", encode(outcome))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _threads_at_work() -> bool:
    return threads_awaited(asyncio.get_running_loop()) > 0
