"""The reply after a call: are the facts of its result told, and none invented? API-Bank."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from evals.planning.skills.case import Answer, Scores, Skill, SkillCase
from evals.planning.skills.dialogues import Dialogue, Turn, dialogues, transcript
from evals.planning.skills.facts import echoes, result_facts, stated, supported
from weft.core.values import ToolSpec

_ASK: Final = (
    "Below is a dialogue up to now. Tell the user in a few sentences what the last result says. "
    "Use nothing that is not in it."
)
RESPOND: Final = ToolSpec(
    "respond",
    "Tells the user something.",
    {
        "type": "object",
        "properties": {"text": {"type": "string", "maxLength": 600}},
        "required": ["text"],
        "additionalProperties": False,
    },
)
"""The tool whose text is the reply where a plan is asked for, as it is under the grammar."""

_NOTHING: Final[Scores] = {
    "facts": 0.0,
    "told_facts": 0.0,
    "unsupported_facts": None,
    "echoed": None,
}


def skill() -> Skill:
    """Replies to a result, whose recorded reply tells facts of it. Raises: `Skipped`.

    The facts to tell are those of the result that the recorded reply tells. Items are left out
    where it tells none ("success"), where it invents some itself, or repeats the dialogue.
    """
    found, _ = dialogues()
    cases = [case for dialogue in found for case in _cases(dialogue)]
    kept = [case for case in cases if _is_right(case)]
    return Skill("response", "facts", kept, len(cases) - len(kept))


def _is_right(case: SkillCase) -> bool:
    return case.score(Answer(text=case.reply))["facts"] == 1.0


def _cases(dialogue: Dialogue) -> Iterator[SkillCase]:
    for place, turn in enumerate(dialogue.turns[:-1]):
        following = dialogue.turns[place + 1]
        if turn.tool and following.role == "AI":
            yield _case(dialogue, place, turn, following)


def _case(dialogue: Dialogue, place: int, turn: Turn, reply: Turn) -> SkillCase:
    before = dialogue.turns[: place + 1]
    shown = supported(transcript(before))
    due = result_facts(turn.result) & supported(reply.text) & shown
    given = shown | supported(json.dumps(turn.result, ensure_ascii=False))
    said = "\n".join(one.text for one in before)

    def score(answer: Answer) -> Scores:
        text = reply_text(answer)
        told = due & supported(text)
        invented = stated(text) - given
        echoed = echoes(text, said)
        size = len(due) + len(invented)
        return {
            "facts": len(told) / size if size and not echoed else 0.0,
            "told_facts": len(told) / len(due) if due else 0.0,
            "unsupported_facts": float(len(invented)),
            "echoed": float(echoed),
        }

    question = f"{_ASK}\n\n{transcript(before)}"
    name = f"{dialogue.id}:{place}"
    return SkillCase(name, question, (RESPOND,), None, score, _NOTHING, reply=reply.text)


def reply_text(answer: Answer) -> str:
    """What the user is told: the text, or what a plan responds, in all its calls."""
    if answer.plan is None:
        return answer.text
    return "\n".join(str(step.arguments.get("text", "")) for step in answer.plan.steps)
