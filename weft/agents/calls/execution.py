"""The execution gate: runs the calls of an item with the tools that are there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from weft.agents.calls.gates import CallRefusal
from weft.agents.calls.item import CallItem, GoldCall, reference
from weft.core.errors import WeftError
from weft.core.ports import ToolRunner

_DETAIL_CHARS = 200


async def execution(item: CallItem, tools: ToolRunner) -> CallRefusal | None:
    """The calls of tools that are there neither fail nor return nothing; others are not run.

    Calls that do not refer to one another run side by side. A call that refers to the result of one
    that did not run is not run either. The refusal is that of the first call in the item's order.
    """
    there = {spec.name for spec in tools.specs()}
    begun: list[asyncio.Task[_Outcome | None]] = []
    async with asyncio.TaskGroup() as group:
        for call in item.calls:
            run = _run(call, tools, tuple(begun)) if call.name in there else _nothing()
            begun.append(group.create_task(run))
    outcomes = [task.result() for task in begun]
    return next((one.refusal for one in outcomes if one and one.refusal), None)


def is_runnable(item: CallItem, tools: ToolRunner) -> bool:
    """Whether all calls can run."""
    there = {spec.name for spec in tools.specs()}
    return all(call.name in there for call in item.calls)


class _Outcome:
    """A result, or why the call is refused."""

    def __init__(self, value: object = None, refusal: CallRefusal | None = None) -> None:
        self.value = value
        self.refusal = refusal


async def _nothing() -> None:
    return None


async def _run(
    call: GoldCall, tools: ToolRunner, before: tuple[asyncio.Task[_Outcome | None], ...]
) -> _Outcome | None:
    results: dict[int, object] = {}
    for _, number, _ in call.references():
        outcome = await before[number - 1]
        if outcome is None or outcome.refusal:
            return None
        results[number] = outcome.value
    try:
        given = {name: _resolved(value, results) for name, value in call.arguments.items()}
    except (LookupError, TypeError) as error:
        why = f"{call.name}: {type(error).__name__}: {error}"
        return _Outcome(refusal=CallRefusal("execution", "bad_reference", why[:_DETAIL_CHARS]))
    try:
        value = await tools.call(call.name, given)
    except WeftError as error:
        why = f"{call.name}: {type(error).__name__}: {error.message}"[:_DETAIL_CHARS]
        return _Outcome(refusal=CallRefusal("execution", "tool_failed", why))
    if value is None or value in ("", [], {}, ()):
        return _Outcome(refusal=CallRefusal("execution", "empty_result", call.name))
    return _Outcome(value)


def _resolved(value: object, results: Mapping[int, object]) -> object:
    found = reference(value)
    if found is None:
        return value
    inner: Any = results[found[0]]
    for part in found[1]:
        inner = inner[part]
    return inner
