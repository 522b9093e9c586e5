"""What a strategy is asked: a question and its documents, and both as a model reads them."""

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
    """A question. `system` is what the model is told about its job, `schema` what an answer fits.

    All of it is the user's: it is encoded so that no protocol tag can come of it.
    """

    text: str
    system: str = ""
    documents: tuple[Document, ...] = ()
    schema: JsonSchema | None = None


def question_text(question: Question) -> str:
    """The documents, each between fences under its name, and after them the question's words."""
    named = (
        f"{' '.join(document.name.split())[:80]}:\n{fence(document.text)}"
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
