"""Calls of tools that a model asked for, as nodes. Knows no model; failures are observations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from weft.agents.agent import Observation
from weft.agents.loops.excerpt import excerpt, text_of
from weft.agents.slots import resource_of
from weft.agents.tools import tool_logs
from weft.core.errors import AgentError, ToolArgumentError
from weft.core.events import Outcome
from weft.core.ids import inside
from weft.core.ports import ToolRunner
from weft.engine import Grow, Inputs, Node, NodeContext, Policy, Work, best_effort
from weft.engine.cassette.digest import identity

_LOGGED_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is wanted. `number` counts the calls of a run, from 1.

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
    was carried out that must not be repeated, the run ends the node (see `weft.engine.effects`).

    Raises: `AgentError` when the calls could not be made at all.
    """
    place = inside(context.scope, name)
    nodes = tuple(
        Node(
            inside(place, f"s{call.number}"),
            calling(tools, call),
            policy=Policy(resource=resource_of(tools, call.tool)),
            kind="tool",
            identity=identity("tool", call),
        )
        for call in calls
    )
    ids = tuple(node.id for node in nodes)

    async def begin(_: NodeContext, __: Inputs) -> Grow:
        return Grow(nodes, ids, ended, best_effort())

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


def calling(tools: ToolRunner, call: Call) -> Work:
    """A work that makes `call`; log lines of the tool become the node's."""

    async def work(context: NodeContext, _: Inputs) -> Any:
        context.log(f"{excerpt(call.tool, 80)} {excerpt(text_of(call.arguments), _LOGGED_CHARS)}")
        if call.problem:
            raise ToolArgumentError(call.problem)
        with tool_logs(context.log):
            return await tools.call(call.tool, call.arguments)

    return work
