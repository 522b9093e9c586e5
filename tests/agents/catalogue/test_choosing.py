"""Agents that choose their tools first: by words, by a model, and without any function."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.agents.catalogue.made_up import ROWS
from tests.agents.loops.scripted_agent import CAPABLE, Talked, call, says
from tests.durability.recorded import go_on, record
from tests.golden_files import assert_golden
from weft.agents.agent import AgentOptions, run_agent
from weft.agents.catalogue import CatalogueIndex, CatalogueOptions, CatalogueView, read_catalogue
from weft.agents.catalogue.model import CATALOGUE_PROMPT_VERSION, CatalogueLoop
from weft.agents.chat.prompt import SYSTEM_PROMPT_VERSION, TURNS_PROMPT_VERSION
from weft.agents.loops import check_options, make_agent
from weft.core.errors import BuildError
from weft.core.events import Event
from weft.core.ids import NodeId
from weft.engine import Inputs, Node, NodeContext
from weft.testing import FakeClock, FakeModel, FakeTools

GOLDEN = Path(__file__).parents[2] / "golden" / "agents" / "catalogue.txt"
PLAN = '1. getRainForecast(town="Bern")\n2. join($1)\n'
FINISH = '{"thought": "read", "decision": "finish", "answer": "12 mm"}'


def rain(town: str) -> str:
    """How much rain a town expects."""
    return f"12 mm in {town}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tools.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    return path


def question(agent: str, text: str, script: Any, options: AgentOptions, tools: FakeTools) -> Talked:
    """Let `agent` answer `text` with the scripted model."""
    model = FakeModel(script, capabilities=CAPABLE)
    events: list[Event] = []

    async def main() -> Talked:
        end = await run_agent(
            make_agent(agent, tools, model, options), text, listeners=[events.append]
        )
        return Talked(end.result, end.answer, model, events)

    return FakeClock().run(main())


def test_the_plan_is_over_the_chosen_tools(file: Path) -> None:
    tools = FakeTools(getRainForecast=rain, findHotel=lambda: 1)
    options = AgentOptions(catalogue=CatalogueOptions(file))
    talked = question("compiler", "how much rain is expected?", [PLAN, FINISH], options, tools)
    assert talked.answer.value == "12 mm"
    assert tools.calls == [("getRainForecast", {"town": "Bern"})]
    prompt = talked.requests[0].messages[-1].content
    assert "getRainForecast" in prompt
    assert "findHotel" not in prompt
    assert "4 tools of the catalogue have no function" in talked.logs
    assert any(text.startswith("1 of 2 tools are offered") for text in talked.logs)
    assert [node for node in talked.nodes if node.endswith("choose")] == ["compiler/choose"]


def test_without_functions_there_is_a_plan_or_an_error(file: Path) -> None:
    options = AgentOptions(catalogue=CatalogueOptions(file))
    talked = question("plan", "how much rain is expected?", [PLAN], options, FakeTools())
    assert talked.answer.value == PLAN
    assert [step.tool for step in talked.answer.plans[0].steps] == ["getRainForecast"]
    assert not talked.answer.calls
    refused = question("compiler", "how much rain is expected?", [PLAN], options, FakeTools())
    assert "has a function, so none can be called" in refused.reason
    assert not refused.requests


def test_a_question_in_other_words_is_an_error_with_a_hint(file: Path) -> None:
    options = AgentOptions(catalogue=CatalogueOptions(file))
    talked = question("plan", "xyzzy?", [PLAN], options, FakeTools())
    assert "no tools were chosen: no words of the question occur" in talked.reason
    assert not talked.requests


def test_tools_of_the_program_are_a_catalogue_too() -> None:
    tools = FakeTools(
        rain_expected=rain, rain_past=rain, hotel_find=lambda: 1, hotel_book=lambda: 1
    )
    options = AgentOptions(catalogue=CatalogueOptions())
    talked = question("plan", "rain expected", ["1. join()\n"], options, tools)
    assert any(text.startswith("2 of 4 tools are offered") for text in talked.logs)


def test_a_malformed_plan_is_written_again_once() -> None:
    tools = FakeTools(getRainForecast=rain)
    mended = question("plan", "rain", ["1. nonsense", PLAN], AgentOptions(), tools)
    assert mended.answer.value == PLAN
    assert not tools.calls
    twice = question("plan", "rain", ["1. nonsense", "2. more"], AgentOptions(), tools)
    assert "the plan cannot be used" in twice.reason


def test_options_are_checked(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="answers with a plan"):
        check_options("plan", AgentOptions(schema={"type": "string"}))
    missing = CatalogueOptions(tmp_path / "none.jsonl")
    with pytest.raises(BuildError, match="there is no catalogue"):
        check_options("react", AgentOptions(catalogue=missing))
    with pytest.raises(BuildError, match="no chooser 'best'"):
        CatalogueOptions(chooser="best")  # type: ignore[arg-type]
    with pytest.raises(BuildError, match="in 10 tokens"):
        CatalogueOptions(tokens=10)
    with pytest.raises(BuildError, match="at least one call"):
        CatalogueOptions(calls=0)


CHOICES = [
    says(call=call("expand", paths=["Weather", "Travel"])),
    says(call=call("expand", paths=["Weather/Forecast"])),
    says(call=call("contract", paths=["Travel"])),
    says(call=call("expand", paths=["Travel"])),
    says(call=call("search", query="wind")),
    says(call=call("choose", tools=["getRainForecast", "noSuchTool"])),
    says(call=call("choose", tools=["getRainForecast"])),
    says(answer="done"),
]


def test_a_model_opens_closes_and_chooses(file: Path) -> None:
    options = AgentOptions(catalogue=CatalogueOptions(file, chooser="model"))
    talked = question("plan", "rain in Bern", [*CHOICES, PLAN], options, FakeTools())
    assert talked.answer.value == PLAN
    shown = [request.messages[-1].content for request in talked.requests]
    assert "Request: rain in Bern" in shown[0]
    assert "+ Weather (3)" in shown[0]
    assert "- Weather (3)" in shown[1]
    assert "- Travel (2)" in shown[2]
    assert "+ Travel (2)" in shown[3]  # a contracted field takes no more room, and
    assert "- Travel (2)" in shown[4]  # opening it again is no repeated call
    assert "Found:" in shown[5]
    assert "there is no tool 'noSuchTool'" in shown[6]
    assert "Chosen: getRainForecast" in shown[7]
    assert all(text.count("Catalogue (") == 1 for text in shown[:8])
    prompt = talked.requests[-1].messages[-1].content
    assert "getWindForecast" not in prompt
    choice = next(text for text in talked.logs if "are offered" in text)
    assert choice.startswith("1 of 6 tools are offered")


def test_what_the_model_is_told(file: Path) -> None:
    """A change here asks for a new version of the prompt."""
    options = AgentOptions(catalogue=CatalogueOptions(file, chooser="model"))
    talked = question("plan", "rain in Bern", [*CHOICES, PLAN], options, FakeTools())
    messages = talked.requests[len(CHOICES) - 1].messages
    said = [f"=== {message.role} ===\n{message.content}\n" for message in messages]
    versions = f"{CATALOGUE_PROMPT_VERSION} {SYSTEM_PROMPT_VERSION} {TURNS_PROMPT_VERSION}"
    assert_golden(GOLDEN, "\n".join([versions, *said]))


def test_a_model_that_chooses_nothing_is_replaced_and_that_is_logged(file: Path) -> None:
    options = AgentOptions(catalogue=CatalogueOptions(file, chooser="model"))
    script = [says(answer="done"), PLAN]
    talked = question("plan", "rain in Bern", script, options, FakeTools())
    assert talked.answer.value == PLAN
    assert "the model chose no tool: they are chosen by words" in talked.logs


def test_a_model_never_ends_the_choice_by_repeating(file: Path) -> None:
    options = AgentOptions(catalogue=CatalogueOptions(file, chooser="model", calls=5))
    again = says(call=call("expand", paths=["Travel"]))
    script = [*[again] * 4, says(answer="done"), PLAN]
    talked = question("plan", "rain in Bern", script, options, FakeTools())
    assert talked.answer.value == PLAN


def test_a_resumed_agent_keeps_its_choice(file: Path) -> None:
    models: list[FakeModel] = []

    def nodes(*script: str) -> list[Node]:
        models.append(FakeModel(script, capabilities=CAPABLE))
        options = AgentOptions(catalogue=CatalogueOptions(file, chooser="model"))
        agent = make_agent("plan", FakeTools(), models[-1], options)
        return [Node(NodeId("agent"), agent.work("rain in Bern"))]

    first = record(nodes(*CHOICES, PLAN))
    ended = [str(getattr(each.record, "node", "")) for each in first.records]
    cut = first.records[: len(ended) - 1 - ended[::-1].index("agent")]
    second = go_on(nodes(PLAN), cut)
    assert second["agent"].value == first["agent"].value
    assert [len(model.requests) for model in models] == [len(CHOICES) + 1, 1]
    assert models[1].requests[0].messages == models[0].requests[-1].messages


def test_a_resumed_choice_has_the_state_of_the_recorded_calls(file: Path) -> None:
    index = CatalogueIndex(read_catalogue(file))
    views: list[CatalogueView] = []
    models: list[FakeModel] = []

    def nodes(script: Sequence[str]) -> list[Node]:
        async def work(context: NodeContext, _: Inputs) -> str:
            view = CatalogueView(index.catalogue, 2_000, tuple(index.fields("rain")))
            model = FakeModel(script, capabilities=CAPABLE)
            models.append(model)
            loop = CatalogueLoop(index, view, model, AgentOptions())
            await loop.answer(context, "rain")
            views.append(loop.view)
            return ", ".join(loop.view.chosen)

        return [Node(NodeId("agent"), work)]

    first = record(nodes(CHOICES))
    ended = [str(getattr(each.record, "node", "")) for each in first.records]
    cut = first.records[: len(ended) - 1 - ended[::-1].index("agent")]
    second = go_on(nodes(CHOICES), cut)
    assert second["agent"].value == first["agent"].value == "getRainForecast"
    assert views[0] == views[1]
    assert views[1].expanded
    assert [len(model.requests) for model in models] == [len(CHOICES), 0]
