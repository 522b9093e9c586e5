"""An agent that ends without an answer says which of its calls failed."""

from __future__ import annotations

import pytest

import weft
from weft.errors import AgentError
from weft.testing import FakeModel, Reply


@weft.tool
def search(query: str) -> str:
    """Search."""
    return query


def requested(tool: str, arguments: str) -> Reply:
    return Reply(tool_calls=[weft.ToolCall("c", tool, arguments)])


REACT = '{"next": {"call": {"name": "serch", "arguments": {"query": "tea"}}}}'


@pytest.mark.parametrize(
    ("agent", "reply", "cause"),
    [
        ("parallel-react", requested("serch", '{"query": "tea"}'), "declares no tool 'serch'"),
        ("parallel-react", requested("search", '{"query": 5}'), "query should be a valid string"),
        ("parallel-react", requested("search", '{"query": '), "is not JSON"),
        ("react", Reply(REACT), "did you mean 'search'"),
    ],
)
def test_the_call_that_failed_is_named(agent: str, reply: Reply, cause: str) -> None:
    with pytest.raises(AgentError) as error:
        weft.ask_sync(
            "tea?",
            tools=[search],
            model=FakeModel(lambda _: reply),
            agent=agent,
            settings=weft.AskSettings(durability="none"),
        )
    assert "no call can be made any more" in str(error.value)
    assert "the last call that failed" in str(error.value)
    assert cause in str(error.value)
    assert "made before" not in str(error.value)  # a refused repetition is not the cause


def test_an_agent_whose_calls_succeeded_blames_none() -> None:
    with pytest.raises(AgentError) as error:
        weft.ask_sync(
            "tea?",
            tools=[search],
            model=FakeModel(lambda _: Reply("")),
            agent="parallel-react",
            settings=weft.AskSettings(durability="none"),
        )
    assert "the last call that failed" not in str(error.value)
