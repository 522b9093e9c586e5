"""The one plan that an agent's rounds amount to: what led to the answer, without what failed.

Runs nothing; see `weft.workflow.planned` for making a workflow of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.agents.agent import Answer
from weft.planner.plan import Plan, Ref, Step


def merged(answer: Answer) -> Plan:
    """The steps of all rounds that did not fail and that the last plan's results need.

    Results of steps that failed are dropped. With nothing named, or nothing left of what was named,
    all steps that did not fail stay. Steps that a condition left out stay as well.
    """
    steps = {step.number: step for plan in answer.plans for step in plan.steps}
    failed = {call.number for call in answer.calls if call.outcome.failure and not call.outcome.ok}
    done = {number: step for number, step in steps.items() if number not in failed}
    results = answer.plans[-1].results if answer.plans else ()
    kept = tuple(ref for ref in results if ref.source in done)
    if not kept:
        return Plan(tuple(done[number] for number in sorted(done)))
    needed = _needed(kept, done)
    return Plan(tuple(done[number] for number in sorted(needed)), kept)


def _needed(results: Iterable[Ref], done: dict[int, Step]) -> set[int]:
    found: set[int] = set()
    doubtful = [ref.source for ref in results if isinstance(ref.source, int)]
    while doubtful:
        number = doubtful.pop()
        if number not in found and number in done:
            found.add(number)
            doubtful += done[number].needs
    return found
