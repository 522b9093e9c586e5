"""What came of one question to a model. Knows no prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from weft.core.events import Outcome
from weft.core.generated_text import is_blank, without_thought
from weft.core.values import Completion
from weft.reasoning.thread.chat_call import Spent


@dataclass(frozen=True, slots=True)
class Said:
    """What the model said.

    finished   it came to its end
    length     it was cut off at its share of tokens
    failed     the call failed, or its prompt fills the window; `text` is what came before
    refused    it was not asked: no tokens are left for it

    `text` is without the reasoning that some models write before their answer. `reason` says why
    there is none.
    """

    text: str
    status: Literal["finished", "length", "failed", "refused"] = "finished"
    tokens: int = 0
    reason: str = ""

    @property
    def ok(self) -> bool:
        """Whether the model said something, were it cut off."""
        return self.status in ("finished", "length") and bool(self.text)

    @property
    def cut(self) -> bool:
        """Whether the model had more to say than its share of tokens."""
        return self.status == "length"


def said(outcome: Outcome, spent: Spent, lead: str = "") -> Said:
    """What came of a call whose node ended with `outcome`, after it had `spent`.

    `lead`: how the answer begins; the model went on from there.
    """
    completion = outcome.value
    if isinstance(completion, Completion):
        status: Literal["finished", "length"] = (
            "length" if completion.finish_reason == "length" else "finished"
        )
        text = _answer(lead, completion.text)
        return Said(text, status, spent.tokens, "" if text else _why_nothing(completion))
    why = str(outcome.failure or f"the call was {outcome.status}")
    return Said(_answer(lead, "".join(spent.text)), "failed", spent.tokens, why)


def _answer(lead: str, text: str) -> str:
    answer = without_thought(lead + text).strip() if text else ""
    return "" if is_blank(answer) else answer


def _why_nothing(completion: Completion) -> str:
    """Why a model that came to an end has no answer."""
    thought = completion.reasoning.strip() or "<think>" in completion.text
    if completion.finish_reason != "length":
        return (
            "the model thought, and answered nothing" if thought else "the model answered nothing"
        )
    return f"its tokens were spent {'on thought ' if thought else ''}before it answered"
