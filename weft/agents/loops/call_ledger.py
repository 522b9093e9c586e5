"""The calls of one agent's run: bounded, and none repeated after success."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from weft.agents.loops.tool_calls import logged_call, repeatable
from weft.core.errors import BudgetExceeded, NodeFailed
from weft.core.ids import NodeId
from weft.core.ports import ToolRunner
from weft.engine import NodeCache, NodeContext
from weft.engine.graph import content_digest
from weft.planner.plan import PlanStep


@dataclass(frozen=True, slots=True)
class CallLedgerEntry:
    """A call by a node, or its reuse of the earlier one of the node `reused`."""

    node: NodeId
    step: int
    arguments: Mapping[str, Any]
    planning: int
    reused: NodeId | None = None


class CallLedger:
    """Makes calls of `tools`, at most `limit` in all.

    An equal call (same tool, equal arguments) of an earlier planning is not repeated: its result is
    reused. A running one is awaited, and shared even if it fails; one that had failed before is
    tried once more. Equal calls of one planning are made once if the tool is repeatable; for other
    tools `PlanAttempt` rejects them. Calls of `changing` tools are made as often as they are
    written: they find another world each time.
    """

    def __init__(
        self, tools: ToolRunner, limit: int, changing: frozenset[str] = frozenset()
    ) -> None:
        self._tools = tools
        self._changing = changing
        self._repeatable = repeatable(tools.specs())
        self._limit = limit
        self._planning = 0
        self._plannings: dict[int, int] = {}
        self._entries: dict[NodeId, CallLedgerEntry] = {}
        self._equal: dict[str, list[CallLedgerEntry]] = {}
        self._running: set[NodeId] = set()
        self.made = 0

    @property
    def left(self) -> int:
        """The number of calls that may still be made."""
        return self._limit - self.made

    def next_planning(self) -> None:
        """Begin the next planning, whose planner knows all steps that began before."""
        self._planning += 1

    def begin(self, step: PlanStep) -> None:
        """Record that `step` belongs to the current planning."""
        self._plannings[step.number] = self._planning

    def of(self, step: int) -> Iterator[CallLedgerEntry]:
        """The calls of the step with this number, in starting order."""
        return (entry for entry in self._entries.values() if entry.step == step)

    async def call(self, context: NodeContext, step: PlanStep, arguments: Mapping[str, Any]) -> Any:
        """The result of the call that `step` makes in the node of `context`.

        Raises: `BudgetExceeded` beyond the limit; `NodeFailed` when the awaited equal call failed;
        what the tool raises.
        """
        entry = CallLedgerEntry(context.node, step.number, arguments, self._plannings[step.number])
        changing = step.tool in self._changing
        key = None if changing else content_digest.key(NodeCache(step.tool), arguments)
        equal = [] if key is None else self._equal.setdefault(key, [])
        same = step.tool in self._repeatable
        for before in [other for other in equal if same or other.planning != entry.planning]:
            shared = before.node in self._running
            outcome = await context.outcome(before.node)
            if outcome.ok:
                context.log(f"not made again: as in step {before.step}")
                self._entries[entry.node] = replace(entry, reused=before.node)
                return outcome.value
            if shared:
                raise NodeFailed(f"the same call failed in step {before.step}: {outcome.failure}")
        equal.append(entry)
        self._entries[entry.node] = entry
        return await self._make(context, step.tool, arguments)

    async def _make(self, context: NodeContext, tool: str, arguments: Mapping[str, Any]) -> Any:
        if self.left < 1:
            hint = "allow more calls, or ask for less"
            raise BudgetExceeded(f"all {self._limit} tool calls have been made", hint=hint)
        self.made += 1
        self._running.add(context.node)
        try:
            return await logged_call(context, self._tools, tool, arguments)
        finally:
            self._running.discard(context.node)
