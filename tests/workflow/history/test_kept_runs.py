"""Runs of servers: recorded where whoever starts the server says so, and nowhere else."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.core.errors import BuildError, InputError, StoreError, WeftError
from weft.core.ids import RunId
from weft.core.ports import ModelRequest, Sampling, complete
from weft.core.ports.journal import Journal
from weft.core.values import Completion, Message
from weft.testing import FakeModel, MemoryJournal, Reply
from weft.workflow.apps.flow_model import FlowModel
from weft.workflow.apps.flow_tool import FlowBegan, FlowOutputs, FlowStep, FlowTool
from weft.workflow.apps.served import RecordingOptions
from weft.workflow.document.spec.settings import Durability
from weft.workflow.history.compare import compare
from weft.workflow.history.replay import replay
from weft.workflow.history.run_history import read_history
from weft.workflow.runtime.journals import open_journal

TALK = """
name: talk
inputs: {question: string}
models: {m: local:x}
nodes:
  draft: {model: m, prompt: "{{ question }}"}
  check: {model: m, prompt: "check {{ draft }}"}
outputs: {answer: "{{ check }}"}
"""


def talk(durability: Durability | None = None) -> weft.Flow:
    return weft.loads(TALK + (f"run: {{durability: {durability}}}\n" if durability else ""))


def echo(request: ModelRequest) -> Reply:
    return Reply(f"<{request.messages[-1].content}>")


async def asked(model: FlowModel, text: str, **fields: Any) -> tuple[str, list[str]]:
    """The answer, and the runs that it was told of."""
    began: list[str] = []
    extra = {"began": began.append}
    answer = await complete(model, ModelRequest((Message("user", text),), extra=extra, **fields))
    assert isinstance(answer, Completion)
    return answer.text, began


def answered(
    flow: weft.Flow, kept: RecordingOptions, *texts: str, **fields: Any
) -> list[list[str]]:
    """The runs behind the answers to `texts`, one after the other."""

    async def main() -> list[list[str]]:
        model = FlowModel(flow, {"m": FakeModel(echo)}, recording=kept)
        found: list[list[str]] = []
        for text in texts:
            said, began = await asked(model, text, **fields)
            assert said == f"<check <{text}>>"
            found.append(began)
        return found

    return asyncio.run(main())


async def steps(tool: FlowTool, **arguments: object) -> list[FlowStep]:
    async with aclosing(tool.call(arguments)) as found:
        return [step async for step in found]


def test_without_a_journal_nothing_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not even in the journal that the user's own runs are in."""
    monkeypatch.setenv("WEFT_JOURNAL", str(tmp_path / "own.sqlite"))
    assert answered(talk("sync"), RecordingOptions(), "a") == [[]]
    tool = FlowTool(talk("sync"), {"m": FakeModel(echo)})
    assert [type(step) for step in asyncio.run(steps(tool, question="a"))][-1] is FlowOutputs
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("said", "given", "kept"),
    [
        (None, None, True),
        ("async", None, True),
        ("none", None, False),
        ("none", "sync", True),
        ("sync", "none", False),
        (None, "exit", True),
    ],
)
def test_the_server_has_the_last_word_on_what_is_kept(
    said: Durability | None, given: Durability | None, kept: bool
) -> None:
    journal = MemoryJournal()
    (began,) = answered(talk(said), RecordingOptions(journal, given), "a")
    runs = [(summary.run, summary.standing) for summary in journal.runs()]
    assert runs == [(run, "succeeded") for run in began]
    assert len(runs) == kept


def test_what_is_to_be_kept_needs_a_place() -> None:
    with pytest.raises(BuildError, match="'sync' needs a journal"):
        RecordingOptions(None, "sync")


