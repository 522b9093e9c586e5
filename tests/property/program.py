"""Random programs as data: what every attempt of every node does, and the graph that does it.

The data is read twice: here it becomes nodes that run, in `oracle` it is evaluated by hand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, cast
from zlib import crc32

from hypothesis import strategies as st

from tests.engine.scheduler.virtual_executor import pause
from weft.core.errors import ModelUnavailable
from weft.core.ids import NodeId
from weft.core.values import Usage
from weft.engine import (
    ALL,
    MISSING,
    AskHuman,
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
)

Deed = Literal[
    "value", "broken", "retryable", "cancelled", "skip", "hang", "ask", "grow", "append", "await"
]
GOOD: tuple[Deed, ...] = ("value", "value", "grow", "append", "ask")
BAD: tuple[Deed, ...] = ("broken", "retryable", "cancelled", "skip")


class _Brief:
    """Shows only what differs from the defaults, so that a counterexample can be read."""

    def __repr__(self) -> str:
        values = {field: getattr(self, field.name) for field in fields(cast("Any", self))}
        shown = [f"{f.name}={value!r}" for f, value in values.items() if value != f.default]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


@dataclass(frozen=True, repr=False)
class Act(_Brief):
    """One attempt: work for `seconds`, then do the deed.

    A growth is joined over `results` (indices of `children`) and, unless `then_s` is None, goes on
    for so long; `rounds` of them follow one another. An "append" works `then_s` longer. An
    "await" waits for the end of the node `target`, wherever that is.
    """

    deed: Deed
    seconds: float
    children: tuple[Spec, ...] = ()
    results: tuple[int, ...] = ()
    join: Join = ALL
    width: int | None = None
    then_s: float | None = None
    rounds: int = 1
    tokens: int = 0
    target: str = ""


@dataclass(frozen=True, repr=False)
class Spec(_Brief):
    """A node. `sources` are the names of nodes before it; attempt n does `acts[n - 1]`.

    `outer` are nodes of the outermost scope that it takes an input from as well.
    """

    name: str
    acts: tuple[Act, ...]
    sources: tuple[str, ...] = ()
    join: Join = ALL
    timeout_s: float | None = None
    attempts: int = 1
    default: Any = MISSING
    fallback: Spec | None = None
    on_failure: Literal["fail", "skip"] = "fail"
    resource: str | None = None
    spends: bool = False
    stream: bool = False
    outer: tuple[str, ...] = ()

    def act(self, attempt: int) -> Act:
        return self.acts[min(attempt, len(self.acts)) - 1]


RETRY_S = 0.875  # every next attempt waits twice as long


def retry(spec: Spec) -> Retry | None:
    if spec.attempts == 1:
        return None
    return Retry(attempts=spec.attempts, delay_s=RETRY_S, factor=2, jitter=0)


def value_of(node: str, attempt: int, inputs: Mapping[str, Any]) -> int:
    """What a node gives: a number that depends on everything it is made of."""
    return crc32(repr((node, attempt, sorted(inputs.items()))).encode())


def joined_value(node: str, attempt: int, values: Sequence[Any]) -> int:
    """What the continuation of a growth gives."""
    return crc32(repr((node, attempt, list(values))).encode())


def graph_nodes(specs: Sequence[Spec], scope: str = "") -> tuple[Node, ...]:
    """The nodes that do what `specs` say, in one scope."""
    return tuple(_node(spec, scope) for spec in specs)


def _node(spec: Spec, scope: str) -> Node:
    def place(name: str) -> NodeId:
        return NodeId(f"{scope}/{name}" if scope else name)

    policy = Policy(
        timeout_s=spec.timeout_s,
        retry=retry(spec),
        default=spec.default,
        fallback=None if spec.fallback is None else _node(spec.fallback, ""),
        on_failure=spec.on_failure,
        resource=spec.resource,
        spends=spec.spends,
    )
    edges = tuple(Edge(place(source), source, spec.stream) for source in spec.sources)
    edges += tuple(Edge(NodeId(source), f"outer {source}") for source in spec.outer)
    return Node(place(spec.name), _work(spec), edges, join=spec.join, policy=policy)


def _work(spec: Spec) -> NodeFn:
    async def work(context: NodeContext, inputs: Inputs) -> Any:
        act = spec.act(context.attempt)
        await pause(act.seconds)
        if act.tokens:
            context.spend(Usage(completion_tokens=act.tokens))
        if act.deed in ERRORS:
            raise ERRORS[act.deed]
        if act.deed in REQUESTS:
            return REQUESTS[act.deed]
        if act.deed == "grow":
            return _growth(context, act, 1)
        if act.deed == "append":
            context.append(graph_nodes(act.children, context.scope))
            await pause(act.then_s or 0)
        if act.deed == "hang":
            await pause(1e9)
        if act.deed == "await":
            return (await context.outcome(NodeId(act.target))).status
        return value_of(context.node, context.attempt, inputs)

    return work


def _growth(context: NodeContext, act: Act, number: int) -> Expand:
    async def then(context: NodeContext, values: list[Any]) -> Any:
        await pause(act.then_s or 0)
        if number < act.rounds:
            return _growth(context, act, number + 1)
        return joined_value(context.node, context.attempt, values)

    nodes = graph_nodes(act.children, round_scope(context.scope, number))
    results = tuple(nodes[index].id for index in act.results)
    going_on = None if act.then_s is None else then
    return Expand(nodes, results, going_on, act.join, act.width, items=True)


async def _answered(context: NodeContext, answer: Any) -> int:
    return joined_value(context.node, context.attempt, [answer])


ERRORS: Mapping[Deed, BaseException] = {
    "broken": ValueError("broken"),
    "retryable": ModelUnavailable("again"),
    "cancelled": asyncio.CancelledError(),
}
REQUESTS: Mapping[Deed, AskHuman | Skip] = {
    "skip": Skip("on purpose"),
    "ask": AskHuman("go?", then=_answered),
}


def round_scope(scope: str, number: int) -> str:
    """Where the children of round `number` of a growth live."""
    return scope if number == 1 else f"{scope}#{number}"


def all_specs(specs: Sequence[Spec]) -> Iterator[Spec]:
    """`specs` and everything in them."""
    for spec in specs:
        yield spec
        if spec.fallback is not None:
            yield from all_specs([spec.fallback])
        for act in spec.acts:
            yield from all_specs(act.children)


# -- strategies --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Taste:
    """Which features programs may have."""

    bad: bool = True
    hang: bool = False
    joins: tuple[str, ...] = ("all", "any", "quorum", "first_valid", "best_effort")
    cancel_rest: Literal["never", "top", "anywhere"] = "never"
    timeouts: Literal["none", "leaf", "any"] = "any"
    policies: bool = True
    width: bool = True
    stream: bool = False
    depth: int = 2
    resources: tuple[str, ...] = ()
    ties: bool = False
    tokens: int = 0
    tangled: bool = False


TOP = st.sampled_from("0123456")


def even(value: Any) -> bool:
    """The test for validity in random joins; raises for what is no number."""
    return bool(value % 2 == 0)


@st.composite
def programs(draw: st.DrawFn, taste: Taste, most: int = 7) -> tuple[Spec, ...]:
    """A program of at least one node. Its times are unlike any other's, unless `taste.ties`."""
    times = Times(draw, taste)
    return draw(_scope(taste, times, taste.depth, most, ""))


