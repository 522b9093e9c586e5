"""Settings of models in a document: routes, reasoning, agents, moderation."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, JsonValue, model_validator
from pydantic_core import PydanticCustomError

from weft.agents.catalogue.options import LEAST_TOKENS, ChooserName
from weft.agents.names import AgentName
from weft.workflow.document.spec.facts import Facts
from weft.workflow.document.spec.fields import (
    Duration,
    Name,
    SpecPart,
    Template,
    Tokens,
    Value,
    expands,
    optional,
    optional_mapping,
    shortens,
)
from weft.workflow.document.spec.sampling import SamplingPart
from weft.workflow.document.spec.settings import Positive


class PriceSpec(SpecPart):
    """US dollars per million tokens."""

    prompt: float = Field(
        default=0.0, ge=0, allow_inf_nan=False, description="Of a million tokens of prompts."
    )
    completion: float = Field(
        default=0.0, ge=0, allow_inf_nan=False, description="Of a million tokens of answers."
    )


class AmongSpec(SpecPart):
    """The costs of one model of a route; omitted ones are zero."""

    loss: float | None = optional(
        "The loss to expect, such as 1 - accuracy, in a unit that all of them share.",
        allow_inf_nan=False,
    )
    price: PriceSpec | None = optional("US dollars per million tokens.")
    latency: Duration | None = optional("The time of a usual answer.")
    size: float | None = optional("Billions of parameters.", ge=0, allow_inf_nan=False)


class WeightsSpec(SpecPart):
    """How much loss a cost is worth, as a share of the dearest model's cost."""

    money: float = Field(
        default=0.0, ge=0, allow_inf_nan=False, description="What the price of a call is worth."
    )
    latency: float = Field(
        default=0.0, ge=0, allow_inf_nan=False, description="What the time of an answer is worth."
    )
    size: float = Field(
        default=0.0,
        ge=0,
        allow_inf_nan=False,
        description="What the number of parameters is worth.",
    )


def _named(value: object) -> object:
    """A list of names is short for models without known costs."""
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return {name: {} for name in value}
    return value


Among = Annotated[
    dict[Name, AmongSpec],
    BeforeValidator(_named, json_schema_input_type=list[Name] | dict[Name, AmongSpec]),
    Field(min_length=1),
]
"""Models of the document by name, each with its known costs."""


class ModeratorSpec(SpecPart):
    """A check of prompt and answer as one text, before the answer, or a piece of it, is shown."""

    call: str | None = optional(
        "A function of the text, `./file.py:name`: what it says against it, or None.", min_length=1
    )
    model: Name | None = optional("Another model of the file, which is asked for a verdict.")
    rules: str | None = optional("What that model is told to look for.", min_length=1)
    every: Positive | None = optional(
        "So many tokens wait for one check; else a block of a diffusion model in this "
        "process, and of other models the whole answer."
    )

    @model_validator(mode="after")
    def _one_judge(self) -> ModeratorSpec:
        if (self.call is None) == (self.model is None):
            hint = "write `moderator: ./guard.py:name`, or `{model: NAME}`"
            why = "needs `call` or `model`" if self.call is None else "has `call` and `model`"
            raise PydanticCustomError("origin", "the moderator {why}", {"why": why, "hint": hint})
        if self.rules is not None and self.model is None:
            context = {"where": ["rules"], "hint": "the function has its own"}
            raise PydanticCustomError("origin", "`rules` are for a `model`", context)
        return self


Moderator = Annotated[ModeratorSpec, expands("call", str | ModeratorSpec), shortens("call")]
"""`moderator: ./guard.py:name`, or a mapping."""


class ThinkSpec(SamplingPart):
    """A strategy that spends more than one model call on a question, and what it may spend."""

    strategy: str = Field(
        description="`sample`, `parathinker`, ...: `weft think --list` tells them.", min_length=1
    )
    width: Positive | None = optional("At most so many threads or samples side by side; 8.")
    budget: Annotated[Tokens, Field(ge=1)] | None = optional(
        "At most so many generated tokens in all, such as 20000tok; else "
        "width * max_tokens * rounds."
    )
    path_tokens: Annotated[Tokens, Field(ge=1)] | None = optional(
        "At most so many generated tokens on the critical path: a thread's own, and of "
        "each fork those of its longest child; else no cap."
    )
    depth: Annotated[int, Field(ge=0)] | None = optional("How deep forks may nest; 2.")
    rounds: Positive | None = optional(
        "How often one thread may fork, or how many rounds a strategy of rounds has; 8."
    )
    max_tokens: Positive | None = optional("The longest thread or sample; 1024.")
    answer_tokens: Positive | None = optional(
        "How much of the budget is kept back for the answer; 512."
    )
    temperature: float | None = optional(
        "0: always the likeliest token; 0.7.", ge=0, allow_inf_nan=False
    )
    seed: int | None = optional("Makes sampling repeatable; else that of the run.", ge=0)
    settings: dict[str, JsonValue] = optional_mapping("What only this strategy knows.")


