"""Says whether a question suits an answer in independent points. Knows no model.

After the router of Skeleton-of-Thought (arXiv 2307.15337, section 5): answers whose steps need one
another, such as mathematics and code, get worse when their parts are written apart.
"""

from __future__ import annotations

import re
from typing import Final

from weft.reasoning.question import Question

_CODE: Final = (
    r"```|\bdef \w+\(|\b(?:in|using) (?:python|java|rust|sql|c\+\+)(?!\w)"
    r"|\b(?:write|implement|debug|refactor)\b.{0,60}"
    r"\b(?:code|function|program|script|class|query|regex)\b"
)
_CALCULATION: Final = (
    r"\d\s*[-+*/^=\u00d7\u00f7]\s*\d|\bhow (?:many|much|old|far|fast)\b|\\(?:frac|sum|int)\b"
    r"|\b(?:calculate|compute|solve|equation|probability that)\b"
)
_CHAIN: Final = r"\b(?:prove|proof|derive|step[- ]by[- ]step)\b"
_FLOWING: Final = r"\b(?:write|tell)\b.{0,30}\b(?:story|poem|song|novel|joke)\b"
_GIVEN: Final = r"\b(?:translate|summari[sz]e|rewrite|proofread)\b"
_SHORT: Final = r"\A\s*(?:who|when|where|which|is|are|was|were|does|do|did)\b.{0,80}\Z"
_UNSUITABLE: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), why)
    for pattern, why in (
        (_CODE, "code"),
        (_CALCULATION, "a calculation"),
        (_CHAIN, "steps that need one another"),
        (_FLOWING, "one flowing text"),
        (_GIVEN, "work on a given text"),
        (_SHORT, "a short answer"),
    )
)
_LETTER: Final = re.compile(r"\b([AB])\b")


def unsuitable(question: Question) -> str:
    """Why points do not suit `question`, in words; empty: nothing speaks against them."""
    if question.schema is not None:
        return "it asks for one value of a given form"
    for pattern, why in _UNSUITABLE:
        if pattern.search(question.text):
            return f"it asks for {why}"
    return ""


def read_route(text: str) -> bool | None:
    """Whether a model says that points suit the question; None: it does not say."""
    letter = _LETTER.search(text)
    return None if letter is None else letter[1] == "A"
