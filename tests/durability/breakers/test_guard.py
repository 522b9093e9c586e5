"""Calls through a circuit breaker in virtual time: how many are made, and how errors count."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.core.breaker import Breaker
from weft.core.errors import (
    BreakerOpen,
    BudgetExceeded,
    ModelBreakerOpen,
    ModelUnavailable,
    ToolArgumentError,
    ToolBreakerOpen,
    ToolNotFound,
    ToolRaised,
    ToolResultError,
)
from weft.core.foreign import ErrorCause
from weft.core.ports import ModelEvent, ModelRequest
from weft.core.values import Message, ToolSpec
from weft.durability.breakers import (
    BreakerChange,
    BreakerGuard,
    BreakerTools,
    CircuitBreaker,
    Guarded,
    breaker_client,
    process_breaker,
    verdict_of,
)
from weft.serving.gateway.problem import problem_of
from weft.testing import FakeClock, FakeModel, FakeTools, Reply

FETCH = Guarded("tool", "fetch")


class Watched:
    """A guard on a clock of its own, with its changes as (state, second)."""

    def __init__(self, settings: Breaker, guarded: Guarded = FETCH) -> None:
        self.clock = FakeClock()
        self.breaker = CircuitBreaker(settings)
        self.changes: list[tuple[str, float]] = []
        self.guard = BreakerGuard(guarded, self.breaker, self.clock, self.changed)

    def changed(self, _: Guarded, change: BreakerChange, reason: str) -> None:
        assert reason
        self.changes.append((change.state, self.clock.now()))


CALLS = st.lists(
    st.tuples(
        st.integers(0, 400),  # tenths of a second, when it comes
        st.integers(1, 60),  # how long it takes
        st.sampled_from(["ends", "ends", "raises", "raises", "wrong", "cancelled"]),
    ),
    max_size=60,
)
SETTINGS = st.builds(
    Breaker, st.integers(1, 4), st.integers(1, 20), st.integers(1, 10), st.integers(1, 3)
)


class Caller:
    """Makes calls through a guard, and writes down when, and in which state of the breaker."""

    def __init__(self, watched: Watched) -> None:
        self.watched = watched
        self.made: list[tuple[float, str]] = []
        self.refused: list[float | None] = []
        self.trying = self.most = 0

    async def call(self, comes: int, takes: int, how: str) -> None:
        await self.watched.clock.sleep(comes / 10)
        with contextlib.suppress(ConnectionError, ToolArgumentError):
            try:
                with self.watched.guard.call():
                    await self.body(takes, how)
            except ToolBreakerOpen as error:
                self.refused.append(error.retry_after_s)

    async def body(self, takes: int, how: str) -> None:
        is_trial = self.watched.breaker.state == "half-open"
        self.made.append((self.watched.clock.now(), self.watched.breaker.state))
        self.trying += is_trial
        self.most = max(self.most, self.trying)
        try:
            await self.watched.clock.sleep(takes / 10)
        finally:
            self.trying -= is_trial
        if how in FAILURES:
            raise FAILURES[how]


FAILURES = {"raises": ConnectionError(), "wrong": ToolArgumentError("no such city")}
FOLLOWS = {"closed": ("open",), "open": ("half-open",), "half-open": ("open", "closed")}


@settings(max_examples=150, deadline=None)
@given(CALLS, SETTINGS)
def test_no_call_while_open_and_one_at_a_time_while_half_open(
    calls: list[tuple[int, int, str]], settings: Breaker
) -> None:
    watched = Watched(settings)
    clock, caller = watched.clock, Caller(watched)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for comes, takes, how in calls:
                task = group.create_task(caller.call(comes, takes, how))
                if how == "cancelled":
                    clock.call_later((comes + takes / 2) / 10, task.cancel)

    clock.run(main())
    assert caller.most <= 1
    assert all(state != "open" for _, state in caller.made)
    assert all(after_s is None or after_s >= 0 for after_s in caller.refused)
    for (state, since_s), (after, until_s) in pairwise([("closed", 0.0), *watched.changes]):
        assert after in FOLLOWS[state]
        if state == "open":
            assert not [at for at, _ in caller.made if since_s < at < until_s]
            assert until_s >= since_s + settings.after_s - 0.01


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (ConnectionError(), "failed"),
        (ModelUnavailable("down"), "failed"),
        (ToolRaised("broken"), "failed"),
        (ToolResultError("no number"), "answered"),
        (ToolArgumentError("no city"), "nothing"),
        (ToolNotFound("who"), "nothing"),
        (ToolBreakerOpen("later"), "nothing"),
        (ModelBreakerOpen("later"), "nothing"),
        (BudgetExceeded("spent"), "nothing"),
        (asyncio.CancelledError(), "nothing"),
        (GeneratorExit(), "nothing"),
        (KeyboardInterrupt(), "nothing"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_an_error_says(error: BaseException, verdict: str) -> None:
    assert verdict_of(error) == verdict


@pytest.mark.parametrize(
    ("status", "verdict"), [(400, "answered"), (408, "failed"), (503, "failed")]
)
def test_a_status_decides(status: int, verdict: str) -> None:
    error = ToolRaised("the server answered")
    error.cause = ErrorCause((), status)
    assert verdict_of(error) == verdict


def test_the_error_that_opens_it_says_when_to_come_back() -> None:
    watched = Watched(Breaker(failures=2, after_s=30))
    errors = [ModelUnavailable("down"), ModelUnavailable("down")]
    errors[1].__cause__ = ConnectionError("refused")
    for error in errors:
        with pytest.raises(ModelUnavailable), watched.guard.call():
            raise error
    assert [error.retry_after_s for error in errors] == [None, 30.0]
    assert errors[1].cause == ErrorCause(("ConnectionError", "OSError", "Exception"), None, 30.0)


def test_a_stream_that_is_left_after_its_end_has_succeeded() -> None:
    watched = Watched(Breaker(failures=1, after_s=5, successes=1), Guarded("model", "m"))
    model = FakeModel([Reply(error=ModelUnavailable("down")), "two words"])
    client = breaker_client(model, watched.guard)

    async def ask(until: str = "Completion") -> None:
        async with aclosing(stream(client)) as events:
            async for event in events:
                if type(event).__name__ == until:
                    return

    async def main() -> None:
        with pytest.raises(ModelUnavailable):
            await ask()
        with pytest.raises(ModelBreakerOpen, match="the model `m` is not called"):
            await ask()
        await watched.clock.sleep(5)
        await ask("TextDelta")  # left before its end: says nothing
        assert watched.breaker.state == "half-open"
        await ask()
        assert watched.breaker.state == "closed"

    watched.clock.run(main())
    assert len(model.requests) == 3


def stream(client: Any) -> AsyncGenerator[ModelEvent, None]:
    made: AsyncGenerator[ModelEvent, None] = client.generate(ModelRequest((Message("user", "hi"),)))
    return made


class Batches(FakeTools):
    """Tools with a batch form; `outcomes` are given in turn."""

    outcomes: Sequence[Sequence[Any]] = ()

    async def call_batch(self, name: str, calls: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
        first, *self.outcomes = self.outcomes
        return first


def test_a_batch_is_one_call() -> None:
    watched = Watched(Breaker(failures=2))
    inner = Batches(fetch=lambda i: i)
    inner.outcomes = ([ToolRaised("a"), 1], [ToolRaised("a"), ToolArgumentError("b")],
                      [ToolRaised("a")] * 2, [ToolRaised("a")] * 2)  # fmt: skip
    tools: Any = BreakerTools(inner, {"fetch": watched.guard}.get)

    async def main() -> None:
        for state in ("closed", "closed", "closed", "open"):
            await tools.call_batch("fetch", [{"i": 1}, {"i": 2}])
            assert watched.breaker.state == state
        with pytest.raises(BreakerOpen):
            await tools.call("fetch", {"i": 1})
        with pytest.raises(ToolNotFound):
            await tools.call("other", {})

    watched.clock.run(main())
    assert [spec.name for spec in tools.specs() if isinstance(spec, ToolSpec)] == ["fetch"]


def test_one_breaker_for_each_key_clock_and_object() -> None:
    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

    clock, owner, strange = FakeClock(), FakeModel(["x"]), Unhashable()
    first = process_breaker(clock, "k", Breaker())
    assert process_breaker(clock, "k", Breaker()) is first
    others = [
        process_breaker(FakeClock(), "k", Breaker()),
        process_breaker(clock, "l", Breaker()),
        process_breaker(clock, "k", Breaker(failures=1)),
        process_breaker(clock, "k", Breaker(), owner),
        process_breaker(clock, "k", Breaker(), strange),
    ]
    assert len({id(each) for each in (first, *others)}) == 6
    assert process_breaker(clock, "k", Breaker(), owner) is others[3]
    assert process_breaker(clock, "k", Breaker(), strange) is others[4]


def test_a_gateway_says_503_and_when_to_come_back() -> None:
    error = ModelBreakerOpen("the model `m` is not called")
    error.retry_after_s = 12.0
    problem = problem_of(error, "r1")
    assert (problem.status, problem.headers()["retry-after"]) == (503, "12")