def test_a_run_is_replayed_and_compared() -> None:
    journal, flow = MemoryJournal(), talk()
    sampling = Sampling(seed=5)
    (one,), (two,) = answered(flow, RecordingOptions(journal), "a", "b", sampling=sampling)
    story = read_history(journal, RunId(one))
    assert story.header.inputs == {"question": "a"}
    assert story.header.settings["seed"] == 5
    again = replay(story, flow.unit)
    assert again.ok, again.report()
    assert again.identical == 2
    found = compare(story, read_history(journal, RunId(two)))
    assert [pair.node for pair in found.nodes if not pair.same] == ["draft", "check"]


def test_who_hangs_up_leaves_a_run_that_was_cancelled() -> None:
    journal = MemoryJournal()

    async def main() -> None:
        fake = FakeModel([Reply("x", first_token_s=3600)])
        model = FlowModel(talk(), {"m": fake}, recording=RecordingOptions(journal))
        task = asyncio.create_task(asked(model, "a"))
        while not fake.running:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(main())
    (summary,) = journal.runs()
    assert summary.standing == "cancelled"
    journal.claim(summary.run).release()  # nobody has it any more


def test_a_tool_tells_its_run_before_anything_else() -> None:
    journal = MemoryJournal()
    tool = FlowTool(talk(), {"m": FakeModel(echo)}, RecordingOptions(journal))
    first, *_, last = asyncio.run(steps(tool, question="a"))
    assert first == FlowBegan(journal.runs()[0].run)
    assert last == FlowOutputs({"answer": "<check <a>>"})
    with pytest.raises(InputError):
        asyncio.run(steps(tool))
    assert len(journal.runs()) == 1


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_many_runs_at_once_are_kept_in_one_file(tmp_path: Path, durability: Durability) -> None:
    """Each with its own records, while another connection reads."""
    path = tmp_path / "runs.sqlite"
    questions = [f"q{number}" for number in range(24)]

    async def main(journal: Journal, watcher: Journal) -> dict[str, str]:
        fake = FakeModel(lambda request: Reply(echo(request).text, first_token_s=0.002))
        kept = RecordingOptions(journal, durability)
        model, tool = (
            FlowModel(talk(), {"m": fake}, recording=kept),
            FlowTool(talk(), {"m": fake}, kept),
        )
        async with asyncio.TaskGroup() as group:
            chats = [group.create_task(asked(model, text)) for text in questions]
            calls = [group.create_task(steps(tool, question=text)) for text in questions]
            watcher.runs()
        found: dict[str, str] = {}
        for text, chat, call in zip(questions, chats, calls, strict=True):
            (run,) = chat.result()[1]
            began = call.result()[0]
            assert isinstance(began, FlowBegan)
            found |= {run: text, began.run: text}
        return found

    journal, watcher = open_journal(path), open_journal(path)
    try:
        runs = asyncio.run(main(journal, watcher))
        assert len(runs) == 2 * len(questions)
        assert {summary.run for summary in watcher.runs()} == set(runs)
        for run, text in runs.items():
            story = read_history(watcher, RunId(run))
            assert story.header.inputs == {"question": text}
            assert story.ended is not None
            assert story.ended.status == "succeeded"
            assert story.outcomes["check"].value == f"<check <{text}>>"  # type: ignore[index]
        assert list(watcher.check()) == []
    finally:
        journal.close()
        watcher.close()


class FullJournal(MemoryJournal):
    """Has room for so many batches."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def append(self, run: RunId, records: Any, *, wait: bool = True) -> None:
        if self.room == 0:
            raise StoreError("the disk is full") from sqlite3.OperationalError("full")
        self.room -= 1
        super().append(run, records, wait=wait)


@pytest.mark.parametrize("room", [0, 1])
def test_what_cannot_be_kept_is_not_answered(room: int) -> None:
    kept = RecordingOptions(FullJournal(room), "sync")
    with pytest.raises(StoreError, match="cannot be recorded"):
        answered(talk(), kept, "a")
    with pytest.raises(WeftError, match="cannot be recorded"):
        asyncio.run(steps(FlowTool(talk(), {"m": FakeModel(echo)}, kept), question="a"))
