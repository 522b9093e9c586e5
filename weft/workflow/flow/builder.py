"""The builder of workflows in Python: one method for each kind of node. Runs nothing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Unpack, cast

from weft.core.errors import BuildError
from weft.core.keywords import check_keywords, expect, refuses_wrong_calls
from weft.core.suggestion import closest
from weft.workflow.document.python_types import (
    FIRST,
    item_type,
    list_of,
)
from weft.workflow.document.unit import ONLY_PYTHON, Unit
from weft.workflow.flow.handle import Expression, kind_of, shared_kind, source_of
from weft.workflow.flow.node_adder import NODE_OPTIONS, NodeAdder, node_name_of
from weft.workflow.flow.node_settings import NodesWithSettings
from weft.workflow.flow.node_signatures import (
    AskSignature,
    JoinSignature,
    LoopSignature,
    MapSignature,
    ModelSignature,
    ValueSignature,
)
from weft.workflow.flow.positional_call import with_names
from weft.workflow.flow.python_values import (
    Function,
    alternative,
    arguments_mapping,
    arguments_of,
    case_name,
    is_type,
    result_type,
    schema_of,
    split,
    thinking,
    written_messages,
)
from weft.workflow.flow.signatures import (
    CallSignature,
    Condition,
    JoinMode,
    ModelOptions,
    NodeOptions,
    NodeSettings,
    ReduceSignature,
    Test,
    checked_as,
)

_MODEL_FIELDS = frozenset(ModelOptions.__annotations__) - NODE_OPTIONS | {"samples"}


class FlowBuilder(NodeAdder):
    """Adds nodes. Each method returns a handle for the node's value.

    A node is named by `name=`, else after the variable that its handle is assigned to. Arguments of
    the called function whose names are options (`timeout`, `retry`, ...) go into `args={...}`, and
    so do all names of a prompt. An unknown keyword raises `BuildError` with a suggestion.
    Texts are templates, as in a file: `{{ name }}`, or a handle in an f-string. A defect of one
    node raises `BuildError` at once; defects between nodes are found by `check`.
    """

    @refuses_wrong_calls
    def options(self, **options: Unpack[NodeSettings]) -> FlowBuilder:
        """This flow, with `options` for the node that is made of it.

        `flow.options(retry=2, timeout=5).tool(search, topic="tea")` is what
        `flow.tool(search, topic="tea", retry=2, timeout=5)` is. To type checkers the keywords of
        `tool`, `call` and `reduce` are those of the function alone: this way they check both.
        """
        check_keywords("flow.options", options, NodeSettings.__annotations__)
        return cast(FlowBuilder, NodesWithSettings(self, options))

    # -- calls ---------------------------------------------------------------------------------

    @checked_as(CallSignature)  # type: ignore[type-abstract]
    @refuses_wrong_calls
    def tool(
        self,
        tool: str | Function,
        /,
        *arguments: object,
        alternatives: Sequence[str | Function | Mapping[str, Any]] = (),
        args: Mapping[str, object] | None = None,
        approve: bool | str | Expression | None = None,
        **values: object,
    ) -> Any:
        """Call a tool: a `@weft.tool` function, a typed function, or a declared name.

        `alternatives` are called when it fails, the cheapest first: tools, or mappings such as
        `{"tool": other, "with": {"query": topic}, "cost": 2}`. `approve`: see docs/tools.md.
        """
        options, named = split(values, NODE_OPTIONS)
        given = arguments_of("flow.tool", tool, arguments, args, named, NODE_OPTIONS)
        name = tool if isinstance(tool, str) else self._declare(tool)
        fields: dict[str, Any] = {"tool": name, "with": self._values(given)}
        fields |= {} if approve is None else {"approve": self._value(approve)}
        if alternatives:
            hint = "write alternatives=[other_tool]"
            expect(alternatives, (list, tuple), "`alternatives` is a list of tools", hint)
            fields["alternatives"] = [
                self._value(alternative(other, self._declare)) for other in alternatives
            ]
        kind = result_type(tool)
        return self._add(fields, options, name.rpartition(":")[2].rpartition(".")[2], kind)

    @checked_as(CallSignature)  # type: ignore[type-abstract]
    @refuses_wrong_calls
    def call(
        self,
        function: str | Function,
        /,
        *arguments: object,
        args: Mapping[str, object] | None = None,
        **values: object,
    ) -> Any:
        """Call a plain function, sync or async. Values are passed as they are."""
        options, named = split(values, NODE_OPTIONS)
        if callable(function) and arguments:
            function, by_position = with_names(function, arguments)
            named, arguments = {**by_position, **named}, () if by_position else arguments
        given = arguments_of("flow.call", function, arguments, args, named, NODE_OPTIONS)
        reference = self._reference(function)
        fields = {"call": reference, "with": self._values(given)}
        made = self._add(fields, options, reference.rpartition(":")[2], result_type(function))
        self._type_arguments(made, function, given)
        return made

    @checked_as(ModelSignature)  # type: ignore[type-abstract]
    @refuses_wrong_calls
    def model(
        self,
        model: str,
        prompt: str | Expression | None = None,
        /,
        *,
        system: str | None = None,
        messages: Sequence[object] | Expression | None = None,
        conversation: str | Expression | Mapping[str, object] | None = None,
        schema: object = None,
        tools: Sequence[str | Function] = (),
        think: str | Mapping[str, object] | None = None,
        agent: str | Mapping[str, object] | None = None,
        args: Mapping[str, object] | None = None,
        samples: int | None = None,
        **options: Unpack[ModelOptions],
    ) -> Any:
        """Ask a language model.

        `schema`, a Python type or a JSON Schema, makes the answer typed. `args` has further names
        for the prompt: `flow.model("small", "Summarise {{ text }}", args={"text": hit.text})`.
        `messages` come before the prompt, or instead of one: a list of mappings such as
        `{"role": "user", "content": ...}` and of handles of such lists.
        `conversation` is the id of a thread that outlives runs, or `{"id": thread, "last": 20}`:
        its messages come first, and those of the node are appended with the answer.
        `think` answers by a strategy: its name, or `{"strategy": "sample", ...}`. `agent` is the
        loop in which the model calls the tools: `compiler`, or `{"loop": ...}`. See `ModelOptions`
        for the fields of the request, such as `max_tokens` and `temperature`.
        """
        fields, given = split(options, _MODEL_FIELDS)
        fields |= {} if samples is None else {"samples": samples}
        hint = "names of the prompt go into args={...}"
        self._known("model", given, hint, (*_MODEL_FIELDS,))
        expect(model, str, "a model is named as under `models`", 'flow.model("small", "prompt")')
        fields |= {"model": model, **self._spoken(prompt, messages)}
        if conversation is not None:
            fields["conversation"] = self._value(conversation)
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
        typed = is_type(schema) and (not tools or agent is not None)
        if not typed:
            return self._add(fields, given, model)
        made = self._add(fields, given, model, schema if samples is None else list_of(schema))
        self._types.answers[id(self._level.nodes[source_of(made)])] = schema
        return made

    def _spoken(
        self, prompt: str | Expression | None, messages: Sequence[object] | Expression | None
    ) -> dict[str, Any]:
        """What is said to a model."""
        if prompt is None and messages is None:
            hint = 'write flow.model("small", "prompt"), or messages=[...]'
            raise BuildError("flow.model has neither a prompt nor messages", hint=hint)
        fields = {} if prompt is None else {"prompt": self._value(prompt)}
        if messages is not None:
            fields["messages"] = self._value(written_messages(messages))
        return fields

    @refuses_wrong_calls
    def workflow(
        self,
        workflow: str | FlowBuilder,
        /,
        *,
        max_depth: int | None = None,
        on: str | None = None,
        args: Mapping[str, object] | None = None,
        **values: object,
    ) -> Any:
        """Run another workflow, a file or a `Flow`; the handle's fields are its outputs.

        With `max_depth` it may be this flow, or one that runs this flow, and may be incomplete yet:
        it runs inside itself at most so many levels deep. `on`: as of `flow.map`; an input of that
        name goes into `args`.
        """
        options, named = split(values, NODE_OPTIONS)
        given = {**named, **arguments_mapping(args)}
        file = workflow
        if not isinstance(file, str):
            kinds = "flow.workflow takes a Flow or the name of a file"
            expect(file, FlowBuilder, kinds, 'flow.workflow("./part.yaml")')
            file = self._include(file, self._part_of(file, max_depth, given))
        fields: dict[str, Any] = {"workflow": file}
        fields["with"] = self._values(given)
        if max_depth is not None:
            fields["max_depth"] = max_depth
        if on is not None:
            hint = 'write on="gpu"; an input of that name goes into args={...}'
            expect(on, str, "`on` names a pool", hint)
            fields["on"] = on
        return self._add(fields, options, Path(file.removeprefix(ONLY_PYTHON)).stem)

    def _part_of(
        self, flow: FlowBuilder, max_depth: int | None, given: Mapping[str, object]
    ) -> Unit | FlowBuilder:
        """The included `flow` as it is now; with `max_depth` itself, as it will be."""
        for name in given:
            near = closest(name, ("max_depth", *NODE_OPTIONS))
            if near is not None and name not in flow._level:
                message = f"`{flow.name}` has no input `{name}`"
                raise BuildError(message, hint=f"did you mean `{near}`?")
        if max_depth is not None:
            return flow
        hint = "a flow that runs itself, directly or through others, says how deep: max_depth=8"
        if flow is self:
            raise BuildError(f"`{flow.name}` runs itself without `max_depth`", hint=hint)
        try:
            return flow.unit
        except BuildError as error:
            why = f"the flow `{flow.name}` cannot be run yet: {error.message}"
            raise BuildError(why, hint=f"finish it first; {hint}") from error

    # -- many values ---------------------------------------------------------------------------

    @checked_as(MapSignature)  # type: ignore[type-abstract]
    @refuses_wrong_calls
    def map(
        self,
        over: object,
        body: Callable[..., object],
        /,
        *,
        width: int | None = None,
        grow: Mapping[str, object] | None = None,
        on: str | None = None,
        mode: JoinMode = "all",
        k: int | None = None,
        valid: Test | None = None,
        otherwise: object = ...,
        **options: Unpack[NodeOptions],
    ) -> Any:
        """Run `body(item)` or `body(item, index)` for every item of a list, in parallel.

        `body` is called once, now, with handles; its nodes run once for each item. The value is the
        list of results. `mode` decides how many must succeed. `grow`, such as `{"first": 5,
        "factor": 4, "accept": "{{ value | length == done }}"}`, does a sample of the items first,
        and more while `accept` holds. `on`: the pool of the run's cluster
        for the tool calls inside whose tools name none, or "local": see docs/cluster.md.
        """
        self._known("map", options)
        names = self._parameters(body, "the body of a map", "index")
        do, kind = self._body(body, names, [item_type(kind_of(over)), int])
        fields = {
            "map": self._value(over),
            "as": names[0],
            "do": do,
            **({} if width is None else {"width": width}),
            **({} if grow is None else {"grow": self._value(grow)}),
            **({} if on is None else {"on": on}),
            **self._join(mode, k, valid, otherwise),
        }
        return self._add(fields, options, "map", list_of(_item_kind(kind, otherwise)))

    @checked_as(ReduceSignature)  # type: ignore[type-abstract]
    @refuses_wrong_calls
    def reduce(
        self,
        function: str | Function,
        over: object,
        /,
        *,
        args: Mapping[str, object] | None = None,
        **values: object,
    ) -> Any:
        """Reduce a list to one value: `function(list, **values)`, a plain function."""
        options, named = split(values, NODE_OPTIONS)
        reference = self._reference(function)
        given = arguments_of("flow.reduce", function, (), args, named, NODE_OPTIONS)
        fields = {"reduce": reference, "over": self._value(over), "with": self._values(given)}
        made = self._add(fields, options, reference.rpartition(":")[2], result_type(function))
        self._type_arguments(made, function, {FIRST: over, **given})
        return made

    @checked_as(JoinSignature)  # type: ignore[type-abstract]
    @refuses_wrong_calls
    def join(
        self,
        *branches: object,
        mode: JoinMode = "all",
        k: int | None = None,
        valid: Test | None = None,
        otherwise: object = ...,
        **options: Unpack[NodeOptions],
    ) -> Any:
        """Wait for enough of several nodes, and cancel those that are no longer needed.

        all, quorum, best_effort: a list of values, in the order given. any, first_valid: the value
        of the first.
        """
        self._known("join", options)
        fields = {"join": [node_name_of(branch) for branch in branches]}
        shared = shared_kind(kind_of(branches[0]), branches[1:]) if branches else None
        kind = _item_kind(shared, otherwise)
        kind = kind if mode in ("any", "first_valid") else list_of(kind)
        return self._add({**fields, **self._join(mode, k, valid, otherwise)}, options, "join", kind)

    # -- control -------------------------------------------------------------------------------

    @refuses_wrong_calls
    def branch(
        self, on: object, cases: Mapping[Any, object], /, **options: Unpack[NodeOptions]
    ) -> Any:
        """Run the case that the value of `on` names; `"default"` when no other fits.

        A case is a function without parameters that makes nodes, or a plain value:
        `flow.branch(score > 3, {True: draft, False: lambda: flow.model("big", ...)})`.
        """
        self._known("branch", options)
        hint = "write flow.branch(score > 3, {True: draft, False: other})"
        expect(cases, Mapping, "the cases of a branch are a mapping", hint)
        bodies = {case_name(case): self._case(body) for case, body in cases.items()}
        made = [
            kind
            for case, (_, kind) in zip(cases.values(), bodies.values(), strict=True)
            if _makes(case)
        ]
        kind = made[0] if made and all(each == made[0] for each in made) else None
        kind = shared_kind(kind, [case for case in cases.values() if not _makes(case)])
        ways = {case: body for case, (body, _) in bodies.items()}
        return self._add({"branch": self._value(on), "cases": ways}, options, "branch", kind)

    @checked_as(LoopSignature)  # type: ignore[type-abstract]
    @refuses_wrong_calls
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
    ) -> Any:
        """Repeat `body(value)` or `body(value, iteration)` until `until(value)` is true.

        The first value is `start`, each next one is the body's result; at most `max` times.
        """
        self._known("loop", options)
        names = self._parameters(body, "the body of a loop", "iteration")
        repeated, kind = self._body(body, names, [kind_of(start), int])
        fields = {
            "loop": repeated,
            "as": names[0],
            "start": self._value(start),
            "until": self._test(until, names[0]),
            "max": max,
            **({} if on_limit == "last" else {"on_limit": on_limit}),
        }
        return self._add(fields, options, "loop", kind)

    @refuses_wrong_calls
    def break_if(
        self,
        condition: Condition,
        value: object,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        after: object = None,
    ) -> None:
        """End the loop around it with `value` where `condition` is true.

        It is called in the function that makes the loop's body. The nodes made after it are skipped
        then, and no further iteration begins.
        """
        options = {"name": name, "description": description, "after": after}
        given = {key: option for key, option in options.items() if option is not None}
        fields = {"break": self._value(condition), "value": self._value(value)}
        self._add(fields, given, "break_if")
        self._level.exits.append(value)

    @checked_as(AskSignature)  # type: ignore[type-abstract]
    @refuses_wrong_calls
    def ask(
        self, question: str | Expression, schema: object = str, /, **options: Unpack[NodeOptions]
    ) -> Any:
        """Ask a person. The answer is of the type `schema`: a Python type or a JSON Schema."""
        self._known("ask", options)
        fields = {"ask": self._value(question), "schema": schema_of(schema)}
        return self._add(fields, options, "ask", schema if is_type(schema) else None)

    @checked_as(ValueSignature)  # type: ignore[type-abstract]
    @refuses_wrong_calls
    def value(self, value: object, /, **options: Unpack[NodeOptions]) -> Any:
        """A value composed of others."""
        self._known("value", options)
        return self._add({"value": self._value(value)}, options, "value", kind_of(value))

    # -- inside --------------------------------------------------------------------------------

    @property
    @abstractmethod
    def name(self) -> str:
        """The workflow's name."""


def _item_kind(kind: Any, otherwise: object) -> Any:
    """The type of what a map or a join collects, where `otherwise` stands for what failed."""
    return kind if otherwise is ... else shared_kind(kind, [otherwise])


def _makes(case: object) -> bool:
    """Whether a case of a branch makes nodes, or is a handle, rather than a plain value."""
    return isinstance(case, Expression) or callable(case)
