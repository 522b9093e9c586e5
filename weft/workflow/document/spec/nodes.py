"""The kinds of nodes: fields of every node, one class per kind, and their union."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, NoReturn

from pydantic import (
    ConfigDict,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic import Tag as PydanticTag
from pydantic_core import PydanticCustomError

from weft.workflow.document.spec.fields import (
    Duration,
    Name,
    Names,
    SpecPart,
    Template,
    Value,
    optional,
    optional_list,
    optional_mapping,
)
from weft.workflow.document.spec.messages import MessageDefect, check_messages
from weft.workflow.document.spec.model_settings import Agentic, Conversation, NodeThink
from weft.workflow.document.spec.sampling import SamplingPart, shared_last
from weft.workflow.document.spec.schemas import SchemaSpec
from weft.workflow.document.spec.settings import (
    Alternative,
    AlternativeSpec,
    BudgetSpec,
    Cache,
    GrowSpec,
    Positive,
    Retry,
    RetryOn,
)


class BaseNode(SpecPart):
    """The common part of all nodes."""

    kind: ClassVar[str] = ""

    description: str | None = optional("One sentence for people.")
    when: Template | None = optional(
        "The node, and what needs it, is left out unless this is true."
    )
    after: Names = optional_list("Nodes to wait for without using their values.")
    writes: dict[Name, Value] = optional_mapping(
        "What it writes to the state, by field; in these expressions `value` is its own value."
    )
    retry: Retry | None = optional("Repeat it when its error may go away.")
    retry_on: RetryOn | None = optional(
        "Further errors after which it is repeated: exceptions as `module.Class`, built-in ones "
        "bare (`KeyError`), and HTTP statuses (`409`)."
    )
    timeout: Duration | None = optional("The longest that one attempt may take.")
    fallback: Name | None = optional(
        "The node that runs in its place when it fails; it runs only then."
    )
    default: Value = optional("Its value when it (and its fallback) fails.")
    on_failure: Literal["fail", "skip"] = Field(
        default="fail", description="skip: its failure does not count as a failure of the run."
    )
    expect: dict[str, Template] = optional_mapping(
        "What must be true of its value, by a few words each: expressions that see it as `value`. "
        "Otherwise the node fails (`ExpectationFailed`)."
    )
    cache: Cache | None = optional("Reuse the result for equal inputs.")
    budget: BudgetSpec | None = optional("What it, and all inside it, may spend.")
    degrade: Name | None = optional("The node that runs in its place once a budget is spent.")
    weight: float = Field(
        default=1.0,
        gt=0,
        description="How long it is expected to take; the longest path goes first.",
    )

    @model_serializer(mode="wrap")
    def _own_first(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Puts the fields of the kind before the shared and the common ones."""
        fields: dict[str, Any] = dump(self)
        shared, common = SamplingPart.model_fields, BaseNode.model_fields
        return dict(
            sorted(fields.items(), key=lambda field: (field[0] in common, field[0] in shared))
        )

    @property
    def has_default(self) -> bool:
        """True when a default is given, even if it is null."""
        return "default" in self.model_fields_set


Arguments = dict[str, Value]
MAX_DEPTH = 1000
"""The deepest recursion of a workflow that a node may allow."""
_ON = (
    "Where the tool calls inside it run, with `run: {on: ray}`: a pool, or `local`. An `on` of the "
    "tool, or of a node further inside, goes first."
)
JoinMode = Literal["all", "any", "quorum", "first_valid", "best_effort"]