class Times:
    """Draws durations; without ties each has a fraction of its own, so that no two sums agree."""

    def __init__(self, draw: st.DrawFn, taste: Taste) -> None:
        self._draw = draw
        self._ties = taste.ties
        self._drawn = 0

    def draw(self) -> float:
        whole = self._draw(st.integers(0, 5))
        if self._ties:
            return float(whole)
        self._drawn += 1
        return whole + (crc32(str(self._drawn).encode()) + 1) / 2**32


@st.composite
def _scope(
    draw: st.DrawFn, taste: Taste, times: Times, depth: int, most: int, prefix: str
) -> tuple[Spec, ...]:
    count = draw(st.integers(1, most))
    specs: list[Spec] = []
    for index in range(count):
        names = [spec.name for spec in specs]
        specs.append(draw(_spec(taste, times, depth, f"{prefix}{index}", names)))
    return tuple(specs)


@st.composite
def _spec(
    draw: st.DrawFn, taste: Taste, times: Times, depth: int, name: str, before: list[str]
) -> Spec:
    some = st.lists(st.sampled_from(before), unique=True, max_size=4) if before else st.just([])
    sources = tuple(draw(some))
    top = depth == taste.depth
    may_cancel = taste.cancel_rest == "anywhere" or (taste.cancel_rest == "top" and top)
    join = draw(_joins(taste, len(sources), may_cancel)) if sources else ALL
    policies = taste.policies and draw(st.booleans())
    attempts = draw(st.integers(1, 3)) if policies else 1
    acts = tuple(draw(_act(taste, times, depth)) for _ in range(draw(st.integers(1, attempts))))
    fallback = None
    if policies and depth and draw(st.integers(0, 3)) == 0:
        fallback = draw(_spec(taste, times, depth - 1, "spare", []))
    outer: tuple[str, ...] = ()
    if taste.tangled and depth < taste.depth and name != "spare" and draw(st.booleans()):
        outer = tuple(draw(st.lists(TOP, unique=True, max_size=2)))
    leaf = all(not act.children for act in acts)
    timed = taste.timeouts == "any" or (taste.timeouts == "leaf" and leaf)
    return Spec(
        name,
        acts,
        sources,
        join,
        timeout_s=0.5 + times.draw() if timed and policies and draw(st.booleans()) else None,
        attempts=attempts,
        default=-1 if policies and draw(st.integers(0, 3)) == 0 else MISSING,
        fallback=fallback,
        on_failure=draw(st.sampled_from(["fail", "skip"])) if policies else "fail",
        resource=draw(st.sampled_from((None, *taste.resources))),
        spends=bool(taste.tokens) and draw(st.booleans()),
        stream=taste.stream and join.mode == "all" and draw(st.booleans()),
        outer=outer,
    )


