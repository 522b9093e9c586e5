"""A run that waits for people: questions, answers, and answers nobody asked for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.virtual_run import after, echo, fail, for_ever, give, node, play, script
from weft.core.errors import ModelUnavailable, UnknownReference
from weft.core.events import HumanAnswered, HumanAsked
from weft.core.ids import NodeId
from weft.engine import AskHuman, Expand, NodeContext, Retry, Run
from weft.engine.kinds import ask


def answer(name: str, value: Any) -> Any:
    return lambda run: run.answer(NodeId(name), value)


def test_an_answer_is_the_value() -> None:
    question = ask(lambda inputs: f"send {inputs['draft']}?", {"type": "boolean"})
    played = play(
        node("draft", give("this")),
        node("a", question, "draft"),
        node("next", echo, "a"),
        at={60: answer("a", True)},
    )
    assert played.value("next") == {"a": True}
    assert played.started_s("next") == 60
    (asked,) = played.all(HumanAsked)
    assert (asked.question, asked.schema, asked.at_s) == ("send this?", {"type": "boolean"}, 0)
    assert [e.at_s for e in played.all(HumanAnswered)] == [60]


def test_the_run_goes_on_while_a_person_thinks() -> None:
    played = play(
        node("a", give(AskHuman("go?"))),
        node("b", after(5, "B")),
        node("c", after(5, "C"), "b"),
        at={100: answer("a", None)},
    )
    assert played.ended_s("c") == 10
    assert played["a"].ok


def test_two_questions_at_once_are_answered_in_any_order() -> None:
    seen: list[list[str]] = []
    played = play(
        node("a", give(AskHuman("A?"))),
        node("b", give(AskHuman("B?"))),
        node("join", echo, "a", "b"),
        node("long", after(9, 1)),
        at={
            1: lambda run: seen.append([*run.questions]),
            2: answer("b", "b!"),
            3: lambda run: seen.append([*run.questions]),
            4: answer("a", "a!"),
            5: lambda run: seen.append([*run.questions]),
        },
    )
    assert seen == [["a", "b"], ["a"], []]
    assert played.value("join") == {"a": "a!", "b": "b!"}


def test_an_answer_goes_through_then_which_may_ask_again() -> None:
    async def checked(context: NodeContext, value: Any) -> Any:
        return value * 2 if isinstance(value, int) else AskHuman("a number, please", then=checked)

    played = play(
        node("a", give(AskHuman("how many?", then=checked))),
        at={1: answer("a", "five"), 2: answer("a", 5)},
    )
    assert played.value("a") == 10
    assert [e.question for e in played.all(HumanAsked)] == ["how many?", "a number, please"]


def test_then_may_fail_and_the_question_is_asked_again_in_the_next_attempt() -> None:
    async def broken(context: NodeContext, value: Any) -> Any:
        if context.attempt == 1:
            raise ModelUnavailable("x")
        return value

    played = play(
        node("a", give(AskHuman("go?", then=broken)), retry=Retry(delay_s=1, jitter=0)),
        at={1: answer("a", "first"), 5: answer("a", "second")},
    )
    assert (played.value("a"), played["a"].attempts) == ("second", 2)


def test_then_may_grow() -> None:
    async def grown(context: NodeContext, value: int) -> Expand:
        children = tuple(node(f"a/{i}", after(1, i)) for i in range(value))
        return Expand(children, tuple(child.id for child in children))

    played = play(node("a", give(AskHuman("how many?", then=grown))), at={1: answer("a", 3)})
    assert played.value("a") == [0, 1, 2]


def test_an_answer_to_who_asks_nothing_is_refused_and_says_who_asks() -> None:
    def wrong(run: Run) -> None:
        for name in ("b", "nobody"):
            with pytest.raises(UnknownReference, match=f"{name}' asks nothing.*asking: a"):
                run.answer(NodeId(name), 1)

    play(
        node("a", give(AskHuman("go?"))),
        node("b", after(5, 1)),
        at={1: wrong, 2: answer("a", 1)},
    )


def test_a_question_is_answered_once() -> None:
    def twice(run: Run) -> None:
        run.answer(NodeId("a"), "first")
        run.answer(NodeId("a"), "second, in the same turn")

    def late(run: Run) -> None:
        with pytest.raises(UnknownReference, match="asking: nothing"):
            run.answer(NodeId("a"), "late")

    played = play(node("a", give(AskHuman("go?"))), node("b", after(5, 1)), at={1: twice, 2: late})
    assert played.value("a") == "first"


def test_a_listener_may_answer_on_the_spot() -> None:
    runs: list[Run] = []

    def listen(event: object) -> None:
        if isinstance(event, HumanAsked):
            runs[0].answer(event.node, event.question.upper())

    played = play(
        node("start", after(1, 1)),
        node("a", ask(lambda _: "yes?"), "start"),
        node("b", ask(lambda _: "no?"), "start"),
        at={0: runs.append},
        listeners=[listen],
    )
    assert (played.value("a"), played.value("b")) == ("YES?", "NO?")
    assert played.result.wall_s == 1


@pytest.mark.parametrize("node_id", [NodeId("a"), None])
def test_a_question_is_withdrawn_when_its_node_is_cancelled(node_id: NodeId | None) -> None:
    runs: list[Run] = []
    played = play(
        node("a", give(AskHuman("go?"))),
        node("b", after(5, 1)),
        at={0: runs.append, 1: lambda run: run.cancel("no", node_id)},
    )
    assert played["a"].status == "cancelled"
    assert not runs[0].questions


def test_a_question_inside_a_failing_scope_is_withdrawn() -> None:
    async def work(context: NodeContext, inputs: Any) -> Any:
        context.append([node("p/ask", give(AskHuman("go?")))])
        await fail(ValueError(), 2)(context, inputs)

    seen: list[list[str]] = []
    played = play(
        node("p", work),
        node("b", after(5, 1)),
        at={
            1: lambda run: seen.append([*run.questions]),
            3: lambda run: seen.append([*run.questions]),
        },
    )
    assert played["p/ask"].status == "cancelled"
    assert seen == [["p/ask"], []]


def test_a_question_that_nobody_answers_ends_with_the_deadline() -> None:
    played = play(node("a", give(AskHuman("go?"))), deadline_s=60)
    assert played["a"].status == "cancelled"
    assert played.result.status == "partial"


def test_a_loser_may_be_asking() -> None:
    from weft.engine import first_valid

    played = play(
        node("a", give(AskHuman("go?"))),
        node("b", after(1, "B")),
        node("join", echo, "a", "b", join=first_valid()),
    )
    assert played.value("join") == {"b": "B"}
    assert played["a"].status == "cancelled"


def test_an_answer_after_the_node_asked_in_an_earlier_attempt_counts_for_the_current_one() -> None:
    played = play(
        node(
            "a",
            script(AskHuman("first?"), AskHuman("second?")),
            timeout_s=5,
            retry=Retry(delay_s=1, jitter=0, attempts=2),
        ),
        node("b", for_ever, timeout_s=20, on_failure="skip"),
        at={8: answer("a", "yes")},
    )
    assert played.value("a") == "yes"
    assert [e.question for e in played.all(HumanAsked)] == ["first?", "second?"]
