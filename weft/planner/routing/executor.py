"""Reaches one goal: finds the cheapest route, calls its tools, and reroutes after each call.

No call is made twice.
"""

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
    """Measures the last attempt of each tool, without the wait for slots."""

    def __init__(self) -> None:
        self._started_s: dict[str, float] = {}
        self._ended_s: dict[str, float] = {}

    def start(self, tool: str) -> None:
        self._started_s[tool] = asyncio.get_running_loop().time()
        self._ended_s.pop(tool, None)

    def stop(self, tool: str) -> None:
        self._ended_s[tool] = asyncio.get_running_loop().time()

    def took_s(self, tool: str) -> float:
        """Seconds from start to end, or until now; 0 if it never started."""
        now_s = asyncio.get_running_loop().time()
        return self._ended_s.get(tool, now_s) - self._started_s.get(tool, now_s)


def call_node(
    node: NodeId,
    tool: RoutedTool,
    arguments: Mapping[str, Any],
    router: ToolRouter,
    timer: CallTimer,
) -> Node:
    """A node that calls `tool`. The enclosing node handles its failure."""

    tools = GuardedTools(router.tools)

    async def work(context: NodeContext, _: Inputs) -> Any:
        timer.start(tool.name)
        try:
            with router.logs(context.log):
                return await tools.call(tool.tool, arguments)
        finally:
            timer.stop(tool.name)

    policy = Policy(
        timeout_s=tool.timeout_s, retry=tool.retry, on_failure="skip", resource=tool.resource
    )
    return Node(node, work, policy=policy, kind="tool")


_STORE_S = 5.0
_NOT_ITS_FAULT = frozenset(
    ("ToolArgumentError", "ToolNotFound", "ToolBreakerOpen", "Cancelled", "BudgetExceeded")
)
"""Failures that say nothing of a tool, or nothing new: a breaker has not called it."""


@dataclass(frozen=True, slots=True)
class _EndedCall:
    tool: str
    node: NodeId
    outcome: Outcome


