"""Time limits of one attempt, and of the whole run."""

from __future__ import annotations

import asyncio

import pytest

from tests.engine.virtual_run import after, echo, fail, for_ever, give, node, play, script
from weft.core.errors import ModelUnavailable
from weft.core.ids import NodeId
from weft.engine import AskHuman, Expand, Inputs, Node, NodeContext, NodeFn, Retry
from weft.engine.graph.node import Then
from weft.engine.kinds import ask


def grow(*children: Node, then: Then | None = None) -> NodeFn:
    async def work(context: NodeContext, inputs: Inputs) -> Expand:
        return Expand(children, tuple(child.id for child in children), then=then)

    return work


def test_a_work_that_takes_too_long_is_cancelled_and_fails() -> None:
    played = play(node("a", for_ever, timeout_s=2), node("b", after(5, "B")))
    assert played.error("a") == "NodeTimeout"
    assert "no result within 2 s" in str(played["a"].failure)
    assert played.ended_s("a") == 2
    assert played.value("b") == "B"


def test_a_work_in_time_keeps_its_result_and_its_timer_is_cleared() -> None:
    played = play(node("a", after(1, "A"), timeout_s=2))
    assert played.value("a") == "A"
    assert played.result.wall_s == 1


def test_each_attempt_has_its_own_time() -> None:
    retry = Retry(attempts=3, delay_s=1, jitter=0, factor=1)
    played = play(node("a", script(for_ever, for_ever, after(1, "A")), timeout_s=2, retry=retry))
    assert played.value("a") == "A"
    assert played.ended_s("a") == 2 + 1 + 2 + 1 + 1


def test_time_in_the_queue_does_not_count() -> None:
    played = play(
        node("a", after(5, "A"), weight=9), node("b", after(1, "B"), timeout_s=2), max_concurrency=1
    )
    assert played.value("b") == "B"


def test_a_composite_is_cut_off_with_everything_in_it() -> None:
    played = play(node("a", grow(node("a/x", for_ever), node("a/y", after(1, 1))), timeout_s=3))
    assert played.statuses == {"a": "failed", "a/x": "cancelled", "a/y": "succeeded"}
    assert played.ended_s("a/x") == played.ended_s("a") == 3
    assert "NodeTimeout" in str(played["a/x"].failure)


def test_the_continuation_counts_too() -> None:
    async def then(context: NodeContext, values: list[object]) -> None:
        await asyncio.sleep(9)

    played = play(node("a", grow(node("a/x", after(1, 1)), then=then), timeout_s=3))
    assert played.error("a") == "NodeTimeout"
    assert played.ended_s("a") == 3


def test_a_person_who_does_not_answer_in_time() -> None:
    played = play(node("a", ask(lambda _: "go?"), timeout_s=60, default="no"))
    assert (played.value("a"), played.ended_s("a")) == ("no", 60)


def test_a_question_is_withdrawn_when_its_time_is_over() -> None:
    seen: list[list[str]] = []
    play(
        node("a", ask(lambda _: "go?"), timeout_s=5),
        node("b", after(9, 1)),
        at={
            4: lambda run: seen.append([*run.questions]),
            6: lambda run: seen.append([*run.questions]),
        },
    )
    assert seen == [["a"], []]


def test_a_fallback_is_not_bound_by_the_time_of_what_it_replaces() -> None:
    spare = node("spare", after(9, "S"))
    played = play(node("a", for_ever, timeout_s=2, fallback=spare))
    assert (played.value("a"), played.ended_s("a")) == ("S", 11)


def test_a_failure_at_the_very_moment_of_the_timeout_leaves_the_fallback_alone() -> None:
    spare = node("spare", after(1, "S"))
    played = play(node("a", fail(ValueError("x"), 2), timeout_s=2, fallback=spare))
    assert played.value("a") == "S"


def test_a_value_that_waits_for_appended_nodes_does_not_outlive_its_attempt() -> None:
    """The first attempt has returned and only waits for what it appended when its time is over."""

    async def first(context: NodeContext, inputs: Inputs) -> str:
        context.append([node(f"{context.scope}/x", for_ever)])
        return "first"

    retry = Retry(attempts=2, delay_s=1, jitter=0)
    played = play(node("a", script(first, after(1, "second")), timeout_s=2, retry=retry))
    assert (played.value("a"), played["a"].attempts) == ("second", 2)
    assert played.ended_s("a") == 4

    spare = node("spare", after(1, "S"))
    played = play(node("a", first, timeout_s=2, fallback=spare))
    assert (played.value("a"), played["a"].via) == ("S", "fallback")


def test_the_deadline_ends_the_run_with_what_it_has() -> None:
    played = play(
        node("a", after(1, "A")),
        node("b", for_ever, "a"),
        node("c", echo, "b"),
        deadline_s=5,
    )
    assert played.statuses == {"a": "succeeded", "b": "cancelled", "c": "cancelled"}
    assert played.result.status == "partial"
    assert played.result.reasons == ("the deadline of 5 s passed",)
    assert played.result.wall_s == 5
    assert played.error("b") == "DeadlineExceeded"


def test_the_deadline_reaches_retries_questions_and_children() -> None:
    retry = Retry(attempts=2, delay_s=100, jitter=0, max_delay_s=100)
    played = play(
        node("late", fail(ModelUnavailable("x")), retry=retry, on_failure="skip"),
        node("asking", give(AskHuman("go?"))),
        node("growing", grow(node("growing/x", for_ever))),
        node("queued", give(1), resource="r"),
        node("holding", for_ever, resource="r", weight=2),
        deadline_s=5,
        limits={"r": 1},
    )
    statuses = played.statuses
    assert statuses.pop("late") == "failed", "an attempt after the deadline is none"
    assert set(statuses.values()) == {"cancelled"}
    assert played.result.wall_s == 5


@pytest.mark.parametrize("deadline_s", [0.0, 1e-12])
def test_a_deadline_that_has_passed_at_once(deadline_s: float) -> None:
    played = play(node("a", for_ever), deadline_s=deadline_s)
    assert played["a"].status == "cancelled"


def test_a_run_that_ends_in_time_clears_its_deadline() -> None:
    played = play(node("a", after(1, NodeId("A"))), deadline_s=1000)
    assert played.result.wall_s == 1
    assert played.result.reasons == ()
