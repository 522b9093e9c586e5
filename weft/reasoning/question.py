"""The question that a strategy answers, its documents, and both as a prompt."""

from __future__ import annotations

from dataclasses import dataclass

from weft.core.values import JsonSchema, Message
from weft.reasoning.parsing import fence


@dataclass(frozen=True, slots=True)
class Document:
    """A text that the question is about; `name` is how answers cite it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question. `system` holds the user's instructions, `schema` the form of the answer.

    All of it is user text: it is encoded so that it cannot contain a protocol's special tokens.
    """

    text: str
    system: str = ""
    documents: tuple[Document, ...] = ()
    schema: JsonSchema | None = None


def question_text(question: Question) -> str:
    """The documents, each fenced under its name, followed by the question."""
    named = (
        f"{' '.join(document.name.split())[:80]}:\n{fence(document.text)}"
        for document in question.documents
    )
    return "\n\n".join((*named, question.text))


def conversation(question: Question, rules: str, text: str) -> tuple[Message, ...]:
    """The messages of a call: the question's system text with `rules`, and `text` from the user.

    Without either there is no system message.
    """
    system = "\n\n".join(part for part in (question.system.strip(), rules) if part)
    opening = (Message("system", system),) if system else ()
    return (*opening, Message("user", text))
