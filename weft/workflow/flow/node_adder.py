"""Adds checked nodes to a flow: names, options, values, bodies, and references to functions."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from weft.agents.memory import Memory
from weft.agents.tools import Tool
from weft.core.error_names import error_names
from weft.core.errors import BuildError
from weft.core.keywords import check_keywords, expect
from weft.core.ports import ModelClient
from weft.workflow.document.python_types import (
    PythonTypes,
    annotations_of,
    has_instances,
)
from weft.workflow.document.spec.fields import free_name
from weft.workflow.document.spec.nodes import Body
from weft.workflow.document.unit import ONLY_PYTHON, Unit
from weft.workflow.flow.checked_node import checked_node
from weft.workflow.flow.handle import Expression, NodeHandle, kind_of, shared_kind, source_of
from weft.workflow.flow.python_values import (
    Function,
    FunctionReferences,
    document_value,
    model_declaration,
    tool_declaration,
)
from weft.workflow.flow.scope import FlowScope, assigned_name, parameters
from weft.workflow.flow.signatures import (
    JoinMode,
    NodeOptions,
    Test,
)

NODE_OPTIONS = frozenset(NodeOptions.__annotations__)


def node_name_of(handle: object) -> str:
    """The name of the node of a handle. Raises: `BuildError` for anything else."""
    if isinstance(handle, NodeHandle) and source_of(handle).isidentifier():
        return source_of(handle)
    hint = "a method of the flow returns it: draft = flow.model(...)"
    raise BuildError(f"expected the handle of a node, not {handle!r}", hint=hint)


class NodeAdder(ABC):
    """The state of a flow that is being written, and what all methods of the builder share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._level = FlowScope()
        self._models: dict[str, Any] = {}
        self._tools: dict[str, Any] = {}
        self._functions: dict[str, Function] = {}
        self._clients: dict[str, ModelClient] = {}
        self._flows: dict[str, Unit | NodeAdder] = {}
        self._references = FunctionReferences(folder, self._functions)
        self._types = PythonTypes()

    @abstractmethod
    def _changed(self) -> None:
        """Called after every addition."""

    @property
    @abstractmethod
    def unit(self) -> Unit:
        """The document with its surroundings."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The workflow's name."""

    def _known(
        self,
        method: str,
        options: Mapping[str, Any],
        hint: str | None = None,
        more: Sequence[str] = (),
    ) -> None:
        """Refuse options that neither the `method` nor every node has. Raises: `BuildError`."""
        if not options.keys() <= NODE_OPTIONS:
            own = inspect.signature(getattr(type(self), method)).parameters.values()
            named = (each.name for each in own if each.kind is inspect.Parameter.KEYWORD_ONLY)
            check_keywords(f"flow.{method}", options, {*named, *more, *NODE_OPTIONS}, hint)

    def _type_arguments(
        self, call: Expression, function: object, given: Mapping[str, object]
    ) -> None:
        """Remember the types of handles that a function without annotations takes."""
        annotated = annotations_of(function) if callable(function) else {}
        kinds = {name: kind_of(value) for name, value in given.items() if name not in annotated}
        kinds = {name: kind for name, kind in kinds.items() if has_instances(kind)}
        if kinds:
            self._types.arguments[id(self._level.nodes[source_of(call)])] = kinds

    def _add(
        self, fields: dict[str, Any], options: Mapping[str, Any], otherwise: str, kind: Any = None
    ) -> Any:
        name = self._level.claim(options.get("name"), assigned_name() or otherwise)
        raw = {key: value for key, value in fields.items() if key != "with" or value}
        raw |= {key: self._option(key, value) for key, value in options.items() if key != "name"}
        self._level.nodes[name] = checked_node(raw, name)
        self._changed()
        others = [options[key] for key in ("fallback", "degrade", "default") if key in options]
        return NodeHandle(name, self, shared_kind(kind, others))

    def _option(self, key: str, value: Any) -> Any:
        if key in ("fallback", "degrade"):
            return node_name_of(value)
        if key == "retry_on":
            try:
                return list(error_names(value))
            except ValueError as error:
                raise BuildError(f"retry_on: {error}") from error
        if key == "expect" and isinstance(value, Mapping):
            return {words: self._test(test, "value") for words, test in value.items()}
        if key == "after":
            expect(value, (NodeHandle, list, tuple), "`after` is a node or a list", "after=[a, b]")
            return [
                node_name_of(one) for one in ([value] if isinstance(value, NodeHandle) else value)
            ]
        if key == "writes":
            expect(value, Mapping, "`writes` maps fields of the state to values", 'writes={"x": 1}')
            return {name: self._written(each) for name, each in value.items()}
        return self._value(value)

    def _written(self, value: object) -> Any:
        """What a node writes; a function is called once, with a handle for the node's value."""
        if callable(value) and not isinstance(value, Expression):
            return self._value(value(NodeHandle("value", self)))
        return self._value(value)

    def _value(self, value: object) -> Any:
        return document_value(value, self)

    def _values(self, values: Mapping[str, object]) -> dict[str, Any]:
        return {name: self._value(value) for name, value in values.items()}

    def _body(
        self, body: Callable[..., object], names: Sequence[str], kinds: Sequence[Any] = ()
    ) -> tuple[Body, Any]:
        """The body that the function makes, and the type of its value."""
        outer, self._level = self._level, FlowScope(self._level, names)
        try:
            handles = zip_longest(names, kinds[: len(names)])
            result = body(*(NodeHandle(name, self, kind) for name, kind in handles))
            kind = shared_kind(kind_of(result), self._level.exits)
            return self._level.body(result, self._value), kind
        finally:
            outer.inner |= {*names, *self._level.nodes, *self._level.inner}
            self._level = outer

    def _parameters(self, body: Callable[..., object], what: str, number: str) -> list[str]:
        """The names inside a body, called like its parameters: the item, and maybe the number.

        As in Python, a parameter may be called like something around it: then it gets a number.
        """
        names = parameters(body, 1, 2, what)
        return [free_name(names[0], self._level), number][: len(names)]

    def _case(self, case: object) -> tuple[Body, Any]:
        if isinstance(case, Expression) or not callable(case):
            return self._body(lambda: case, ())
        parameters(case, 0, 0, "a case of a branch")
        return self._body(case, ())

    def _test(self, test: Test, name: str) -> Any:
        if isinstance(test, (str, bool, Expression)):
            return self._value(test)
        result = test(NodeHandle(name, self))
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
            if reference == (use.get("use") if isinstance(use, Mapping) else use):
                return name
        name = tool.spec.name if isinstance(tool, Tool) else reference.rpartition(":")[2]
        name = free_name(name, self._tools)
        self._tools[name] = reference
        return name

    def _declare_model(self, name: str, declared: Any) -> None:
        self._models[name], client = model_declaration(declared)
        if client is not None:
            self._clients[name] = client

    def _declare_tool(self, name: str, use: Any) -> None:
        if isinstance(use, Memory):
            reference = f"{ONLY_PYTHON}{name}"
            self._functions[reference] = lambda: use
            self._tools[name] = {"memory": reference}
        else:
            self._tools[name] = tool_declaration(use, self._reference)

    def _include(self, flow: NodeAdder, part: Unit | NodeAdder) -> str:
        """A reference to another flow: as it is now, its unit, or as it will be, itself."""
        taken = {key: other for key, other in self._flows.items() if other is not part}
        reference = free_name(f"{ONLY_PYTHON}{flow.name}", taken)
        self._flows[reference] = part
        return reference

    def _reference(self, function: str | Function, *, as_tool: bool = False) -> str:
        if isinstance(function, str):
            return function
        return self._references.of(function, as_tool and not isinstance(function, Tool))
