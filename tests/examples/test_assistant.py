from __future__ import annotations

import asyncio
from pathlib import Path

import weft
from weft.serve import FlowModel, ModelRequest
from weft.testing import FakeModel, MemoryJournal
from weft.workflow.apps.served import RecordingOptions

EXAMPLE = Path(__file__).parents[2] / "examples" / "assistant" / "assistant.yaml"


def test_the_assistant_remembers_each_user_and_looks_up_the_rules_that_fit() -> None:
    fake, journal = FakeModel(["Good morning.", "Until six.", "Hello."]), MemoryJournal()
    flow = weft.load(EXAMPLE)

    def ask(question: str, **inputs: str) -> str:
        settings = {"models": {"small": fake}, "journal": journal}
        answer: str = flow.run_sync(question=question, **inputs, **settings)["answer"]
        return answer

    ask("Hello", thread="ada", place="the town library")
    assert ask("When do you close?", thread="ada", place="the town library") == "Until six."
    system, *said = fake.requests[1].messages
    assert "the town library" in system.content
    assert "9 to 18" in system.content
    assert "four weeks" not in system.content
    assert [each.content for each in said] == ["Hello", "Good morning.", "When do you close?"]
    ask("Hi", thread="bob")
    assert len(fake.requests[2].messages) == 2
    assert len(weft.Conversations(journal).read("ada")) == 4


def test_behind_a_gateway_the_last_message_is_the_question(tmp_path: Path) -> None:
    fake, file = FakeModel(["Hello.", "Ada."]), tmp_path / "chats.sqlite"
    journal = weft.open_journal(file)
    recording = RecordingOptions(journal)
    model = FlowModel(weft.load(EXAMPLE), {"small": fake}, recording=recording)

    async def chat() -> str:
        for text in ("I am Ada", "Who am I?"):
            turn = (weft.Message("user", text),)
            request = ModelRequest(turn, extra={"inputs": {"thread": "ada"}})
            events = [event async for event in model.generate(request)]
        await model.aclose()
        return str(events[-1].text)

    assert asyncio.run(chat()) == "Ada."
    assert [each.content for each in fake.requests[1].messages[1:]] == [
        "I am Ada",
        "Hello.",
        "Who am I?",
    ]
    assert model.streams
    journal.close()
    assert len(weft.Conversations(file).read("ada")) == 4
