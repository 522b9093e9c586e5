"""The one plan that an agent's rounds amount to: what led to the answer, without what failed."""

from __future__ import annotations

from collections.abc import Iterable

from weft.agents.agent import Answer
from weft.planner.plan import Plan, Ref, Step


def merged(answer: Answer) -> Plan:
    """The steps that succeeded and that the last plan's results need, from all rounds.

    Results of steps that did not succeed are dropped. With nothing named, or nothing left of what
    was named, all steps that succeeded stay.
    """
    steps = {step.number: step for plan in answer.plans for step in plan.steps}
    done = {number: step for number, step in steps.items() if number in _succeeded(answer)}
    results = answer.plans[-1].results if answer.plans else ()
    kept = tuple(ref for ref in results if ref.source in done)
    if not kept:
        return Plan(tuple(done[number] for number in sorted(done)))
    needed = _needed(kept, done)
    return Plan(tuple(done[number] for number in sorted(needed)), kept)


def _succeeded(answer: Answer) -> set[int]:
    """The steps of which every call succeeded."""
    failed = {call.number for call in answer.calls if not call.outcome.ok}
    return {call.number for call in answer.calls} - failed


def _needed(results: Iterable[Ref], done: dict[int, Step]) -> set[int]:
    found: set[int] = set()
    doubtful = [ref.source for ref in results if isinstance(ref.source, int)]
    while doubtful:
        number = doubtful.pop()
        if number not in found and number in done:
            found.add(number)
            doubtful += done[number].needs
    return found
