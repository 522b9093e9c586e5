"""The builder of workflows in Python: one method for each kind of node. Runs nothing."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from weft.agents.tools import Tool
from weft.core.budget import Budget
from weft.core.error_names import ErrorRef, error_names
from weft.core.errors import BuildError
from weft.core.keywords import check_keywords, expect
from weft.core.ports import ModelClient
from weft.workflow.document.spec.fields import free_name
from weft.workflow.document.spec.nodes import Body
from weft.workflow.document.unit import ONLY_PYTHON, Unit
from weft.workflow.flow.checked_node import checked_node
from weft.workflow.flow.handle import Expression, Handle, source_of
from weft.workflow.flow.positional_call import with_names
from weft.workflow.flow.python_values import (
    Function,
    FunctionReferences,
    alternative,
    arguments_mapping,
    arguments_of,
    document_value,
    schema_of,
    split,
    thinking,
    written_messages,
)
from weft.workflow.flow.scope import FlowScope, assigned_name, parameters

JoinMode = Literal["all", "any", "quorum", "first_valid", "best_effort"]
Condition = str | Expression
Test = Condition | Callable[[Handle], object]


class NodeOptions(TypedDict, total=False):
    """Options of every node; see `weft schema` for each. `name` is the node's own."""

    name: str
    description: str
    when: Condition
    after: Handle | Sequence[Handle]
    retry: int | Mapping[str, object]
    retry_on: ErrorRef | Sequence[ErrorRef]
    timeout: float | str
    fallback: Handle
    default: object
    on_failure: Literal["fail", "skip"]
    cache: bool | Mapping[str, object]
    budget: Mapping[str, object] | Budget
    degrade: Handle
    weight: float


class ModelOptions(NodeOptions, total=False):
    """Options of a model node: those of every node, and the fields of its request."""

    max_tokens: int
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    repair: int
    presence_penalty: float
    frequency_penalty: float
    repetition_penalty: float
    logit_bias: Mapping[str, float] | Mapping[int, float]
    reasoning_effort: str
    extra_body: Mapping[str, object]
    stop: str | Sequence[str]
    seed: int
    decode: str
    samples: int
    warm: bool
    tool_choice: Literal["auto", "none", "required"]
    allow_empty: bool


_OPTIONS = frozenset(NodeOptions.__annotations__)
_MODEL_FIELDS = frozenset(ModelOptions.__annotations__) - _OPTIONS


