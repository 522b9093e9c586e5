"""What is asked of a strategy. Knows no model and no prompt."""

from __future__ import annotations

from dataclasses import dataclass

from weft.core.values import JsonSchema


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
