"""A run that is cut off after any record comes, resumed, to what it comes to undisturbed."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from tests.durability.recorded import Recording, go_on, record
from tests.engine.virtual_run import after, echo, fail, give, node, script
from weft.core.budget import Budget
from weft.core.errors import NodeFailed, UnknownReference
from weft.core.events import (
    HumanAnswered,
    HumanAsked,
    NodeFinished,
    NodeRerouted,
    NodeRetrying,
    NodeStarted,
    Outcome,
    RunFinished,
)
from weft.core.ids import NodeId, inside
from weft.core.ports.journal import NumberedRecord
from weft.core.values import Usage
from weft.durability.journal.resume_state import RecordedResumeState
from weft.engine import (
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
    Run,
    Skip,
    best_effort,
    quorum,
)
from weft.engine.kinds import Fragment, fold, loop, map_over, reduce_with, subgraph

BOOM = NodeFailed("boom")
AGAIN = NodeFailed("try again", retryable=True)
Nodes = Callable[["Works"], Sequence[Node]]


class Works:
    """Makes works that count how often each node was at it."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()

    def __call__(self, work: NodeFn) -> NodeFn:
        async def counted(context: NodeContext, inputs: Inputs) -> Any:
            self.done[context.node] += 1
            return await work(context, inputs)

        return counted


def chain(w: Works) -> Sequence[Node]:
    return [
        node("a", w(after(1, 1))),
        node("b", w(after(1, 2))),
        node("c", w(after(2)), "a", "b"),
        node("d", w(after(1)), "c"),
    ]


def failing(w: Works) -> Sequence[Node]:
    return [
        node("bad", w(fail(BOOM, 1))),
        node("good", w(after(2, 1))),
        node("needs", w(echo), "bad"),
        node("takes", w(echo), "bad", "good", join=best_effort("nothing")),
    ]


def retried(w: Works) -> Sequence[Node]:
    return [
        node("shaky", w(script(AGAIN, AGAIN, after(1, 7))), retry=Retry(3)),
        node("after", w(echo), "shaky"),
    ]


def item_body(w: Works, work: NodeFn) -> Callable[..., Fragment]:
    def body(scope: NodeId, bindings: Any) -> Fragment:
        edges = tuple(Edge(v.source, k) for k, v in bindings.items() if isinstance(v, Edge))
        given = {k: v for k, v in bindings.items() if not isinstance(v, Edge)}
        return Fragment((Node(scope, w(work), edges, given),), scope)

    return body


async def _double(_: NodeContext, inputs: Inputs) -> Any:
    await asyncio.sleep(inputs["item"])
    return inputs["item"] * 2


async def _odd(_: NodeContext, inputs: Inputs) -> Any:
    await asyncio.sleep(inputs["item"])
    return inputs["item"] if inputs["item"] % 2 else Skip("even")


def mapped(w: Works) -> Sequence[Node]:
    return [
        node("list", w(give([3, 1, 2, 5]))),
        node("map", w(map_over("list", item_body(w, _double), width=2)), "list"),
        node("sum", w(reduce_with(sum, "map")), "map"),
    ]


def streamed(w: Works) -> Sequence[Node]:
    """A map of which items are left out, and another over what it streams."""
    stream = Edge(NodeId("first"), "first", stream=True)
    return [
        node("list", w(give([3, 1, 2, 5, 4]))),
        node("first", w(map_over("list", item_body(w, _odd))), "list"),
        node("second", w(map_over("first", item_body(w, _double))), stream),
        node("all", w(fold(lambda a, b: [*a, b], [], "first")), stream),
        node("end", w(echo), "second", "all"),
    ]


def looped(w: Works) -> Sequence[Node]:
    async def more(_: NodeContext, inputs: Inputs) -> Any:
        await asyncio.sleep(1)
        return (inputs["value"] or 0) + 1

    def body(scope: NodeId, bindings: Any) -> Fragment:
        one, two = inside(scope, "one"), inside(scope, "two")
        return Fragment(
            (Node(one, w(more), given=bindings), Node(two, w(more), (Edge(one, "value"),))), two
        )

    return [
        node("loop", w(loop(body, until=lambda value, _: value >= 6, max_iterations=5))),
        node("end", w(echo), "loop"),
    ]


