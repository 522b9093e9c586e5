"""LaTeX of answers written in one way. Knows no value: 1/2 and 0.5 stay different here."""

from __future__ import annotations

import re
from typing import Final

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

    \frac{1}{2}, \dfrac12 and 1/2 come out equal; \text{cm} becomes cm. Innermost fractions first,
    so nested ones are unfolded too.
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
