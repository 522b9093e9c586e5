"""Several calls of a tool through its batch form: check each, run once, check each again.

Knows nothing of who asked for which call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from weft.agents.tools.batch import Batch
from weft.agents.tools.function import Tool
from weft.agents.tools.invocation import bounded
from weft.agents.tools.places import thread_place
from weft.agents.tools.problem import converted
from weft.agents.tools.thread import in_new_thread
from weft.core.errors import BuildError, ToolResultError, WeftError
from weft.core.idempotency import keyed

Calls = Sequence[Mapping[str, Any]]


async def invoke_batch(tool: Tool[..., Any], calls: Calls, max_bytes: int) -> list[Any | WeftError]:
    """One outcome for each call, in order: plain data, or the error of that call alone.

    The time limit of the tool is that of the whole batch, the bound of bytes that of each result.

    Raises: what `weft.core.ports.ToolRunner.call` raises, when the batch failed as a whole.
    """
    if tool.batch is None:
        raise BuildError(f"the tool {tool.spec.name} has no batch form", hint="@tool(batch=...)")
    batch, read = tool.batch, [_read(tool, arguments) for arguments in calls]
    sound = [values for values in read if not isinstance(values, WeftError)]
    results: Iterator[Any | WeftError] = iter(())
    if sound:
        with keyed(""):  # that of whoever came first is not the key of them all
            async with nullcontext() if batch.is_async else thread_place():
                results = iter(await bounded(tool, lambda _: _run(tool, batch, sound, max_bytes)))
    return [values if isinstance(values, WeftError) else next(results) for values in read]


def _read(tool: Tool[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any] | WeftError:
    name, parameters = tool.spec.name, tool.signature.parameters
    try:
        return parameters.decode(name, parameters.encode(name, arguments))
    except WeftError as error:
        return error


async def _run(
    tool: Tool[..., Any], batch: Batch, calls: list[dict[str, Any]], max_bytes: int
) -> list[Any | WeftError]:
    function: Any = batch.function
    if batch.is_async:
        return _split(tool, await function(calls), len(calls), max_bytes)
    # The results are checked in the thread: large ones would hold up the loop.
    return await in_new_thread(
        lambda: _split(tool, function(calls), len(calls), max_bytes), tool.spec.name
    )


def _split(
    tool: Tool[..., Any], results: object, count: int, max_bytes: int
) -> list[Any | WeftError]:
    name = tool.spec.name
    if not isinstance(results, (list, tuple)) or len(results) != count:
        many = len(results) if isinstance(results, (list, tuple)) else type(results).__name__
        raise ToolResultError(
            f"the batch form of {name} gave {many} for {count} calls",
            hint="give a list with one result for each call, in their order",
        )
    return [_one(tool, name, result, max_bytes) for result in results]


def _one(tool: Tool[..., Any], name: str, result: object, max_bytes: int) -> Any | WeftError:
    if isinstance(result, BaseException):
        return converted(name, result)
    try:
        return tool.signature.result.plain(name, result, max_bytes)
    except WeftError as error:
        return error
