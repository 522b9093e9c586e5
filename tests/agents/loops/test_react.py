"""The sequential loop on scripted models: what it does, and what it tells the model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.agents.loops.scripted_agent import call, roles, says, talk
from weft.core.errors import ToolRaised
from weft.core.events import NodeStreamed
from weft.core.ports import Capabilities
from weft.testing import FakeTools, Reply

TEA, COFFEE = (says(call=call("price", item=item)) for item in ("tea", "coffee"))
CHEAPER = says(answer="tea")


def test_one_call_after_the_other_until_the_answer() -> None:
    talked = talk("react", [TEA, COFFEE, CHEAPER])
    answer = talked.answer
    assert (answer.value, answer.thought, answer.rounds) == ("tea", "so", 2)
    assert [(o.number, dict(o.arguments), o.outcome.value) for o in answer.calls] == [
        (1, {"item": "tea"}, 3),
        (2, {"item": "coffee"}, 4),
    ]
    assert talked.heard == [
        "Question: which is cheaper?",
        'Results of the calls:\n1. price(item="tea") -> 3',
        'Results of the calls:\n2. price(item="coffee") -> 4',
    ]
    talked.assert_stable_prefix()
    assert talked.result.status == "succeeded"
    assert [n.removeprefix("react/") for n in talked.nodes] == (
        ["turn1", "calls1/s1", "calls1", "turn2", "calls2/s2", "calls2", "turn3", "react"]
    )


def test_the_model_is_held_to_the_form_where_it_can_be() -> None:
    held = talk("react", [TEA, CHEAPER]).requests
    assert all(request.schema is not None and not request.sampling.stop for request in held)
    free = talk("react", [TEA, CHEAPER], offered=Capabilities()).requests
    free += talk("react", [TEA, CHEAPER], constrain="never").requests
    assert all(request.schema is None and request.sampling.stop for request in free)
    last = talk("react", [TEA, CHEAPER], calls=1, constrain="never").requests[-1]
    assert not last.sampling.stop  # nothing is cut off that can only be an answer
    assert "Call: " in free[0].messages[0].content
    assert "Call: " not in held[0].messages[0].content


def test_a_tool_that_raises_is_an_observation_and_no_end() -> None:
    talked = talk("react", [says(call=call("price", item="gold")), TEA, CHEAPER])
    assert talked.answer.value == "tea"
    assert "failed: ToolRaised: price raised KeyError: 'gold'" in talked.heard[1]
    assert talked.answer.calls[0].outcome.status == "failed"
    assert talked.result.status == "succeeded"


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (call("prize", item="tea"), "ToolNotFound: no tool 'prize'"),
        (call("price", name="tea"), "ToolArgumentError"),
        (call(""), 'a call has no "name"'),
    ],
)
def test_what_cannot_be_called_is_told(wanted: Any, told: str) -> None:
    talked = talk("react", [says(call=wanted), CHEAPER])
    assert talked.answer.value == "tea"
    assert told in talked.heard[1]


def test_a_repeated_call_is_told_and_then_ends_the_calls() -> None:
    tools = FakeTools(price=lambda item: 3)
    talked = talk("react", [TEA, COFFEE, TEA, COFFEE, TEA, CHEAPER], tools)
    assert len(tools.calls) == 2
    assert talked.heard[3].startswith("This call was made before: its result is number 1")
    assert talked.heard[4].startswith("This call was made before: its result is number 2")
    assert talked.heard[4].endswith("No call is left. Answer now with what you know.")
    assert "no call can be made any more" in talked.heard[5]
    assert talked.answer.value == "tea"
    assert talked.requests[4].schema == {
        "type": "object",
        "properties": {
            "thought": {"type": "string", "maxLength": 400},
            "next": {
                "type": "object",
                "properties": {"answer": {"type": "string", "minLength": 1}},
                "required": ["answer"],
                "additionalProperties": False,
            },
        },
        "required": ["thought", "next"],
        "additionalProperties": False,
    }


def test_the_order_of_arguments_makes_no_other_call() -> None:
    tools = FakeTools(add=lambda a, b: a + b)
    script = [says(call=call("add", a=1, b=2)), says(call=call("add", b=2, a=1)), CHEAPER]
    talk("react", script, tools)
    assert len(tools.calls) == 1


def test_what_failed_for_a_passing_reason_may_be_tried_again() -> None:
    tries = iter([ToolRaised("busy", retryable=True), None])

    def price(item: str) -> int:
        if error := next(tries):
            raise error
        return 3

    talked = talk("react", [TEA, TEA, CHEAPER], FakeTools(price=price))
    assert [o.outcome.status for o in talked.answer.calls] == ["failed", "succeeded"]


def test_when_the_calls_are_used_up_it_has_to_answer() -> None:
    talked = talk("react", [TEA, COFFEE, CHEAPER], calls=1)
    assert "No call is left" in talked.heard[1]
    assert "no call can be made any more" in talked.heard[2]
    assert len(talked.answer.calls) == 1


def test_rounds_do_not_bound_it() -> None:
    assert talk("react", [TEA, COFFEE, CHEAPER], rounds=1).answer.rounds == 2


@pytest.mark.parametrize("tools", [FakeTools(), None])
def test_without_calls_it_answers_at_once(tools: FakeTools | None) -> None:
    talked = talk("react", [CHEAPER], tools, calls=0)
    assert talked.answer.rounds == 0
    assert "to use a tool" not in talked.requests[0].messages[0].content


def test_a_reply_that_cannot_be_used_is_told_with_its_error() -> None:
    talked = talk("react", ["the tea, I think", "", CHEAPER])
    assert talked.answer.value == "tea"
    assert "neither a call nor an answer" in talked.heard[1]
    assert "it was empty" in talked.heard[2]
    assert roles(talked.requests[-1].messages) == "system user assistant user assistant user"
    assert all(message.content for message in talked.requests[-1].messages)
    talked.assert_stable_prefix()


def test_three_such_replies_in_a_row_end_it_with_the_results_there_are() -> None:
    talked = talk("react", ["hm", TEA, "hm"])
    assert len(talked.requests) == 5
    assert talked.answer.value == '1. price(item="tea") -> 3'
    assert "fake wrote nothing that can be used 3 times in a row" in talked.answer.partial
    assert "neither a call nor an answer" in talked.answer.partial
    assert talked.result.status == "partial"
    assert talked.answer.partial in talked.result.reasons[0]


def test_without_a_result_or_with_a_schema_it_fails() -> None:
    assert "3 times in a row" in talk("react", ["hm"]).reason
    talked = talk("react", [TEA, "hm"], schema={"type": "integer"})
    assert "3 times in a row" in talked.reason
    assert talked.result.status == "failed"


@pytest.mark.parametrize("agent", ["react", "divide", "parallel-react"])
def test_an_answer_that_goes_round_in_circles_is_ended_and_corrected_once(agent: str) -> None:
    circles = Reply("Answer: It is tea. " + "Tea is the cheaper one of the two drinks. " * 900)
    talked = talk(agent, [circles], max_tokens=50_000)
    assert len(talked.requests) == 2
    assert "it repeats itself" in talked.reason
    streamed = [event for event in talked.events if isinstance(event, NodeStreamed)]
    assert sum(len(event.text) for event in streamed) < 1_000
    assert "the answer is ended: it repeats itself" in talked.logs


@pytest.mark.parametrize("lead", ["Answer: ", ""])
@pytest.mark.parametrize("agent", ["react", "divide", "parallel-react"])
def test_a_circle_that_ends_in_a_blank_is_no_answer_either(agent: str, lead: str) -> None:
    circles = [f"{lead}{'again and again. ' * most}" for most in (900, 14)]
    for circle in circles:
        talked = talk(agent, [circle], max_tokens=50_000, rounds=1)
        assert talked.result.status == "failed"
        assert len(talked.requests) <= 3


def test_an_answer_that_was_cut_off_is_no_answer() -> None:
    talked = talk("react", ["Answer: " + "word " * 50], max_tokens=20)
    assert "it was cut off after 20 tokens" in talked.heard[1]
    assert "raise max_tokens" in talked.reason


def test_more_than_one_call_at_a_time_is_told() -> None:
    talked = talk("react", [says(calls=[call("price", item="tea")] * 3), CHEAPER])
    assert len(talked.answer.calls) == 1
    assert talked.heard[1].endswith("2 more calls were left out: that is more than may be made.")


SHOP = {"type": "object", "properties": {"best": {"enum": ["tea", "coffee"]}}, "required": ["best"]}


def test_answers_are_typed() -> None:
    script = [TEA, says(answer={"best": "milk"}), 'Answer: ```json\n{"best": "tea"}\n```']
    talked = talk("react", script, schema=SHOP)
    assert talked.answer.value == {"best": "tea"}
    assert 'does not fit its schema: at best: "milk" is not one of' in talked.heard[2]


def test_instructions_are_the_last_of_the_systems_words() -> None:
    first = talk("react", [CHEAPER], instructions="Speak French.").requests[0].messages[0]
    assert (first.role, first.content.rsplit("\n\n", 1)[1]) == ("system", "Speak French.")


def test_huge_results_are_shortened_for_the_model_and_whole_for_the_caller() -> None:
    talked = talk("react", [TEA, CHEAPER], FakeTools(price=lambda item: "x" * 10_000_000))
    assert len(talked.answer.calls[0].outcome.value) == 10_000_000
    assert len(talked.heard[1]) < 5_000
    assert "of 10,000,000 characters left out" in talked.heard[1]


def test_a_long_talk_is_shortened_from_its_beginning_and_that_is_said() -> None:
    steps = [says(call=call("read", page=page)) for page in range(20)]
    offered = Capabilities(structured_output=True, max_context_tokens=4_000)
    tools = FakeTools(read=lambda page: f"{page} " * 1_000)
    talked = talk("react", [*steps, CHEAPER], tools, offered=offered, max_tokens=100)
    assert talked.answer.rounds == 20
    assert any("earlier messages are shortened" in line for line in talked.logs)
    for request in talked.requests:
        words = sum(len(message.content.split()) for message in request.messages)
        assert words < 4_000  # the scripted model's tokens are words
    last = [m.content for m in talked.requests[-1].messages if m.content.startswith("Results of")]
    lengths = [len(content) for content in last]
    assert lengths[-1] > 1_000 > lengths[0]
    assert "characters left out" in last[0]


def test_tools_run_side_by_side_with_nothing_when_the_run_is_cancelled() -> None:
    """A tool that never ends ends with the run, and the model is not asked again."""
    from weft.agents.agent import run_agent
    from weft.agents.loops import make_agent
    from weft.engine import RunOptions
    from weft.testing import FakeClock, FakeModel

    async def price(item: str) -> None:
        await asyncio.Event().wait()

    model = FakeModel([TEA])

    async def main() -> None:
        agent = make_agent("react", FakeTools(price=price), model)
        end = await run_agent(agent, "?", options=RunOptions(deadline_s=5.0))
        assert end.answer is None
        assert end.result.status == "partial"
        assert end.result.outcomes["react/calls1/s1"].status == "cancelled"  # type: ignore[index]
        assert not end.result.leaked

    FakeClock().run(main())
    assert len(model.requests) == 1
