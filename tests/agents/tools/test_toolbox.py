"""The toolbox: the port's suite, strict arguments and results, and tools that misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from tests.conformance.tool_runner import ToolRunnerConformance
from weft.agents.tools import Tool, Toolbox, ToolContext, tool, tool_logs
from weft.core.errors import (
    BuildError,
    Cancelled,
    DuplicateName,
    ToolArgumentError,
    ToolLimitError,
    ToolNotFound,
    ToolRaised,
    ToolResultError,
)
from weft.testing import FakeClock

ROOT = Path(__file__).parents[3]


class TestToolbox(ToolRunnerConformance):
    def make(self, *functions: Callable[..., Any]) -> Toolbox:
        return Toolbox(*(tool(function) for function in functions))


def call(function: Callable[..., Any], arguments: dict[str, Any] | None = None) -> Any:
    one = function if isinstance(function, Tool) else tool(function)
    return asyncio.run(Toolbox(one).call(one.spec.name, arguments or {}))


class Doc(BaseModel):
    title: str
    words: int = 0


@dataclass
class Point:
    x: float


def takes(
    number: int = 0,
    fraction: float = 0.0,
    text: str = "",
    flag: bool = False,
    when: date | None = None,
    docs: list[Doc] | None = None,
    point: Point | None = None,
    small: Annotated[int, Field(le=3)] = 0,
) -> str:
    """Take anything."""
    given = (number, fraction, text, flag, when, docs, point, small)
    return repr(next((value for value in given if value), None))


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        ({"number": 3}, "3"),
        ({"fraction": 3}, "3.0"),
        ({"when": "2024-02-29"}, "datetime.date(2024, 2, 29)"),
        ({"when": date(2024, 2, 29)}, "datetime.date(2024, 2, 29)"),
        ({"docs": [{"title": "a"}]}, "[Doc(title='a', words=0)]"),
        ({"docs": (Doc(title="a"),)}, "[Doc(title='a', words=0)]"),
        ({"point": Point(1.0)}, "Point(x=1.0)"),
    ],
)
def test_arguments_become_what_the_annotations_say(arguments: dict[str, Any], seen: str) -> None:
    assert call(takes, arguments) == seen


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"number": "3"}, "number should be a valid integer, got '3' (string)"),
        ({"number": True}, "number should be a valid integer, got True (boolean)"),
        ({"number": 3.5}, "number should be a valid integer"),
        ({"number": None}, "number should be a valid integer, got None (null)"),
        ({"text": 3}, "text should be a valid string, got 3 (integer)"),
        ({"flag": 1}, "flag should be a valid boolean, got 1 (integer)"),
        ({"flag": "yes"}, "flag should be a valid boolean"),
        ({"small": 4}, "small should be less than or equal to 3, got 4"),
        ({"docs": [{"title": "a"}, {}]}, "docs[1].title is missing"),
        ({"docs": [{"title": 1}]}, "docs[0].title should be a valid string"),
        ({"nmber": 3}, "nmber is unknown (did you mean 'number'? there are: number, fraction"),
        ({"number": "x", "text": 1}, "got 'x' (string); text should be"),
        ({"number": 1, "text": object()}, "takes: text: JSON cannot hold it: Unable to serialize"),
        ({"text": "x" * 10_000, "number": "y" * 10_000}, "..."),
    ],
)
def test_wrong_arguments_are_all_named(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ToolArgumentError) as caught:
        call(takes, arguments)
    assert str(caught.value).startswith("takes: ")
    assert says in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_default_is_the_functions_own_and_never_checked() -> None:
    def odd(kept: list[int] = ["not", "numbers"]) -> list[Any]:  # type: ignore[list-item]  # noqa: B006
        return kept

    assert call(odd) == ["not", "numbers"]


@pytest.mark.parametrize(
    ("promised", "value", "data"),
    [
        (int, 3, 3),
        (float, 3, 3.0),
        (list[Doc], [Doc(title="a")], [{"title": "a", "words": 0}]),
        (Point, Point(1.0), {"x": 1.0}),
        (date, date(2024, 2, 29), "2024-02-29"),
        (tuple[int, str], (1, "a"), [1, "a"]),
        (dict[int, str], {1: "a"}, {"1": "a"}),
        (type(None), None, None),
        (Any, {"a": {1}}, {"a": [1]}),
    ],
)
def test_a_result_is_plain_data(promised: Any, value: Any, data: Any) -> None:
    def gives():  # type: ignore[no-untyped-def]
        return value

    gives.__annotations__["return"] = promised
    assert call(gives) == data


def test_numbers_that_json_lacks_stay_what_they_are() -> None:
    def gives() -> dict[str, Any]:
        return {"nan": float("nan"), "inf": [float("inf")]}

    given = call(gives)
    assert given["inf"] == [float("inf")]
    assert given["nan"] != given["nan"]


def test_a_result_shares_nothing_with_the_tool() -> None:
    kept: list[int] = [1]

    @tool
    async def gives() -> list[int]:
        return kept

    call(gives).append(2)
    assert kept == [1]


@pytest.mark.parametrize(
    ("promised", "value", "says"),
    [
        (int, "3", "the result should be a valid integer, got '3' (string)"),
        (int, True, "the result should be a valid integer, got True (boolean)"),
        (str, None, "the result should be a valid string, got None (null)"),
        (list[Doc], [Doc(title="a"), {"words": 1}], "[1].title is missing"),
        (type(None), 1, "the result should be None"),
        (Any, object(), "what JSON cannot hold"),
        (Any, b"\xff", "what JSON cannot hold"),
        (Any, iter([1]), "returned a list_iterator, not a result (return a list)"),
    ],
)
def test_a_result_of_another_type_is_told(promised: Any, value: Any, says: str) -> None:
    def gives():  # type: ignore[no-untyped-def]
        return value

    gives.__annotations__["return"] = promised
    with pytest.raises(ToolResultError) as caught:
        call(gives)
    assert str(caught.value).startswith("gives returned")
    assert says in str(caught.value)


def test_results_that_never_end_are_told() -> None:
    def circular() -> Any:
        ring: list[Any] = []
        ring.append(ring)
        return ring

    def deep() -> Any:
        nested: list[Any] = []
        for _ in range(100_000):
            nested = [nested]
        return nested

    def forgets() -> int:
        async def later() -> int:
            return 1

        return later()  # type: ignore[return-value]

    for function in (circular, deep, forgets):
        with pytest.raises(ToolResultError, match=function.__name__):
            call(function)


@pytest.mark.parametrize("value", ["x" * 2000, ["x"] * 500, {"a": "\N{SNOWMAN}" * 400}])
def test_a_flood_is_stopped(value: Any) -> None:
    @tool
    def floods() -> Any:
        return value

    box = Toolbox(floods, max_result_bytes=1000)
    with pytest.raises(ToolLimitError, match="at most 1,000 are allowed"):
        asyncio.run(box.call("floods", {}))
    assert asyncio.run(Toolbox(floods).call("floods", {})) == value


@pytest.mark.parametrize(
    ("value", "size"),
    [("x" * 8, 10), ("\x1f" * 2, 14), ("\N{SNOWMAN}" * 3, 11), (10**11, 12), (-(10**10), 12)],
)
def test_a_short_result_is_measured_to_the_byte(value: Any, size: int) -> None:
    @tool
    def short() -> Any:
        return value

    assert asyncio.run(Toolbox(short, max_result_bytes=size).call("short", {})) == value
    with pytest.raises(ToolLimitError):
        asyncio.run(Toolbox(short, max_result_bytes=size - 1).call("short", {}))


@pytest.mark.parametrize("value", ["\ud800", 2.5, True, None, 10**400])
def test_what_is_short_is_checked_like_what_is_long(value: Any) -> None:
    @tool
    async def short() -> Any:
        return value

    def call(function: Any) -> Any:
        return asyncio.run(Toolbox(function).call("short", {}))

    if value == "\ud800":
        with pytest.raises(ToolResultError, match="JSON cannot hold"):
            call(short)
    else:
        assert call(short) == value


class Unreadable(Exception):
    def __str__(self) -> str:
        raise ValueError


FATAL: list[BaseException] = [
    ValueError("no luck"),
    StopIteration(1),
    StopAsyncIteration(),
    SystemExit(1),
    KeyboardInterrupt(),
    GeneratorExit(),
    asyncio.CancelledError(),
    TimeoutError("too slow"),
    MemoryError(),
    RecursionError(),
    BaseException("rude"),
    ExceptionGroup("several", [ValueError("one")]),
    Unreadable(),
]


@pytest.mark.parametrize("error", FATAL, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_whatever_a_tool_raises_is_one_typed_error(error: BaseException, is_async: bool) -> None:
    def raises() -> None:
        raise error

    async def raises_later() -> None:
        await asyncio.sleep(0)
        raise error

    async def main() -> tuple[ToolRaised, str]:
        box = Toolbox(tool(name="raises")(raises_later if is_async else raises), tool(fine))
        with pytest.raises(ToolRaised) as caught:
            await box.call("raises", {})
        return caught.value, await box.call("fine", {})

    told, after = asyncio.run(main())
    assert after == "fine"
    assert told.message.startswith("raises raised ")
    stops = is_async and isinstance(error, (StopIteration, StopAsyncIteration))
    assert stops or told.__cause__ is error  # Python itself renames these two in a coroutine
    assert told.retryable == isinstance(error, TimeoutError)


async def fine() -> str:
    """Work."""
    return "fine"


def test_a_huge_message_is_cut() -> None:
    def raises() -> None:
        raise ValueError("x" * 1_000_000)

    with pytest.raises(ToolRaised) as caught:
        call(raises)
    assert len(caught.value.message) < 3_000


def test_an_error_of_ours_stays_what_it_is() -> None:
    error = Cancelled("enough")

    def raises() -> None:
        raise error

    with pytest.raises(Cancelled) as caught:
        call(raises)
    assert caught.value is error


def test_a_validator_that_raises_is_the_tools_own_fault() -> None:
    class Odd(BaseModel):
        number: int

        def model_post_init(self, context: Any) -> None:
            raise KeyError("odd")

    def accepts(odd):  # type: ignore[no-untyped-def]
        return odd

    accepts.__annotations__["odd"] = Odd
    with pytest.raises(ToolRaised, match="KeyError"):
        call(accepts, {"odd": {"number": 1}})


def test_a_sync_tool_runs_in_a_thread_with_the_callers_context() -> None:
    variable = contextvars.ContextVar("variable", default="unset")

    @tool
    def look() -> list[Any]:
        return [threading.current_thread().name, threading.current_thread().daemon, variable.get()]

    async def main() -> Any:
        variable.set("set")
        return await Toolbox(look).call("look", {})

    assert asyncio.run(main()) == ["weft-look", True, "set"]


def test_a_sync_tool_does_not_hold_up_the_loop() -> None:
    both = threading.Barrier(2)

    @tool
    def meet() -> int:
        return both.wait(60) * 0

    async def main() -> list[int]:
        box = Toolbox(meet)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(box.call("meet", {})) for _ in range(2)]
        return [task.result() for task in tasks]

    assert asyncio.run(main()) == [0, 0]


class Blocking:
    """A sync tool that blocks until it is let go, or, when polite, until it is cancelled."""

    def __init__(self, polite: bool = False) -> None:
        self.polite = polite
        self.started = threading.Event()
        self.release = threading.Event()
        self.ended = threading.Event()
        self.logs: list[str] = []

    def block(self, context: ToolContext) -> str:
        self.started.set()
        if self.polite:
            assert context.wait(60)
        else:
            self.release.wait(60)
        context.log("too late")
        self.ended.set()
        return "too late"


async def _until(event: threading.Event) -> None:
    while not event.is_set():
        await asyncio.sleep(0.001)


def test_cancelling_abandons_a_thread_at_once() -> None:
    blocking = Blocking()

    async def main() -> None:
        with tool_logs(blocking.logs.append):
            task = asyncio.ensure_future(Toolbox(tool(blocking.block)).call("block", {}))
        await _until(blocking.started)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not blocking.ended.is_set()
        blocking.release.set()
        await _until(blocking.ended)
        await asyncio.sleep(0)

    asyncio.run(main())
    assert blocking.logs == []


def test_a_polite_thread_sees_that_nobody_waits() -> None:
    blocking = Blocking(polite=True)

    async def main() -> None:
        task = asyncio.ensure_future(Toolbox(tool(blocking.block)).call("block", {}))
        await _until(blocking.started)
        task.cancel()
        await asyncio.wait([task])
        await _until(blocking.ended)

    asyncio.run(main())
    assert blocking.ended.is_set()


def test_a_thread_that_ends_after_the_loop_has_closed_harms_nobody() -> None:
    blocking = Blocking()

    async def main() -> None:
        task = asyncio.ensure_future(Toolbox(tool(blocking.block)).call("block", {}))
        await _until(blocking.started)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(main())
    blocking.release.set()
    assert blocking.ended.wait(60)


def test_a_thread_that_takes_too_long_is_abandoned() -> None:
    blocking = Blocking()
    with pytest.raises(ToolLimitError, match=r"block took longer than its 0\.01 s") as caught:
        call(tool(timeout_s=0.01)(blocking.block))
    assert caught.value.retryable
    blocking.release.set()
    assert blocking.ended.wait(60)


def test_a_thread_that_blocks_for_ever_does_not_keep_the_program_alive() -> None:
    program = (
        "import asyncio, threading\n"
        "from weft.agents.tools import Toolbox, tool\n"
        "@tool(timeout_s=0.01)\n"
        "def block() -> None:\n"
        "    threading.Event().wait()\n"
        "asyncio.run(Toolbox(block).call('block', {}))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 1
    assert "ToolLimitError: block took longer" in ended.stderr


def test_a_thread_that_cannot_start_may_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    box = Toolbox(tool(takes))
    monkeypatch.setattr(threading.Thread, "start", refuses)
    with pytest.raises(ToolLimitError, match="can't start new thread") as caught:
        asyncio.run(box.call("takes", {}))
    assert caught.value.retryable


async def _for_ever() -> None:
    await asyncio.Event().wait()


async def _swallows() -> str:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return "never mind"
    return ""


async def _trips() -> str:
    try:
        await asyncio.Event().wait()
    finally:
        raise ValueError("on the way out")


@pytest.mark.parametrize("function", [_for_ever, _swallows, _trips])
def test_an_async_tool_that_takes_too_long_is_stopped(
    function: Callable[[], Coroutine[Any, Any, Any]],
) -> None:
    clock = FakeClock()
    box = Toolbox(tool(name="slow", timeout_s=60)(function))
    with pytest.raises(ToolLimitError, match="slow took longer than its 60 s") as caught:
        clock.run(box.call("slow", {}))
    assert caught.value.retryable
    assert clock.now() == 60


def test_a_timeout_of_the_tools_own_is_what_the_tool_raised() -> None:
    async def impatient() -> None:
        async with asyncio.timeout(1):
            await asyncio.Event().wait()

    with pytest.raises(ToolRaised, match="TimeoutError") as caught:
        FakeClock().run(Toolbox(tool(timeout_s=60)(impatient)).call("impatient", {}))
    assert caught.value.retryable


def test_a_cancelled_inner_task_is_not_our_cancellation() -> None:
    async def confused() -> None:
        inner = asyncio.ensure_future(asyncio.Event().wait())
        asyncio.get_running_loop().call_soon(inner.cancel)
        await inner

    with pytest.raises(ToolRaised, match="CancelledError"):
        call(confused)


def test_a_real_cancellation_passes_although_the_tool_cancels_as_well() -> None:
    async def confused() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        raise asyncio.CancelledError

    async def main() -> None:
        task = asyncio.ensure_future(Toolbox(tool(confused)).call("confused", {}))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_closing_a_call_closes_the_tool() -> None:
    closed: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        except GeneratorExit:
            closed.append("closed")
            raise

    async def main() -> Awaitable[Any]:
        coroutine = Toolbox(tool(waits)).call("waits", {})
        step = asyncio.ensure_future(_one_step(coroutine))
        await step
        coroutine.close()
        return coroutine

    async def _one_step(coroutine: Coroutine[Any, Any, Any]) -> None:
        coroutine.send(None)

    asyncio.run(main())
    assert closed == ["closed"]


def test_log_lines_arrive_in_order_and_before_the_result() -> None:
    seen: list[str] = []

    @tool
    def thread(context: ToolContext) -> str:
        context.log("one")
        context.log("two")
        return "thread"

    @tool
    async def task(context: ToolContext) -> str:
        context.log("three")
        return "task"

    async def main() -> None:
        box = Toolbox(thread, task)
        with tool_logs(seen.append):
            seen.append(await box.call("thread", {}))
            seen.append(await box.call("task", {}))

    asyncio.run(main())
    assert seen == ["one", "two", "thread", "three", "task"]


def test_without_anybody_listening_lines_go_to_the_logger(caplog: pytest.LogCaptureFixture) -> None:
    def talks(context: ToolContext) -> None:
        context.log("hello")

    with caplog.at_level("INFO", logger="weft.tools"):
        call(talks)
    assert caplog.messages == ["hello"]


def test_a_tool_knows_how_long_it_has() -> None:
    @tool(timeout_s=60)
    async def asks(context: ToolContext) -> list[float | None]:
        first = context.time_left_s()
        await asyncio.sleep(20)
        return [first, context.time_left_s()]

    @tool
    async def free(context: ToolContext) -> float | None:
        return context.time_left_s()

    assert FakeClock().run(Toolbox(asks).call("asks", {})) == [60, 40]
    assert call(free) is None
    context = ToolContext(deadline_s=1, now=lambda: 5.0)
    assert context.time_left_s() == 0
    context.cancel()
    assert context.cancelled
    assert context.wait(60)


def test_names_are_unique() -> None:
    box = Toolbox(tool(fine))
    box.add(tool(fine), "also")
    assert box.names == ("fine", "also")
    assert [spec.name for spec in box.specs()] == ["fine", "also"]
    with pytest.raises(DuplicateName, match="also"):
        box.declare("also", "json:loads")


def test_only_tools_are_taken() -> None:
    with pytest.raises(BuildError, match=r"@weft\.tool"):
        Toolbox().add(fine)  # type: ignore[arg-type]
    with pytest.raises(BuildError, match="two words"):
        Toolbox().add(tool(fine), "two words")


def test_a_misspelt_name_is_corrected() -> None:
    with pytest.raises(ToolNotFound, match=r"did you mean 'fine'\? there are: fine, other"):
        asyncio.run(_box("fine", "other").call("fin", {}))
    with pytest.raises(ToolNotFound, match="there are none"):
        Toolbox().get("fine")


def _box(*names: str) -> Toolbox:
    box = Toolbox()
    for name in names:
        box.add(tool(fine), name)
    return box
