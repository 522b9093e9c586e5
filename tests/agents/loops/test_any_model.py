"""Whatever a model writes: the run ends, budgets hold, and who is first changes nothing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agents.loops.scripted_agent import Talked, call, says, talk
from tests.profile import examples
from weft.agents.chat.conversation import CORRECTIONS
from weft.agents.loops.tool_calls import REPEATS
from weft.core.errors import ModelUnavailable, ToolRaised
from weft.core.ports import Capabilities
from weft.core.values import ToolCall
from weft.testing import FakeTools, Reply

LOOPS = ["react", "divide", "parallel-react"]
CALLS = st.builds(
    call,
    st.sampled_from(["slow", "broken", "nope", ""]),
    item=st.integers(0, 3),
) | st.sampled_from([call("slow"), {"name": "slow"}, {"name": "slow", "arguments": [1]}])
TEXTS = st.one_of(
    st.text(max_size=20),
    st.builds(lambda one: says(call=one), CALLS),
    st.builds(lambda many: says(calls=many), st.lists(CALLS, max_size=9)),
    st.builds(lambda answer: says(answer=answer), st.text(max_size=5) | st.integers()),
    st.builds(lambda many: "\n".join(f"Call: {json.dumps(one)}" for one in many),
              st.lists(CALLS, min_size=1, max_size=3)),
    st.just("Thought: so\nAnswer: tea"),
)  # fmt: skip
NATIVE = st.builds(
    ToolCall,
    st.sampled_from(["", "a", "b"]),
    st.sampled_from(["slow", "broken", "nope", ""]),
    st.sampled_from(["", "{", "[]", '{"item": 1}', '{"item": 2}']),
)
REPLIES = st.builds(
    Reply,
    TEXTS,
    st.lists(NATIVE, max_size=5).map(tuple),
    error=st.sampled_from([None] * 9 + [ModelUnavailable("gone")]),
)
SCRIPTS = st.lists(REPLIES, min_size=1, max_size=12)
ROUNDS, MOST = 3, 10


def tools(delays: list[float]) -> FakeTools:
    """`delays`: how long each call takes, by its item."""

    async def slow(item: int) -> int:
        await asyncio.sleep(delays[item])
        return item

    async def broken(item: int) -> int:
        await asyncio.sleep(delays[item])
        raise ToolRaised("broken", retryable=item == 0)

    return FakeTools(slow=slow, broken=broken)


def played(agent: str, script: list[Reply], delays: list[float], held: bool) -> Talked:
    # a script that runs out repeats its last reply: for ever, if the loop let it
    offered = Capabilities(structured_output=held, tools=True)
    return talk(agent, script, tools(delays), offered=offered, rounds=ROUNDS, calls=MOST)


@pytest.mark.parametrize("agent", LOOPS)
@given(script=SCRIPTS, held=st.booleans())
@examples(60)
def test_it_ends_within_its_budgets(agent: str, script: list[Reply], held: bool) -> None:
    talked = played(agent, script, [1.0, 2.0, 3.0, 4.0], held)
    calls: tuple[Any, ...] = ()
    if talked.given is not None:
        calls = talked.given.calls
        assert talked.given.value
        assert agent == "react" or talked.given.rounds <= ROUNDS
        assert [o.number for o in calls] == list(range(1, len(calls) + 1))
        assert talked.result.status == ("partial" if talked.given.partial else "succeeded")
    else:
        assert talked.result.status == "failed"
        assert "AgentError" in talked.reason or "ModelGaveUp" in talked.reason
    made = [node for node in talked.nodes if node.rpartition("/")[2].startswith("s")]
    assert len(calls) <= MOST
    assert len(made) <= MOST
    turns = MOST + REPEATS + 1 if agent == "react" else ROUNDS + 1
    retries = 3
    assert len(talked.requests) <= turns * (1 + CORRECTIONS) * retries
    assert not talked.result.leaked


@pytest.mark.parametrize("agent", LOOPS)
@given(script=SCRIPTS, held=st.booleans())
@examples(30)
def test_requests_only_ever_grow(agent: str, script: list[Reply], held: bool) -> None:
    played(agent, script, [1.0, 2.0, 3.0, 4.0], held).assert_stable_prefix()


@pytest.mark.parametrize("agent", LOOPS)
@given(script=SCRIPTS, delays=st.permutations([0.0, 1.0, 2.0, 3.0]))
@examples(30)
def test_who_is_first_changes_nothing(agent: str, script: list[Reply], delays: list[float]) -> None:
    one = played(agent, script, [0.0, 1.0, 2.0, 3.0], True)
    other = played(agent, script, delays, True)
    assert [r.messages for r in one.requests] == [r.messages for r in other.requests]
    assert one.given == other.given