class RouteExecutor:
    """Reaches `target` from the values in `have`, inside the node of `context`.

    `result` converts the `RouteResult` to the node's value.
    """

    def __init__(
        self,
        router: ToolRouter,
        target: RouteGoal,
        context: NodeContext,
        have: Mapping[str, Any],
        result: Callable[[RouteResult], Any] = lambda result: result,
    ) -> None:
        self._router = router
        self._target = target
        self._goal = target.goal
        self._context = context
        self._result = result
        self._values = dict(have)
        self._failures: dict[str, Failure] = {}
        self._running: dict[str, NodeId] = {}
        self._unrouted: dict[str, Failure] = {}
        self._ahead: tuple[str, ...] = ()
        self._lost: list[NodeId] = []
        self._calls: list[RoutedCall] = []
        self._reroutes: list[Reroute] = []
        self._lowered: list[LoweredGoal] = []
        self._escalation = Escalation(router, context)
        self._given_up: set[Goal] = set()
        self._intended: Goal | None = None
        self._timer = CallTimer()
        self._inbox: asyncio.Queue[_EndedCall | None] = asyncio.Queue()
        self._monitors = MonitorPool(router.monitors, self._wake, context.log)
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> Any:
        """The result; as an `Expand` where nodes still run or failed, to absorb them.

        Raises: `RouteError`.
        """
        error: RouteError | None = None
        async with asyncio.TaskGroup() as self._group:
            try:
                await self._load_history()
                for index in range(len(self._router.monitors)):
                    self._start_monitor(index)
                await self._loop()
            except RouteError as no_way:
                error = no_way
            finally:
                for task in self._tasks:
                    task.cancel()
        if error is not None:
            raise error
        return self._finished()

    async def _loop(self) -> None:
        while True:
            await self._monitors.wait_settled(self._router.patience_s)
            self._drain()
            if all(want in self._values for want in self._goal.wants):
                self._abandon_running()
                return
            route = self._route(self._goal.wants)
            if route is None:
                await self._decide()
            else:
                self._start_route(route)
                self._handle(await self._inbox.get())

    # -- what happened -------------------------------------------------------------------------

    def _wake(self) -> None:
        self._inbox.put_nowait(None)

    def _drain(self) -> None:
        while not self._inbox.empty():
            self._handle(self._inbox.get_nowait())
        intended = self._monitors.goal()
        if intended is not None and intended[0] != self._intended:
            self._intended = self._goal = intended[0]
            self._context.log(f"the goal is {self._goal.name!r} now: {intended[1]}")

    def _handle(self, ended: _EndedCall | None) -> None:
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
            self._failures[tool] = self._unrouted[tool] = failure
            self._lost.append(ended.node)
        took_s = self._timer.took_s(tool)
        self._calls.append(RoutedCall(tool, took_s, failure))
        if failure is None or failure.error not in _NOT_ITS_FAULT:
            self._group.create_task(self._record_call(tool, failure is None, took_s))
        self._monitors.state_changed()

    # -- the route -----------------------------------------------------------------------------

    def _route(self, wants: tuple[str, ...]) -> Route | None:
        return shortest_route(self._router.graph, self._values.keys(), wants, self._price)

    def _price(self, tool: str) -> float:
        if tool in self._failures:
            return DOWN
        if tool in self._running or made_earlier(self._place(tool)):
            return 0.0  # a call from before a crash must not be repeated: await its end first
        routed = self._router.graph.tools[tool]
        cost = self._router.history.expected(routed.tool, routed.cost)
        risk = self._monitors.risk(tool)
        if risk is not None:
            cost = replace(cost, risk=risk)
        return self._router.weights.price(cost, self._monitors.health(tool))

    def _start_route(self, route: Route) -> None:
        """Start the calls of `route` whose inputs are available, and log reroutes."""
        before, self._ahead = self._ahead, tuple(step.tool for step in route.steps)
        ready = [step for step in route.steps if self._values.keys() >= set(step.sources)]
        for step in ready:
            if step.tool not in self._running:
                self._start(step)
        fresh = tuple(tool for tool in self._ahead if tool not in before)
        on_the_way = [self._running[t] for t in (*fresh, *self._ahead) if t in self._running]
        self._answer_failures(fresh, on_the_way[0])

    def _start(self, step: RouteStep) -> None:
        tool = self._router.graph.tools[step.tool]
        arguments = dict(tool.given)
        for demand, source in zip(tool.demands, step.sources, strict=True):
            if demand.parameter is not None:
                arguments[demand.parameter] = self._values[source]
        node = call_node(self._place(step.tool), tool, arguments, self._router, self._timer)
        self._running[step.tool] = node.id
        self._context.append([node])
        self._tasks.add(self._group.create_task(self._follow(step.tool, node.id)))

    def _place(self, tool: str) -> NodeId:
        return inside(self._context.scope, self._router.graph.labels[tool])

    async def _follow(self, tool: str, node: NodeId) -> None:
        self._inbox.put_nowait(_EndedCall(tool, node, await self._context.outcome(node)))

    def _answer_failures(self, to: tuple[str, ...], node: NodeId) -> None:
        """Log a reroute to the tools `to` for each failure since the last one."""
        going = f"going by {', '.join(to)}" if to else "going on with what is under way"
        for tool, failure in self._unrouted.items():
            self._reroutes.append(Reroute(tool, to, failure))
            self._context.log(f"reroute: {tool} failed ({failure.error}); {going}")
            self._context.reroute(node, failure)
        self._unrouted.clear()

    # -- no route ------------------------------------------------------------------------------

    async def _decide(self) -> None:
        """Lower the goal, or have a person provide the missing values. Raises: `RouteError`."""
        failures = dict(self._unrouted)
        self._unrouted.clear()
        dead_end = self._dead_end()
        self._context.log(f"escalation: {dead_end.summary}")
        decision = await self._escalation.decide(dead_end)
        before, self._goal = self._goal.name, decision.goal
        self._values.update(decision.provided)
        lowering = LoweredGoal(before, decision.goal.name, decision.by, failures, decision.reason)
        self._lowered.append(lowering)
        self._context.log(f"{decision.by}: {decision.goal.name!r} in the place of {before!r}")

    def _dead_end(self) -> DeadEnd:
        wants = dict.fromkeys((*self._goal.wants, *self._target.goal.wants))
        gone = frozenset(want for want in wants if self._route((want,)) is None)
        missing = tuple(want for want in self._goal.wants if want in gone)
        lesser = self._target.instead_of(self._goal, gone)
        closed = {tool: str(failure) for tool, failure in self._failures.items()}
        for tool in self._router.graph.tools:
            if tool not in closed and self._monitors.health(tool) == DOWN:
                closed[tool] = self._monitors.why(tool)
        self._given_up.add(self._goal)
        open_ = (goal for goal in lesser if goal not in self._given_up)
        choices = tuple(goal for goal in open_ if self._route(goal.wants) is not None)
        return DeadEnd(self._goal, missing, choices, closed, tuple(self._values))

    # -- the end -------------------------------------------------------------------------------

    def _abandon_running(self) -> None:
        """Give up the running calls, which are cancelled soon; their outcomes are ignored."""
        self._answer_failures((), self._context.node)
        for tool in self._running:
            self._context.log(f"{tool} is no longer needed")

    def _finished(self) -> Any:
        values = {want: self._values[want] for want in self._goal.wants}
        result = RouteResult(
            self._goal.name,
            values,
            tuple(self._calls),
            tuple(self._reroutes),
            tuple(self._lowered),
            self._escalation.model_calls,
        )
        lost = [*self._lost, *self._escalation.lost, *self._running.values()]
        value = self._result(result)
        return _absorbing(self._context.scope, value, lost) if lost else value

    # -- monitors and history -------------------------------------------------------------------

    def _start_monitor(self, monitor: int) -> None:
        watching = self._monitors.watch(monitor, self._state)
        self._tasks.add(self._group.create_task(watching))

    def _state(self) -> RouterState:
        return RouterState(self._goal, dict(self._values), tuple(self._calls), self._ahead)

    async def _load_history(self) -> None:
        try:
            async with asyncio.timeout(_STORE_S):
                tools = (tool.tool for tool in self._router.graph.tools.values())
                await self._router.history.load(dict.fromkeys(tools))
        except (StoreError, TimeoutError) as error:
            self._context.log(f"what is known of past calls cannot be read: {error!r}")

    async def _record_call(self, tool: str, succeeded: bool, took_s: float) -> None:
        try:
            async with asyncio.timeout(_STORE_S):
                called = self._router.graph.tools[tool].tool
                await self._router.history.note(called, succeeded, took_s)
        except (StoreError, TimeoutError) as error:
            self._context.log(f"the call of {tool} is not remembered: {error!r}")


def _absorbing(scope: NodeId, value: Any, lost: Iterable[NodeId]) -> Expand:
    """`value`, by a join that any branch decides: it absorbs failed nodes and cancels the rest.

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
