from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from weft.agents.tools import Batch, Toolbox, tool
from weft.core.errors import (
    BuildError,
    ToolArgumentError,
    ToolLimitError,
    ToolNotFound,
    ToolRaised,
    ToolResultError,
    WeftError,
)

Calls = list[Mapping[str, Any]]


def halves(calls: Calls) -> list[object]:
    """Odd numbers fail alone."""
    return [
        ValueError(f"{call['n']} is odd") if call["n"] % 2 else call["n"] // 2 for call in calls
    ]


async def halves_later(calls: Calls) -> list[object]:
    await asyncio.sleep(0)
    return halves(calls)


def box(batch: Any, **options: Any) -> Toolbox:
    @tool(batch=batch, **options)
    def half(n: int) -> int:
        """Half of it."""
        return n // 2

    return Toolbox(half)


def ask(tools: Toolbox, *numbers: object) -> list[Any]:
    calls = [{"n": number} for number in numbers]
    return list(asyncio.run(tools.call_batch("half", calls)))


@pytest.mark.parametrize("batch", [halves, halves_later, Batch(halves, 8)])
def test_each_call_has_its_own_outcome(batch: Any) -> None:
    first, second, third, fourth = ask(box(batch), 4, 3, "x", 8)
    assert (first, fourth) == (2, 4)
    assert isinstance(second, ToolRaised)
    assert "3 is odd" in str(second)
    assert isinstance(second.__cause__, ValueError)
    assert isinstance(third, ToolArgumentError)


def test_the_spec_says_how_many_fit() -> None:
    assert box(halves).specs()[0].batch == 64
    assert box(Batch(halves, 8)).specs()[0].batch == 8
    assert Toolbox(tool(lambda_free)).specs()[0].batch == 0


def lambda_free() -> int:
    """One."""
    return 1


def test_nothing_is_run_when_no_call_is_sound() -> None:
    def never(calls: Calls) -> list[object]:
        raise AssertionError

    assert [type(outcome) for outcome in ask(box(never), "x", None)] == [ToolArgumentError] * 2


@pytest.mark.parametrize("results", [[1], [1, 2, 3], None, iter([1, 2]), {"n": 1}])
def test_results_that_cannot_be_split_fail_all(results: Any) -> None:
    with pytest.raises(ToolResultError, match="half"):
        ask(box(lambda calls: results), 2, 4)


def test_a_result_of_another_type_fails_alone() -> None:
    first, second = ask(box(lambda calls: ["two", 2]), 4, 4)
    assert isinstance(first, ToolResultError)
    assert second == 2


def test_what_the_batch_raises_is_told() -> None:
    def broken(calls: Calls) -> list[object]:
        raise ConnectionError("no line")

    with pytest.raises(ToolRaised, match="no line") as raised:
        ask(box(broken), 2)
    assert raised.value.retryable


def test_the_time_limit_is_that_of_the_batch() -> None:
    async def slow(calls: Calls) -> list[object]:
        await asyncio.Event().wait()
        return []

    with pytest.raises(ToolLimitError, match="longer than"):
        ask(box(slow, timeout_s=0.01), 2, 4)


def test_large_results_are_refused_one_by_one() -> None:
    @tool(batch=lambda calls: ["x" * call["n"] for call in calls])
    def text(n: int) -> str:
        return "x" * n

    tools = Toolbox(text, max_result_bytes=100)
    small, large = asyncio.run(tools.call_batch("text", [{"n": 3}, {"n": 300}]))
    assert small == "xxx"
    assert isinstance(large, ToolLimitError)


def test_an_unknown_tool_and_one_without_a_batch_form() -> None:
    with pytest.raises(ToolNotFound):
        asyncio.run(Toolbox().call_batch("half", []))
    with pytest.raises(WeftError, match="no batch form"):
        asyncio.run(Toolbox(tool(lambda_free)).call_batch("lambda_free", [{}]))


def no_parameters() -> list[object]:
    return []


@pytest.mark.parametrize("batch", [no_parameters, 5])
def test_a_batch_form_takes_one_list(batch: Any) -> None:
    with pytest.raises(BuildError, match="batch form"):
        tool(batch=batch)(lambda_free)


def test_a_batch_of_one_is_none() -> None:
    with pytest.raises(BuildError, match="at most 1"):
        Batch(halves, 1)


def test_an_isolated_tool_has_no_batch_form() -> None:
    with pytest.raises(BuildError, match="in this process"):
        tool(batch=halves, isolate=True)(lambda_free)


def test_the_version_follows_the_source_unless_it_is_given() -> None:
    def one() -> int:
        return 1

    def other() -> int:
        return 2

    assert tool(one).spec.version
    assert tool(one).spec.version != tool(other).spec.version
    assert tool(version="7")(one).spec.version == "7"
    scope: dict[str, Any] = {}
    exec("def typed() -> int:\n    return 1", scope)
    assert tool(scope["typed"]).spec.version == ""
