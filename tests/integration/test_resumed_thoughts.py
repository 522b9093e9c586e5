"""Threads and votes of a thought survive: what a model has answered, it is not asked again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.durability.recorded import RUN
from tests.engine.virtual_run import WatchedClock, assert_nothing_left, ended
from tests.reasoning.strategy_cases import TYPED, Neighbours, cases, chat, occasion
from weft.core.calls import ModelAnswered
from weft.core.ports import ModelRequest
from weft.core.ports.journal import NumberedRecord, RunHeader
from weft.core.values import Usage
from weft.durability.calls import CallLog, RecordingClient
from weft.durability.journal.resume_state import RecordedResumeState
from weft.engine import Graph, Node, Run
from weft.engine.runner.recorder import RunRecorder
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.strategies import make_strategy
from weft.reasoning.strategy import THINK
from weft.reasoning.thought import Thought
from weft.testing import FakeModel
from weft.testing.journal import MemoryJournal
from weft.testing.token_model import TokenModel, TokenReply

OPTIONS: dict[str, Any] = {"width": 3, "rounds": 2, "max_tokens": 400, "budget": 9_000}


@dataclass(frozen=True)
class Thinking:
    """A thought, what was recorded of it, and how many requests its model got."""

    thought: Thought
    usage: Usage
    records: list[NumberedRecord]
    requests: int


def think(strategy: str, kind: str, past: Sequence[NumberedRecord] = ()) -> Thinking:
    """Think, or go on thinking where `past` stops, in virtual time."""
    asked = occasion(strategy)
    inner = _model(strategy, kind)
    journal, clock = MemoryJournal(), WatchedClock()
    journal.begin(RunHeader(RUN, "think", "2000-01-01T00:00:00+00:00", "0"))
    recorder = RunRecorder(journal, RUN)
    calls = CallLog(
        RUN, lambda: recorder.now_s, recorder.write, past=[each.record for each in past]
    )
    options = ThinkOptions(**OPTIONS, settings=asked.settings)
    made = make_strategy(strategy, RecordingClient(inner, "m", calls), options)
    work = made.work(Question(asked.question, documents=asked.documents))
    run = Run(
        Graph("think", [Node(THINK, work, kind="think")]),
        run=RUN,
        clock=clock,
        recall=RecordedResumeState(past) if past else None,
        recorder=recorder,
    )

    async def main() -> Any:
        result = await ended(run)
        await assert_nothing_left(clock)
        return result

    result = clock.run(main())
    assert result.status == "succeeded", result.reasons
    thought = result.outcomes[THINK].value
    assert isinstance(thought, Thought)
    records = list(journal.records(RUN))
    return Thinking(thought, result.usage, records, len(inner.requests))


# Those that run programs wait for real processes, which virtual time does not.
THINKERS = [case for case in cases() if case[0] not in ("sstar", "plansearch")]


@pytest.mark.parametrize(("strategy", "kind"), THINKERS, ids=str)
def test_a_thought_that_is_cut_off_comes_to_its_answer(strategy: str, kind: str) -> None:
    whole = think(strategy, kind)
    for share in (0.2, 0.5, 0.8):
        cut = whole.records[: max(1, int(len(whole.records) * share))]
        resumed = think(strategy, kind, cut)
        assert resumed.thought.answer == whole.thought.answer
        assert resumed.requests <= whole.requests - _answered(cut)
        assert resumed.thought.counts.total_tokens == whole.thought.counts.total_tokens
        assert resumed.usage.tokens == whole.usage.tokens


def _model(strategy: str, kind: str) -> FakeModel | TokenModel:
    """A model that goes on where the prompt ends with the beginning of what it says."""
    if kind == "chat":
        return chat(strategy, per_token_s=0.1)

    def script(prompt: Sequence[int], request: ModelRequest) -> TokenReply:
        says = TYPED if request.schema is not None else occasion(strategy).says
        written = model.spell(prompt)
        begun = next(n for n in range(len(says), -1, -1) if written.endswith(says[:n]))
        return TokenReply(says[begun:])

    model = Neighbours(script, per_token_s=0.1)
    return model


def _answered(cut: Sequence[NumberedRecord]) -> int:
    answers = [each.record for each in cut if isinstance(each.record, ModelAnswered)]
    return sum(answer.failure is None for answer in answers)