class FlowBuilder(ABC):
    """Adds nodes. Each method returns a handle for the node's value.

    A node is named by `name=`, else after the variable that its handle is assigned to. Arguments of
    the called function whose names are options (`timeout`, `retry`, ...) go into `args={...}`, and
    so do all names of a prompt. An unknown keyword raises `BuildError` with a suggestion.
    Texts are templates, as in a file: `{{ name }}`, or a handle in an f-string. A defect of one
    node raises `BuildError` at once; defects between nodes are found by `check`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._level = FlowScope()
        self._tools: dict[str, Any] = {}
        self._functions: dict[str, Function] = {}
        self._clients: dict[str, ModelClient] = {}
        self._flows: dict[str, Unit | FlowBuilder] = {}
        self._references = FunctionReferences(folder, self._functions)

    # -- calls ---------------------------------------------------------------------------------

    def tool(
        self,
        tool: str | Function,
        /,
        *arguments: object,
        alternatives: Sequence[str | Function | Mapping[str, Any]] = (),
        args: Mapping[str, object] | None = None,
        approve: bool | str | Expression | None = None,
        **values: object,
    ) -> Handle:
        """Call a tool: a `@weft.tool` function, a typed function, or a declared name.

        `alternatives` are called when it fails, the cheapest first: tools, or mappings such as
        `{"tool": other, "with": {"query": topic}, "cost": 2}`. `approve`: see docs/tools.md.
        """
        options, named = split(values, _OPTIONS)
        given = arguments_of("flow.tool", tool, arguments, args, named, _OPTIONS)
        name = tool if isinstance(tool, str) else self._declare(tool)
        fields: dict[str, Any] = {"tool": name, "with": self._values(given)}
        fields |= {} if approve is None else {"approve": self._value(approve)}
        if alternatives:
            hint = "write alternatives=[other_tool]"
            expect(alternatives, (list, tuple), "`alternatives` is a list of tools", hint)
            fields["alternatives"] = [
                self._value(alternative(other, self._declare)) for other in alternatives
            ]
        return self._add(fields, options, name.rpartition(":")[2].rpartition(".")[2])

    def call(
        self,
        function: str | Function,
        /,
        *arguments: object,
        args: Mapping[str, object] | None = None,
        **values: object,
    ) -> Handle:
        """Call a plain function, sync or async. Values are passed as they are."""
        options, named = split(values, _OPTIONS)
        if callable(function) and arguments:
            function, by_position = with_names(function, arguments)
            named, arguments = {**by_position, **named}, () if by_position else arguments
        given = arguments_of("flow.call", function, arguments, args, named, _OPTIONS)
        reference = self._reference(function)
        fields = {"call": reference, "with": self._values(given)}
        return self._add(fields, options, reference.rpartition(":")[2])

    def model(
        self,
        model: str,
        prompt: str | Expression = "",
        /,
        *,
        system: str | None = None,
        messages: Sequence[object] | Expression | None = None,
        schema: object = None,
        tools: Sequence[str | Function] = (),
        think: str | Mapping[str, object] | None = None,
        agent: str | Mapping[str, object] | None = None,
        args: Mapping[str, object] | None = None,
        **options: Unpack[ModelOptions],
    ) -> Handle:
        """Ask a language model.

        `schema`, a Python type or a JSON Schema, makes the answer typed. `args` has further names
        for the prompt: `flow.model("small", "Summarise {{ text }}", args={"text": hit.text})`.
        `messages` come before the prompt, or instead of one: a list of mappings such as
        `{"role": "user", "content": ...}` and of handles of such lists.
        `think` answers by a strategy: its name, or `{"strategy": "sample", ...}`. `agent` is the
        loop in which the model calls the tools: `compiler`, or `{"loop": ...}`. See `ModelOptions`
        for the fields of the request, such as `max_tokens` and `temperature`.
        """
        fields, given = split(options, _MODEL_FIELDS)
        hint = "names of the prompt go into args={...}"
        self._known("model", given, hint, (*_MODEL_FIELDS,))
        expect(model, str, "a model is named as under `models`", 'flow.model("small", "prompt")')
        fields["model"] = model
        if messages is None or isinstance(prompt, Expression) or prompt:
            fields["prompt"] = self._value(prompt)
        if messages is not None:
            fields["messages"] = self._value(written_messages(messages))
        fields |= {"with": self._values(arguments_mapping(args))}
        if system is not None:
            fields["system"] = self._value(system)
        if schema is not None:
            fields["schema"] = schema_of(schema)
        if tools:
            expect(tools, (list, tuple), "`tools` is a list of tools", "write tools=[search]")
            fields["tools"] = [t if isinstance(t, str) else self._declare(t) for t in tools]
        if think is not None:
            fields["think"] = self._value(thinking(think, self._reference))
        if agent is not None:
            fields["agent"] = self._value(agent)
        return self._add(fields, given, model)

    def workflow(
        self,
        workflow: str | FlowBuilder,
        /,
        *,
        max_depth: int | None = None,
        args: Mapping[str, object] | None = None,
        **values: object,
    ) -> Handle:
        """Run another workflow, a file or a `Flow`; the handle's fields are its outputs.

        With `max_depth` it may be this flow, or one that runs this flow, and may be incomplete yet:
        it runs inside itself at most so many levels deep.
        """
        options, named = split(values, _OPTIONS)
        file = workflow
        if not isinstance(file, str):
            file = self._include(file, file.unit if max_depth is None else file)
        fields: dict[str, Any] = {"workflow": file}
        fields["with"] = self._values({**named, **arguments_mapping(args)})
        if max_depth is not None:
            fields["max_depth"] = max_depth
        return self._add(fields, options, Path(file.removeprefix(ONLY_PYTHON)).stem)

    # -- many values ---------------------------------------------------------------------------

    def map(
        self,
        over: object,
        body: Callable[..., object],
        /,
        *,
        width: int | None = None,
        mode: JoinMode = "all",
        k: int | None = None,
        valid: Test | None = None,
        otherwise: object = ...,
        **options: Unpack[NodeOptions],
    ) -> Handle:
        """Run `body(item)` or `body(item, index)` for every item of a list, in parallel.

        `body` is called once, now, with handles; its nodes run once for each item. The value is the
        list of results. `mode` decides how many must succeed.
        """
        self._known("map", options)
        names = self._parameters(body, "the body of a map", "index")
        fields = {
            "map": self._value(over),
            "as": names[0],
            "do": self._body(body, names),
            **({} if width is None else {"width": width}),
            **self._join(mode, k, valid, otherwise),
        }
        return self._add(fields, options, "map")

    def reduce(
        self,
        function: str | Function,
        over: object,
        /,
        *,
        args: Mapping[str, object] | None = None,
        **values: object,
    ) -> Handle:
        """Reduce a list to one value: `function(list, **values)`, a plain function."""
        options, named = split(values, _OPTIONS)
        reference = self._reference(function)
        given = self._values(arguments_of("flow.reduce", function, (), args, named, _OPTIONS))
        fields = {"reduce": reference, "over": self._value(over), "with": given}
        return self._add(fields, options, reference.rpartition(":")[2])

    def join(
        self,
        *branches: Handle,
        mode: JoinMode = "all",
        k: int | None = None,
        valid: Test | None = None,
        otherwise: object = ...,
        **options: Unpack[NodeOptions],
    ) -> Handle:
        """Wait for enough of several nodes, and cancel those that are no longer needed.

        all, quorum, best_effort: a list of values, in the order given. any, first_valid: the value
        of the first.
        """
        self._known("join", options)
        fields = {"join": [_name(branch) for branch in branches]}
        return self._add({**fields, **self._join(mode, k, valid, otherwise)}, options, "join")

    # -- control -------------------------------------------------------------------------------

    def branch(
        self, on: object, cases: Mapping[Any, object], /, **options: Unpack[NodeOptions]
    ) -> Handle:
        """Run the case that the value of `on` names; `"default"` when no other fits.

        A case is a function without parameters that makes nodes, or a plain value:
        `flow.branch(score > 3, {True: draft, False: lambda: flow.model("big", ...)})`.
        """
        self._known("branch", options)
        hint = "write flow.branch(score > 3, {True: draft, False: other})"
        expect(cases, Mapping, "the cases of a branch are a mapping", hint)
        bodies = {
            str(case).lower() if isinstance(case, bool) else str(case): self._case(body)
            for case, body in cases.items()
        }
        return self._add({"branch": self._value(on), "cases": bodies}, options, "branch")

    def loop(
        self,
        start: object,
        body: Callable[..., object],
        /,
        *,
        until: Test,
        max: int,  # noqa: A002 - the word of the document
        on_limit: Literal["last", "fail"] = "last",
        **options: Unpack[NodeOptions],
    ) -> Handle:
        """Repeat `body(value)` or `body(value, iteration)` until `until(value)` is true.

        The first value is `start`, each next one is the body's result; at most `max` times.
        """
        self._known("loop", options)
        names = self._parameters(body, "the body of a loop", "iteration")
        fields = {
            "loop": self._body(body, names),
            "as": names[0],
            "start": self._value(start),
            "until": self._test(until, names[0]),
            "max": max,
            **({} if on_limit == "last" else {"on_limit": on_limit}),
        }
        return self._add(fields, options, "loop")

    def ask(
        self, question: str | Expression, schema: object = str, /, **options: Unpack[NodeOptions]
    ) -> Handle:
        """Ask a person. The answer is of the type `schema`: a Python type or a JSON Schema."""
        self._known("ask", options)
        fields = {"ask": self._value(question), "schema": schema_of(schema)}
        return self._add(fields, options, "ask")

    def value(self, value: object, /, **options: Unpack[NodeOptions]) -> Handle:
        """A value composed of others."""
        self._known("value", options)
        return self._add({"value": self._value(value)}, options, "value")

    # -- inside --------------------------------------------------------------------------------

    @abstractmethod
    def _changed(self) -> None:
        """Called after every addition."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The workflow's name."""

    @property
    @abstractmethod
    def unit(self) -> Unit:
        """The document with its surroundings."""

    def _known(
        self,
        method: str,
        options: Mapping[str, Any],
        hint: str | None = None,
        more: Sequence[str] = (),
    ) -> None:
        """Refuse options that neither the `method` nor every node has. Raises: `BuildError`."""
        if not options.keys() <= _OPTIONS:
            own = inspect.signature(getattr(FlowBuilder, method)).parameters.values()
            named = (each.name for each in own if each.kind is inspect.Parameter.KEYWORD_ONLY)
            check_keywords(f"flow.{method}", options, {*named, *more, *_OPTIONS}, hint)

    def _add(self, fields: dict[str, Any], options: Mapping[str, Any], otherwise: str) -> Handle:
        name = self._level.claim(options.get("name"), assigned_name() or otherwise)
        raw = {key: value for key, value in fields.items() if key != "with" or value}
        raw |= {key: self._option(key, value) for key, value in options.items() if key != "name"}
        self._level.nodes[name] = checked_node(raw, name)
        self._changed()
        return Handle(name, self)

    def _option(self, key: str, value: Any) -> Any:
        if key in ("fallback", "degrade"):
            return _name(value)
        if key == "retry_on":
            try:
                return list(error_names(value))
            except ValueError as error:
                raise BuildError(f"retry_on: {error}") from error
        if key == "after":
            expect(value, (Handle, list, tuple), "`after` is a node or a list", "after=[a, b]")
            return [_name(one) for one in ([value] if isinstance(value, Handle) else value)]
        return self._value(value)

    def _value(self, value: object) -> Any:
        return document_value(value, self)

    def _values(self, values: Mapping[str, object]) -> dict[str, Any]:
        return {name: self._value(value) for name, value in values.items()}

    def _body(self, body: Callable[..., object], names: Sequence[str]) -> Body:
        outer, self._level = self._level, FlowScope(self._level, names)
        try:
            result = body(*(Handle(name, self) for name in names))
            return self._level.body(result, self._value)
        finally:
            outer.inner |= {*names, *self._level.nodes, *self._level.inner}
            self._level = outer

    def _parameters(self, body: Callable[..., object], what: str, number: str) -> list[str]:
        """The names inside a body, called like its parameters: the item, and maybe the number.

        As in Python, a parameter may be called like something around it: then it gets a number.
        """
        names = parameters(body, 1, 2, what)
        return [free_name(names[0], self._level), number][: len(names)]

    def _case(self, case: object) -> Body:
        if isinstance(case, Expression) or not callable(case):
            return self._body(lambda: case, ())
        parameters(case, 0, 0, "a case of a branch")
        return self._body(case, ())

    def _test(self, test: Test, name: str) -> Any:
        if isinstance(test, (str, Expression)):
            return self._value(test)
        result = test(Handle(name, self))
        if not isinstance(result, (str, Expression)):
            hint = 'it is called once with a handle: lambda v: v.score > 3; or "{{ v.score > 3 }}"'
            raise BuildError(f"a condition is an expression, not {result!r}", hint=hint)
        return self._value(result)

    def _join(
        self, mode: JoinMode, k: int | None, valid: Test | None, otherwise: object
    ) -> dict[str, Any]:
        fields: dict[str, Any] = {} if mode == "all" else {"mode": mode}
        if k is not None:
            fields["k"] = k
        if valid is not None:
            fields["valid"] = self._test(valid, "value")
        if otherwise is not ...:
            fields["otherwise"] = self._value(otherwise)
        return fields

    def _declare(self, tool: Function) -> str:
        """The declared name of a tool, which is declared if it is not yet."""
        reference = self._reference(tool, as_tool=True)
        for name, use in self._tools.items():
            if use == reference:
                return name
        name = tool.spec.name if isinstance(tool, Tool) else reference.rpartition(":")[2]
        name = free_name(name, self._tools)
        self._tools[name] = reference
        return name

    def _include(self, flow: FlowBuilder, part: Unit | FlowBuilder) -> str:
        """A reference to another flow: as it is now, its unit, or as it will be, itself."""
        taken = {key: other for key, other in self._flows.items() if other is not part}
        reference = free_name(f"{ONLY_PYTHON}{flow.name}", taken)
        self._flows[reference] = part
        return reference

    def _reference(self, function: str | Function, *, as_tool: bool = False) -> str:
        if isinstance(function, str):
            return function
        return self._references.of(function, as_tool and not isinstance(function, Tool))


def _name(handle: object) -> str:
    if isinstance(handle, Handle) and source_of(handle).isidentifier():
        return source_of(handle)
    hint = "a method of the flow returns it: draft = flow.model(...)"
    raise BuildError(f"expected the handle of a node, not {handle!r}", hint=hint)
