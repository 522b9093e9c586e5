"""Edits of one node's settings: prompt, demonstrations, model, decoder, samples, width, schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from weft.optimisation.edits.draft import DocumentDraft, RawNode
from weft.optimisation.edits.edit import Edit
from weft.workflow.document.spec.fields import SpecPart, optional
from weft.workflow.document.spec.settings import Positive

_SAMPLING: Final = ("decode", "temperature", "top_p", "top_k", "max_tokens")


class SetPrompt(Edit):
    """Give a model node another prompt, and another system text where one is named."""

    edit: Literal["set_prompt"] = "set_prompt"
    prompt: str = Field(description="The prompt: a template.", min_length=1)
    system: str | None = optional("The system text: a template; null removes it.")

    def change(self, draft: DocumentDraft) -> None:
        raw = draft.place(self.node, "model").raw
        raw["prompt"] = self.prompt
        if "system" in self.model_fields_set:
            _set(raw, "system", self.system)


class Demonstration(SpecPart):
    """An example of a task: what the user says, and the answer. Both are plain texts."""

    user: str = Field(min_length=1)
    assistant: str = Field(min_length=1)


class SetDemonstrations(Edit):
    """Show a model node examples before its prompt; an empty list removes them."""

    edit: Literal["set_demonstrations"] = "set_demonstrations"
    demonstrations: list[Demonstration] = Field(description="The examples, in order.")

    def change(self, draft: DocumentDraft) -> None:
        raw = draft.place(self.node, "model").raw
        if "messages" in raw and not _are_demonstrations(raw["messages"]):
            hint = "give it the examples as messages of its own"
            draft.fail("it has `messages` that are no demonstrations", self.node, hint)
        if not raw.get("prompt"):
            draft.fail("it has no `prompt` that could follow", self.node, "write a prompt")
        shown = [
            {"role": role, "content": raw_text(text)}
            for each in self.demonstrations
            for role, text in (("user", each.user), ("assistant", each.assistant))
        ]
        _set(raw, "messages", shown or None)


def _are_demonstrations(messages: object) -> bool:
    """Whether the messages are what `SetDemonstrations` writes: pairs of a user and an answer."""
    if not isinstance(messages, list) or len(messages) % 2:
        return False
    roles = ("user", "assistant") * (len(messages) // 2)
    return all(
        isinstance(message, Mapping)
        and message.keys() == {"role", "content"}
        and message["role"] == role
        for message, role in zip(messages, roles, strict=True)
    )


def raw_text(text: str) -> str:
    """`text` as a template that renders exactly it, whatever braces it contains."""
    if not any(mark in text for mark in ("{{", "{%", "{#")):
        return text
    return f"{{{{ {text!r} }}}}"


class SetModel(Edit):
    """Give a model node another of the document's models."""

    edit: Literal["set_model"] = "set_model"
    model: str = Field(description="A name under `models`.", min_length=1)

    def change(self, draft: DocumentDraft) -> None:
        draft.place(self.node, "model").raw["model"] = self.model


class SetDecoder(Edit):
    """Change how a model node's answer is decoded. Only the fields that are given change."""

    edit: Literal["set_decoder"] = "set_decoder"
    decode: str | None = optional("A decoder, such as `lookup:8`; null removes it.", min_length=1)
    temperature: float | None = optional("null removes it.", ge=0)
    top_p: float | None = optional("null removes it.", gt=0, le=1)
    top_k: Positive | None = optional("null removes it.")
    max_tokens: Positive | None = optional("null removes it.")

    def change(self, draft: DocumentDraft) -> None:
        raw = draft.place(self.node, "model").raw
        given = [name for name in _SAMPLING if name in self.model_fields_set]
        if not given:
            draft.fail("it changes nothing", self.node, f"give one of {', '.join(_SAMPLING)}")
        for name in given:
            _set(raw, name, getattr(self, name))


class SetSamples(Edit):
    """Change how many answers a model node with `samples` asks for; its value stays a list."""

    edit: Literal["set_samples"] = "set_samples"
    samples: Positive = Field(description="How many answers.")

    def change(self, draft: DocumentDraft) -> None:
        raw = draft.place(self.node, "model").raw
        if "samples" not in raw:
            hint = "`wrap_vote` makes a vote of it, whose value is one answer"
            draft.fail("it asks once, and its value is not a list", self.node, hint)
        raw["samples"] = self.samples


class SetWidth(Edit):
    """Change how many items of a map run at once, or how many threads a model node thinks with."""

    edit: Literal["set_width"] = "set_width"
    width: Positive | None = Field(description="null: no limit, or the default.")

    def change(self, draft: DocumentDraft) -> None:
        place = draft.place(self.node, "map", "model")
        if place.kind == "map":
            _set(place.raw, "width", self.width)
            return
        if "think" not in place.raw:
            draft.fail("it has no width: it does not `think`", self.node, "see `wrap_vote`")
        think = place.raw["think"]
        place.raw["think"] = {"strategy": think} if isinstance(think, str) else think
        _set(place.raw["think"], "width", self.width)


class SetSchemaOrder(Edit):
    """Change the order in which a model writes the fields of its answer: reasoning first, say."""

    edit: Literal["set_schema_order"] = "set_schema_order"
    order: Annotated[list[str], Field(min_length=1)] = Field(
        description="Names of properties; those that are not named follow in their order."
    )

    def change(self, draft: DocumentDraft) -> None:
        raw = draft.place(self.node, "model").raw
        given = raw.get("schema")
        schema: dict[str, Any] = given if isinstance(given, dict) else {}
        properties = schema.get("properties")
        if not isinstance(properties, dict):
            draft.fail("its answer has no fields", self.node, "give it a `schema` with properties")
        unknown = [name for name in self.order if name not in properties]
        if unknown or len(set(self.order)) < len(self.order):
            what = f"`{unknown[0]}` is no field of its answer" if unknown else "a name occurs twice"
            draft.fail(what, self.node, f"there are: {', '.join(properties)}")
        names = [*self.order, *(name for name in properties if name not in self.order)]
        raw["schema"] = {**schema, "properties": {name: properties[name] for name in names}}


def _set(raw: RawNode | dict[str, Any], key: str, value: Any) -> None:
    """Set `key`; None removes it."""
    if value is None:
        raw.pop(key, None)
    else:
        raw[key] = value
