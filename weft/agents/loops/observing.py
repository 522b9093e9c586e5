"""What the steps of a plan came to, as observations in the order of the plan. Makes no calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from weft.agents.agent import Observation
from weft.agents.loops.ledger import Entry, Ledger
from weft.core.events import Outcome
from weft.core.ids import NodeId
from weft.engine import NodeContext
from weft.planner.plan import Ref, Step, Value
from weft.planner.text.writer import write_ref


async def observed(
    context: NodeContext,
    steps: Mapping[int, Step],
    outcomes: Mapping[int, Outcome],
    ledger: Ledger,
) -> tuple[Observation, ...]:
    """Every call of `steps`, all of which have ended, whatever order they ended in.

    A result that was taken over from an earlier call is marked `via="cache"`. A step without a
    call, or that went wrong for another reason than its calls, is an observation of its own.
    """
    found: list[Observation] = []
    for number, step in sorted(steps.items()):
        entries = sorted(ledger.of(number), key=lambda entry: _place(entry.node))
        calls = [await _call(context, step, entry) for entry in entries]
        found += calls
        if not calls or (not outcomes[number].ok and all(call.outcome.ok for call in calls)):
            arguments = {name: as_text(value) for name, value in step.arguments.items()}
            found.append(Observation(number, step.tool, arguments, outcomes[number]))
    return tuple(found)


async def _call(context: NodeContext, step: Step, entry: Entry) -> Observation:
    outcome = await context.outcome(entry.node)
    if entry.reused and outcome.ok:
        outcome = replace(outcome, via="cache")
    return Observation(entry.step, step.tool, entry.arguments, outcome)


def _place(node: NodeId) -> tuple[int, str]:
    """Sorts the items of one map by their index: `s4[9]` before `s4[10]`."""
    return len(node), node


def as_text(value: Value) -> Value:
    """`value` as plain JSON data, in which references are the text that was written."""
    if isinstance(value, Ref):
        return write_ref(value)
    if isinstance(value, Mapping):
        return {name: as_text(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [as_text(item) for item in value]
    return value
