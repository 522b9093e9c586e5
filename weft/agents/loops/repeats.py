"""Calls that were made before: what they came to is taken again, or the model is told so.

Calls of tools that change nothing more when they are called again come to the result there is;
others are refused: a model that wants an effect twice has to ask for something different.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from weft.agents.agent import Observation
from weft.agents.loops.call import Call, call_all
from weft.agents.loops.prompts.turns import repeated
from weft.core.errors import ToolArgumentError
from weft.core.events import Outcome
from weft.core.ports import ToolRunner
from weft.core.values import ToolSpec
from weft.engine import NodeContext

REPEATS: Final = 2
"""So many turns in which all calls were made before are told to the model; then it has to answer.
"""


def repeatable(specs: Iterable[ToolSpec]) -> frozenset[str]:
    """The tools of which an equal call comes to an equal result, with no effect that is new."""
    return frozenset(
        spec.name for spec in specs if spec.pure or spec.effect in ("pure", "idempotent")
    )


class Repeats:
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

        Raises: what `weft.agents.loops.call.call_all` raises.
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
