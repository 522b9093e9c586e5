"""Declarations of inputs, models and tools in a document. Opens and imports nothing."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, JsonValue, PlainSerializer, RootModel, model_validator
from pydantic_core import PydanticCustomError

from weft.core.ids import is_name
from weft.core.values import Effect
from weft.validation import violation
from weft.workflow.document.spec.facts import Facts
from weft.workflow.document.spec.fields import (
    Duration,
    Name,
    Size,
    SpecPart,
    expands,
    one_or_many,
    optional,
    optional_list,
    optional_mapping,
    shortens,
)
from weft.workflow.document.spec.model_settings import Among, Moderator, Think, WeightsSpec
from weft.workflow.document.spec.schemas import SchemaSpec
from weft.workflow.document.spec.settings import BreakerField, Retry, RetryOn

Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""The name of an environment variable."""


def _expand_operations(value: object) -> object:
    texts = value.values() if isinstance(value, dict) else value
    if not isinstance(texts, Collection) or isinstance(texts, str):
        raise PydanticCustomError("name", "`operations` must be a list, or names with operations")
    for text in texts:
        if not isinstance(text, str) or not text:
            context = {"text": repr(text)[:60]}
            raise PydanticCustomError("name", "{text} is no operation: quote its name", context)
    for name in value if isinstance(value, dict) else ():
        if not isinstance(name, str) or not is_name(name):
            context = {"text": repr(name)[:60]}
            raise PydanticCustomError("name", "{text} cannot be the name of a tool", context)
    return value


Operations = Annotated[
    list[str] | dict[str, str],
    BeforeValidator(
        _expand_operations,
        json_schema_input_type=Annotated[list[str], Field(min_length=1)] | dict[Name, str],
    ),
]
"""A list of operations, or a mapping of names to operations."""

AuthEnv = Annotated[
    dict[str, Variable],
    BeforeValidator(
        lambda value: {"": value} if isinstance(value, str) else value,
        json_schema_input_type=Variable | dict[str, Variable],
    ),
    PlainSerializer(lambda names: names.get("", names)),
]
"""The variable for each security scheme; "" is the default for all."""


class OpenApiUse(SpecPart):
    """Operations of an HTTP interface. Only listed operations are callable."""

    document: str = Field(description="The OpenAPI file, beside the workflow.", min_length=1)
    operations: Operations = Field(
        description="By `operationId`, or as `GET /pets/{id}`; a mapping gives names to them."
    )
    base_url: str | None = optional("Where the interface is; else where its document says.")
    auth_env: AuthEnv | None = optional(
        "The environment variable that holds the key, or one for each security scheme."
    )
    private: list[str] = optional_list(
        "Networks that are not public and may be reached, such as 127.0.0.0/8."
    )
    timeout: Duration | None = optional("The longest call, with its repetitions; 30s.")
    retries: int | None = optional(
        "Repetitions of what may be repeated: GET, PUT, DELETE; 2.", ge=0
    )
    max_result: Size | None = optional("The largest answer; 1MiB.")
    pure: bool | None = optional(
        "What is read stays the same during a run: equal GETs are sent once."
    )


class InputSpec(RootModel[SchemaSpec]):
    """An input of the workflow: a JSON Schema, whose `default` makes the input optional."""

    model_config = {"frozen": True}

    @property
    def schema_(self) -> dict[str, JsonValue]:
        """The JSON Schema, with its `default` and `description`."""
        return self.root

    @property
    def required(self) -> bool:
        """True when a run must give it."""
        return "default" not in self.root

    @property
    def default(self) -> JsonValue:
        """The value when a run does not give one."""
        return self.root.get("default")

    @property
    def description(self) -> str:
        """One sentence for people."""
        return str(self.root.get("description", ""))

    @model_validator(mode="after")
    def _default_fits(self) -> InputSpec:
        if not self.required and (why := violation(self.default, self.root)):
            raise PydanticCustomError(
                "schema", "the default does not fit: {why}", {"why": why, "where": ["default"]}
            )
        return self


