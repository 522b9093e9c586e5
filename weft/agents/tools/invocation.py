"""Runs one call of a tool, or several through its batch form, with checks, limits and errors."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any, NoReturn, TypeVar

from weft.agents.tools.context import LogSink, ToolContext, ToolQuestions, current_sink
from weft.agents.tools.function import Batch, Tool
from weft.agents.tools.problem import as_tool_error, late_error
from weft.agents.tools.process import in_process
from weft.agents.tools.threads import in_new_thread, thread_slot
from weft.core.call_context import idempotency_key, keyed
from weft.core.errors import BuildError, ToolResultError, WeftError
from weft.core.ports import BoundTool
from weft.engine.scheduler.effects import EFFECTS

T = TypeVar("T")


def invocation(tool: Tool[..., Any], max_bytes: int) -> BoundTool:
    """The function that calls `tool`; its result is plain data of at most `max_bytes` of JSON.

    A call raises what `weft.core.ports.ToolRunner.call` raises, except for `ToolNotFound`.
    """
    limited = tool.timeout_s is not None or tool.isolation is not None
    if limited or not tool.is_async or tool.signature.context is not None:
        return partial(_invoke, tool, max_bytes)
    return _awaited(tool, max_bytes)


def _awaited(tool: Tool[..., Any], max_bytes: int) -> BoundTool:
    """Calls of an async function without limits or context: in the caller's task, no timer."""
    name, signature, function = tool.spec.name, tool.signature, tool.function
    parameters, plain, key = signature.parameters, signature.result.plain, signature.key

    async def call(arguments: Mapping[str, Any]) -> Any:
        task = asyncio.current_task()
        assert task is not None
        cancelled_before = task.cancelling()
        try:
            values = parameters.decode(name, parameters.encode(name, arguments))
            if key is not None:
                values[key] = idempotency_key()
            return plain(name, await function(**values), max_bytes)
        except BaseException as error:  # noqa: BLE001 - any error is the outcome
            _fail(name, error, task, cancelled_before)

    return call


async def _invoke(tool: Tool[..., Any], max_bytes: int, arguments: Mapping[str, Any]) -> Any:
    threaded = not tool.is_async and tool.isolation is None
    async with thread_slot() if threaded else nullcontext():  # its time limit starts after the wait
        return await bounded(tool, lambda context: _run(tool, arguments, context, max_bytes))


async def bounded(tool: Tool[..., Any], run: Callable[[ToolContext], Awaitable[T]]) -> T:
    """The result of `run`, within the time limit of `tool`.

    Raises: `ToolLimitError` after the limit; any other error of `run` as a `WeftError`.
    """
    loop = asyncio.get_running_loop()
    deadline = None if tool.timeout_s is None else loop.time() + tool.timeout_s
    context = ToolContext(_on_loop(loop, current_sink()), deadline_s=deadline, now=loop.time)
    late: Exception | None = None
    try:
        async with asyncio.timeout_at(deadline) as limit:
            if (scope := EFFECTS.get()) is not None:
                context.attach(ToolQuestions(scope, limit, loop))
            result = await _guarded(tool.spec.name, run, context)
    except (WeftError, TimeoutError) as error:
        if not limit.expired():
            raise
        late = error
    finally:
        context.cancel()
    if limit.expired():  # also when the tool swallowed its cancellation and returned
        raise late_error(tool.spec.name, tool.timeout_s or 0) from late
    return result


async def _guarded(
    name: str, run: Callable[[ToolContext], Awaitable[T]], context: ToolContext
) -> T:
    """Run the tool; any error becomes a `WeftError`, except for a cancellation of this task."""
    task = asyncio.current_task()
    assert task is not None  # asyncio.timeout requires a task
    cancelled_before = task.cancelling()
    try:
        return await run(context)
    except BaseException as error:  # noqa: BLE001 - any error is the outcome
        _fail(name, error, task, cancelled_before)


def _fail(
    name: str, error: BaseException, task: asyncio.Task[Any], cancelled_before: int
) -> NoReturn:
    """Raise `error` as a `WeftError`, or unchanged where it ends `task`, in which the tool ran."""
    ends = isinstance(error, asyncio.CancelledError) and task.cancelling() > cancelled_before
    closes = isinstance(error, GeneratorExit) and not _is_running(task)
    if ends or closes or isinstance(error, WeftError):
        raise error
    raise as_tool_error(name, error) from error


def _is_running(task: asyncio.Task[Any]) -> bool:
    try:
        return asyncio.current_task() is task
    except RuntimeError:  # no event loop runs at all
        return False


async def _run(
    tool: Tool[..., Any], arguments: Mapping[str, Any], context: ToolContext, max_bytes: int
) -> Any:
    name, signature = tool.spec.name, tool.signature
    encoded = signature.parameters.encode(name, arguments)
    values = signature.parameters.decode(name, encoded)
    if tool.isolation is not None:
        return await in_process(tool, encoded, context.log, max_bytes)
    if signature.context is not None:
        values[signature.context] = context
    if signature.key is not None:
        values[signature.key] = idempotency_key()
    if tool.is_async:
        return signature.result.plain(name, await tool.function(**values), max_bytes)

    def work() -> Any:  # the result is checked in the thread: a large one would block the loop
        return signature.result.plain(name, tool.function(**values), max_bytes)

    return await in_new_thread(work, name)


def _on_loop(loop: asyncio.AbstractEventLoop, sink: LogSink) -> LogSink:
    """`sink`, called in the loop's thread from any thread."""
    home = threading.get_ident()

    def log(text: str) -> None:
        if threading.get_ident() == home:
            sink(text)
            return
        with suppress(RuntimeError):  # the loop has closed
            loop.call_soon_threadsafe(sink, text)

    return log


BatchCalls = Sequence[Mapping[str, Any]]


async def invoke_batch(
    tool: Tool[..., Any], calls: BatchCalls, max_bytes: int
) -> list[Any | WeftError]:
    """One outcome for each call, in order: plain data, or the error of that call alone.

    The time limit of the tool applies to the whole batch, the size limit to each result.

    Raises: what `weft.core.ports.ToolRunner.call` raises, when the batch fails as a whole.
    """
    if tool.batch is None:
        raise BuildError(f"the tool {tool.spec.name} has no batch form", hint="@tool(batch=...)")
    batch, read = tool.batch, [_read(tool, arguments) for arguments in calls]
    sound = [values for values in read if not isinstance(values, WeftError)]
    results: Iterator[Any | WeftError] = iter(())
    if sound:
        with keyed(""):  # the first caller's key does not belong to the whole batch
            async with nullcontext() if batch.is_async else thread_slot():
                results = iter(
                    await bounded(tool, lambda _: _run_batch(tool, batch, sound, max_bytes))
                )
    return [values if isinstance(values, WeftError) else next(results) for values in read]


def _read(tool: Tool[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any] | WeftError:
    name, parameters = tool.spec.name, tool.signature.parameters
    try:
        return parameters.decode(name, parameters.encode(name, arguments))
    except WeftError as error:
        return error


async def _run_batch(
    tool: Tool[..., Any], batch: Batch, calls: list[dict[str, Any]], max_bytes: int
) -> list[Any | WeftError]:
    function: Any = batch.function
    if batch.is_async:
        return _split(tool, await function(calls), len(calls), max_bytes)
    # The results are checked in the thread: large ones would block the loop.
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
        return as_tool_error(name, result)
    try:
        return tool.signature.result.plain(name, result, max_bytes)
    except WeftError as error:
        return error
