"""Works that do what no work should: the run ends, says so, and the others keep their results."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.engine.virtual_run import Played, after, echo, ended, fail, for_ever, give, node, play
from weft.core.budget import Budget
from weft.core.errors import BuildError, InternalError, WeftError
from weft.core.events import NodeSpent
from weft.core.ids import NodeId
from weft.core.values import Usage
from weft.engine import (
    ALL,
    AskHuman,
    BudgetLimit,
    Edge,
    Expand,
    Inputs,
    Join,
    Node,
    NodeContext,
    NodeFn,
    Policy,
    Retry,
    Skip,
    StreamedItems,
    best_effort,
    first_valid,
    quorum,
)


class Strange(BaseException):
    """Outside `Exception`, like the outcomes some test runners raise."""


class Mute(Exception):
    """Has no message that could be read."""

    def __str__(self) -> str:
        raise RuntimeError("no message")

    __repr__ = __str__


class Deaf(WeftError):
    """Lies about itself."""

    retryable = True
    retry_after_s = "soon"


def beside(work: NodeFn, **policy: Any) -> Played:
    """Play `work` beside a healthy node and with one that depends on it."""
    played = play(
        node("bad", work, **policy),
        node("cone", echo, "bad"),
        node("good", after(5, "G")),
        node("better", echo, "good"),
    )
    assert played.value("better") == {"good": "G"}
    return played


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(3),
        GeneratorExit(),
        asyncio.CancelledError("mine"),
        Strange("outside"),
        BaseExceptionGroup("many", [SystemExit(1), ValueError()]),
        ExceptionGroup("many", [ValueError(), KeyError()]),
        Mute(),
        StopIteration(1),
        StopAsyncIteration(),
        RecursionError(),
        MemoryError(),
        InternalError("not really"),
        asyncio.InvalidStateError(),
        asyncio.QueueEmpty(),
        TimeoutError(),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_whatever_a_work_raises_is_its_own_failure(error: BaseException, seconds: float) -> None:
    played = beside(fail(error, seconds))
    assert played.statuses["bad"] == "failed"
    assert played.statuses["cone"] == "skipped"
    assert played.result.status == "failed"
    assert beside(fail(error, seconds), default="D").value("cone") == {"bad": "D"}


def test_an_error_that_lies_about_its_delay_is_a_failure_all_the_same() -> None:
    played = beside(fail(Deaf("x")), retry=Retry(attempts=2, delay_s=1, jitter=0))
    assert (played.statuses["bad"], played["bad"].attempts) == ("failed", 2)


def test_endless_recursion_is_a_failure() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> Any:
        def deeper(n: int) -> int:
            return deeper(n + 1) + 1

        return deeper(0)

    assert "RecursionError" in str(beside(work)["bad"].failure)


def test_a_work_that_gives_nothing_to_await_is_a_failure() -> None:
    def work(context: NodeContext, inputs: Inputs) -> Any:
        return 3

    assert "TypeError" in str(beside(work)["bad"].failure)


def test_a_work_that_blocks_for_ever_ends_with_its_time() -> None:
    assert beside(for_ever, timeout_s=2).error("bad") == "NodeTimeout"


def test_a_work_may_change_what_it_received_without_harm_to_others() -> None:
    async def spoil(context: NodeContext, inputs: Any) -> None:
        inputs.clear()
        inputs["source"] = "spoilt"

    given = {"k": 1}
    played = play(
        node("source", give("S")),
        node("spoiler", spoil, "source", given=given),
        node("reader", echo, "source", given=given),
        node("again", spoil, "source", given=given, retry=Retry()),
    )
    assert played.value("reader") == {"k": 1, "source": "S"}
    assert given == {"k": 1}


class Liar:
    """Equal to everything, true and false, and not to be hashed."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("do not compare")

    def __bool__(self) -> bool:
        raise RuntimeError("do not ask")


