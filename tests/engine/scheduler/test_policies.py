"""What happens around a failing work: retry, fallback, default, and the cone that is cut off."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.virtual_run import Played, after, echo, fail, give, node, play, script
from weft.core.errors import ModelOverloaded, ModelRequestError, ModelUnavailable, WeftError
from weft.core.events import NodeRerouted, NodeRetrying
from weft.core.ids import NodeId
from weft.engine import Edge, Expand, Inputs, NodeContext, Retry, Skip
from weft.engine.scheduler.policies import delay_s

AGAIN = ModelUnavailable("the stream broke")
NEVER = ModelRequestError("no such parameter")
PLAIN = Retry(attempts=3, delay_s=1, factor=2, jitter=0)


def test_a_retryable_failure_is_repeated_with_growing_delays() -> None:
    played = play(node("a", script(AGAIN, AGAIN, "third"), retry=PLAIN))
    assert played.value("a") == "third"
    assert played["a"].attempts == 3
    assert [(e.attempt, e.delay_s, e.at_s) for e in played.all(NodeRetrying)] == [
        (1, 1, 0),
        (2, 2, 1),
    ]
    assert played.ended_s("a") == 3


def test_attempts_are_bounded_and_the_last_failure_counts() -> None:
    played = play(node("a", script(AGAIN, AGAIN, ModelUnavailable("still")), retry=PLAIN))
    assert played["a"].attempts == 3
    assert "still" in str(played["a"].failure)
    assert played.result.status == "failed"


@pytest.mark.parametrize("error", [NEVER, ValueError("plain"), KeyError("plain")])
def test_what_is_not_retryable_is_not_repeated(error: Exception) -> None:
    played = play(node("a", fail(error), retry=PLAIN))
    assert played["a"].attempts == 1
    assert not played.all(NodeRetrying)


def test_a_failure_after_a_retryable_one_stops_the_retries() -> None:
    played = play(node("a", script(AGAIN, NEVER), retry=PLAIN))
    assert (played["a"].attempts, played.error("a")) == (2, "ModelRequestError")


def test_the_server_s_own_delay_is_respected() -> None:
    patient = ModelOverloaded("busy", retry_after_s=7)
    hasty = ModelOverloaded("busy", retry_after_s=0.1)
    played = play(node("a", script(patient, hasty, "done"), retry=PLAIN))
    assert [e.delay_s for e in played.all(NodeRetrying)] == [7, 2]


def test_jitter_is_drawn_from_the_seed() -> None:
    def delays(seed: int) -> list[float]:
        retry = Retry(attempts=4, delay_s=1, jitter=0.5)
        nodes = [node(name, fail(AGAIN), retry=retry) for name in ("a", "b")]
        return [e.delay_s for e in play(*nodes, seed=seed).all(NodeRetrying)]

    assert delays(1) == delays(1)
    assert delays(1) != delays(2)
    assert len(set(delays(1))) == 6, "nodes do not retry in step"


@given(
    st.builds(
        Retry,
        delay_s=st.floats(0, 100),
        factor=st.floats(1, 1000),
        max_delay_s=st.floats(0, 1000),
        jitter=st.floats(0, 1),
    ),
    st.integers(1, 10_000),
    st.one_of(st.none(), st.floats(0, 1e6)),
)
def test_a_delay_stays_between_its_bounds(
    retry: Retry, attempt: int, retry_after_s: float | None
) -> None:
    error = ModelOverloaded("busy", retry_after_s=retry_after_s)
    delay = delay_s(retry, attempt, NodeId("n"), error, seed=0)
    assert delay >= (retry_after_s or 0)
    assert delay <= max(retry.max_delay_s * (1 + retry.jitter), retry_after_s or 0)
    assert delay == delay_s(retry, attempt, NodeId("n"), error, seed=0)


@given(st.integers(1, 12))
def test_delays_grow_until_the_maximum(attempt: int) -> None:
    retry = Retry(delay_s=0.5, factor=2, max_delay_s=30, jitter=0)
    delays = [delay_s(retry, n, NodeId("n"), AGAIN, 0) for n in range(1, attempt + 1)]
    assert all(b == min(2 * a, 30) for a, b in pairwise(delays))


def test_a_fallback_runs_in_the_place_of_a_node_that_failed() -> None:
    spare = node("spare", echo, "source")
    played = play(
        node("source", give("in")),
        node("a", fail(NEVER, 1), "source", fallback=spare),
        node("next", echo, "a"),
    )
    assert played.value("next") == {"a": {"source": "in"}}
    assert played["a"].via == "fallback"
    assert "no such parameter" in str(played["a"].failure)
    assert played.result.status == "succeeded"
    assert [(e.node, e.to) for e in played.all(NodeRerouted)] == [("a", "a/spare")]


def test_a_fallback_runs_only_after_the_last_attempt() -> None:
    played = play(node("a", fail(AGAIN), retry=PLAIN, fallback=node("spare", give("S"))))
    assert played.started_s("a/spare") == 3
    assert (played["a"].attempts, played.value("a")) == (3, "S")


def test_a_fallback_that_fails_too_gives_way_to_the_default() -> None:
    spare = node("spare", fail(NEVER))
    played = play(node("a", fail(AGAIN), fallback=spare, default="D"))
    assert (played.value("a"), played["a"].via) == ("D", "default")
    assert played.result.status == "succeeded"


def test_a_fallback_that_fails_too_fails_the_node() -> None:
    spare = node("spare", fail(NEVER))
    played = play(node("a", fail(AGAIN), fallback=spare), node("next", echo, "a"))
    assert played.statuses == {"a": "failed", "next": "skipped", "a/spare": "failed"}
    assert "no such parameter" in str(played["a"].failure)


def test_fallbacks_nest() -> None:
    third = node("third", give("third"))
    second = node("second", fail(NEVER), fallback=third)
    played = play(node("first", fail(NEVER), fallback=second))
    assert played.value("first") == "third"
    assert played.started_s("first/second/third") == 0


def test_a_fallback_has_its_own_policy() -> None:
    spare = node("spare", script(AGAIN, "S"), retry=PLAIN)
    assert play(node("a", fail(NEVER), fallback=spare)).value("a") == "S"


def test_a_fallback_that_is_left_out_leaves_the_node_out() -> None:
    played = play(node("a", fail(NEVER), fallback=node("spare", give(Skip("nothing to do")))))
    assert (played["a"].status, played["a"].failure) == ("skipped", None)


def test_a_fallback_stands_in_for_a_join_that_was_not_satisfied() -> None:
    from weft.engine import ANY

    played = play(
        node("bad", fail(NEVER)),
        node("a", echo, "bad", join=ANY, fallback=node("spare", give("S"))),
    )
    assert (played.value("a"), played["a"].attempts) == ("S", 0)


def failing_map(context: NodeContext, inputs: Inputs) -> Expand:
    children = (node(f"{context.scope}[0]", give(1)), node(f"{context.scope}[1]", fail(AGAIN, 1)))
    return Expand(children, tuple(child.id for child in children))


async def grow_and_fail(context: NodeContext, inputs: Inputs) -> Expand:
    return failing_map(context, inputs)


def assert_absorbed(played: Played) -> None:
    assert played.result.status == "succeeded"
    assert played.result.reasons == ()


def test_a_fallback_absorbs_the_failures_inside_the_node() -> None:
    played = play(node("a", grow_and_fail, fallback=node("spare", give("S"))))
    assert played.statuses["a[1]"] == "failed"
    assert_absorbed(played)


def test_a_default_absorbs_the_failures_inside_the_node() -> None:
    assert_absorbed(play(node("a", grow_and_fail, default=[])))


def test_a_later_attempt_absorbs_the_failures_of_an_earlier_one() -> None:
    played = play(node("a", script(grow_and_fail, [1, 2]), retry=PLAIN))
    assert played.value("a") == [1, 2]
    assert_absorbed(played)


def test_a_composite_is_retried_as_a_whole_with_new_ids() -> None:
    async def second(context: NodeContext, inputs: Inputs) -> Expand:
        child = node(f"{context.scope}[0]", give(2))
        return Expand((child,), (child.id,))

    played = play(node("a", script(grow_and_fail, second), retry=PLAIN))
    assert played.value("a") == [2]
    assert set(played.statuses) == {"a", "a[0]", "a[1]", "a~2[0]"}


def test_a_default_is_the_value_of_a_node_that_failed() -> None:
    played = play(node("a", fail(NEVER), default=None), node("next", echo, "a"))
    assert played.value("next") == {"a": None}
    assert played["a"].via == "default"
    assert played.result.status == "succeeded"


def test_a_default_does_not_revive_a_node_whose_inputs_failed() -> None:
    played = play(node("bad", fail(NEVER)), node("a", echo, "bad", default="D"))
    assert played["a"].status == "skipped"


@pytest.mark.parametrize(("on_failure", "status"), [("fail", "failed"), ("skip", "partial")])
def test_who_may_fail_does_not_fail_the_run(on_failure: str, status: str) -> None:
    played = play(
        node("a", fail(NEVER), on_failure=on_failure),
        node("cone", echo, "a"),
        node("beside", after(1, "B")),
    )
    assert played.statuses == {"a": "failed", "cone": "skipped", "beside": "succeeded"}
    assert played.result.status == status
    assert any("a failed: ModelRequestError" in reason for reason in played.result.reasons)


def test_an_edge_without_a_name_only_orders() -> None:
    played = play(node("a", after(2, "A")), node("b", echo, Edge(NodeId("a"))))
    assert played.value("b") == {}
    assert played.started_s("b") == 2


def test_the_failure_names_the_node_where_it_happened() -> None:
    error = WeftError("broken")
    play(node("a", fail(error)))
    assert error.node == "a"
