"""Random programs in virtual time: whatever they do, every node ends once, and as it must."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.scheduler.virtual_executor import VirtualExecutor, pause
from tests.engine.virtual_run import FOR_EVER_S, Played, node, play
from tests.profile import examples
from tests.property.oracle import ANSWER, End, evaluate
from tests.property.program import Spec, Taste, all_specs, graph_nodes, programs, value_of
from weft.core.budget import Budget
from weft.core.events import (
    BudgetReached,
    Event,
    HumanAsked,
    NodeFinished,
    NodeSpent,
    NodeStarted,
    Outcome,
)
from weft.core.ids import NodeId
from weft.core.values import Usage
from weft.engine import BudgetLimit, Edge, Graph, Inputs, NodeContext, Run, RunOptions
from weft.engine.analysis.critical_path import critical_path
from weft.engine.analysis.trace import Trace

FEW, MANY = examples(40), examples(120)


def run(program: Sequence[Spec], **options: Any) -> Played:
    """Play `program`, with somebody who answers every question at once."""
    runs: list[Run] = []

    def answer(event: Event) -> None:
        if isinstance(event, HumanAsked):
            runs[0].answer(event.node, ANSWER)

    at = {0.0: runs.append, **options.pop("at", {})}
    listeners = [answer, *options.pop("listeners", [])]
    return play(*graph_nodes(program), at=at, listeners=listeners, **options)


def assert_as_expected(played: Played, expected: dict[str, End]) -> None:
    """Every node ended as the oracle says, and when."""
    assert set(played.by_node) == set(expected)
    ended_s = {str(event.node): event.at_s for event in played.all(NodeFinished)}
    for name, end in expected.items():
        outcome = played[name]
        at_s = ended_s[name]
        assert at_s == pytest.approx(end.at_s, abs=1e-6), name
        if outcome.status == "cancelled" and not end.attempts:
            continue  # decided in the very turn in which its scope was cancelled
        assert outcome.status == end.status, name
        if end.status != "cancelled":
            assert (outcome.value, outcome.via) == (end.value, end.via), name
            assert outcome.attempts == end.attempts, name
            assert (outcome.failure is not None) == (end.failed or end.via != ""), name


ORACLE = Taste(width=False)


@MANY
@given(programs(ORACLE))
def test_every_node_ends_as_plain_recursion_says(program: tuple[Spec, ...]) -> None:
    assert_as_expected(run(program), evaluate(program))


@MANY
@given(programs(Taste(bad=False, timeouts="none", policies=False, joins=("all",), width=False)))
def test_without_failures_a_graph_is_plain_evaluation(program: tuple[Spec, ...]) -> None:
    played = run(program)
    assert played.result.status == "succeeded"
    assert_as_expected(played, evaluate(program))


@MANY
@given(programs(Taste(width=False, cancel_rest="top")))
def test_letting_losers_go_changes_nothing_else(program: tuple[Spec, ...]) -> None:
    """Who is not let go ends as if nobody had been."""
    played, expected = run(program), evaluate(program)
    ended_s = {str(event.node): event.at_s for event in played.all(NodeFinished)}
    for name, outcome in played.by_node.items():
        if outcome.status != "cancelled":
            assert (outcome.status, outcome.value) == (expected[name].status, expected[name].value)
            assert ended_s[name] == pytest.approx(expected[name].at_s, abs=1e-6)


DETERMINISTIC = Taste(joins=("all", "best_effort"), timeouts="leaf", resources=("r", "s"))
TIMELESS = Taste(joins=("all", "best_effort"), timeouts="none")


@MANY
@given(
    programs(DETERMINISTIC),
    st.none() | st.integers(1, 4),
    st.dictionaries(st.sampled_from(["r", "s"]), st.integers(1, 3)),
)
def test_slots_change_when_but_not_what(
    program: tuple[Spec, ...], slots: int | None, limits: dict[str, int]
) -> None:
    played = run(program, max_concurrency=slots, limits=limits)
    for name, end in evaluate(program).items():
        outcome = played[name]
        assert (outcome.status, outcome.value, outcome.via) == (end.status, end.value, end.via)


@FEW
@given(programs(TIMELESS), st.lists(st.integers(0, 2**32), min_size=3, max_size=3))
def test_completion_order_does_not_change_the_result(
    program: tuple[Spec, ...], seeds: list[int]
) -> None:
    first = run(program)
    for seed in seeds:
        other = run(shuffled(program, Random(seed)))
        assert {name: gist(other[name]) for name in other.by_node} == {
            name: gist(first[name]) for name in first.by_node
        }
        assert other.result.status == first.result.status


def gist(outcome: Outcome) -> tuple[Any, ...]:
    """All of an outcome but the words of its failure, which name the first of several causes."""
    failure = outcome.failure
    said = None if failure is None else (failure.error, failure.retryable)
    return outcome.status, outcome.value, outcome.via, outcome.attempts, said


def shuffled(specs: Sequence[Spec], random: Random) -> tuple[Spec, ...]:
    """The same program, in which everything takes another time."""

    def other(spec: Spec) -> Spec:
        acts = tuple(
            replace(
                act,
                seconds=random.uniform(0, 5),
                then_s=None if act.then_s is None else random.uniform(0, 5),
                children=shuffled(act.children, random),
            )
            for act in spec.acts
        )
        fallback = None if spec.fallback is None else other(spec.fallback)
        return replace(spec, acts=acts, fallback=fallback)

    return tuple(map(other, specs))


@MANY
@given(programs(Taste(cancel_rest="anywhere"), most=6), st.none() | st.integers(1, 3))
def test_the_scheduler_alone_comes_to_the_same(
    program: tuple[Spec, ...], slots: int | None
) -> None:
    options = RunOptions(max_concurrency=slots)
    executor = VirtualExecutor(Graph("test", graph_nodes(program)), options, ANSWER)
    outcomes = executor.run()
    played = run(program, options=options)
    assert outcomes == dict(played.result.outcomes)


CHAOS = Taste(
    hang=True,
    cancel_rest="anywhere",
    stream=True,
    resources=("r",),
    ties=True,
    tokens=5,
    tangled=True,
)


@examples(200)
@given(
    program=programs(CHAOS),
    slots=st.none() | st.integers(1, 3),
    limit=st.none()
    | st.builds(
        BudgetLimit,
        st.builds(
            Budget, tokens=st.none() | st.integers(1, 20), seconds=st.none() | st.integers(1, 9)
        ),
        st.sampled_from(["stop", "degrade"]),
    ),
    cancel=st.lists(st.tuples(st.integers(0, 12), st.none() | st.integers(0, 30)), max_size=3),
    deadline_s=st.integers(0, 40),
)
def test_whatever_happens_every_node_ends_once(
    program: tuple[Spec, ...],
    slots: int | None,
    limit: BudgetLimit | None,
    cancel: list[tuple[int, int | None]],
    deadline_s: int,
) -> None:
    """`play` looks at the events, at timers and tasks; here at the verdict and the budget."""

    def cancel_one(index: int | None) -> Any:
        def act(run: Run) -> None:
            nodes = sorted(run._scheduler.states)
            run.cancel("no more", None if index is None else nodes[index % len(nodes)])

        return act

    played = run(
        program,
        max_concurrency=slots,
        limits={"r": 1},
        limit=limit,
        deadline_s=deadline_s,
        at={float(seconds): cancel_one(index) for seconds, index in cancel},
    )
    assert played.result.wall_s <= deadline_s
    assert played.result.usage == sum((e.usage for e in played.all(NodeSpent)), Usage())
    assert not played.result.leaked
    stops = [e for e in played.all(BudgetReached) if not e.degrade]
    if stops:
        after = played.events[played.events.index(stops[0]) :]
        assert not any(isinstance(event, NodeStarted) for event in after)
    if played.result.status == "succeeded":
        assert played.result.reasons == () or played.all(BudgetReached)


TANGLED = Taste(cancel_rest="anywhere", stream=True, ties=True, tangled=True)


@examples(200)
@given(programs(TANGLED), st.none() | st.integers(1, 3))
def test_nothing_waits_for_ever(program: tuple[Spec, ...], slots: int | None) -> None:
    """Without a deadline and without works that hang, a run ends by itself; `play` fails else.

    What it tells its listeners adds up: a path without gaps explains all of its time.
    """
    trace = Trace()
    played = run(program, max_concurrency=slots, listeners=[trace])
    assert played.result.wall_s < FOR_EVER_S
    path = critical_path(trace)
    assert all(a.end_s == b.start_s for a, b in pairwise(path))
    assert sum(part.seconds for part in path) == pytest.approx(played.result.wall_s)
    assert (trace.running, trace.active, trace.waiting) == (0, {}, {})


def layered(random: Random, nodes: int) -> dict[str, tuple[float, list[str]]]:
    """A random plain DAG: seconds and sources of each node."""
    found: dict[str, tuple[float, list[str]]] = {}
    for index in range(nodes):
        before = list(found)
        sources = random.sample(before, min(len(before), random.choice([0, 1, 1, 2, 5])))
        found[f"n{index}"] = (random.choice([0.0, 1.0, random.uniform(0, 9)]), sources)
    return found


def plain(dag: dict[str, tuple[float, list[str]]]) -> list[Any]:
    def work_of(seconds: float) -> Any:
        async def work(context: NodeContext, inputs: Inputs) -> int:
            await pause(seconds)
            return value_of(context.node, 1, inputs)

        return work

    return [node(name, work_of(seconds), *sources) for name, (seconds, sources) in dag.items()]


@pytest.mark.parametrize("seed", range(20))
def test_the_makespan_is_the_critical_path(seed: int) -> None:
    dag = layered(Random(seed), nodes=60)
    graph: nx.DiGraph[tuple[str, str]] = nx.DiGraph()
    for name, (seconds, sources) in dag.items():
        graph.add_edge((name, "in"), (name, "out"), weight=seconds)
        for source in sources:
            graph.add_edge((source, "out"), (name, "in"), weight=0.0)
    expected = nx.dag_longest_path_length(graph, weight="weight")
    assert play(*plain(dag)).result.wall_s == pytest.approx(expected)


def test_a_hundred_completion_orders_give_one_result() -> None:
    shape = layered(Random(0), nodes=40)
    values = dict.fromkeys(shape, 0)
    for name, (_, sources) in shape.items():
        values[name] = value_of(name, 1, {source: values[source] for source in sources})
    orders = set()
    for seed in range(100):
        random = Random(seed)
        dag = {name: (random.uniform(0, 9), sources) for name, (_, sources) in shape.items()}
        played = play(*plain(dag))
        assert {name: played.value(name) for name in shape} == values
        orders.add(tuple(event.node for event in played.all(NodeFinished)))
    assert len(orders) > 90, "the orders were not shuffled"


@pytest.mark.parametrize("slots", [None, 1])
def test_a_chain_of_three_thousand(slots: int | None) -> None:
    dag = {f"n{i}": (1.0, [f"n{i - 1}"] if i else []) for i in range(3_000)}
    assert play(*plain(dag), max_concurrency=slots).result.wall_s == 3_000


def test_a_failure_skips_a_chain_of_three_thousand() -> None:
    async def broken(context: NodeContext, inputs: Inputs) -> None:
        raise ValueError

    chain = [node("n0", broken)]
    chain += [node(f"n{i}", broken, Edge(NodeId(f"n{i - 1}"), "x")) for i in range(1, 3_000)]
    played = play(*chain)
    assert played["n2999"].status == "skipped"


def test_programs_are_as_wild_as_they_claim() -> None:
    """The strategy reaches every deed, join and policy: a property over nothing proves nothing."""
    seen: set[str] = set()

    @settings(max_examples=150, database=None)
    @given(programs(CHAOS))
    def look(program: tuple[Spec, ...]) -> None:
        for spec in all_specs(program):
            seen.update(act.deed for act in spec.acts)
            seen.add(spec.join.mode)
            seen.update(f"growth {act.join.mode}" for act in spec.acts if act.deed == "grow")
            seen.update(
                name
                for name in ("timeout_s", "fallback", "resource", "stream", "spends", "outer")
                if getattr(spec, name)
            )
            seen.update(f"rounds {act.rounds}" for act in spec.acts)

    look()
    modes = {"all", "any", "quorum", "first_valid", "best_effort"}
    assert modes | {f"growth {mode}" for mode in modes} <= seen
    assert {"timeout_s", "fallback", "resource", "stream", "spends", "rounds 2"} <= seen
    assert {"value", "broken", "retryable", "cancelled", "skip", "hang", "ask", "append"} <= seen
    assert {"await", "outer"} <= seen