@pytest.mark.parametrize(
    "value",
    [
        None,
        Liar(),
        Expand,
        AskHuman,
        Skip,
        NodeId,
        StreamedItems((NodeId("x"),)),
        Ellipsis,
        NotImplemented,
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_value_is_handed_on_as_it_is(value: Any) -> None:
    seen: list[Any] = []

    async def look(context: NodeContext, inputs: Inputs) -> None:
        seen.append(inputs["bad"])

    async def give_it(context: NodeContext, inputs: Inputs) -> Any:
        return value

    for join in (ALL, Join("any"), best_effort()):
        play_quietly(node("bad", give_it), node("look", look, "bad", join=join))
    assert all(one is value for one in seen)
    assert len(seen) == 3


def play_quietly(*nodes: Node) -> None:
    """Run without comparing values."""
    from weft.engine import Graph, Run
    from weft.testing import FakeClock

    clock = FakeClock()
    result = clock.run(ended(Run(Graph("quiet", nodes), clock=clock)))
    assert result.status == "succeeded"


def test_a_value_of_a_hundred_megabytes_is_handed_on_and_not_copied() -> None:
    large = bytearray(100_000_000)
    seen: list[bool] = []

    async def look(context: NodeContext, inputs: Inputs) -> Any:
        seen.append(inputs["large"] is large)
        return inputs["large"]

    again = Node(NodeId("b"), look, (Edge(NodeId("a"), "large"),))
    play_quietly(node("large", give(large)), node("a", look, "large"), again)
    assert seen == [True, True]


def growing(grow: Any) -> NodeFn:
    async def work(context: NodeContext, inputs: Inputs) -> Any:
        return grow

    return work


X = Node(NodeId("bad/x"), give(1))


@pytest.mark.parametrize(
    "grow",
    [
        Expand(None, ()),  # type: ignore[arg-type]
        Expand((None,), ()),  # type: ignore[arg-type]
        Expand(("x",), ("x",)),  # type: ignore[arg-type]
        Expand((X,), None),  # type: ignore[arg-type]
        Expand((X,), ([],)),  # type: ignore[arg-type]
        Expand((X,), (X,)),  # type: ignore[arg-type]
        Expand((X,), ("bad/x",), join=None),  # type: ignore[arg-type]
        Expand((X,), ("bad/x",), width="2"),  # type: ignore[arg-type]
        Expand((X,), ("bad/x",), width=-1),  # type: ignore[arg-type]
        Expand((X, X), ("bad/x",)),  # type: ignore[arg-type]
        Expand((Node(NodeId("bad"), give(1)),), (NodeId("bad"),)),
        Expand((Node(NodeId("good"), give(1)),), (NodeId("good"),)),
        Expand((Node(NodeId("bad/x"), give(1), (Edge(NodeId("bad"), "v"),)),), ()),
        Expand((Node(NodeId("bad/x"), give(1), None),), ()),  # type: ignore[arg-type]
        Expand((Node(NodeId("bad/x"), give(1), policy=None),), ()),  # type: ignore[arg-type]
        Expand((Node(["x"], give(1)),), ()),  # type: ignore[arg-type]
        Expand((Node(NodeId("bad/x"), give(1), policy=Policy(weight="heavy")),), ()),  # type: ignore[arg-type]
        Expand((), ("good",)),  # type: ignore[arg-type]
        Expand((), (), join=Join("any")),
        Expand((), (), join=quorum(1)),
        Expand((), (), join=first_valid()),
        Expand((X,), ("bad/x",), join=Join("nonsense")),  # type: ignore[arg-type]
        Expand((X,), ("bad/x",), join=quorum(0)),  # type: ignore[arg-type]
        Expand((X,), ("bad/x",), join=quorum(2)),  # type: ignore[arg-type]
        Expand((X,), ("bad/x",), then=3),  # type: ignore[arg-type]
    ],
)
def test_a_growth_that_makes_no_sense_fails_its_node_only(grow: Expand) -> None:
    assert beside(growing(grow)).statuses["bad"] == "failed"


def test_appending_what_makes_no_sense_fails_in_the_work() -> None:
    refused: list[str] = []

    async def work(context: NodeContext, inputs: Inputs) -> str:
        for nonsense in ([None], ["x"], None, 3, [X, X], [Node(NodeId("good"), give(1))]):
            try:
                context.append(nonsense)  # type: ignore[arg-type]
            except (BuildError, TypeError, AttributeError) as error:
                refused.append(type(error).__name__)
        context.append([])
        context.append([X])
        return "fine"

    played = beside(work)
    assert len(refused) == 6
    assert played.value("bad") == "fine"
    assert played.value("bad/x") == 1


@pytest.mark.parametrize("join", [ALL, best_effort()])
def test_a_growth_of_nothing_is_an_empty_list(join: Join) -> None:
    assert beside(growing(Expand((), (), join=join))).value("bad") == []


def test_ids_outside_the_scope_are_still_children() -> None:
    stray = Node(NodeId("elsewhere"), after(2, 1))
    played = beside(growing(Expand((stray,), (stray.id,))))
    assert played.value("bad") == [1]
    assert played.ended_s("elsewhere") == 2


@pytest.mark.parametrize("mode", ["all", "any", "best_effort"])
def test_a_node_that_grows_again_a_thousand_times(mode: Any) -> None:
    def step(number: int) -> Expand:
        async def then(context: NodeContext, values: list[int]) -> Any:
            return step(number + 1) if number < 1_000 else values

        child = Node(NodeId(f"bad/{number}"), give(number))
        return Expand((child,), (child.id,), then=then, join=Join(mode))

    assert beside(growing(step(1))).value("bad") == [1_000]


def test_a_work_that_appends_and_spends_after_its_end() -> None:
    """It left a task behind that goes on by itself."""
    said: list[str] = []

    async def work(context: NodeContext, inputs: Inputs) -> str:
        async def later() -> None:
            await asyncio.sleep(1)
            context.spend(Usage(prompt_tokens=1))
            context.log("still here")
            for act in (lambda: context.append([X]), lambda: asyncio.sleep(0)):
                try:
                    await (act() or asyncio.sleep(0))
                except WeftError as error:
                    said.append(str(error))

        leftovers.append(asyncio.create_task(later()))
        return "done"

    leftovers: list[asyncio.Task[None]] = []
    played = beside(work)
    assert "attempt 1 is over" in said[0]
    assert played.result.usage == Usage(prompt_tokens=1)
    assert [e.at_s for e in played.all(NodeSpent)] == [1]


def test_spending_after_the_end_can_still_stop_the_run() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> str:
        asyncio.get_running_loop().call_later(1, context.spend, Usage(prompt_tokens=10))
        return "done"

    played = play(node("a", work), node("b", for_ever), limit=BudgetLimit(Budget(tokens=10)))
    assert played.statuses == {"a": "succeeded", "b": "cancelled"}
    assert played.result.wall_s == 1


def test_a_skip_with_any_reason() -> None:
    assert beside(give(Skip(reason=None))).statuses["bad"] == "skipped"  # type: ignore[arg-type]
    assert beside(give(Skip(reason=3))).statuses["bad"] == "skipped"  # type: ignore[arg-type]


def test_a_work_that_cancels_all_tasks_it_can_find() -> None:
    """Each of them has failed by somebody's hand, which is no cancellation of ours."""

    async def vandal(context: NodeContext, inputs: Inputs) -> None:
        await asyncio.sleep(1)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            if "main" not in repr(task.get_coro()):
                task.cancel()

    played = play(node("vandal", vandal), node("victim", for_ever))
    assert played.statuses == {"vandal": "succeeded", "victim": "failed"}


def test_a_work_that_floods_its_output() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> int:
        for number in range(20_000):
            context.stream("x" * 100, tokens=1)
            if number % 1_000 == 0:
                await asyncio.sleep(0)
        return 20_000

    assert beside(work).value("bad") == 20_000


def test_ten_thousand_nodes_appended_one_by_one() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> str:
        for number in range(10_000):
            context.append([Node(NodeId(f"bad/{number}"), give(number))])
        return "done"

    played = beside(work)
    assert len(played.by_node) == 10_004
    assert played.result.status == "succeeded"


@pytest.mark.parametrize("times", [1, 3])
def test_a_question_that_makes_no_sense_is_still_a_question(times: int) -> None:
    async def work(context: NodeContext, inputs: Inputs) -> AskHuman:
        return AskHuman(None, None, None)  # type: ignore[arg-type]

    def answer(run: Any) -> None:
        for _ in range(times):
            run.answer(NodeId("bad"), Liar)

    played = play(node("bad", work), at={1: answer})
    assert played.value("bad") is Liar


def test_an_ask_whose_continuation_is_no_function_fails() -> None:
    played = play(
        node("bad", give(AskHuman("go?", then=3))),  # type: ignore[arg-type]
        node("good", after(5, "G")),
        at={1: lambda run: run.answer(NodeId("bad"), 1)},
    )
    assert played.statuses == {"bad": "failed", "good": "succeeded"}
