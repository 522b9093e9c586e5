"""What one round of planning hands to the next: what is done, what failed, what it blocked.

Knows no model and no prompt; see `weft.planner.prompt` for how a model is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.core.errors import Failure
from weft.core.events import Outcome
from weft.core.schema import array_of
from weft.core.values import JsonSchema, ToolSpec
from weft.planner.inferred import schema_of
from weft.planner.plan import Step
from weft.planner.rendering import short


@dataclass(frozen=True, slots=True)
class Done:
    """A step that succeeded: its value, and the schema by which others refer to parts of it."""

    step: Step
    value: Any
    schema: JsonSchema | None

    @property
    def shown(self) -> str:
        """The value as a short line."""
        return short(self.value)


@dataclass(frozen=True, slots=True)
class Failed:
    """A step whose call failed, and why."""

    step: Step
    failure: Failure


@dataclass(frozen=True, slots=True)
class Blocked:
    """A step that was never begun: it needs, directly or not, the failed steps `by`."""

    step: Step
    by: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Carried:
    """The state of a plan between two rounds, in the order of the steps.

    `left_out`: steps whose condition did not hold, and what refers to them. `thought`: what whoever
    asked for another round said is missing. `next_number`: where numbers go on.
    """

    done: tuple[Done, ...] = ()
    failed: tuple[Failed, ...] = ()
    blocked: tuple[Blocked, ...] = ()
    left_out: tuple[Step, ...] = ()
    thought: str = ""
    next_number: int = 1

    @property
    def known(self) -> Mapping[int, JsonSchema | None]:
        """The steps that may be referred to, with the schemas of their results."""
        return {done.step.number: done.schema for done in self.done}


def carry(
    steps: Sequence[Step],
    outcomes: Mapping[int, Outcome],
    specs: Sequence[ToolSpec],
    thought: str = "",
    *,
    since: int = 0,
) -> Carried:
    """What has become of `steps`, all of which have ended as `outcomes` says, by number.

    What was blocked, or left out, before step `since` is history and not carried any further.
    """
    done: list[Done] = []
    failed: dict[int, Failed] = {}
    blocked: dict[int, Blocked] = {}
    left_out: list[Step] = []
    for step in steps:
        outcome = outcomes[step.number]
        if outcome.ok:
            schema = promised(step, specs) or schema_of(outcome.value)
            done.append(Done(step, outcome.value, schema))
        elif outcome.failure is None:
            left_out.append(step)
        elif by := _blocking(step, failed, blocked):
            blocked[step.number] = Blocked(step, by)
        else:
            failed[step.number] = Failed(step, outcome.failure)
    return Carried(
        tuple(done),
        tuple(failed.values()),
        tuple(found for number, found in blocked.items() if number >= since),
        tuple(step for step in left_out if step.number >= since),
        thought,
        max((step.number for step in steps), default=0) + 1,
    )


def promised(step: Step, specs: Sequence[ToolSpec]) -> JsonSchema | None:
    """The schema of what the tool of `step` says it returns, for each item where it is a map."""
    result = next((spec.result for spec in specs if spec.name == step.tool), None)
    if result is None or step.over is None:
        return result
    return array_of(result)


def _blocking(
    step: Step, failed: Mapping[int, Failed], blocked: Mapping[int, Blocked]
) -> tuple[int, ...]:
    """The failed steps that `step` needs, directly or through others."""
    found: set[int] = set()
    for number in step.needs:
        if number in failed:
            found.add(number)
        elif number in blocked:
            found.update(blocked[number].by)
    return tuple(sorted(found))
