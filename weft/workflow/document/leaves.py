"""The kinds of nodes that hold no others, one class each. They only say what to do."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NoReturn

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from weft.workflow.document.agent import Agentic
from weft.workflow.document.alternatives import Alternative, AlternativeSpec
from weft.workflow.document.part import Name, Template, Value
from weft.workflow.document.schemas import SchemaSpec
from weft.workflow.document.settings import Positive
from weft.workflow.document.step import Step
from weft.workflow.document.thinking import NodeThink

Arguments = dict[str, Value]
JoinMode = Literal["all", "any", "quorum", "first_valid", "best_effort"]


class ToolNode(Step):
    """Call a tool. Its arguments and its result are checked against its signature."""

    kind: ClassVar[str] = "tool"

    tool: str = Field(
        description="A name under `tools`, `server.name`, or `./file.py:name`.", min_length=1
    )
    arguments: Arguments = Field(
        default_factory=dict, alias="with", description="Its arguments, by name."
    )
    alternatives: list[Alternative] = Field(
        default_factory=list,
        description="Tools to call instead when it fails: the cheapest first that has not failed. "
        "`timeout` and `retry` are for each of them.",
    )

    @property
    def choices(self) -> tuple[AlternativeSpec, ...]:
        """All tools that may be called, the node's own first, each with its arguments."""
        own = AlternativeSpec.model_validate(
            {"tool": self.tool, "with": self.arguments, "cost": 1.0}
        )
        others = (
            other
            if other.arguments is not None
            else other.model_copy(update={"arguments": self.arguments})
            for other in self.alternatives
        )
        return (own, *others)


class CallNode(Step):
    """Call a plain Python function. Values are passed as they are."""

    kind: ClassVar[str] = "call"

    call: str = Field(description="`./file.py:name` or `package.module:name`.", min_length=1)
    arguments: Arguments = Field(
        default_factory=dict, alias="with", description="Its arguments, by name."
    )


class ModelNode(Step):
    """Ask a language model. The value is its text, or what `schema` describes."""

    kind: ClassVar[str] = "model"

    model: Name = Field(description="A name under `models`.")
    prompt: Template = Field(description="What to say to the model.")
    system: Template | None = Field(default=None, description="Who the model is to be.")
    arguments: Arguments = Field(
        default_factory=dict, alias="with", description="Further names for the prompt."
    )
    output_schema: SchemaSpec | None = Field(
        default=None,
        alias="schema",
        description="The answer is JSON of this shape, and the value typed.",
    )
    max_tokens: Positive | None = Field(default=None, description="The longest answer.")
    temperature: float | None = Field(
        default=None, ge=0, description="0: always the likeliest token."
    )
    top_p: float | None = Field(default=None, gt=0, le=1, description="Nucleus sampling.")
    top_k: Positive | None = Field(default=None, description="Only the k likeliest tokens.")
    stop: list[str] = Field(default_factory=list, description="Texts that end the answer.")
    seed: int | None = Field(default=None, ge=0, description="Makes sampling repeatable.")
    allow_empty: bool = Field(
        default=False, description="An answer without any text is a value, and not a failure."
    )
    decode: str | None = Field(
        default=None,
        description="How the model writes several tokens a step: `lookup:8`, `auto`, or for "
        "diffusion models `threshold:0.9`, ...; `weft decoders` tells them. Of models behind a "
        "server only diffusion models can be asked.",
        min_length=1,
    )
    samples: Positive | None = Field(
        default=None,
        description="Ask so many times at once; the value is the list of the answers that came.",
    )
    warm: bool = Field(
        default=False,
        description="Have the model's server compute the prompt up to the last node it mentions "
        "while that node still runs.",
    )
    tools: list[str] = Field(
        default_factory=list,
        description="Tools to offer; a server's name: all of its. The value is then "
        "{text, tool_calls: [{name, arguments}]}.",
    )
    tool_choice: Literal["auto", "none", "required"] = Field(
        default="auto", description="Whether the model may, must not or must call a tool."
    )
    think: NodeThink | None = Field(
        default=None,
        description="Answer by a strategy of several model calls: its name, or a mapping.",
    )
    agent: Agentic | None = Field(
        default=None,
        description="Answer with the `tools`, which the model has called until it can conclude: "
        "the name of an agent, or a mapping. `max_tokens` and `temperature` are of each call.",
    )

    @model_validator(mode="after")
    def _what_goes_together(self) -> ModelNode:
        for key in sorted(self.model_fields_set & _NOT_THINKING) if self.think else ():
            hint = "put it into `think`" if key in _INSIDE_THINKING else "make it another node"
            _refuse(key, "think", hint)
        for key in sorted(self.model_fields_set & _NOT_ACTING) if self.agent else ():
            _refuse(key, "agent", "make it another node")
        return self


def _refuse(key: str, beside: str, hint: str) -> NoReturn:
    context: dict[str, Any] = {"key": key, "beside": beside, "hint": hint, "where": [key]}
    raise PydanticCustomError("origin", "`{key}` does not go with `{beside}`", context)


_INSIDE_THINKING = frozenset(("max_tokens", "temperature", "top_p", "seed"))
_NOT_ACTING = frozenset(
    ("top_p", "top_k", "stop", "seed", "samples", "warm", "tool_choice", "allow_empty")
)
_NOT_THINKING = _INSIDE_THINKING | _NOT_ACTING | {"tools", "agent"}


class ReduceNode(Step):
    """Make one value of a list, with a plain Python function."""

    kind: ClassVar[str] = "reduce"

    reduce: str = Field(description="`./file.py:name` or `package.module:name`.", min_length=1)
    over: Value = Field(description="The list: the function's first argument.")
    arguments: Arguments = Field(
        default_factory=dict, alias="with", description="Its other arguments, by name."
    )


class JoinNode(Step):
    """Wait for enough of several nodes. The value is their values; the losers are cancelled."""

    kind: ClassVar[str] = "join"

    join: list[Name] = Field(description="The nodes.", min_length=1)
    mode: JoinMode = Field(
        default="all",
        description="all, quorum, best_effort: a list of values in the order written. "
        "any, first_valid: the value of the first.",
    )
    k: Positive | None = Field(default=None, description="How many, when the mode is quorum.")
    valid: Template | None = Field(
        default=None, description="What `value` must satisfy, when the mode is first_valid."
    )
    otherwise: Value = Field(
        default=None,
        description="What stands in for a failed node when the mode is best_effort. Without it "
        "nodes that failed are dropped, and the result is partial.",
    )


class WorkflowNode(Step):
    """Run another workflow file. The value holds its outputs by name."""

    kind: ClassVar[str] = "workflow"

    workflow: str = Field(description="The file, beside or below this one.", min_length=1)
    arguments: Arguments = Field(
        default_factory=dict, alias="with", description="Its inputs, by name."
    )


class AskNode(Step):
    """Ask a person, and wait for the answer."""

    kind: ClassVar[str] = "ask"

    ask: Template = Field(description="The question.")
    output_schema: SchemaSpec = Field(
        default={"type": "string"}, alias="schema", description="What the answer looks like."
    )


class ValueNode(Step):
    """A value made of others."""

    kind: ClassVar[str] = "value"

    value: Value = Field(description="The value; any text in it may be `{{ an expression }}`.")