def nested(w: Works) -> Sequence[Node]:
    def body(scope: NodeId, bindings: Any) -> Fragment:
        first, second = inside(scope, "m"), inside(scope, "s")
        return Fragment(
            (
                Node(first, w(map_over("xs", item_body(w, _double))), given={"xs": [1, 2]}),
                Node(second, w(reduce_with(sum, "m")), (Edge(first, "m"),)),
            ),
            second,
        )

    return [node("sub", w(subgraph(body))), node("end", w(echo), "sub")]


def tolerant(w: Works) -> Sequence[Node]:
    """Failures inside nodes that succeed: of losers, branches and attempts, and one that counts."""
    may_fail = Policy(on_failure="skip")

    def body(scope: NodeId, _: Any) -> Fragment:
        bad, good, both, aside = (inside(scope, name) for name in ("bad", "good", "both", "aside"))
        some = (Edge(bad, "bad"), Edge(good, "good"))
        return Fragment(
            (
                Node(bad, w(fail(BOOM, 1))),
                Node(good, w(after(2, "good"))),
                Node(both, w(echo), some, join=best_effort("nothing")),
                Node(aside, w(fail(BOOM, 1)), policy=may_fail),
            ),
            both,
        )

    async def shaky(context: NodeContext, _: Inputs) -> Expand:
        places = [inside(context.scope, name) for name in ("first", "second")]
        works = (give(1), fail(AGAIN, 1) if context.attempt == 1 else after(1, 2))
        nodes = tuple(Node(p, w(work)) for p, work in zip(places, works, strict=True))
        return Expand(nodes, tuple(places))

    async def race(context: NodeContext, _: Inputs) -> Expand:
        works = (fail(BOOM, 1), after(3, "slow"), after(2, "quick"))
        nodes = tuple(Node(inside(context.scope, f"{n}"), w(work)) for n, work in enumerate(works))
        return Expand(nodes, tuple(one.id for one in nodes), join=Join("any"))

    return [
        node("sub", w(subgraph(body))),
        node("map", w(map_over("xs", body, join=best_effort())), given={"xs": [1, 2]}),
        node("shaky", w(shaky), retry=Retry(2)),
        node("race", w(race)),
        node("late", w(after(7))),
        node("end", w(echo), "sub", "map", "shaky", "race", "late"),
    ]


def appending(w: Works) -> Sequence[Node]:
    """Like an agent: it appends, waits, and decides what comes next."""

    async def agent(context: NodeContext, inputs: Inputs) -> Any:
        found = []
        for turn in (1, 2, 3):
            place = inside(context.scope, f"turn{turn}")
            context.append([Node(place, w(after(1, turn * 10)))])
            found.append((await context.outcome(place)).value)
        return found

    return [node("agent", w(agent)), node("end", w(echo), "agent")]


def stood_in(w: Works) -> Sequence[Node]:
    return [
        node("a", w(fail(BOOM, 1)), fallback=node("cheap", w(after(2, "stand-in")))),
        node("b", w(fail(BOOM, 1)), default="default"),
        node("c", w(fail(AGAIN, 1)), retry=Retry(2), fallback=node("cheap", w(after(2, 3)))),
        node("end", w(echo), "a", "b", "c"),
    ]


def raced(w: Works) -> Sequence[Node]:
    """Joins that somebody loses, of edges and of children."""
    children = tuple(Node(NodeId(f"grow/{i}"), w(after(4 - i, i))) for i in range(3))
    ids = tuple(child.id for child in children)

    async def grow(_: NodeContext, __: Inputs) -> Expand:
        return Expand(children, ids, then=late, join=quorum(2))

    async def late(_: NodeContext, values: Any) -> Any:
        await asyncio.sleep(2)
        return values

    return [
        node("slow", w(after(9, "slow"))),
        node("quick", w(after(2, "quick"))),
        node("any", w(after(3, "any")), "slow", "quick", join=Join("any", cancel_rest=True)),
        node("grow", w(grow)),
        node("end", w(echo), "any", "grow"),
    ]