class NodeThinkSpec(ThinkSpec):
    """How the model of one node thinks, and about which documents."""

    documents: Value = optional(
        "Texts that the question is about: a list of texts or of {name, text}, or a "
        "mapping of names to texts."
    )


Think = Annotated[ThinkSpec, expands("strategy", str | ThinkSpec), shortens("strategy")]
"""`think: sample`, or a mapping."""

NodeThink = Annotated[NodeThinkSpec, expands("strategy", str | NodeThinkSpec), shortens("strategy")]
"""`think: sample`, or a mapping that may also hold `documents`."""


Loop = AgentName


Bound = Annotated[int, Field(ge=0)] | None


class GrammarSpec(SpecPart):
    """How long the values of a plan may be where its model is held to a grammar."""

    chars: Bound = optional("Characters of a string; 4,000.")
    items: Bound = optional("Items of a list, free keys; 1,000.")
    depth: Bound = optional("Lists and objects in one another; 16.")
    digits: Bound = optional("Digits before the point; 309.")
    decimals: Bound = optional("Digits behind the point; 40.")


class CatalogueSpec(SpecPart):
    """How an agent chooses the tools that it offers to its model."""

    file: str | None = optional(
        "Declarations of tools with their fields, JSON or JSON lines; else the node's tools, "
        "grouped by the prefixes of their names."
    )
    tokens: Annotated[int, Field(ge=LEAST_TOKENS)] | None = optional(
        "At most so many tokens of declarations; 8,000."
    )
    chooser: ChooserName | None = optional(
        "lexical: by the words of the prompt; model: the model opens fields, searches and chooses; "
        "lexical."
    )
    calls: Positive | None = optional("At most so many operations of a model that chooses; 12.")


class RehearsalSpec(SpecPart):
    """The facts with which an agent rehearses its plans."""

    facts: str | Facts | None = optional(
        "All facts that hold before the first call, or a YAML file that lists them."
    )
    goals: Facts | None = optional("Facts that have to hold after the last step of a plan.")
    states: Positive | None = optional(
        "At most so many states in the search for missing steps; 10,000."
    )


class AgentSpec(SpecPart):
    """An agent: a loop in which the model calls tools until it can answer the question."""

    loop: Loop = Field(
        description="compiler: a plan of calls that refer to one another; divide: rounds of "
        "independent calls; react: one call at a time; parallel-react: the model's own calls; "
        "plan: the text of a plan, and no call."
    )
    rounds: Positive | None = optional("At most so many plans; 4.")
    calls: Annotated[int, Field(ge=0)] | None = optional("At most so many calls of tools; 64.")
    constrain: Literal["auto", "line", "plan", "never"] | None = optional(
        "How firmly a plan is held to its grammar; auto."
    )
    grammar: GrammarSpec | None = optional("How long its values may be where it is held to one.")
    approve: bool | None = optional(
        "true: each call needs a person's approval. false: calls of `once` tools need none, "
        "unless the tool says so."
    )
    catalogue: CatalogueSpec | None = optional("Offer only the tools that fit the prompt.")
    rehearsal: RehearsalSpec | None = optional(
        "Of compiler and plan: rehearse a plan before its first call, by what its tools need and "
        "make."
    )


Agentic = Annotated[AgentSpec, expands("loop", Loop | AgentSpec), shortens("loop")]
"""`agent: compiler`, or a mapping."""


class ConversationSpec(SpecPart):
    """A thread of messages that outlives runs, and how much of it the model reads."""

    id: Template = Field(description="The id of the thread.", min_length=1)
    last: Positive | None = optional("At most so many of its last messages.")
    tokens: Positive | None = optional(
        "At most about so many tokens of its last messages, of four bytes each."
    )
    summarize: bool | Name | None = optional(
        "A summary stands for messages that have left the window: true, or the model that writes "
        "it. `last` is then 20, if neither it nor `tokens` is set."
    )


Conversation = Annotated[ConversationSpec, expands("id", str | ConversationSpec), shortens("id")]
"""`conversation: "{{ thread }}"`, or a mapping."""
