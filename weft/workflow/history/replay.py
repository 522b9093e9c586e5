"""Replay of a recorded run without its models and tools, and comparison with its record.

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


def replay_boundary(player: CassettePlayer, called: Container[str]) -> ReplayBoundary:
    """Models and tools that answer from the record only.

    `called`: the models that the record has calls of; they are not composed of others.
    """

    def leaf(unit: Unit, name: str) -> ModelClient:
        client, own = ReplayingClient(player, name), unit.clients.get(name)
        return own.over(lambda _: client) if isinstance(own, ThoughtModel) else client

    return ReplayBoundary(_ReplayToolBoundary(player), BoundaryModels(leaf, called))


class _ReplayToolBoundary:
    """Implements `ToolBoundary`: calls of tools are answered from the record."""

    def __init__(self, player: CassettePlayer) -> None:
        self._player = player

    def tools(self, inner: ToolRunner, source: str = "") -> ToolRunner:
        return ReplayingTools(self._player, inner.specs, source)

    def source(self, unit: Unit, name: str) -> ToolServer:  # noqa: ARG002 - the port
        return _ReplayedServer(self._player, source=name)

    async def listed(self, tools: ToolRunner) -> Sequence[ToolSpec]:
        return tools.specs()


class _ReplayedServer(ReplayingTools):
    """Implements `ToolServer`: a server that is not started, with its recorded tools."""

    async def start(self) -> None:
        """Does nothing."""

    async def aclose(self) -> None:
        """Does nothing."""


_PATIENCE_S: Final = 3600.0
"""Virtual seconds after the end of the record until a replay is cancelled."""
_ADDRESS: Final = re.compile(r"\b0x[0-9a-f]{6,}\b")
_LONGEST: Final = 300


@dataclass(frozen=True, slots=True)
class ReplayDifference:
    """A node, or an output, with another result. `then` and `now` are shortened texts."""

    what: Literal["node", "output"]
    name: str
    then: str
    now: str


@dataclass(frozen=True, slots=True)
class RunReplay:
    """The result of a replay.

    `identical`: how many nodes ended exactly as recorded. `open`: nodes without an end in the
    record, which are not compared. `drifts`: calls that differ from the record.
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
        """The differences in lines; the first `most` of each kind."""
        lines = [f"{len(self.differences)} differences, {len(self.drifts)} other calls"]
        lines += [f"  {drift}" for drift in self.drifts[:most]]
        for each in self.differences[:most]:
            lines += [f"  {each.what} {each.name}", f"    - {each.then}", f"    + {each.now}"]
        hidden = [max(0, len(each) - most) for each in (self.differences, self.drifts)]
        if any(hidden):
            lines += [f"  … and {hidden[0]:,} differences and {hidden[1]:,} calls more"]
        return "\n".join(lines)


def replay(
    history: RunHistory, unit: Unit, *, strict: bool = False, by_content: bool = False
) -> RunReplay:
    """Run `unit`, the current workflow, with the recorded calls, and compare.

    strict      a call that differs from its record fails, instead of getting the recorded answer
    by_content  an equal call of any node answers a call: nodes may have other names now

    Raises: `BuildError`, also inside an event loop; `InputError`.
    """
    clock = FakeClock(busy=lambda: threads_awaited(asyncio.get_running_loop()) > 0)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return clock.run(_replayed(history, unit, clock, strict=strict, by_content=by_content))
    raise BuildError("replay inside an event loop", hint="write: await asyncio.to_thread(...)")


async def _replayed(
    history: RunHistory, unit: Unit, clock: FakeClock, *, strict: bool, by_content: bool
) -> RunReplay:
    redactor = replaying_redactor(history.header.secrets)
    records = [numbered.record for numbered in history.records]
    cassette = Cassette(records, strict=strict, redactor=redactor, by_content=by_content)
    ends: dict[NodeId, Outcome] = {}

    def record_end(event: Event) -> None:
        if isinstance(event, NodeFinished):
            ends[event.node] = event.outcome

    player = CassettePlayer(cassette, lambda: clock.now() - began_s, clock)
    began_s = clock.now()
    settings = RunSettings(
        **{**settings_of(history.header.settings), "durability": "none"},
        listeners=[record_end],
        clock=clock,
        store=MemoryStore(clock),
        tools=recorded_tools(history.header, unit),
        run=history.run,
    )
    past = PriorRun(_ReplayRecall(history, redactor), redactor)
    inputs: dict[str, Any] = redactor.restore(dict(history.header.inputs))
    called = {call.model for call in history.calls if isinstance(call, ModelCalled)}
    run = FlowRun(unit, inputs, settings, past, replay_boundary(player, called))
    loop = asyncio.get_running_loop()
    for after_s, reason in _ends(history, cassette.ended_s):
        loop.call_later(after_s, run.cancel, reason)
    for event in _cancelled(history):
        loop.call_later(event.at_s, _cancel, run, event)
    result = await run.wait()
    return _compared(history, result, ends, cassette.drifts, redactor)


