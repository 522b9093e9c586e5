"""Finish or replan, on scripted models."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agents.loops.scripted_agent import Script, says
from weft.agents.agent import AgentOptions, Observation
from weft.agents.loops.joiner import Finish, Joiner, Replan
from weft.core.errors import BuildError, ToolRaised
from weft.core.events import Outcome
from weft.core.ids import NodeId
from weft.core.ports import Capabilities
from weft.engine import Graph, Inputs, Node, NodeContext, Run
from weft.engine.runner.result import RunResult
from weft.testing import FakeClock, FakeModel

FINE = Observation(1, "price", {"item": "tea"}, Outcome("succeeded", 3))
RAISED = ToolRaised("price raised KeyError").failure()
FAILED = Observation(2, "price", {"item": "gold"}, Outcome("failed", None, RAISED))
LEFT_OUT = Observation(
    3, "warn", {"text": "$2"}, Outcome("skipped", None, ToolRaised("2").failure())
)
HELD = Capabilities(structured_output=True)


def decided(
    script: Script,
    observations: tuple[Observation, ...] = (FINE,),
    last: bool = False,
    rounds: int = 1,
    offered: Capabilities = HELD,
    **options: Any,
) -> tuple[list[Any], FakeModel, RunResult]:
    """The decisions of so many rounds, in each of which one more observation is known."""
    model = FakeModel(script, capabilities=offered)
    joiner = Joiner(model, AgentOptions(**options))

    async def work(context: NodeContext, _: Inputs) -> list[Any]:
        return [
            await joiner.decide(
                context,
                "which?",
                observations[: len(observations) - rounds + number],
                last,
                round=number,
            )
            for number in range(1, rounds + 1)
        ]

    async def main() -> RunResult:
        return await Run(Graph("test", (Node(NodeId("agent"), work),))).wait()

    result = FakeClock().run(main())
    return result.outcomes[NodeId("agent")].value or [], model, result


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        (says(answer="tea (or coffee), $3 {each}"), Finish("tea (or coffee), $3 {each}", "so")),
        ("Thought: so\nAnswer: f(x)\nand (y)", Finish("f(x)\nand (y)", "so")),
        (says(replan="the price of milk"), Replan("the price of milk")),
        ("Thought: milk is missing\nReplan:", Replan("milk is missing")),
    ],
)
@pytest.mark.parametrize("offered", [HELD, Capabilities()])
def test_finish_or_replan(text: str, decision: Finish | Replan, offered: Capabilities) -> None:
    decisions, model, _ = decided([text], offered=offered)
    assert decisions == [decision]
    assert (model.requests[0].schema is not None) == offered.structured_output


def test_failures_and_what_was_left_out_are_shown() -> None:
    _, model, _ = decided([says(answer="tea")], (FINE, FAILED, LEFT_OUT))
    assert model.requests[0].messages[1].content == (
        'Question: which?\n\nResults of the calls:\n1. price(item="tea") -> 3\n'
        '2. price(item="gold") -> failed: ToolRaised: price raised KeyError\n'
        '3. warn(text="$2") -> left out: ToolRaised: 2'
    )


def test_no_results_are_told_as_none() -> None:
    decisions, model, _ = decided([says(answer="tea")], ())
    assert model.requests[0].messages[1].content.endswith("Results of the calls:\n(none)")
    assert decisions == [Finish("tea", "so")]


def test_in_the_last_round_it_has_to_answer() -> None:
    decisions, model, _ = decided([says(replan="more"), "tea"], last=True)
    assert decisions == [Finish("tea", "")]
    assert model.requests[0].messages[1].content.endswith("Answer now with what you know.")
    assert "nothing more can be planned" in model.requests[1].messages[-1].content
    schema: Any = model.requests[0].schema
    assert list(schema["properties"]["next"]["properties"]) == ["answer"]


def test_a_later_round_begins_like_the_one_before() -> None:
    script = [says(replan="more"), says(answer="tea")]
    _, model, _ = decided(script, (FINE, FAILED), rounds=2)
    first, second = (request.messages for request in model.requests)
    assert first[0] == second[0]
    assert second[1].content.startswith(first[1].content)


def test_answers_are_typed() -> None:
    schema = {"type": "array", "items": {"type": "integer"}}
    decisions, model, _ = decided([says(answer="[3]"), says(answer=["x"])], schema=schema)
    assert decisions == [Finish([3], "so")]
    assert '"type": "array"' in model.requests[0].messages[0].content
    decisions, _, result = decided([says(answer=["x"])], schema=schema)
    assert not decisions
    assert 'the answer does not fit its schema: at [0]: "x" is not of type' in result.reasons[0]


def test_a_schema_that_is_none_is_refused_before_anything_runs() -> None:
    with pytest.raises(BuildError, match=r"the answer's schema is wrong: .* at type"):
        Joiner(FakeModel([""]), AgentOptions(schema={"type": "nonsense"}))


def test_nodes_have_names_that_say_which_round_they_are() -> None:
    _, _, result = decided(["hm", "hm", says(replan="m"), says(answer="x")], rounds=2)
    assert list(result.outcomes) == [
        "agent", "agent/join1", "agent/join1_2", "agent/join1_3", "agent/join2",
    ]  # fmt: skip


def test_three_replies_that_cannot_be_used_end_it() -> None:
    decisions, model, result = decided(["hm"])
    assert not decisions
    assert len(model.requests) == 3
    assert "ModelGaveUp: fake wrote nothing that can be used 3 times" in result.reasons[0]


def test_long_results_leave_room_for_the_answer() -> None:
    calls = tuple(
        Observation(n, "read", {}, Outcome("succeeded", "x" * 100_000)) for n in range(1, 101)
    )
    offered = Capabilities(structured_output=True, max_context_tokens=4_000)
    decisions, model, _ = decided([says(answer="x")], calls, offered=offered)
    told = model.requests[0].messages[1].content
    assert decisions == [Finish("x", "so")]
    assert 2_000 < len(told) < 6_000
    assert "earlier results are left out" in told
    assert "of 100,000 characters left out" in told