def asking(w: Works) -> Sequence[Node]:
    async def twice(_: NodeContext, __: Inputs) -> AskHuman:
        async def then(_: NodeContext, first: Any) -> AskHuman:
            async def both(_: NodeContext, second: Any) -> Any:
                await asyncio.sleep(1)
                return [first, second]

            return AskHuman("and then?", then=both)

        return AskHuman("what?", then=then)

    return [
        node("one", w(twice)),
        node("two", w(give(AskHuman("who?")))),
        node("end", w(echo), "one", "two"),
    ]


def spending(w: Works) -> Sequence[Node]:
    async def spend(context: NodeContext, _: Inputs) -> Any:
        context.spend(Usage(completion_tokens=5))
        await asyncio.sleep(1)
        context.spend(Usage(completion_tokens=5))
        return context.node

    def body(scope: NodeId, _: Any) -> Fragment:
        return Fragment((Node(scope, w(spend)),), scope)

    return [
        node("a", w(spend), spends=True),
        node("map", w(map_over("a", body)), "list", Edge(NodeId("list"), "a")),
        node("list", w(give([1, 2]))),
        node("b", w(spend), "a", "map", spends=True, degrade=node("cheap", w(spend))),
        node("c", w(spend), "b", spends=True, default="too dear"),
    ]


def called_off(w: Works) -> Sequence[Node]:
    """Somebody cancels nodes by name: see `CALLED_OFF`."""

    async def agent(context: NodeContext, _: Inputs) -> Any:
        places = [inside(context.scope, name) for name in ("quick", "slow", "wrong")]
        works = (after(1, 1), after(30), after(30, 1))
        context.append([Node(p, w(work)) for p, work in zip(places, works, strict=True)])
        await context.outcome(places[0])
        context.cancel(places[2], "it is wrong")
        return [(await context.outcome(place)).status for place in places]

    def body(scope: NodeId, bindings: Any) -> Fragment:
        return Fragment((Node(scope, w(after(30, 1)), given=bindings),), scope)

    return [
        node("first", w(after(3, 1))),
        node("running", w(after(30, 1))),
        node("alone", w(after(30, 1))),
        node("waits", w(after(30, 1)), "first"),
        node("takes", w(echo), "running", "first", join=best_effort("nothing")),
        node("agent", w(agent)),
        node("items", w(map_over("xs", body)), given={"xs": [1, 2]}),
        node("foreign", w(after(30, 1)), given={"lock": object()}),
        node("late", w(after(7))),
        node("end", w(echo), "takes", "agent", "late"),
    ]


CALLED_OFF: dict[float, tuple[str, ...]] = {
    1.5: ("running", "alone", "waits", "foreign"),
    2.5: ("agent/slow", "items"),
}


def call_off(*nodes: str) -> Callable[[Run], object]:
    def act(run: Run) -> None:
        for name in nodes:
            with suppress(UnknownReference):
                run.cancel("nobody wants it", NodeId(name))

    return act


SHAPES: list[Nodes] = [
    chain,
    failing,
    retried,
    mapped,
    streamed,
    looped,
    nested,
    tolerant,
    appending,
    stood_in,
    raced,
    asking,
    called_off,
    spending,
]
SETTINGS: dict[str, dict[str, Any]] = {
    "spending": {"limit": BudgetLimit(Budget(tokens=35), "degrade")},
    "chain": {"max_concurrency": 1},
    "mapped": {"max_concurrency": 2},
    "appending": {"max_concurrency": 1},
}