class ToolNode(BaseNode):
    """Call a tool. Its arguments and its result are checked against its signature."""

    kind: ClassVar[str] = "tool"

    tool: str = Field(
        description="A name under `tools`, `server.name`, or `./file.py:name`.", min_length=1
    )
    arguments: Arguments = optional_mapping("Its arguments, by name.", alias="with")
    alternatives: list[Alternative] = optional_list(
        "Tools to call instead when it fails: the cheapest first that has not failed. "
        "`timeout` and `retry` are for each of them."
    )
    approve: bool | str | None = optional(
        "The call needs a person's approval: true, or `{{ a rule }}`. Else the tool's own rule."
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


class CallNode(BaseNode):
    """Call a plain Python function. Values are passed as they are."""

    kind: ClassVar[str] = "call"

    call: str = Field(description="`./file.py:name` or `package.module:name`.", min_length=1)
    arguments: Arguments = optional_mapping("Its arguments, by name.", alias="with")


def _says_something(schema: dict[str, Any]) -> None:
    shared_last(schema)
    schema["anyOf"] = [{"required": ["prompt"]}, {"required": ["messages"]}]


class ModelNode(BaseNode, SamplingPart):
    """Ask a language model. The value is its text, or what `schema` describes."""

    model_config = ConfigDict(json_schema_extra=_says_something)

    kind: ClassVar[str] = "model"

    model: Name = Field(description="A name under `models`.")
    prompt: Template = Field(
        default="", description="What to say to the model. With `messages`: the last one, a user's."
    )
    messages: Value = optional(
        "The messages before the prompt, or instead of one: a list of {role, content, tool_calls, "
        "tool_call_id}, or expressions whose values are such lists. `content` is a text or a list "
        "of texts and {image: ...}, {audio: ...}, {file: ...}."
    )
    conversation: Conversation | None = optional(
        "A thread that outlives runs: its messages come before those of the node, which are "
        "appended with the answer. Its id, or a mapping."
    )
    system: Template | None = optional("Who the model is to be.")
    arguments: Arguments = optional_mapping("Further names for the prompt.", alias="with")
    output_schema: SchemaSpec | None = optional(
        "The answer is JSON of this shape, and the value typed.", alias="schema"
    )
    max_tokens: Positive | None = optional("The longest answer.")
    temperature: float | None = optional("0: always the likeliest token.", ge=0)
    stop: list[str] = optional_list("Texts that end the answer.")
    seed: int | None = optional("Makes sampling repeatable.", ge=0)
    repair: int = Field(
        default=1,
        ge=0,
        le=10,
        description="How often the model is asked again, with the error, when its answer does not "
        "fit `schema` or its calls do not fit the `tools`. Each repair is a request.",
    )
    allow_empty: bool = Field(
        default=False, description="An answer without any text is a value, and not a failure."
    )
    decode: str | None = optional(
        "How the model writes several tokens a step: `lookup:8`, `auto`, or for "
        "diffusion models `threshold:0.9`, ...; `weft decoders` tells them. Of models behind a "
        "server only diffusion models can be asked.",
        min_length=1,
    )
    samples: Positive | None = optional(
        "Ask so many times at once; the value is the list of the answers that came."
    )
    warm: bool = Field(
        default=False,
        description="Have the model's server compute the prompt up to the last node it mentions "
        "while that node still runs.",
    )
    tools: list[str] = optional_list(
        "Tools to offer; a server's name: all of its. The value is then "
        "{text, tool_calls: [{name, arguments}]}."
    )
    tool_choice: Literal["auto", "none", "required"] = Field(
        default="auto", description="Whether the model may, must not or must call a tool."
    )
    think: NodeThink | None = optional(
        "Answer by a strategy of several model calls: its name, or a mapping."
    )
    agent: Agentic | None = optional(
        "Answer with the `tools`, which the model has called until it can conclude: "
        "the name of an agent, or a mapping. `max_tokens` and sampling settings are of each call."
    )

    @model_validator(mode="after")
    def _what_goes_together(self) -> ModelNode:
        if "prompt" not in self.model_fields_set and self.messages is None:
            hint = "add `prompt:`, or `messages:`"
            raise PydanticCustomError("origin", "a model node has no `prompt`", {"hint": hint})
        try:
            check_messages([] if self.messages is None else self.messages)
        except MessageDefect as error:
            where = ["messages", *error.path]
            context = {"text": error.message, "hint": error.hint, "where": where}
            raise PydanticCustomError("origin", "{text}", context) from error
        for key in sorted(self.model_fields_set & _NOT_THINKING) if self.think else ():
            hint = "put it into `think`" if key in _INSIDE_THINKING else "make it another node"
            _refuse(key, "think", hint)
        for key in sorted(self.model_fields_set & _NOT_ACTING) if self.agent else ():
            _refuse(key, "agent", "make it another node")
        if self.conversation is not None and self.cache is not None:
            _refuse("cache", "conversation", "its answer depends on what was said before")
        for key in ("samples", "warm") if self.conversation else ():
            if getattr(self, key):
                _refuse(key, "conversation", "make it another node")
        return self


def _refuse(key: str, other: str, hint: str) -> NoReturn:
    context: dict[str, Any] = {"key": key, "other": other, "hint": hint, "where": [key]}
    raise PydanticCustomError("origin", "`{key}` does not go with `{other}`", context)


_OF_BREAKS = frozenset(("description", "after"))
_INSIDE_THINKING = frozenset(("max_tokens", "temperature", "seed", *SamplingPart.model_fields))
_NOT_ACTING = frozenset(
    (
        *("stop", "samples", "warm", "tool_choice", "allow_empty", "repair", "messages"),
        "conversation",
    )
)
_NOT_THINKING = _INSIDE_THINKING | _NOT_ACTING | {"tools", "agent"}


class ReduceNode(BaseNode):
    """Reduce a list to one value, with a plain Python function."""

    kind: ClassVar[str] = "reduce"

    reduce: str = Field(description="`./file.py:name` or `package.module:name`.", min_length=1)
    over: Value = Field(description="The list: the function's first argument.")
    arguments: Arguments = optional_mapping("Its other arguments, by name.", alias="with")


class JoinNode(BaseNode):
    """Wait for enough of several nodes. The value is their values; the losers are cancelled."""

    kind: ClassVar[str] = "join"

    join: list[Name] = Field(description="The nodes.", min_length=1)
    mode: JoinMode = Field(
        default="all",
        description="all, quorum, best_effort: a list of values in the order written. "
        "any, first_valid: the value of the first.",
    )
    k: Positive | None = optional("How many, when the mode is quorum.")
    valid: Template | None = optional("What `value` must satisfy, when the mode is first_valid.")
    otherwise: Value = optional(
        "What stands in for a failed node when the mode is best_effort. Without it "
        "nodes that failed are dropped, and the result is partial."
    )


class WorkflowNode(BaseNode):
    """Run another workflow file. The value holds its outputs by name."""

    kind: ClassVar[str] = "workflow"

    workflow: str = Field(description="The file, beside or below this one.", min_length=1)
    arguments: Arguments = optional_mapping("Its inputs, by name.", alias="with")
    max_depth: Annotated[int, Field(ge=1, le=MAX_DEPTH)] | None = optional(
        "The workflow may run itself, directly or through others, so many levels deep."
    )
    on: Name | None = optional(_ON)
    seed: int | str | None = optional(
        "Seeds the model calls inside that have no seed of their own, each node differently."
    )


class AskNode(BaseNode):
    """Ask a person, and wait for the answer."""

    kind: ClassVar[str] = "ask"

    ask: Template = Field(description="The question.")
    output_schema: SchemaSpec = Field(
        default={"type": "string"}, alias="schema", description="What the answer looks like."
    )


class ValueNode(BaseNode):
    """A value composed of others."""

    kind: ClassVar[str] = "value"

    value: Value = Field(description="The value; any text in it may be `{{ an expression }}`.")


class Block(SpecPart):
    """Several nodes with a result."""

    nodes: dict[Name, NodeSpec] = Field(description="The nodes, by name.", min_length=1)
    result: Value = Field(description="What they make together, usually `{{ a_node }}`.")


class MapNode(BaseNode):
    """Run the body for every item of a list, in parallel. The value is the list of results.

    Inside, the item has the name that `as` gives it, and `index` counts from 0.
    """

    kind: ClassVar[str] = "map"

    over: Value = Field(alias="map", description="The list.")
    item: Name = Field(default="item", alias="as", description="What an item is called inside.")
    width: Positive | None = optional("At most so many items at once.")
    grow: GrowSpec | None = optional("Do a sample of the items first, then more and more.")
    on: Name | None = optional(_ON)
    mode: JoinMode = Field(default="all", description="How many items must succeed.")
    k: Positive | None = optional("How many, when the mode is quorum.")
    valid: Template | None = optional("What `value` must satisfy, when the mode is first_valid.")
    otherwise: Value = optional(
        "What stands in for a failed item when the mode is best_effort. Without it "
        "items that failed are dropped, and the result is partial."
    )
    do: Body = Field(description="What to do with an item: a node, or `nodes` with a `result`.")


class BranchNode(BaseNode):
    """Run one of several cases. The value is that of the case."""

    kind: ClassVar[str] = "branch"

    branch: Value = Field(description="Its text picks the case: `true` and `false` for tests.")
    cases: Annotated[
        dict[str, Body],
        Field(
            min_length=1,
            description="The ways, by text. `default` is taken when no other fits; without it "
            "the node is left out then.",
        ),
    ]


class LoopNode(BaseNode):
    """Repeat until a condition holds. The value is that of the last iteration.

    Inside and in `until` the last value is called what `as` says; `iteration` counts from 1.
    """

    kind: ClassVar[str] = "loop"

    loop: Body = Field(description="What to repeat: a node, or `nodes` with a `result`.")
    item: Name = Field(
        default="value", alias="as", description="The last value, inside and in `until`."
    )
    start: Value = optional("Its value in the first iteration.")
    until: Template = Field(description="Ends the loop when true; sees the new value.")
    max: Positive = Field(description="At most so many iterations.")
    on_limit: Literal["last", "fail"] = Field(
        default="last", description="After the last iteration: take its value, or fail."
    )


class BreakNode(BaseNode):
    """End the loop in whose `nodes` it stands; what is written after it there is skipped then."""

    kind: ClassVar[str] = "break"

    condition: Template = Field(alias="break", description="Ends the loop when true.")
    value: Value = Field(description="What the loop's value is then.")

    @model_validator(mode="after")
    def _without_policies(self) -> BreakNode:
        for key in sorted(self.model_fields_set & BaseNode.model_fields.keys() - _OF_BREAKS):
            _refuse(key, "break", "write it into the condition, or make it another node")
        return self


KINDS: tuple[type[BaseNode], ...] = (
    ToolNode,
    CallNode,
    ModelNode,
    MapNode,
    ReduceNode,
    JoinNode,
    BranchNode,
    LoopNode,
    BreakNode,
    WorkflowNode,
    AskNode,
    ValueNode,
)
KIND_NAMES = tuple(kind.kind for kind in KINDS)


def tag(kind: str) -> str:
    """The union's tag for `kind`; never equal to a key of a document."""
    return f"<{kind}>"


def _kind(value: Any) -> str | None:
    if isinstance(value, BaseNode):
        return tag(value.kind)
    if not isinstance(value, Mapping):
        return None
    return next((tag(kind) for kind in KIND_NAMES if kind in value), None)


def _body_kind(value: Any) -> str | None:
    if isinstance(value, Block) or (isinstance(value, Mapping) and "nodes" in value):
        return tag("block")
    return tag("node")


NodeSpec = Annotated[
    Annotated[ToolNode, PydanticTag(tag("tool"))]
    | Annotated[CallNode, PydanticTag(tag("call"))]
    | Annotated[ModelNode, PydanticTag(tag("model"))]
    | Annotated[MapNode, PydanticTag(tag("map"))]
    | Annotated[ReduceNode, PydanticTag(tag("reduce"))]
    | Annotated[JoinNode, PydanticTag(tag("join"))]
    | Annotated[BranchNode, PydanticTag(tag("branch"))]
    | Annotated[LoopNode, PydanticTag(tag("loop"))]
    | Annotated[BreakNode, PydanticTag(tag("break"))]
    | Annotated[WorkflowNode, PydanticTag(tag("workflow"))]
    | Annotated[AskNode, PydanticTag(tag("ask"))]
    | Annotated[ValueNode, PydanticTag(tag("value"))],
    Discriminator(_kind),
]
"""One node; the key among `KIND_NAMES` gives its kind."""

Body = Annotated[
    Annotated[NodeSpec, PydanticTag(tag("node"))] | Annotated[Block, PydanticTag(tag("block"))],
    Discriminator(_body_kind),
]
"""The body of a map, a loop or a case: one node, or a block of several."""
