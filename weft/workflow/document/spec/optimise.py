"""What an optimiser may change in a document; it changes nothing itself."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from weft.workflow.document.spec.evaluation import Data
from weft.workflow.document.spec.fields import (
    Duration,
    Name,
    SpecPart,
    Template,
    optional,
    optional_list,
    optional_mapping,
)
from weft.workflow.document.spec.nodes import NodeSpec
from weft.workflow.document.spec.settings import Positive

Texts = Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]


class DemonstrationKnob(SpecPart):
    """How many examples a proposer may show."""

    max: Positive = Field(default=4, description="At most so many.")


class ChoiceSpec(SpecPart):
    """One implementation of a node, and what is expected of it before there are runs of it."""

    do: NodeSpec | None = optional("The node in its place; without it the node as it is.")
    success: float | None = optional("How often it succeeds, from 0 to 1.", ge=0, le=1)
    latency: Duration | None = optional("What it usually takes.")
    cost: float | None = optional(
        "What it usually costs, in US dollars.", ge=0, allow_inf_nan=False
    )


def _one_as_it_is(choices: dict[str, ChoiceSpec]) -> dict[str, ChoiceSpec]:
    own = [name for name, choice in choices.items() if choice.do is None]
    if len(own) > 1:
        hint = "give one of them a node: `do: {model: NAME, prompt: ...}`"
        what = {"one": own[0], "other": own[1], "hint": hint}
        raise PydanticCustomError("origin", "`{one}` and `{other}` are both the node itself", what)
    return choices


Choices = Annotated[dict[Name, ChoiceSpec], Field(min_length=1), AfterValidator(_one_as_it_is)]


class NodeKnobs(SpecPart):
    """What may change in one node: lists are the values to try besides the node's own."""

    choices: Choices | None = optional(
        "Implementations besides the node itself, by name: other tools, models, workflows."
    )
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


class ProposerSpec(SpecPart):
    """Who proposes prompts, demonstrations and structure beyond the knobs' own options."""

    model: Name | None = optional("The model that proposers ask: a name under `models`.")
    use: list[str | dict[str, Any]] = optional_list(
        "Proposers by name; or mappings `{name: NAME, OPTION: VALUE}`."
    )


GoalName = Literal["quality", "latency", "cost"]


class OptimiseSpec(SpecPart):
    """What an optimiser may change, and what for."""

    goal: GoalName | None = optional("What to improve; else quality.")
    keep: dict[str, float] = optional_mapping(
        "How much worse others may get: `quality: 0.02` (a difference), `latency: 0.1` and `cost: "
        "0.1` (shares of what it is); or their limits: `p95_s: 4`, `mean_s: 2`, `cost_usd: 0.01`."
    )
    budget: str | int | None = optional(
        "What all of a study may take: a number of model calls, or such as `2usd, 500calls, 1h`."
    )
    proposer: ProposerSpec | None = optional("Who proposes what the knobs leave open.")
    canaries: Data | None = optional(
        "Cases that no honest answer gets right: who gains on them gains by the metric."
    )
    knobs: dict[str, NodeKnobs] = optional_mapping(
        "By the address of a node, such as `solve`, `notes/draft` or `notes/do`."
    )