Addresses = Annotated[
    list[str],
    BeforeValidator(
        one_or_many, json_schema_input_type=str | Annotated[list[str], Field(min_length=1)]
    ),
    Field(min_length=1),
    PlainSerializer(lambda urls: urls[0] if len(urls) == 1 else urls),
]
"""One address, or a list of them."""


class ModelSpec(SpecPart):
    """A language model and how to reach it."""

    use: str = Field(
        description="`local`: in this process. `vllm`: served by vLLM, which is started unless it "
        "runs. `openai`: any OpenAI-compatible server. `anthropic`, `gemini`: the hosted APIs. "
        "`route`: for each call the best among other models. `think`: another model, by a "
        "reasoning strategy. Or a function that makes a client: `./file.py:name`, "
        "`package.module:name`.",
        min_length=1,
    )
    model: str = Field(
        default="",
        description="The model's name, as the server or `weft model list` calls it; of `think` the "
        "name of another model of the file.",
    )
    base_url: Addresses | None = optional(
        "The server's address, with its /v1; or the addresses of several replicas."
    )
    api_key_env: str | None = optional(
        "The environment variable that holds the key. Keys do not belong in files.",
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
    )
    options: dict[str, Any] = optional_mapping("Further options of this kind of client.")
    moderator: Moderator | None = optional(
        "Who reads what it writes before that is shown: `./guard.py:name`, or {model: NAME}."
    )
    among: Among | None = optional("Of a route: models to choose from, and what is known of them.")
    weights: WeightsSpec | None = optional(
        "Of a route: how much loss money, latency and size are worth."
    )
    predictor: str | None = optional(
        "Of a route: a file of learnt losses, made by `weft train-router`.", min_length=1
    )
    think: Think | None = optional("Of a model that thinks: the strategy and its caps.")
    breaker: BreakerField | None = optional(
        "Refuse calls once so many have failed, until one that is tried succeeds."
    )

    @property
    def behind(self) -> tuple[str, ...]:
        """The models of the document that this one is composed of; none for most."""
        return (self.model,) if self.use == "think" else tuple(self.among or ())

    @model_validator(mode="after")
    def _its_own_keys(self) -> ModelSpec:
        needed, its_own = _OWN_KEYS.get(self.use, _KEYS_OF_OTHERS)
        for key in needed:
            if key not in self.model_fields_set or not getattr(self, key):
                context: dict[str, Any] = {"key": key, "hint": f"add `{key}:`"}
                raise PydanticCustomError("origin", "the model has no `{key}`", context)
        for key in sorted(self.model_fields_set - its_own - {"use"}):
            hint = f"it has {', '.join(f'`{own}`' for own in sorted(its_own))}"
            context = {"key": key, "use": self.use, "hint": hint, "where": [key]}
            raise PydanticCustomError("origin", "`{key}` does not go with `use: {use}`", context)
        return self


_OWN_KEYS = {
    "route": (("among",), frozenset(("among", "weights", "predictor"))),
    "think": (("model", "think"), frozenset(("model", "think"))),
}
"""By kind of model: its required keys, and all its keys besides `use`."""
_KEYS_OF_OTHERS = (
    ("model",),
    frozenset(("model", "base_url", "api_key_env", "options", "moderator", "breaker")),
)
_SHORT = ("local", "vllm", "anthropic", "gemini")


def _expand_model(value: object) -> object:
    if not isinstance(value, str):
        return value
    use, colon, model = value.partition(":")
    if use not in _SHORT or not colon or not model.strip():
        forms = ", ".join(f"{use}:NAME" for use in _SHORT)
        raise PydanticCustomError("model", "expected {forms}, or a mapping", {"forms": forms})
    return {"use": use, "model": model.strip()}


def _shorten_model(spec: ModelSpec) -> object:
    if spec.use in _SHORT and spec.model_fields_set == {"use", "model"}:
        return f"{spec.use}:{spec.model}"
    return spec.model_dump(exclude_unset=True)


