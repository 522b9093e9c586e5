"""A question as a model reads it: its documents, then its words. Knows no strategy."""

from __future__ import annotations

from weft.core.values import Message
from weft.reasoning.question import Question
from weft.reasoning.reading import fenced


def asked(question: Question) -> str:
    """The documents, each between fences under its name, and after them the question's words."""
    named = (
        f"{' '.join(document.name.split())[:80]}:\n{fenced(document.text)}"
        for document in question.documents
    )
    return "\n\n".join((*named, question.text))


def conversation(question: Question, rules: str, text: str) -> tuple[Message, ...]:
    """What a model is told: the question's system text and `rules`, and then, by the user, `text`.

    Without either there is no system message.
    """
    system = "\n\n".join(part for part in (question.system.strip(), rules) if part)
    opening = (Message("system", system),) if system else ()
    return (*opening, Message("user", text))
