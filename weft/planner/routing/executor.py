"""One call of a tool as a node, and how long it took. Knows no way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from weft.core.errors import Failure, RouteError, StoreError
from weft.core.events import Outcome
from weft.core.ids import NodeId, inside
from weft.durability.calls import GuardedTools
from weft.engine.graph.node import ANY, Edge, Expand, Inputs, Node, NodeContext, Policy
from weft.engine.scheduler.effects import made_earlier
from weft.planner.routing.cost import DOWN
from weft.planner.routing.escalation import DeadEnd, Escalation
from weft.planner.routing.goal import Goal, RouteGoal
from weft.planner.routing.graph import RoutedTool
from weft.planner.routing.monitor import MonitorPool, RoutedCall, RouterState
from weft.planner.routing.result import LoweredGoal, Reroute, RouteResult
from weft.planner.routing.route import Route, RouteStep, shortest_route
from weft.planner.routing.router import ToolRouter


class CallTimer:
    """How long the last attempt of each tool took, waiting for slots not counted."""

    def __init__(self) -> None:
        self._started_s: dict[str, float] = {}
        self._ended_s: dict[str, float] = {}

    def start(self, tool: str) -> None:
        self._started_s[tool] = asyncio.get_running_loop().time()
        self._ended_s.pop(tool, None)

    def stop(self, tool: str) -> None:
        self._ended_s[tool] = asyncio.get_running_loop().time()

    def took_s(self, tool: str) -> float:
        """Seconds from its beginning to its end, or until now; 0 when it never began."""
        now_s = asyncio.get_running_loop().time()
        return self._ended_s.get(tool, now_s) - self._started_s.get(tool, now_s)


def call_node(
    node: NodeId,
    tool: RoutedTool,
    arguments: Mapping[str, Any],
    router: ToolRouter,
    stopwatch: CallTimer,
) -> Node:
    """A node that calls `tool`. Its failure is a matter of the node around it."""

    tools = GuardedTools(router.tools)

    async def work(context: NodeContext, _: Inputs) -> Any:
        stopwatch.start(tool.name)
        try:
            with router.logs(context.log):
                return await tools.call(tool.tool, arguments)
        finally:
            stopwatch.stop(tool.name)

    policy = Policy(
        timeout_s=tool.timeout_s, retry=tool.retry, on_failure="skip", resource=tool.resource
    )
    return Node(node, work, policy=policy, kind="tool")


_STORE_S = 5.0
_NOT_ITS_FAULT = frozenset(("ToolArgumentError", "ToolNotFound", "Cancelled", "BudgetExceeded"))


@dataclass(frozen=True, slots=True)
class _EndedCall:
    tool: str
    node: NodeId
    outcome: Outcome


class RouteExecutor:
    """Carries out `errand` from what `have` holds, inside the node of `context`.

    `result` makes the node's value of the arrival.
    """

    def __init__(
        self,
        router: ToolRouter,
        errand: RouteGoal,
        context: NodeContext,
        have: Mapping[str, Any],
        result: Callable[[RouteResult], Any] = lambda arrival: arrival,
    ) -> None:
        self._router = router
        self._errand = errand
        self._goal = errand.goal
        self._context = context
        self._result = result
        self._values = dict(have)
        self._failures: dict[str, Failure] = {}
        self._running: dict[str, NodeId] = {}
        self._unanswered: dict[str, Failure] = {}
        self._ahead: tuple[str, ...] = ()
        self._lost: list[NodeId] = []
        self._calls: list[RoutedCall] = []
        self._reroutes: list[Reroute] = []
        self._lowered: list[LoweredGoal] = []
        self._deciders = Escalation(router, context)
        self._given_up: set[Goal] = set()
        self._meant: Goal | None = None
        self._stopwatch = CallTimer()
        self._inbox: asyncio.Queue[_EndedCall | None] = asyncio.Queue()
        self._attention = MonitorPool(router.monitors, self._wake, context.log)
        self._beside: set[asyncio.Task[None]] = set()

    async def run(self) -> Any:
        """The result; as a `Expand` where something still runs or failed, to be rid of it.

        Raises: `RouteError`.
        """
        error: RouteError | None = None
        async with asyncio.TaskGroup() as self._group:
            try:
                await self._recall()
                for index in range(len(self._router.monitors)):
                    self._aside(index)
                await self._travel()
            except RouteError as no_way:
                error = no_way
            finally:
                for task in self._beside:
                    task.cancel()
        if error is not None:
            raise error
        return self._arrived()

    async def _travel(self) -> None:
        while True:
            await self._attention.settled(self._router.patience_s)
            self._take_in()
            if all(want in self._values for want in self._goal.wants):
                self._leave_off()
                return
            way = self._way(self._goal.wants)
            if way is None:
                await self._decide()
            else:
                self._set_out(way)
                self._take(await self._inbox.get())

    # -- what happened -------------------------------------------------------------------------

    def _wake(self) -> None:
        self._inbox.put_nowait(None)

    def _take_in(self) -> None:
        while not self._inbox.empty():
            self._take(self._inbox.get_nowait())
        meant = self._attention.goal()
        if meant is not None and meant[0] != self._meant:
            self._meant = self._goal = meant[0]
            self._context.log(f"the goal is {self._goal.name!r} now: {meant[1]}")

    def _take(self, ended: _EndedCall | None) -> None:
        if ended is None:
            return
        tool, outcome = ended.tool, ended.outcome
        del self._running[tool]
        if outcome.ok:
            for name in self._router.graph.tools[tool].names:
                self._values.setdefault(name, outcome.value)
            failure = None
        else:
            failure = outcome.failure or Failure("Skipped", "the call was left out")
            self._failures[tool] = self._unanswered[tool] = failure
            self._lost.append(ended.node)
        took_s = self._stopwatch.took_s(tool)
        self._calls.append(RoutedCall(tool, took_s, failure))
        if failure is None or failure.error not in _NOT_ITS_FAULT:
            self._group.create_task(self._remember(tool, failure is None, took_s))
        self._attention.happened()

    # -- the way -------------------------------------------------------------------------------

    def _way(self, wants: tuple[str, ...]) -> Route | None:
        return shortest_route(self._router.graph, self._values.keys(), wants, self._price)

    def _price(self, tool: str) -> float:
        if tool in self._failures:
            return DOWN
        if tool in self._running or made_earlier(self._place(tool)):
            return (
                0.0  # what must not be repeated was called before the process died: its end first
            )
        routed = self._router.graph.tools[tool]
        cost = self._router.history.expected(routed.tool, routed.cost)
        risk = self._attention.risk(tool)
        if risk is not None:
            cost = replace(cost, risk=risk)
        return self._router.weights.price(cost, self._attention.health(tool))

    def _set_out(self, way: Route) -> None:
        """Start every call of `way` that has what it needs, and say what failures have led to."""
        before, self._ahead = self._ahead, tuple(hop.tool for hop in way.hops)
        ready = [hop for hop in way.hops if self._values.keys() >= set(hop.sources)]
        for hop in ready:
            if hop.tool not in self._running:
                self._start(hop)
        fresh = tuple(tool for tool in self._ahead if tool not in before)
        on_the_way = [self._running[t] for t in (*fresh, *self._ahead) if t in self._running]
        self._answer_failures(fresh, on_the_way[0])

    def _start(self, hop: RouteStep) -> None:
        tool = self._router.graph.tools[hop.tool]
        arguments = dict(tool.given)
        for demand, source in zip(tool.demands, hop.sources, strict=True):
            if demand.parameter is not None:
                arguments[demand.parameter] = self._values[source]
        node = call_node(self._place(hop.tool), tool, arguments, self._router, self._stopwatch)
        self._running[hop.tool] = node.id
        self._context.append([node])
        self._beside.add(self._group.create_task(self._follow(hop.tool, node.id)))

    def _place(self, tool: str) -> NodeId:
        return inside(self._context.scope, self._router.graph.labels[tool])

    async def _follow(self, tool: str, node: NodeId) -> None:
        self._inbox.put_nowait(_EndedCall(tool, node, await self._context.outcome(node)))

    def _answer_failures(self, to: tuple[str, ...], node: NodeId) -> None:
        """Every failure since the last time is answered by going `to` other tools."""
        going = f"going by {', '.join(to)}" if to else "going on with what is under way"
        for tool, failure in self._unanswered.items():
            self._reroutes.append(Reroute(tool, to, failure))
            self._context.log(f"reroute: {tool} failed ({failure.error}); {going}")
            self._context.reroute(node, failure)
        self._unanswered.clear()

    # -- no way --------------------------------------------------------------------------------

    async def _decide(self) -> None:
        """No way is left: lower the goal, or have a person provide for it. Raises: `RouteError`."""
        failures = dict(self._unanswered)
        self._unanswered.clear()
        dead_end = self._dead_end()
        self._context.log(f"escalation: {dead_end.said}")
        taken = await self._deciders.decide(dead_end)
        before, self._goal = self._goal.name, taken.goal
        self._values.update(taken.provided)
        lowering = LoweredGoal(before, taken.goal.name, taken.by, failures, taken.reason)
        self._lowered.append(lowering)
        self._context.log(f"{taken.by}: {taken.goal.name!r} in the place of {before!r}")

    def _dead_end(self) -> DeadEnd:
        wants = dict.fromkeys((*self._goal.wants, *self._errand.goal.wants))
        gone = frozenset(want for want in wants if self._way((want,)) is None)
        missing = tuple(want for want in self._goal.wants if want in gone)
        lesser = self._errand.instead_of(self._goal, gone)
        closed = {tool: str(failure) for tool, failure in self._failures.items()}
        for tool in self._router.graph.tools:
            if tool not in closed and self._attention.health(tool) == DOWN:
                closed[tool] = self._attention.why(tool)
        self._given_up.add(self._goal)
        open_ = (goal for goal in lesser if goal not in self._given_up)
        choices = tuple(goal for goal in open_ if self._way(goal.wants) is not None)
        return DeadEnd(self._goal, missing, choices, closed, tuple(self._values))

    # -- the end -------------------------------------------------------------------------------

    def _leave_off(self) -> None:
        """What still runs is cancelled soon; whatever becomes of it until then is no matter."""
        self._answer_failures((), self._context.node)
        for tool in self._running:
            self._context.log(f"{tool} is no longer needed")

    def _arrived(self) -> Any:
        values = {want: self._values[want] for want in self._goal.wants}
        arrival = RouteResult(
            self._goal.name,
            values,
            tuple(self._calls),
            tuple(self._reroutes),
            tuple(self._lowered),
            self._deciders.model_calls,
        )
        lost = [*self._lost, *self._deciders.lost, *self._running.values()]
        value = self._result(arrival)
        return _absorbing(self._context.scope, value, lost) if lost else value

    # -- beside the work -----------------------------------------------------------------------

    def _aside(self, monitor: int) -> None:
        watching = self._attention.watch(monitor, self._scene)
        self._beside.add(self._group.create_task(watching))

    def _scene(self) -> RouterState:
        return RouterState(self._goal, dict(self._values), tuple(self._calls), self._ahead)

    async def _recall(self) -> None:
        try:
            async with asyncio.timeout(_STORE_S):
                tools = (tool.tool for tool in self._router.graph.tools.values())
                await self._router.history.load(dict.fromkeys(tools))
        except (StoreError, TimeoutError) as error:
            self._context.log(f"what is known of past calls cannot be read: {error!r}")

    async def _remember(self, tool: str, succeeded: bool, took_s: float) -> None:
        try:
            async with asyncio.timeout(_STORE_S):
                called = self._router.graph.tools[tool].tool
                await self._router.history.note(called, succeeded, took_s)
        except (StoreError, TimeoutError) as error:
            self._context.log(f"the call of {tool} is not remembered: {error!r}")


def _absorbing(scope: NodeId, value: Any, lost: Iterable[NodeId]) -> Expand:
    """`value`, by a join that any branch decides: what failed is got over, the rest cancelled.

    One branch always succeeds, so that the join does.
    """
    there = Node(inside(scope, ".there"), _value, given={"value": None}, kind="value")
    edges = (Edge(there.id), *(Edge(node) for node in lost))
    end = Node(inside(scope, ".arrival"), _value, edges, {"value": value}, ANY, kind="value")
    return Expand((there, end), (end.id,), _only, ANY)


async def _value(_: NodeContext, inputs: Inputs) -> Any:
    return inputs["value"]


async def _only(_: NodeContext, values: list[Any]) -> Any:
    return values[0]