class _ReplayRecall:
    """Implements `ResumeState`: nodes that did not run in the recorded run do not run now."""

    part = 1
    elapsed_s = 0.0

    def __init__(self, history: RunHistory, redactor: Redactor) -> None:
        self._recorded = RecordedResumeState(history.records, part=1, restore=redactor.restore)
        self._reused = _not_run(history)

    def outcome(self, node: NodeId, digest: str) -> RestoredNode | None:
        return self._recorded.outcome(node, digest) if node in self._reused else None

    def called_off(self, node: NodeId) -> None:
        del node  # a cancelled node waits until it is cancelled, as recorded

    def winners(self, node: NodeId, among: Collection[NodeId]) -> tuple[NodeId, ...] | None:
        return self._recorded.winners(node, among)

    def asks(
        self, node: NodeId, attempt: int, number: int, question: str, schema: JsonSchema
    ) -> bool:
        del node, attempt, number, question, schema
        return False

    def answer(self, node: NodeId, attempt: int, number: int) -> StoreEntry | None:
        return self._recorded.answer(node, attempt, number)


def _not_run(history: RunHistory) -> frozenset[NodeId]:
    """The nodes whose value came from a store, or from another run."""
    ran: set[NodeId] = set()
    reused: set[NodeId] = set()
    for event in history.events:
        if isinstance(event, NodeFinished):
            is_reused = event.recalled or event.outcome.via == "cache"
            (reused if is_reused else ran).add(event.node)
    return frozenset(reused - ran)


def _ends(history: RunHistory, ended_s: float) -> Iterator[tuple[float, str]]:
    """When and why the run was cancelled, and when the replay is given up."""
    end = history.ended
    if isinstance(end, RunFinished) and end.status == "cancelled":
        first_s = min(
            (e.at_s for e in history.events if isinstance(e, NodeFinished) and e.run_ended),
            default=end.at_s,
        )
        yield first_s, end.reasons[0] if end.reasons else "cancelled"
    yield ended_s + _PATIENCE_S, "its record ends here"


def _cancelled(history: RunHistory) -> Iterator[NodeFinished]:
    """The ends of nodes that were cancelled by name."""
    for event in history.events:
        if isinstance(event, NodeFinished) and event.by_name and not event.recalled:
            yield event


def _cancel(run: FlowRun, event: NodeFinished) -> None:
    why = event.outcome.failure
    with suppress(UnknownReference):  # another workflow may not have it
        run.cancel("cancelled" if why is None else why.message, event.node)


def _compared(
    history: RunHistory,
    result: FlowResult,
    ends: Mapping[NodeId, Outcome],
    drifts: list[Drift],
    redactor: Redactor,
) -> RunReplay:
    differences: list[ReplayDifference] = []
    identical = 0
    for node, outcome in history.outcomes.items():
        then, now = _text(outcome), _shown(ends.get(node))
        if then == now:
            identical += 1
        else:
            differences.append(ReplayDifference("node", node, _cut(then), _cut(now)))
    ended = history.ended is not None
    for node, outcome in ends.items():
        if ended and node not in history.outcomes:
            now = _cut(_shown(outcome))
            differences.append(ReplayDifference("node", node, "it was not there", now))
    if ended:
        differences += _outputs(history, result, redactor)
    open_nodes = tuple(node for node in history.trace.nodes if node not in history.outcomes)
    return RunReplay(result, identical, tuple(differences), tuple(drifts), open_nodes)


def _outputs(
    history: RunHistory, result: FlowResult, redactor: Redactor
) -> Iterator[ReplayDifference]:
    then = result_of(history)
    for name in dict.fromkeys((*then.outputs, *result.outputs)):
        texts = []
        for one in (then, result):
            present = name in one.outputs
            value = one.outputs[name] if present else None
            shown = redactor.redact(value) if one is result else value  # the record is redacted
            texts.append(_text(Outcome("succeeded", shown)) if present else "missing")
        if texts[0] != texts[1]:
            yield ReplayDifference("output", name, _cut(texts[0]), _cut(texts[1]))


def _shown(outcome: Outcome | None) -> str:
    return "it did not end" if outcome is None else _text(outcome)


def _text(outcome: Outcome) -> str:
    # The memory address of a foreign object is not part of its value.
    return _ADDRESS.sub("0x…", encode(outcome))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