Model = Annotated[
    ModelSpec,
    BeforeValidator(
        _expand_model,
        json_schema_input_type=Annotated[str, Field(pattern=rf"^({'|'.join(_SHORT)}):\s*[^\s]")]
        | ModelSpec,
    ),
    PlainSerializer(_shorten_model),
]
"""`local:NAME`, `vllm:NAME`, `anthropic:NAME`, `gemini:NAME`, or a mapping."""


class IsolationSpec(SpecPart):
    """Run a tool in its own process, within limits."""

    timeout: Duration | None = optional("The tool is killed then.")
    memory: Size | None = optional("At most so much memory.")
    output: Size | None = optional("At most so much output.")


class McpUse(SpecPart):
    """An MCP server: a program that is started for the run, or an address."""

    command: list[str] | None = optional(
        "The program and its arguments; no shell reads it.", min_length=1
    )
    url: str | None = optional("The address, often ending in /mcp.")
    env_from: list[Variable] = optional_list(
        "Environment variables that the program gets; all others are withheld."
    )
    headers_from: dict[str, Variable] = optional_mapping(
        "HTTP headers, each with the environment variable that holds its value."
    )
    api_key_env: Variable | None = optional(
        "The environment variable that holds the key of the address."
    )
    timeout: Duration | None = optional("The longest call; 60s.")
    start_timeout: Duration | None = optional(
        "How long it may take to start and list its tools; 60s."
    )
    max_result: Size | None = optional("The largest result; 16MiB.")
    restarts: int | None = optional("How often in a row it is started again; 3.", ge=0)


class EmbeddingUse(SpecPart):
    """An embedding model of an OpenAI-compatible server."""

    model: str = Field(description="The model's name, as the server calls it.", min_length=1)
    base_url: str = Field(description="The server's address, with its /v1.", min_length=1)
    api_key_env: Variable | None = optional("The environment variable that holds the key.")


def _check_place(value: object) -> object:
    if value is not True and not (isinstance(value, str) and value):
        hint = "write `memory: ./facts.sqlite`; true: in your data folder"
        raise PydanticCustomError("origin", "`memory` must be a file, or true", {"hint": hint})
    return value


MemoryPlace = Annotated[str | Literal[True], BeforeValidator(_check_place)]
"""The file of a memory; true for the one of the tool's name in the user's data folder."""


def _expand_search(value: object) -> object:
    if isinstance(value, str) and value != "bm25":
        hint = "write `bm25`, or `{model: ..., base_url: ...}` of an embedding model"
        context = {"text": repr(value)[:60], "hint": hint}
        raise PydanticCustomError("origin", "there is no search by {text}", context)
    return None if value == "bm25" else value


MemorySearch = Annotated[
    EmbeddingUse | None,
    BeforeValidator(_expand_search, json_schema_input_type=Literal["bm25"] | EmbeddingUse),
    PlainSerializer(lambda spec: "bm25" if spec is None else spec.model_dump(exclude_unset=True)),
]
"""`bm25`, which is None here, or an embedding model."""


_ORIGINS = ("use", "mcp", "openapi", "memory")
_KINDS = {"use": "a single tool", "mcp": "a server", "memory": "a memory"}


