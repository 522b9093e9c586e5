"""Extraction of the answer from a completion.

The last place that is marked as the answer counts, since models correct themselves.
"""

from __future__ import annotations

import re
from typing import Final

from weft.core.generated_text import THOUGHT_ENDS
from weft.reasoning.answers.number import number

LONGEST: Final = 400
"""Characters of the longest text that counts as an answer."""

_SHORT: Final = 40
_WORDS: Final = 2
_TAIL: Final = 20_000
_TAGGED: Final = re.compile(r"<answer>(.{0,400}?)</answer>", re.DOTALL | re.IGNORECASE)
_HASHES: Final = re.compile(r"^[ \t]*####[ \t]*(\S.*)$", re.MULTILINE)
_STATED: Final = re.compile(
    r"\b(?:final\s+)?(?:answer|result)\b[\s*_]*(?:is|are|:|=|\uff1a)[\s:*_]*"
    r"(?:equal\s+to\s+|that\s+)?([^\n]+)",
    re.IGNORECASE,
)
_SENTENCE_END: Final = re.compile(r"[.!?;](?:\s|$)|\*\*|\s*<[/a-z]")
_VALUE: Final = re.compile(
    r"(?:\A(?:so,?\s|then\s)?(?:it|that|this)(?:\s(?:is|equals|makes)|['\u2019]s)\s|=)"
    r"\s*([^=\n]{1,60}?)[\s.*$]*\Z",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"[-\u2212+]?\$?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:\s*/\s*\d+)?")


def answer_text(completion: str, *, whole: bool = True, numeric: bool = False) -> str | None:
    r"""The last marked answer of `completion`, as written, or None.

    The first form found counts: the last \boxed{...}, <answer>...</answer>, a line "#### ...", "the
    answer is ..." or "Answer: ..."; and, where `whole` says that the completion was not cut off,
    the number at the end of "... = 12" or of "It is 12.", or all of the text up to 400 characters.
    A number inside another sentence does not count, unless the answer is `numeric`: then the last
    number does, or a short line without any. Only the last 20,000 characters after a thought are
    read.
    """
    text = completion[-_TAIL:]
    for end in THOUGHT_ENDS:
        text = text.rpartition(end)[2]
    for found in (_boxed(text), _last(_TAGGED, text), _last(_HASHES, text), _stated(text)):
        if found:
            return found
    if not whole:
        return None
    return _last_number(text) if numeric else _unmarked(text)


def _last(pattern: re.Pattern[str], text: str) -> str | None:
    found = None
    for match in pattern.finditer(text):
        found = match[1].strip()
    return found if found and len(found) <= LONGEST else None


def _stated(text: str) -> str | None:
    found = _last(_STATED, text)
    if found is None or "$" in found[:1]:
        return found and _SENTENCE_END.split(found)[0].strip()
    return _SENTENCE_END.split(found)[0].strip(" \t:*_`")


def _boxed(text: str) -> str | None:
    r"""The content of the last \boxed or \fbox whose braces are closed."""
    end = len(text)
    while (start := max(text.rfind("\\boxed", 0, end), text.rfind("\\fbox", 0, end))) >= 0:
        opened = text.find("{", start, start + 10)
        closed = _closing(text, opened) if opened >= 0 else None
        if closed is not None:
            return text[opened + 1 : closed].strip()
        end = start
    return None


def _closing(text: str, opened: int) -> int | None:
    depth = 0
    for place in range(opened, min(len(text), opened + LONGEST)):
        depth += (text[place] == "{") - (text[place] == "}")
        if depth == 0:
            return place
    return None


def _unmarked(text: str) -> str | None:
    """The number at the end of a sentence like "It is 12.", or all of a short text."""
    answer = text.strip()
    stated = _VALUE.search(answer[-LONGEST:])
    value = "" if stated is None else stated[1].strip(" $*_`")
    if number(value) is not None:
        return value
    return answer if answer and len(answer) <= LONGEST else None


def _last_number(text: str) -> str | None:
    short = text.strip()
    phrase = len(short.split()) > _WORDS and any(letter.isdigit() for letter in short)
    if short and len(short) <= _SHORT and not phrase and "\n" not in short:
        return short
    numbers = _NUMBER.findall(text)
    return numbers[-1] if numbers else None
