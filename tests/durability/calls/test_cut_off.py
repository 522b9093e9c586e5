"""A run whose process dies after any record, resumed with its border: nothing is done twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

import pytest

from weft.core.call_context import current_key
from weft.core.calls import CallEvent, ToolCalled, ToolReturned
from weft.core.errors import ToolRaised
from weft.core.events import NodeFinished
from weft.core.ids import NodeId, RunId
from weft.core.ports import ModelRequest, Sampling
from weft.core.ports.journal import NumberedRecord, RunHeader
from weft.core.values import Completion, Message, ToolSpec
from weft.durability.calls import (
    CallLog,
    Cassette,
    CassettePlayer,
    Confirmation,
    RecordingClient,
    RecordingTools,
    RecordRedactor,
    Redactor,
    ReplayingClient,
    ReplayingTools,
    once_calls,
)
from weft.durability.journal.resume_state import RecordedResumeState
from weft.engine import Edge, Graph, Inputs, Node, NodeContext, Policy, Retry, Run, RunResult
from weft.engine.runner.recorder import RunRecorder
from weft.testing import FakeClock, FakeTools, MemoryJournal, TokenModel, TokenReply

RUN = RunId("run")
TEXT = "pay 3 with sk-secret-1234"
SECRETS = {"BANK_KEY": "sk-secret-1234"}
LAST = "book"


def writing(prompt: tuple[int, ...], _: ModelRequest) -> TokenReply:
    """Goes on with TEXT from wherever the prompt has come to."""
    said = "".join(chr(each) for each in prompt if each < 0x110000)
    begun = next((n for n in range(len(TEXT), 0, -1) if said.endswith(TEXT[:n])), 0)
    return TokenReply(TEXT[begun:])


class World:
    """What is outside of the run, and stays when its process dies."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.keys: list[str] = []
        self.model = TokenModel(writing, per_token_s=0.01)
        self.tools = FakeTools(pay=self.pay, book=self.book)

    def pay(self, text: str) -> str:
        self.paid.append(text)
        return f"receipt {len(self.paid)}"

    def book(self, text: str) -> str:
        self.keys.append(current_key())
        if len(self.keys) == 1:
            raise ToolRaised("the line is busy", retryable=True)
        return f"booked {text}"

    def specs(self) -> tuple[ToolSpec, ...]:
        effects = {"pay": "once", "book": "idempotent"}
        return tuple(
            ToolSpec(spec.name, "", {}, effect=effects[spec.name])  # type: ignore[arg-type]
            for spec in self.tools.specs()
        )

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return await self.tools.call(name, arguments)


def program(model: Any, tools: Any) -> list[Node]:
    async def write(_: NodeContext, __: Inputs) -> str:
        request = ModelRequest((Message("user", "Write."),), sampling=Sampling(temperature=0))
        async with aclosing(model.generate(request)) as stream:
            answers = [event async for event in stream if isinstance(event, Completion)]
        return answers[0].text

    async def pay(_: NodeContext, inputs: Inputs) -> Any:
        return await tools.call("pay", {"text": inputs["text"]})

    async def book(_: NodeContext, inputs: Inputs) -> Any:
        return await tools.call("book", {"text": inputs["receipt"]})

    retried = Policy(retry=Retry(3, delay_s=1.0, jitter=0.0))
    return [
        Node(NodeId("write"), write),
        Node(NodeId("pay"), pay, (Edge(NodeId("write"), "text"),), policy=retried),
        Node(NodeId(LAST), book, (Edge(NodeId("pay"), "receipt"),), policy=retried),
    ]


