"""`warm: true`: the known part of a prompt is computed while the rest is still to come."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft
from weft.core.events import Event, NodeStarted
from weft.core.ids import NodeId
from weft.core.ports import ModelRequest
from weft.testing import FakeClock, FakeModel

TOOLS = '''\
import asyncio
import weft


@weft.tool
async def slow(text: str) -> str:
    """Take a while."""
    await asyncio.sleep(10)
    return text.upper()


@weft.tool
async def quick(text: str) -> str:
    """Take a moment."""
    await asyncio.sleep(1)
    return text + "!"
'''
FLOW = """\
name: warmed
inputs: {question: string}
models: {m: {use: "./x.py:x", model: m}}
nodes:
  history: {tool: "./tools.py:quick", with: {text: "{{ question }}"}}
  found: {tool: "./tools.py:slow", with: {text: "{{ question }}"}}
  answer:
    model: m
    system: Be brief.
    prompt: "Q: {{ question }}\\n{{ history }}\\n{{ found }}."
    warm: true
outputs: {answer: "{{ answer }}"}
"""


class Warm(FakeModel):
    """A fake model that notes when it was warmed with what."""

    def __init__(self) -> None:
        super().__init__(lambda request: "done")
        self.warmed: list[list[str]] = []

    async def warm(self, request: ModelRequest) -> None:
        self.warmed.append([m.content for m in request.messages])


@pytest.fixture
def flow(tmp_path: Path) -> weft.Flow:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "flow.yaml").write_text(FLOW)
    return weft.load(tmp_path / "flow.yaml")


def run(flow: weft.Flow, model: FakeModel) -> tuple[weft.FlowResult, list[Event]]:
    events: list[Event] = []

    clock = FakeClock()

    async def main() -> weft.FlowResult:
        return await flow.run(
            {"question": "why"}, models={"m": model}, clock=clock, listeners=[events.append]
        )

    return clock.run(main()), events


def test_the_beginning_is_computed_while_the_last_tool_runs(flow: weft.Flow) -> None:
    model = Warm()
    result, events = run(flow, model)
    assert result.outputs == {"answer": "done"}
    (texts,) = model.warmed
    assert texts == ["Be brief.", "Q: why\nwhy!\n"]
    begun = {e.node: e.at_s for e in events if isinstance(e, NodeStarted)}
    assert begun["answer.warm"] == 1
    assert begun["answer"] == 10
    (real,) = model.requests
    assert real.messages[1].content.startswith(texts[1])


def test_a_model_that_cannot_be_warmed_is_left_alone(flow: weft.Flow) -> None:
    result, _ = run(flow, FakeModel(lambda request: "done"))
    assert result.status == "succeeded"
    assert result.outcomes[NodeId("answer.warm")].status == "skipped"


def test_a_warming_that_fails_fails_nothing(flow: weft.Flow) -> None:
    class Cold(Warm):
        async def warm(self, request: ModelRequest) -> None:
            raise RuntimeError("no")

    result, _ = run(flow, Cold())
    assert result.status == "succeeded"
    assert result.outputs == {"answer": "done"}