@st.composite
def _joins(draw: st.DrawFn, taste: Taste, branches: int, may_cancel: bool) -> Join:
    mode = draw(st.sampled_from(taste.joins))
    cancel = may_cancel and draw(st.booleans())
    if mode == "quorum":
        return Join("quorum", k=draw(st.integers(1, branches)), cancel_rest=cancel)
    if mode == "first_valid":
        return Join("first_valid", valid=draw(st.sampled_from([None, even])), cancel_rest=cancel)
    if mode == "best_effort":
        return Join("best_effort", default=draw(st.sampled_from([MISSING, -2])))
    return Join(mode, cancel_rest=cancel)  # type: ignore[arg-type]


@st.composite
def _act(draw: st.DrawFn, taste: Taste, times: Times, depth: int) -> Act:
    deeds = [*GOOD, *(BAD if taste.bad else ()), *(["hang"] if taste.hang else [])]
    deeds += ["await"] if taste.tangled else []
    deed: Deed = draw(st.sampled_from(deeds))
    tokens = draw(st.integers(0, taste.tokens))
    seconds = times.draw()
    if deed not in ("grow", "append"):
        return Act(deed, seconds, tokens=tokens, target=draw(TOP) if deed == "await" else "")
    if not depth:
        return Act("value", seconds, tokens=tokens)
    children = draw(_scope(taste, times, depth - 1, 4, "c"))
    if deed == "append":
        return Act(deed, seconds, children, then_s=times.draw(), tokens=tokens)
    results = draw(st.lists(st.integers(0, len(children) - 1), unique=True, min_size=1))
    then_s = times.draw() if draw(st.booleans()) else None
    return Act(
        deed,
        seconds,
        children,
        tuple(results),
        draw(_joins(taste, len(results), may_cancel=False)),
        draw(st.sampled_from([None, 1, 2])) if taste.width else None,
        then_s,
        1 if then_s is None else draw(st.integers(1, 2)),
        tokens,
    )
