"""A model as judge: it compares an answer with the expected one, in both orders and blinded.

It sees the two as A and B, never which one is the candidate's. An answer that is preferred, or as
good, in both orders scores 1; one that loses in both 0; a judge that contradicts itself one half.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from weft.agents.tools import tool
from weft.core.errors import ModelOutputError, TypeMismatch
from weft.evaluation.metric import Score, answer_in
from weft.reasoning.question import Question
from weft.reasoning.selection.prompts import excerpt, judge_messages

ANSWERS: Final = {"enum": ["A", "B", "C"]}
"""The schema of a judge's answer: A or B is better, or C, neither."""
_POINTS: Final = {"A": 1.0, "C": 0.5, "B": 0.0}


@tool
def messages(
    case: Mapping[str, Any], outputs: Any, options: Mapping[str, Any]
) -> list[dict[str, str]]:
    """The messages to the judge. `options.swapped`: the expected answer is A. Raises:
    `TypeMismatch` where nothing is expected.
    """
    if case["expected"] is None:
        hint = "a judge compares with it; without one use a metric function of your own"
        raise TypeMismatch(f"case {case['id']} says nothing of what is expected", hint=hint)
    pair = [excerpt(_text(answer_in(outputs, options))), excerpt(_text(case["expected"]))]
    one, other = reversed(pair) if options.get("swapped") else pair
    question = Question(_text(case["inputs"]), str(options.get("criteria") or ""))
    found = judge_messages(question, one, other)
    return [{"role": message.role, "content": message.content} for message in found]


@tool
def verdict(forth: str | None, back: str | None) -> Score:
    """The score of the two judgements. Raises: `ModelOutputError` where one is missing.

    A candidate that is as good as the expected answer is right: C counts like a win.
    """
    if forth not in _POINTS or back not in _POINTS:
        raise ModelOutputError("the judge did not say A, B or C")
    lost = (forth == "B", back == "A")
    parts = {"forth": _POINTS[forth], "back": 1 - _POINTS[back]}
    said = "worse" if all(lost) else "as good, or better" if not any(lost) else "order decides"
    return Score(1 - sum(lost) / 2, f"the judge: {said}", parts)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