def part(
    world: World,
    past: Sequence[NumberedRecord] = (),
    confirmed: Mapping[str, Confirmation] | None = None,
) -> tuple[RunResult, list[NumberedRecord]]:
    """One part of the run, to its end, and all records after it."""
    journal, clock, redactor = MemoryJournal(), FakeClock(), Redactor(SECRETS)
    claim = journal.begin(RunHeader(RUN, "f", "2026-01-01", "0"))
    recorder, redact = RunRecorder(journal, RUN, "sync"), RecordRedactor(redactor)

    async def write(event: CallEvent, durable: bool) -> None:
        for told in redact(event):
            await recorder.write(told, durable)

    calls = CallLog(
        RUN,
        lambda: recorder.now_s,
        write,
        past=[each.record for each in past],
        confirmed=confirmed,
        redactor=redactor,
    )
    nodes = program(RecordingClient(world.model, "main", calls), RecordingTools(world, calls))
    recall = RecordedResumeState(past, restore=redactor.restore) if past else None
    run = Run(
        Graph("f", nodes), run=RUN, clock=clock, recorder=recorder, recall=recall, redact=redact
    )
    result = clock.run(run.wait())
    claim.release()
    number = max((each.part for each in past), default=0) + 1
    made = [
        NumberedRecord(len(past) + n, number, each.record)
        for n, each in enumerate(journal.records(RUN), 1)
    ]
    return result, [*past, *made]


def undisturbed() -> tuple[World, RunResult, list[NumberedRecord]]:
    world = World()
    result, records = part(world)
    return world, result, records


def test_undisturbed() -> None:
    world, result, records = undisturbed()
    assert result.outcomes[NodeId(LAST)].value == "booked receipt 1"
    assert world.paid == [TEXT]
    assert len(set(world.keys)) == 1
    assert [call.done for call in once_calls(each.record for each in records)] == ["done"]
    assert "sk-secret" not in repr(records)


def cuts() -> list[int]:
    return list(range(1, len(undisturbed()[2])))


@pytest.mark.parametrize("cut", cuts())
def test_cut_off_after_any_record(cut: int) -> None:
    _, whole, records = undisturbed()
    past = records[:cut]
    kinds = [type(each.record) for each in past if _is_payment(each.record)]
    world = World()
    world.paid += [TEXT] * (ToolReturned in kinds)
    world.keys += ["?"] * any(_is_booking(each.record) for each in past)
    result, after = part(world, past)
    if kinds == [ToolCalled]:  # nobody knows
        failure = result.outcomes[NodeId("pay")].failure
        assert failure is not None
        assert failure.error == "EffectUnknown"
        assert not world.paid
        result, after = part(world, after, {"pay": Confirmation("repeat")})
    assert result.outcomes[NodeId(LAST)].value == whole.outcomes[NodeId(LAST)].value
    assert world.paid == [TEXT]
    assert [call.done for call in once_calls(each.record for each in after)] == ["done"]
    assert "sk-secret" not in repr(after)
    asked = sum(len(request.prompt_token_ids) > 0 for request in world.model.requests)
    streamed = any(type(each.record).__name__ == "ModelStreamed" for each in past)
    answered = any(type(each.record).__name__ == "ModelAnswered" for each in past)
    assert asked <= (streamed and not answered)


def test_the_record_of_all_parts_is_played_offline() -> None:
    _, whole, records = undisturbed()
    middle = next(
        n for n, each in enumerate(records) if type(each.record).__name__ == "ModelStreamed"
    )
    _, after = part(World(), records[: middle + 1])
    for taped in (records, after):
        clock, redactor = FakeClock(), Redactor(SECRETS)
        cassette = Cassette([each.record for each in taped], strict=True, redactor=redactor)
        journal = MemoryJournal()
        claim = journal.begin(RunHeader(RUN, "f", "2026-01-01", "0"))
        recorder = RunRecorder(journal, RUN, "none")
        player = CassettePlayer(cassette, lambda recorder=recorder: recorder.now_s, clock)  # type: ignore[misc]
        nodes = program(ReplayingClient(player, "main"), ReplayingTools(player))
        run = Run(Graph("f", nodes), run=RUN, clock=clock, recorder=recorder)
        result = clock.run(run.wait())
        claim.release()
        assert result.outcomes == whole.outcomes
        assert not cassette.left()


def _is_payment(record: object) -> bool:
    return isinstance(record, ToolCalled | ToolReturned) and record.node == "pay"


def _is_booking(record: object) -> bool:
    return isinstance(record, ToolReturned) and record.node == LAST


def test_records_end_with_what_they_say() -> None:
    ended = [each.record for each in undisturbed()[2] if isinstance(each.record, NodeFinished)]
    assert [event.outcome.status for event in ended] == ["succeeded"] * 3
