"""Tool calls that a model asked for, as nodes; equal calls are not made again.

A failed call is an observation. Calls of tools that do nothing new when called again take the
result there is; others are refused: a model that wants an effect twice asks for something
different.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from weft.agents.agent import Observation
from weft.agents.chat.model_output import excerpt, text_of
from weft.agents.chat.prompt import repeated
from weft.agents.tools import tool_logs
from weft.agents.tools.toolbox import resource_of
from weft.core.errors import AgentError, ToolArgumentError
from weft.core.events import Outcome
from weft.core.ids import inside
from weft.core.ports import ToolRunner
from weft.core.values import ToolSpec
from weft.durability.calls.digest import identity
from weft.engine import Expand, Inputs, Node, NodeContext, NodeFn, Policy, best_effort

_LOGGED_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class Call:  # its name and fields are in stored identities of nodes: see `call_all`
    """A tool call that an agent asked for. `number` counts the calls of a run, from 1.

    `problem`: why it cannot even be tried; making it fails with these words.
    """

    number: int
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


async def call_all(
    context: NodeContext, name: str, tools: ToolRunner, calls: Sequence[Call]
) -> tuple[Observation, ...]:
    """Make all `calls` in parallel; what each came to, in their order.

    The node `name` inside the scope of `context` holds one node per call (`s3` for number 3). A
    call that fails is an observation and no failure of the run; but where nobody knows whether one
    was carried out that must not be repeated, the run ends the node (see
    `weft.engine.scheduler.effects`).

    Raises: `AgentError` when the calls could not be made at all.
    """
    place = inside(context.scope, name)
    nodes = tuple(
        Node(
            inside(place, f"s{call.number}"),
            tool_call_fn(tools, call),
            policy=Policy(resource=resource_of(tools, call.tool)),
            kind="tool",
            identity=identity("tool", call),
        )
        for call in calls
    )
    ids = tuple(node.id for node in nodes)

    async def begin(_: NodeContext, __: Inputs) -> Expand:
        return Expand(nodes, ids, ended, best_effort())

    async def ended(round_: NodeContext, _: Any) -> tuple[Outcome, ...]:
        return tuple([await round_.outcome(node) for node in ids])

    context.append([Node(place, begin, kind="calls", identity=identity("tools", list(calls)))])
    outcome = await context.outcome(place)
    if not outcome.ok:
        raise AgentError(f"no call was made: {outcome.failure or outcome.status}", node=place)
    return tuple(
        Observation(call.number, call.tool, call.arguments, end)
        for call, end in zip(calls, outcome.value, strict=True)
    )


def tool_call_fn(tools: ToolRunner, call: Call) -> NodeFn:
    """A work that makes `call`."""

    async def work(context: NodeContext, _: Inputs) -> Any:
        if call.problem:
            context.log(excerpt(call.tool, 80))
            raise ToolArgumentError(call.problem)
        return await logged_call(context, tools, call.tool, call.arguments)

    return work


async def logged_call(
    context: NodeContext, tools: ToolRunner, tool: str, arguments: Mapping[str, Any]
) -> Any:
    """The result of the call, which is logged; log lines of the tool become the node's."""
    context.log(f"{excerpt(tool, 80)} {excerpt(text_of(arguments), _LOGGED_CHARS)}")
    with tool_logs(context.log):
        return await tools.call(tool, arguments)


REPEATS: Final = 2
"""So many turns in which all calls were made before are told to the model; then it has to answer.
"""


def repeatable(specs: Iterable[ToolSpec]) -> frozenset[str]:
    """The tools of which an equal call comes to an equal result, with no effect that is new."""
    return frozenset(spec.name for spec in specs if spec.repeatable)


class RepeatedCalls:
    """The calls of one run. A call that failed in a way that may pass is not held to be made."""

    def __init__(self, tools: ToolRunner) -> None:
        self._tools = tools
        self._repeatable = repeatable(tools.specs())
        self._made: dict[str, Observation] = {}
        self._circles = 0

    @property
    def too_many(self) -> bool:
        """Whether the model keeps asking for what it was told."""
        return self._circles >= REPEATS

    def before(self, call: Call) -> Observation | None:
        """The equal call that was made, if there is one."""
        return self._made.get(key_of(call.tool, call.arguments))

    async def call_all(
        self, context: NodeContext, name: str, calls: Sequence[Call]
    ) -> tuple[Observation, ...]:
        """Make those of `calls` that were not made before; what all came to, in their order.

        Raises: what `weft.agents.loops.tool_calls.call_all` raises.
        """
        first: dict[str, Call] = {}
        for call in calls:
            if call.problem or self.before(call) is None:
                first.setdefault(_place(call), call)
        self._circles += not first
        fresh = list(first.values())
        made = await call_all(context, name, self._tools, fresh) if fresh else ()
        for observation in made:
            self._note(observation)
        found = {observation.number: observation for observation in made}
        return tuple(found.get(call.number) or self._again(context, call, made) for call in calls)

    def _note(self, observation: Observation) -> None:
        failure = observation.outcome.failure
        if failure is None or not failure.retryable:
            self._made.setdefault(key_of(observation.tool, observation.arguments), observation)

    def _again(self, context: NodeContext, call: Call, made: Sequence[Observation]) -> Observation:
        """What a call comes to that is not made: its result, or why it is refused."""
        key = key_of(call.tool, call.arguments)
        before = self.before(call) or next(
            one for one in made if key_of(one.tool, one.arguments) == key
        )
        context.log(f"not made again: the same as call {before.number}")
        if before.outcome.ok and call.tool in self._repeatable:
            return replace(before, number=call.number, outcome=replace(before.outcome, via="cache"))
        refused = Outcome("failed", failure=ToolArgumentError(repeated(before.number)).failure())
        return Observation(call.number, call.tool, call.arguments, refused)


def _place(call: Call) -> str:
    """Equal for calls of which one is enough. What cannot be read is never enough."""
    return f"{call.number}" if call.problem else key_of(call.tool, call.arguments)


def key_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """Equal for equal calls."""
    return json.dumps([tool, arguments], sort_keys=True, default=str)