class ToolUse(SpecPart):
    """A tool and its origin; or a server with many tools, called `name.tool`."""

    use: str | None = optional("`./file.py:name` or `package.module:name`.", min_length=1)
    isolate: (
        Annotated[
            IsolationSpec,
            BeforeValidator(
                lambda value: {} if value is True else value,
                json_schema_input_type=bool | IsolationSpec,
            ),
        ]
        | None
    ) = optional("Run it in a process of its own.")
    on: Name | None = optional(
        "Where it runs, with `run: {on: ray}`: a pool, or `local`: in this process."
    )
    mcp: McpUse | None = optional("The MCP server whose tools are called `name.tool`.")
    openapi: OpenApiUse | None = optional(
        "The HTTP interface whose operations are called `name.operation`."
    )
    memory: MemoryPlace | None = optional(
        "The file of a memory whose tools are `name.add`, `name.search` and `name.forget`; made on "
        "first use. true: a file of the tool's name in your data folder."
    )
    search: MemorySearch = optional(
        "How a memory is searched. `bm25`: by words, the default. Or by an embedding model."
    )
    only: list[str] = optional_list("Of a server or a memory: the tools to take; else all.")
    effect: Effect | dict[str, Effect] | None = optional(
        "What a call does to the world. `pure`: nothing. `idempotent`: repeated with "
        "the same key, no more than once. `once`: it is never repeated without confirmation. Of a "
        "server: of all its tools, or by tool."
    )
    retry: Retry | None = optional(
        "Repeat a call when its error may go away, also in an agent. A node's own `retry` wins."
    )
    retry_on: RetryOn | None = optional(
        "Further errors after which a call is repeated: exceptions and HTTP statuses."
    )
    breaker: BreakerField | None = optional(
        "Refuse calls once so many have failed, until one that is tried succeeds. Of a server: one "
        "for all its tools."
    )
    approve: bool | str | dict[str, bool | str] | None = optional(
        "Calls need a person's approval: true, or `{{ a rule }}` over the arguments. false: nor do "
        "calls of a `once` tool that a model requests. Of a server: of all its tools, or by tool."
    )

    needs: Facts | None = optional(
        "Facts that have to hold before a call: `at({room})`, `not holding(*)`."
    )
    makes: Facts | None = optional(
        "Facts that hold after a call: `open({door})`; `not at(*)` undoes such facts first."
    )
    fill: bool | None = optional("An agent's rehearsal may add calls of the tool to its plan.")

    def approval(self, tool: str = "") -> bool | str | None:
        """The rule for a `tool` of a server, or for the single tool; None: it does not say."""
        if isinstance(self.approve, dict):
            return self.approve.get(tool)
        return self.approve

    @property
    def is_source(self) -> bool:
        """True for a server with tools, false for a single tool."""
        return self.use is None

    @property
    def effects(self) -> dict[str, Effect]:
        """Effects by tool of a server; "" is for all others, or for the single tool."""
        if isinstance(self.effect, dict):
            return self.effect
        return {} if self.effect is None else {"": self.effect}

    @property
    def origin(self) -> str:
        """The key of its origin: `use`, `mcp`, `openapi` or `memory`."""
        return next(key for key in _ORIGINS if getattr(self, key) is not None)

    @model_validator(mode="after")
    def _one_origin(self) -> ToolUse:
        kinds = [key for key in _ORIGINS if getattr(self, key) is not None]
        if len(kinds) != 1:
            both = " and ".join(f"`{key}`" for key in kinds)
            why = f"says both {both}" if kinds else "has no `use`, `mcp`, `openapi` or `memory`"
            hint = "write `use: ./tools.py:name`, `mcp: {command: [...]}` or `openapi: {...}`"
            raise PydanticCustomError("origin", "the tool {why}", {"why": why, "hint": hint})
        misplaced = self._misplaced(kinds[0])
        if misplaced is not None:
            what = _KINDS.get(kinds[0], "`openapi`")
            hints = {"effect": "write `effect: once`", "approve": "write `approve: true`"}
            hint = hints.get(misplaced, "leave it out")
            context = {"key": misplaced, "what": what, "hint": hint, "where": [misplaced]}
            raise PydanticCustomError("origin", "`{key}` does not go with {what}", context)
        return self

    def _misplaced(self, kind: str) -> str | None:
        """A key that tools of the origin `kind` do not have."""
        for key in ("isolate", "on", "needs", "makes", "fill"):
            if getattr(self, key) is not None and kind != "use":
                return key
        if self.only and kind not in ("mcp", "memory"):
            return "only"
        if "search" in self.model_fields_set and kind != "memory":
            return "search"
        for key in ("effect", "breaker"):  # its tools declare their own; it is a local file
            if getattr(self, key) is not None and kind == "memory":
                return key
        for key in ("approve", "effect"):
            if isinstance(getattr(self, key), dict) and kind == "use":
                return key
        return None


Tool = Annotated[ToolUse, expands("use", str | ToolUse), shortens("use")]
"""`./file.py:name`, or a mapping."""
