"""The one plan that an agent's rounds amount to: what led to the answer, without what failed.

Runs nothing; see `weft.workflow.planned` for making a workflow of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from weft.agents.agent import Answer
from weft.planner.plan import Plan, Ref, Step
from weft.planner.renamed import renamed, renamed_ref
from weft.planner.text.writer import write_step


def merged(answer: Answer) -> Plan:
    """The steps of all rounds that did not fail and that the last plan's results need.

    A step that says the same as one of an earlier round is that one. Results of steps that failed
    are dropped. With nothing named, or nothing left of what was named, all steps that did not fail
    stay. Steps that a condition left out stay as well.
    """
    failed = _failed(answer)
    done: dict[int, Step] = {}
    said: dict[str, int] = {}
    names: dict[int, int] = {}
    for plan in answer.plans:
        before = dict(said)
        for written in plan.steps:
            if written.number in failed:
                continue
            step = renamed(written, names)
            key = write_step(replace(step, number=0))
            if key in before:
                names[step.number] = before[key]
            else:
                done[step.number] = step
                said.setdefault(key, step.number)
    results = answer.plans[-1].results if answer.plans else ()
    kept = tuple(ref for ref in (renamed_ref(r, names) for r in results) if ref.source in done)
    needed = _needed(kept, done) if kept else done.keys()
    return Plan(tuple(done[number] for number in sorted(needed)), kept)


def _failed(answer: Answer) -> set[int]:
    """The steps of which a call failed; the last call decides where a number was used again."""
    used = Counter(step.number for plan in answer.plans for step in plan.steps)
    found: set[int] = set()
    for call in answer.calls:
        if call.outcome.failure is not None and not call.outcome.ok:
            found.add(call.number)
        elif used[call.number] > 1:
            found.discard(call.number)
    return found


def _needed(results: Iterable[Ref], done: Mapping[int, Step]) -> set[int]:
    found: set[int] = set()
    doubtful = [ref.source for ref in results if isinstance(ref.source, int)]
    while doubtful:
        number = doubtful.pop()
        if number not in found and number in done:
            found.add(number)
            doubtful += done[number].needs
    return found
