"""Prompts that a model has written: data, whose references are exactly those of the old prompt."""

from __future__ import annotations

import re
from typing import Final

from weft.optimisation.edits import SetPrompt
from weft.optimisation.options import EditOption

_REFERENCE: Final = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_MOST_TEXT: Final = 8_000


def references(prompt: str) -> list[str]:
    """The `{{ ... }}` of a prompt as they are written, in order."""
    return _REFERENCE.findall(prompt)


def bare(prompt: str) -> str:
    """Only the references of a prompt, one on each line: a program that says nothing."""
    return "\n".join(references(prompt))


def rewritten(node: str, old: str, text: object, label: str, why: str) -> EditOption | None:
    """The option that gives `node` the prompt `text`; None where it is no prompt for it.

    Every reference of `old` has to be in it as it was, and no other one: what a model writes must
    not choose what is computed.
    """
    if not isinstance(text, str) or not text.strip() or len(text) > _MOST_TEXT:
        return None
    rest = _REFERENCE.sub("", text)
    if set(references(text)) != set(references(old)) or re.search(r"\{[{%#]|[}%#]\}", rest):
        return None
    if text.strip() == old.strip():
        return None
    return EditOption.of([SetPrompt(node=node, prompt=text.strip())], label, why)
