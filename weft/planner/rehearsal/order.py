"""Order-only dependencies that make the steps of a plan safe to run in parallel.

Two steps keep their order if one makes or undoes what the other needs, or undoes what the other
makes: the read-after-write, write-after-read and write-after-write hazards of instruction
scheduling. All other steps may run at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from weft.planner.plan import PlanStep
from weft.planner.rehearsal.literals import UNCHANGED, StateChange


@dataclass(frozen=True, slots=True)
class StepAccess:
    """The bits that a step reads, and its change."""

    reads: int = 0
    change: StateChange = UNCHANGED

    def conflicts(self, later: StepAccess) -> bool:
        """Whether `later` has to wait for this step."""
        mine, its = self.change, later.change
        return bool(
            mine.adds & later.reads
            | self.reads & its.removes
            | mine.adds & its.removes
            | mine.removes & its.adds
        )


def ordered(steps: Sequence[PlanStep], accesses: Sequence[StepAccess]) -> tuple[PlanStep, ...]:
    """`steps` with `after` where they conflict and no reference or other order keeps them apart."""
    places = {step.number: place for place, step in enumerate(steps)}
    before: list[set[int]] = []
    found = []
    for place, (step, access) in enumerate(zip(steps, accesses, strict=True)):
        waits = {places[number] for number in step.needs if number in places}
        known = waits.union(*(before[other] for other in waits))
        extra = []
        for other in reversed(range(place)):
            if other not in known and accesses[other].conflicts(access):
                extra.append(steps[other].number)
                known |= {other} | before[other]
        before.append(known)
        found.append(replace(step, after=tuple(sorted({*step.after, *extra}))) if extra else step)
    return tuple(found)
