"""The edit of the format in which one node's text reaches others."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from weft.optimisation.edits.draft import DocumentDraft
from weft.optimisation.edits.edit import Edit
from weft.optimisation.edits.insertions import asked_once
from weft.workflow.document.spec.fields import Name, optional
from weft.workflow.document.spec.settings import Positive

_KEYWORDS: Final = "\n\nWrite lines `keyword: value` only, without sentences."


class SetMessageFormat(Edit):
    """Have a model node write its text as a typed message, of at most so many tokens.

    With `fields` it answers in JSON, and what used its text gets the fields as lines `name: text`:
    readers stay as they are (message formats: Optima, arXiv 2410.08115).
    """

    edit: Literal["set_message_format"] = "set_message_format"
    format: Literal["text", "keywords", "fields"] = Field(description="How the message is written.")
    fields: Annotated[list[Name], Field(min_length=1, max_length=8)] | None = optional(
        "With the format `fields`: their names, in order."
    )
    max_tokens: Positive | None = optional("The budget of the message; null keeps the node's own.")

    def change(self, draft: DocumentDraft) -> None:
        place = asked_once(draft, self.node)
        raw = place.raw
        if "schema" in raw:
            draft.fail("its answer is typed already", self.node, "`set_schema_order` orders fields")
        if (self.format == "fields") != bool(self.fields):
            draft.fail("`fields` are those of the format `fields`", self.node, "name both or none")
        if self.format == "keywords" and not raw.get("prompt"):
            draft.fail("it has no `prompt`", self.node, "write a prompt")
        if self.max_tokens is not None:
            raw["max_tokens"] = self.max_tokens
        if self.format == "keywords":
            raw["prompt"] += _KEYWORDS
        if not self.fields:
            return
        if len(set(self.fields)) < len(self.fields):
            draft.fail("a field occurs twice", self.node, "name each field once")
        if "default" in raw:
            draft.fail("it has a `default`, which is a text", self.node, "remove the default first")
        raw["schema"] = _schema(self.fields)
        name = draft.fresh(f"{place.key}_message")
        lines = "\n".join(f"{field}: {{{{ {name}['{field}'] }}}}" for field in self.fields)
        draft.wrap(place, name, {place.key: {"value": lines}})


def _schema(fields: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {field: {"type": "string"} for field in fields},
        "required": list(fields),
        "additionalProperties": False,
    }
