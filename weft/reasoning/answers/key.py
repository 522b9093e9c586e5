"""Canonical keys of answers: equal answers have equal keys.

A unit is dropped and not converted: "50%" and "50" are one answer, "0.5" is another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final

from weft.core.errors import BuildError
from weft.core.suggestion import suggestion
from weft.reasoning.answers.extraction import LONGEST, answer_text
from weft.reasoning.answers.number import number, written

_NOISE: Final = (
    "\\left",
    "\\right",
    "\\displaystyle",
    "\\limits",
    "\\!",
    "\\,",
    "\\;",
    "\\:",
    "\\ ",
    "~",
    "\\(",
    "\\)",
    "\\[",
    "\\]",
)
_WORDS: Final = {
    "\\dfrac": "\\frac",
    "\\tfrac": "\\frac",
    "\\cfrac": "\\frac",
    "\\cdot": "*",
    "\\times": "*",
    "\\div": "/",
    "\\%": "%",
    "\\$": "$",
    "\\{": "{",
    "\\}": "}",
    "\\lbrace": "{",
    "\\rbrace": "}",
    "^\\circ": "",
    "^{\\circ}": "",
    "\\degree": "",
    "\u2212": "-",
    "\u2013": "-",
    "\u00d7": "*",
    "÷": "/",
    "°": "",
    "½": " 1/2",
    "¼": " 1/4",
    "¾": " 3/4",
}
_BOX: Final = re.compile(r"\\f?box(?:ed)?\{([^{}]*)\}")
_TEXT: Final = re.compile(
    r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|mbox|operatorname)\{([^{}]*)\}"
)
_SHORT_FRACTION: Final = re.compile(r"\\frac\s*(\d|[a-zA-Z])\s*(\d|[a-zA-Z])(?![\w}])")
_FRACTION: Final = re.compile(r"\\frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_MIXED: Final = re.compile(r"(\d)\s*\\frac\b")
_SHORT_ROOT: Final = re.compile(r"\\sqrt\s*(\d|[a-zA-Z])")


def plain(answer: str) -> str:
    r"""`answer` without dollar signs, boxes, sizes and text commands; fractions as a/b in brackets.

    \frac{1}{2}, \dfrac12 and 1/2 become equal; \text{cm} becomes cm. Nested fractions are unfolded
    from the innermost.
    """
    text = answer.strip().strip("$").strip()
    for noise in _NOISE:
        text = text.replace(noise, " " if noise in ("\\ ", "~") else "")
    for word, meaning in _WORDS.items():
        text = text.replace(word, meaning)
    text = _TEXT.sub(r" \1 ", text)
    text = _SHORT_FRACTION.sub(r"\\frac{\1}{\2}", text)
    text = _SHORT_ROOT.sub(r"\\sqrt{\1}", text)
    text = _MIXED.sub(r"\1 \\frac", text)
    before = ""
    while before != text:
        before = text
        text = _BOX.sub(r"\1", _FRACTION.sub(_as_quotient, text))
    return text.strip()


def _as_quotient(match: re.Match[str]) -> str:
    above, below = (_grouped(part.strip()) for part in match.groups())
    return f"{above}/{below}"


def _grouped(part: str) -> str:
    return part if re.fullmatch(r"\w+", part) else f"({part})"


Reader = Callable[[str, bool], str | None]
"""Maps a completion, and whether it is whole (not cut off), to its key."""

_ASSIGNED: Final = re.compile(r"^\s*\\?[a-zA-Z](?:\([a-z]\)|_\{?\w\}?)?\s*(?:=|\\in\b)\s*")
_CHOICE: Final = re.compile(r"\(?([A-Za-z])\)?\s*(?:[).:,;\u2013-].*)?", re.DOTALL)
_BRACKETED: Final = re.compile(r"\(([A-Za-z])\)\s.*", re.DOTALL)
_PROSE: Final = re.compile(r"(?<![\\\w])[^\W\d_]{2,} [^\W\d_]{2,}(?!\w)")
_LETTER: Final = re.compile(r"\(?([A-Za-z])\)?[.:]?")
_QUOTES: Final = "\"'`*_\u201c\u201d\u2018\u2019 \t\n"
_LIST: Final = re.compile(r"^[([{]?([^()\[\]{}]+(?:,[^()\[\]{}]+)+)[)\]}]?$")


def answer_key(completion: str, whole: bool = True) -> str | None:
    """The key of the answer of `completion`; None: none can be read.

    `whole`: it was not cut off, so that all of it may count as the answer.
    """
    found = answer_text(completion, whole=whole)
    return None if found is None else canonical(found)


def canonical(answer: str) -> str | None:
    r"""The key of a bare answer; None when it cannot be read.

    Numbers become exact fractions ("0.50", "1/2", "\frac12" and "50/100 cm" are "1/2"), lists of
    numbers are read entry by entry. Anything else compares as text: LaTeX in one spelling, without
    case, quotes, surplus blanks (of formulas: any) and a final full stop. A sentence with a number
    in it is text. None for more than 400 characters.
    """
    if len(answer) > LONGEST:
        return None
    text = _ASSIGNED.sub("", plain(answer))
    value = number(text)
    if value is not None:
        return written(value)
    if (entries := _entries(text)) is not None:
        return entries
    if (letter := _LETTER.fullmatch(text)) is not None:
        return letter[1].casefold()
    words = " ".join(text.strip(_QUOTES).rstrip(".!").casefold().split())
    formula = "\\" in words or re.search(r"[=^/*+(,]| - ", words)
    if formula and not _PROSE.search(words):
        words = words.replace(" ", "")
    return words.strip(_QUOTES) or None


def choice_key(completion: str, whole: bool = True) -> str | None:
    """The letter of a multiple-choice answer, in capitals; None: it is not a single letter."""
    found = answer_text(completion, whole=whole)
    if found is None:
        return None
    bare = plain(found).strip(_QUOTES)
    match = _CHOICE.fullmatch(bare) or _BRACKETED.fullmatch(bare)
    return None if match is None else match[1].upper()


def number_key(completion: str, whole: bool = True) -> str | None:
    """The key of a numeric answer, the last number where none is marked; None: there is none."""
    found = answer_text(completion, whole=whole, numeric=True)
    value = None if found is None else number(_ASSIGNED.sub("", plain(found)))
    return None if value is None else written(value)


def text_key(completion: str, whole: bool = True) -> str | None:
    """The whole text, without case and surplus blanks; None: it is empty or was cut off."""
    words = " ".join(completion.split()).casefold()
    return words if words and whole else None


def schema_key(completion: str, whole: bool = True) -> str | None:
    """The key of a JSON answer: its value, independent of order and blanks."""
    try:
        return json.dumps(json.loads(completion), sort_keys=True) if whole else None
    except (ValueError, RecursionError):
        return None


_READERS: Final[Mapping[str, Reader]] = {
    "auto": answer_key,
    "number": number_key,
    "choice": choice_key,
    "text": text_key,
}


def reader(given: object) -> Reader:
    """The reader that a setting names, or the setting itself if it is a function.

    Raises: `BuildError`, which lists the readers.
    """
    if callable(given):
        return given
    if isinstance(given, str) and given in _READERS:
        return _READERS[given]
    hint = f"{suggestion(given, _READERS, most=None)}, or a function of text and wholeness"
    raise BuildError(f"there is no way {given!r} to read answers", hint=hint)


def _entries(text: str) -> str | None:
    """The key of a list of numbers with its brackets; a set is sorted."""
    found = _LIST.match(text)
    values = [number(entry) for entry in found[1].split(",")] if found else []
    if found is None or any(value is None for value in values):
        return None
    keys = [written(value) for value in values if value is not None]
    opening = text[0] if text[0] in "([{" else "("
    if opening == "{":
        return "{" + ",".join(sorted(keys)) + "}"
    return f"{opening}{','.join(keys)}{text[-1] if text[-1] in ')]' else ')'}"
