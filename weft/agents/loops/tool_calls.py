"""Tool calls that a model requested, as nodes; equal calls are not repeated.

A failed call is an observation. A repeated call of a repeatable tool gets the earlier result; of
other tools it is refused, so that a model has to request a second effect explicitly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from weft.agents.agent import Observation
from weft.agents.chat.model_output import excerpt, text_of
from weft.agents.chat.prompt import repeated
from weft.agents.tools import tool_logs
from weft.agents.tools.approval import arguments_made
from weft.agents.tools.toolbox import settings_of
from weft.core.errors import AgentError, ToolArgumentError
from weft.core.events import Outcome
from weft.core.ids import NodeId, inside
from weft.core.ports import ToolRunner
from weft.core.values import ToolSpec
from weft.durability.calls.digest import identity
from weft.engine import Expand, Inputs, Node, NodeContext, NodeFn, Policy, best_effort

_LOGGED_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class Call:  # its name and fields are in stored identities of nodes: see `call_all`
    """A tool call that an agent requested. `number` counts the calls of a run, from 1.

    `problem`: why it cannot be tried; making it fails with this text.
    """

    number: int
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


async def call_all(
    context: NodeContext, name: str, tools: ToolRunner, calls: Sequence[Call]
) -> tuple[Observation, ...]:
    """Make all `calls` in parallel; returns their observations in order.

    The node `name` inside the scope of `context` holds one node per call (`s3` for number 3). A
    failed call is an observation and does not fail the run; but where it is unknown whether a call
    that must not be repeated was made, the run ends the node (see
    `weft.engine.scheduler.effects`).

    Raises: `AgentError` when the calls could not be made at all.
    """
    place = inside(context.scope, name)
    nodes = tuple(
        Node(
            inside(place, f"s{call.number}"),
            tool_call_fn(tools, call),
            policy=Policy(**settings_of(tools, call.tool)._asdict()),
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
        observation_of(context, node, Observation(call.number, call.tool, call.arguments, end))
        for node, call, end in zip(ids, calls, outcome.value, strict=True)
    )


def observation_of(context: NodeContext, node: NodeId, requested: Observation) -> Observation:
    """The call that the ended `node` made: `requested`, or what a person made of it."""
    own = requested.arguments
    made = arguments_made(context, node, requested.tool, own)
    return requested if made == own else replace(requested, arguments=made, requested=own)


def tool_call_fn(tools: ToolRunner, call: Call) -> NodeFn:
    """A node function that makes `call`."""

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
"""The number of rounds with only repeated calls after which the model has to answer."""


def repeatable(specs: Iterable[ToolSpec]) -> frozenset[str]:
    """The tools for which an equal call has an equal result and no new effect."""
    return frozenset(spec.name for spec in specs if spec.repeatable)


class RepeatedCalls:
    """The calls of one run, to detect repetitions. A call with a retryable failure may repeat.

    `state` gives what results depend on besides the arguments: calls in different states are
    different ones.
    """

    def __init__(self, tools: ToolRunner, state: Callable[[], str] = lambda: "") -> None:
        self._tools = tools
        self._state = state
        self._repeatable = repeatable(tools.specs())
        self._made: dict[str, Observation] = {}
        self._repeated_rounds = 0

    @property
    def too_many(self) -> bool:
        """Whether the model keeps repeating calls."""
        return self._repeated_rounds >= REPEATS

    def before(self, call: Call) -> Observation | None:
        """The earlier equal call, or None."""
        return self._made.get(self._key(call.tool, call.arguments))

    async def call_all(
        self, context: NodeContext, name: str, calls: Sequence[Call]
    ) -> tuple[Observation, ...]:
        """Make the new ones of `calls`; returns the observations of all, in order.

        Raises: what `weft.agents.loops.tool_calls.call_all` raises.
        """
        first: dict[str, Call] = {}
        for call in calls:
            if call.problem or self.before(call) is None:
                first.setdefault(_place(call), call)
        self._repeated_rounds += not first
        fresh = list(first.values())
        made = await call_all(context, name, self._tools, fresh) if fresh else ()
        for observation in made:
            self._note(observation)
        found = {observation.number: observation for observation in made}
        return tuple(found.get(call.number) or self._repeat(context, call, made) for call in calls)

    def _note(self, observation: Observation) -> None:
        failure = observation.outcome.failure
        if failure is None or not failure.retryable:
            for arguments in (observation.requested, observation.arguments):
                if arguments is not None:
                    self._made.setdefault(self._key(observation.tool, arguments), observation)

    def _key(self, tool: str, arguments: Mapping[str, Any]) -> str:
        return self._state() + key_of(tool, arguments)

    def _repeat(self, context: NodeContext, call: Call, made: Sequence[Observation]) -> Observation:
        """The observation of a call that is not repeated: its result, or a refusal."""
        key = key_of(call.tool, call.arguments)
        before = self.before(call) or next(
            one for one in made if key_of(one.tool, _requested(one)) == key
        )
        context.log(f"not made again: the same as call {before.number}")
        if before.outcome.ok and call.tool in self._repeatable:
            return replace(before, number=call.number, outcome=replace(before.outcome, via="cache"))
        why = ToolArgumentError(repeated(before.number)).failure()
        refused = Outcome("failed", failure=why, attempts=0)
        return Observation(call.number, call.tool, call.arguments, refused)


def _requested(observation: Observation) -> Mapping[str, Any]:
    """The arguments that the model gave."""
    own = observation.requested
    return observation.arguments if own is None else own


def _place(call: Call) -> str:
    """A key that is equal for calls of which one is enough; unreadable calls are all different."""
    return f"{call.number}" if call.problem else key_of(call.tool, call.arguments)


def key_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """A text that is equal for equal calls."""
    return json.dumps([tool, arguments], sort_keys=True, default=str)
