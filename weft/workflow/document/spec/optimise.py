"""What an optimiser may change in a document; it changes nothing itself."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from weft.workflow.document.spec.fields import Name, SpecPart, Template, optional, optional_mapping
from weft.workflow.document.spec.settings import Positive

Texts = Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]


class DemonstrationKnob(SpecPart):
    """How many examples a proposer may show."""

    max: Positive = Field(default=4, description="At most so many.")


class NodeKnobs(SpecPart):
    """What may change in one node: lists are the values to try besides the node's own."""

    model: Annotated[list[Name], Field(min_length=1)] | None = optional("Names under `models`.")
    decode: Texts | None = optional("Decoders.")
    temperature: Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=1)] | None = (
        optional("Temperatures.")
    )
    samples: Annotated[list[Positive], Field(min_length=1)] | None = optional(
        "How many answers: of a node with `samples` itself, else of a vote."
    )
    width: Annotated[list[Positive], Field(min_length=1)] | None = optional(
        "How many items of a map run at once, or threads of a node that thinks."
    )
    schema_order: bool | Annotated[list[Texts], Field(min_length=1)] | None = optional(
        "Orders of the fields of an answer; true: all of them, for at most four fields."
    )
    prompt: bool | Texts | None = optional("Prompts; true: proposers may write some.")
    demonstrations: DemonstrationKnob | None = optional("Proposers may show examples.")
    optional: bool | Template | None = optional(
        "The node may be dropped: true where nothing uses it, else the value that stands for it."
    )


class OptimiseSpec(SpecPart):
    """What an optimiser may change."""

    knobs: dict[str, NodeKnobs] = optional_mapping(
        "By the address of a node, such as `solve`, `notes/draft` or `notes/do`."
    )
