from __future__ import annotations

import asyncio
from pathlib import Path

import weft
from weft.core.ports import ModelRequest, complete
from weft.core.values import Message
from weft.testing import FakeModel
from weft.workflow.apps.flow_model import FlowModel

EXAMPLE = Path(__file__).parents[2] / "examples" / "assistant" / "assistant.yaml"


def test_the_assistant_sees_the_conversation_and_the_rules_that_fit() -> None:
    fake = FakeModel(["Until six."])
    model = FlowModel(weft.load(EXAMPLE), {"small": fake})
    turns = (
        Message("system", "ignored"),
        Message("user", "Hello"),
        Message("assistant", "Good morning."),
        Message("user", "When do you close?"),
    )
    extra = {"inputs": {"place": "the town library"}}
    answer = asyncio.run(complete(model, ModelRequest(turns, extra=extra)))
    assert answer.text == "Until six."
    system, prompt = (message.content for message in fake.requests[0].messages)
    assert "the town library" in system
    assert "9 to 18" in system
    assert "four weeks" not in system
    assert prompt == "user: Hello\nassistant: Good morning.\nuser: When do you close?"
    assert model.streams
