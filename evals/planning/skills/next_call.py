"""The next call of a dialogue: which tool, with which arguments, or none while the user speaks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from evals.planning.quality.ast_match import standard
from evals.planning.quality.f1 import f1
from evals.planning.skills.case import Answer, Scores, Skill, SkillCase, abstained, readable
from evals.planning.skills.dialogues import Dialogue, Turn, dialogues, transcript
from weft.planner.plan import Plan, PlanStep

_ASK: Final = (
    "Below is a dialogue up to now. Write the one call that must be made next, with all arguments "
    "in full; or, if the user has to speak first, no call: 1. join()"
)


def skill() -> Skill:
    """Cut before each call, and before each later turn of the user. Raises: `Skipped`."""
    found, _ = dialogues()
    cases = [case for dialogue in found for case in _cases(dialogue)]
    kept = [case for case in cases if readable(case)]
    left_out = len(cases) - len(kept)
    return Skill("next_best", "right", kept, left_out, stratum=lambda case: case.abstains)


def _cases(dialogue: Dialogue) -> Iterator[SkillCase]:
    for place, turn in enumerate(dialogue.turns):
        if place and turn.role in {"API", "User"}:
            yield _case(dialogue, place, turn)


def _case(dialogue: Dialogue, place: int, turn: Turn) -> SkillCase:
    question = f"{_ASK}\n\n{transcript(dialogue.turns[:place])}"
    name = f"{dialogue.id}:{place}"
    if turn.role == "User":

        def waits(answer: Answer) -> Scores:
            right = float(abstained(answer, dialogue.tools))
            return {"right": right, "abstains": right}

        nothing = {"right": 0.0, "abstains": 0.0}
        return SkillCase(name, question, dialogue.tools, Plan(), waits, nothing, abstains=True)
    gold = PlanStep(1, turn.tool, dict(turn.arguments or {}))

    def calls(answer: Answer) -> Scores:
        assert answer.plan is not None
        return call_scores(answer.plan, gold)

    nothing = {"right": 0.0, "name": 0.0, "arguments_f1": 0.0}
    return SkillCase(name, question, dialogue.tools, Plan((gold,)), calls, nothing)


def call_scores(plan: Plan, gold: PlanStep) -> Scores:
    """`right`: this call alone. `name` and `arguments_f1`: of the first call; arguments count only
    under the right name. Texts are compared as BFCL does.
    """
    if not plan.steps or plan.steps[0].tool != gold.tool:
        return {"right": 0.0, "name": 0.0, "arguments_f1": 0.0}
    found = f1(_spelt(plan.steps[0]), _spelt(gold))
    return {
        "right": float(found == 1.0 and len(plan.steps) == 1),
        "name": 1.0,
        "arguments_f1": found,
    }


def _spelt(step: PlanStep) -> list[tuple[str, str]]:
    return [(name, standard(str(value))) for name, value in step.arguments.items()]