class Person:
    """Answers every question after a while, `number` by number."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, run: Run) -> None:
        for asking in run.questions:
            self.asked.append(asking)
            run.answer(asking, f"{asking} {run.questions[asking].question}")


def at(person: Person) -> dict[float, Callable[[Run], object]]:
    called_off = {when: call_off(*nodes) for when, nodes in CALLED_OFF.items()}
    return {**dict.fromkeys((2, 4, 6), person), **called_off}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_a_run_that_is_cut_off_anywhere_comes_to_the_same(shape: Nodes) -> None:
    settings = SETTINGS.get(shape.__name__, {})
    whole = record(shape(Works()), at=at(Person()), **settings)
    # What is left of a process that died may end with any record, since it wrote them in order.
    for left in range(1, len(whole.records)):
        if is_within_a_cancellation(whole.records, left):
            continue  # what one word of a person ends is written at once
        works, person = Works(), Person()
        cut = whole.records[:left]
        resumed = go_on(shape(works), cut, at=at(person), **settings)
        assert_same(resumed, whole)
        assert_not_repeated(works, resumed, cut)
        answered = [e.record.node for e in cut if isinstance(e.record, HumanAnswered)]
        assert Counter(person.asked) + Counter(answered) == Counter(
            {"one": 2, "two": 1} if shape is asking else {}
        )


def test_a_question_that_is_open_is_not_asked_anew() -> None:
    questions = Counter([("one", "what?"), ("one", "and then?"), ("two", "who?")])
    whole = record(asking(Works()), at=at(Person()))
    for left in range(1, len(whole.records)):
        resumed = go_on(asking(Works()), whole.records[:left], at=at(Person()))
        asked = [e.record for e in resumed.records if isinstance(e.record, HumanAsked)]
        assert Counter((a.node, a.question) for a in asked if not a.recalled) == questions
        for n, again in enumerate(asked):
            if again.recalled:
                before = [(a.node, a.question, a.schema) for a in asked[:n]]
                assert (again.node, again.question, again.schema) in before


def test_a_question_that_is_another_now_or_of_another_run_is_new() -> None:
    def asks(question: str) -> Sequence[Node]:
        return [node("a", give(AskHuman(question, {"type": "string"})))]

    answered = {1: lambda run: run.answer(NodeId("a"), "yes")}
    whole = record(asks("now?"), at=answered)
    place = next(n for n, e in enumerate(whole.records) if isinstance(e.record, HumanAsked))
    cut = whole.records[: place + 1]

    def told(resumed: Recording) -> list[bool]:
        return [event.recalled for event in resumed.all(HumanAsked)]

    assert told(go_on(asks("now?"), cut, at=answered)) == [True]
    assert told(go_on(asks("later?"), cut, at=answered)) == [False]
    forked = record(asks("now?"), recall=RecordedResumeState(cut, part=1), at=answered)
    assert told(forked) == [False]
    cancelled = record(asks("now?"), at={1: lambda run: run.cancel()})
    assert told(go_on(asks("now?"), cancelled.records, at=answered)) == [False]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_a_run_that_is_cut_off_again_and_again_comes_to_the_same(shape: Nodes) -> None:
    settings = SETTINGS.get(shape.__name__, {})
    whole = record(shape(Works()), at=at(Person()), **settings)
    for left in range(2, len(whole.records), 3):
        cut = until_a_turn_ends(whole.records, left)
        for more in (2, 5, 9):
            again = go_on(shape(Works()), cut, at=at(Person()), **settings)
            cut = until_a_turn_ends(again.records, len(cut) + more)
        resumed = go_on(shape(Works()), cut, at=at(Person()), **settings)
        assert_same(resumed, whole)


def test_a_failure_inside_a_node_that_succeeded_is_tried_again_when_the_run_had_ended() -> None:
    whole = record(tolerant(Works()))
    assert whole.result.missed == ("sub/aside",)
    works = Works()
    resumed = go_on(tolerant(works), whole.records)
    assert {node for node in works.done if "/" not in node} == {"sub"}
    assert works.done["sub/aside"] == 1
    assert not works.done["sub/both"]
    assert_same(resumed, whole)


@pytest.mark.parametrize("name", ["running", "alone", "waits", "foreign", "agent/slow", "items"])
def test_what_somebody_cancelled_is_recalled_as_that(name: str) -> None:
    whole = record(called_off(Works()), at={1.5: call_off(name)})
    assert whole.by_node[NodeId(name)].status == "cancelled"
    assert whole.result.status == ("succeeded" if name == "running" else "partial")
    by_name = [getattr(each.record, "by_name", False) for each in whole.records]
    for left in range(len(by_name) - by_name[::-1].index(True), len(by_name)):
        works = Works()
        resumed = go_on(called_off(works), whole.records[:left])
        assert_same(resumed, whole)
        assert not works.done[name]
        again = go_on(called_off(Works()), resumed.records[:-1])
        assert_same(again, whole)


def test_what_somebody_cancelled_stays_so_when_what_it_waited_for_fails() -> None:
    def nodes() -> Sequence[Node]:
        return [node("bad", fail(BOOM, 5)), node("waits", echo, "bad"), node("end", echo, "waits")]

    whole = record(nodes(), at={1: call_off("waits")})
    assert whole.by_node[NodeId("waits")].status == "cancelled"
    cut = [each for each in whole.records if each.record.at_s <= 1]
    assert_same(go_on(nodes(), cut), whole)


@pytest.mark.parametrize("name", ["alone", "agent/slow", "items", "foreign"])
def test_what_somebody_cancelled_is_tried_again_when_the_run_had_ended(name: str) -> None:
    whole = record(called_off(Works()), at={1.5: call_off(name)})
    works = Works()
    resumed = go_on(called_off(works), whole.records)
    assert resumed.result.status == "succeeded"
    assert works.done[name] == 1
    assert not works.done["late"]


def until_a_turn_ends(records: Sequence[Any], left: int) -> Sequence[Any]:
    while is_within_a_cancellation(records, left):
        left += 1
    return records[:left]


def is_within_a_cancellation(records: Sequence[Any], left: int) -> bool:
    around = records[left - 1 : left + 1]
    return len(around) == 2 and all(getattr(each.record, "by_name", False) for each in around)


def assert_same(resumed: Recording, whole: Recording) -> None:
    """The outcomes of all nodes, the status, and what it cost."""
    assert resumed.result.status == whole.result.status
    assert list(map(_said, resumed.result.reasons)) == list(map(_said, whole.result.reasons))
    assert resumed.result.usage == whole.result.usage
    assert set(resumed.by_node) == set(whole.by_node)
    for name, outcome in resumed.by_node.items():
        assert _plain(outcome) == _plain(whole.by_node[name]), name


def assert_not_repeated(works: Works, resumed: Recording, cut: Sequence[Any]) -> None:
    """What had ended has not run."""
    ended = {each.record.node for each in cut if isinstance(each.record, NodeFinished)}
    told = {event.node for event in resumed.all(NodeStarted)}
    done = {NodeId(name) for name in works.done}
    assert done <= told
    # Stopped before its first step: the winner of its join ended while it was about to start.
    # An item of several nodes is none of `works`.
    stopped = {node for node in told - done if not node.endswith("]")}
    assert all(resumed.by_node[node].status == "cancelled" for node in stopped)
    assert not (ended & told) - REGROWN
    # Nor are attempts made again that were over.
    over = Counter(e.record.node for e in cut if isinstance(e.record, NodeRetrying))
    over += Counter(
        e.record.node for e in cut if isinstance(e.record, NodeRerouted) and e.record.instead
    )
    for name, attempts in over.items():
        assert works.done[name] <= resumed.by_node[name].attempts - attempts, name


def _plain(outcome: Outcome) -> Outcome:
    failure = outcome.failure
    return replace(outcome, failure=failure and replace(failure, message=_said(failure.message)))


def _said(reason: str) -> str:
    """A reason without how far a budget was exceeded: what is recalled is charged all at once."""
    return re.sub(r"\d+ of", "N of", reason)


REGROWN = {NodeId("first")}  # so that what streams from it keeps its numbers


def test_a_node_that_a_failed_input_skipped_runs_once_the_input_is_there() -> None:
    """It ended in part 1; in part 2 its input failed; in part 3 its inputs are those of part 1."""
    node_id = NodeId("two")
    events = [
        (1, NodeStarted(node_id, 1, 0.0, digest="inputs")),
        (1, NodeFinished(node_id, Outcome("succeeded", value=1, attempts=1), 0.1)),
        (2, NodeFinished(node_id, Outcome("skipped", attempts=0), 0.2)),
        (2, RunFinished("failed", Usage(), (), 0.3)),
    ]
    records = [NumberedRecord(number, part, event) for number, (part, event) in enumerate(events)]
    assert RecordedResumeState(records).outcome(node_id, "inputs") is None
    assert RecordedResumeState(records[:2]).outcome(node_id, "inputs") is not None
