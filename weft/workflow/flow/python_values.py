"""Conversion of Python functions, types and values to what a document contains."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, TypeGuard, cast

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from weft.agents.tools import Tool
from weft.core.breaker import Breaker
from weft.core.budget import Budget
from weft.core.errors import BuildError
from weft.core.keywords import check_keywords, expect
from weft.core.values import Message
from weft.workflow.document.check.cases import case_of
from weft.workflow.document.python_types import annotations_of, plain
from weft.workflow.document.unit import ONLY_PYTHON
from weft.workflow.flow.handle import Expression, owner_of

Function = Callable[..., Any]


def split(
    values: Mapping[str, object], options: Collection[str]
) -> tuple[dict[str, Any], dict[str, object]]:
    """Options of the node, and arguments of its function."""
    chosen = {key: value for key, value in values.items() if key in options}
    return chosen, {key: value for key, value in values.items() if key not in options}


def case_name(case: object) -> str:
    """The case of a branch for a value: what `case_of` makes of it in a run."""
    return case_of(case.value if isinstance(case, Enum) else case)


def is_function(value: object) -> TypeGuard[Function]:
    """Whether it can be called: a handle cannot, though it says so when it is."""
    return callable(value) and not isinstance(value, Expression)


def by_name(
    method: str, function: str | Function, arguments: Sequence[object]
) -> Mapping[str, object]:
    """Positional arguments under the names of their parameters."""
    if not arguments:
        return {}
    if isinstance(function, str):
        raise BuildError(f"give the arguments of {function} by name")
    name = getattr(function, "__name__", repr(function))
    try:
        bound = inspect.signature(function).bind_partial(*arguments)
    except (TypeError, ValueError) as error:
        raise BuildError(f"{name} does not take these arguments: {error}") from error
    for parameter in bound.arguments:
        if bound.signature.parameters[parameter].kind not in _NAMED:
            raise BuildError(
                f"{name} takes `{parameter}` by position only; {method} gives arguments by name",
                hint=f"call it as a plain function: flow.call({name}, ...)",
            )
    return bound.arguments


def arguments_mapping(args: Mapping[str, object] | None) -> Mapping[str, object]:
    """The value of `args=`. Raises: `BuildError` unless it maps names to values."""
    if args is not None:
        expect(args, Mapping, "`args` maps names to values", 'write args={"text": hit.text}')
    return args or {}


def arguments_of(
    method: str,
    function: str | Function,
    positional: Sequence[object],
    args: Mapping[str, object] | None,
    named: Mapping[str, object],
    options: Collection[str],
) -> dict[str, object]:
    """All arguments of a call by name; `options` are the other keywords of `method`.

    Raises: `BuildError` for an argument that the function does not take.
    """
    given = {**by_name(method, function, positional), **arguments_mapping(args), **named}
    if isinstance(function, str):
        return given
    if not is_function(function):
        message = f"{method} takes a function or its name, not {function!r}"
        raise BuildError(message[:300], hint="see docs/workflows.md")
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some functions written in C have none
        return given
    if all(each.kind is not inspect.Parameter.VAR_KEYWORD for each in parameters):
        own = [each.name for each in parameters if each.kind in _NAMED]
        name = getattr(function, "__name__", repr(function))
        check_keywords(f"{method}({name})", given, {*own, *(options if named else ())})
    return given


_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def alternative(
    other: str | Function | Mapping[str, Any], name: Callable[[Function], str]
) -> str | dict[str, Any]:
    """An alternative tool as a document declares it; `name` declares a function as a tool."""
    if isinstance(other, Mapping):
        declared = dict(other)
        if is_function(declared.get("tool")):
            declared["tool"] = name(declared["tool"])
        return declared
    if is_function(other):
        return name(other)
    return cast(str, other)  # what it is not, checks of the document refuse


def thinking(
    think: str | Mapping[str, object], name: Callable[[Function], str]
) -> str | dict[str, object]:
    """The `think` of a model node; `name` makes a reference of each function in its settings."""
    if isinstance(think, str):
        return think
    settings = think.get("settings")
    if not isinstance(settings, Mapping):
        return dict(think)
    named = {key: name(value) if is_function(value) else value for key, value in settings.items()}
    return {**think, "settings": named}


class FunctionReferences:
    """The function references of one program; registers their functions in `functions`."""

    def __init__(self, folder: Path, functions: dict[str, Callable[..., Any]]) -> None:
        self._folder = folder
        self._functions = functions
        # Keeps the functions alive, so that ids are unique.
        self._referenced: dict[tuple[int, bool], tuple[Callable[..., Any], str]] = {}

    def of(self, function: Callable[..., Any], here_only: bool = False) -> str:
        """A reference to `function`; with `here_only` one for this process only."""
        key = id(function), here_only
        if key not in self._referenced:
            folder = None if here_only else self._folder
            self._referenced[key] = function, reference_to(function, folder, self._functions)
        _, reference = self._referenced[key]
        self._functions[reference] = function
        return reference


def reference_to(
    function: Callable[..., Any], folder: Path | None, known: Mapping[str, Callable[..., Any]]
) -> str:
    """A reference to `function` that is not in `known`, unless it is this function's there.

    `./file.py:name` for files in or below `folder`; `module:name` for tools elsewhere; otherwise,
    and without a folder, a reference for this process only.
    """
    plain = function.function if isinstance(function, Tool) else function
    path = _import_path(function, plain, folder) if folder is not None else None
    if path is not None:
        return path
    name = getattr(plain, "__name__", type(plain).__name__).strip("<>") or "function"
    reference, number = f"{ONLY_PYTHON}{name}", 1
    while known.get(reference, function) is not function:
        number += 1
        reference = f"{ONLY_PYTHON}{name}_{number}"
    return reference


def _import_path(given: Callable[..., Any], plain: Callable[..., Any], folder: Path) -> str | None:
    name = getattr(plain, "__qualname__", "")
    module = sys.modules.get(getattr(plain, "__module__", None) or "")
    value = getattr(module, name, None)
    if module is None or not name.isidentifier() or not (value is given or value is plain):
        return None
    file = inspect.getsourcefile(plain) if inspect.isfunction(plain) else None
    if file is not None and Path(file).resolve().is_relative_to(folder):
        return f"./{Path(file).resolve().relative_to(folder).as_posix()}:{name}"
    importable = module.__name__ != "__main__" and isinstance(given, Tool)
    return f"{module.__name__}:{name}" if importable else None


def schema_of(kind: Any) -> Any:
    """A JSON Schema from a Python type; schemas and names of types stay as they are.

    Raises: `BuildError` for types that JSON cannot describe.
    """
    if kind is None or isinstance(kind, (str, Mapping, list)):
        return {} if kind is None else kind
    try:
        return _untitled(TypeAdapter[Any](kind).json_schema())
    except (PydanticUserError, TypeError, NameError) as error:
        hint = "use str, int, list[str], a dataclass, a pydantic model or a JSON Schema"
        if getattr(error, "code", None) == "typed-dict-version":
            hint = "before Python 3.12 write: from typing_extensions import TypedDict"
        reason = str(error).partition("\n")[0].partition(". ")[0]
        raise BuildError(f"{kind!r} has no JSON Schema: {reason}", hint=hint) from error


def state_field(declared: object) -> Any:
    """The declaration of a field of the state: a type, or a mapping with `type` and a reducer.

    Raises: `BuildError` for types that JSON cannot describe.
    """
    if not isinstance(declared, Mapping):
        return declared if isinstance(declared, (str, list)) else {"type": schema_of(declared)}
    field = {key: plain(value) for key, value in declared.items() if key != "type"}
    return {"type": schema_of(declared["type"]), **field} if "type" in declared else field


def _untitled(schema: Any) -> Any:
    """Without the titles that pydantic derives from names."""
    if isinstance(schema, dict):
        return {
            key: {name: _untitled(part) for name, part in value.items()}
            if key in ("properties", "$defs")
            else _untitled(value)
            for key, value in schema.items()
            if key != "title"
        }
    return [_untitled(item) for item in schema] if isinstance(schema, list) else schema


def is_type(schema: object) -> bool:
    """Whether a `schema=` is a Python type, not a JSON Schema or the name of a type."""
    return schema is not None and not isinstance(schema, (str, Mapping, list))


def result_type(function: str | Function) -> Any:
    """The type that a function is annotated to return; None: unknown."""
    return None if isinstance(function, str) else annotations_of(function).get("return")


def document_value(value: object, owner: object) -> Any:
    """`value` with handles as text. Texts are templates, as in a file: see `literal`.

    Raises: `BuildError` for what a document cannot hold, or a handle of another flow.
    """
    if isinstance(value, Expression):
        if owner_of(value) is not owner:
            hint = "use the handles of one flow; run the other one with `flow.workflow(...)`"
            raise BuildError(f"{value!r} belongs to another flow", hint=hint)
        return str(value)
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Budget):
        limits = {"tokens": value.tokens, "time": value.seconds, "money": value.money}
        return {key: limit for key, limit in limits.items() if limit is not None}
    if isinstance(value, Mapping):
        return {str(key): document_value(item, owner) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [document_value(item, owner) for item in value]
    if (data := plain(value)) is not value:
        return _literals(data)
    raise BuildError(
        f"a workflow cannot hold {type(value).__name__}: {value!r}",
        hint="make it an input, or return it from a function (`flow.call`)",
    )


def model_declaration(declared: Any) -> tuple[Any, Any]:
    """A model as a document declares it, and its client where the program has made that."""
    declared = _with_plain_breaker(declared)
    client = declared.get("use") if isinstance(declared, Mapping) else declared
    if client is None or isinstance(client, str):
        return declared, None
    further = declared if isinstance(declared, Mapping) else {}
    return {**further, "use": f"{ONLY_PYTHON}client", "model": client.model}, client


def tool_declaration(use: Any, reference: Callable[..., str]) -> Any:
    """A tool as a document declares it; `reference` names a function of the program."""
    if not isinstance(use, Mapping):
        return reference(use) if callable(use) else use
    use = _with_plain_breaker(use)
    function = use.get("use")
    return {**use, "use": reference(function, as_tool=True)} if callable(function) else use


def _with_plain_breaker(declared: Any) -> Any:
    """`declared` with its breaker, if it has one, as plain data."""
    if not isinstance(declared, Mapping) or "breaker" not in declared:
        return declared
    return {**declared, "breaker": _plain_breaker(declared["breaker"])}


def _plain_breaker(value: Any) -> Any:
    if not isinstance(value, Breaker):
        return value
    return {
        "failures": value.failures,
        "within": value.within_s,
        "after": value.after_s,
        "successes": value.successes,
    }


def _literals(data: Any) -> Any:
    """Plain data whose texts are no templates."""
    if isinstance(data, dict):
        return {key: _literals(item) for key, item in data.items()}
    if isinstance(data, list):
        return [_literals(item) for item in data]
    return literal(data) if isinstance(data, str) else data


def written_messages(messages: object) -> object:
    """`messages` with each `weft.Message` as a document writes it; its texts are no templates."""
    if isinstance(messages, (list, tuple)):
        return [written_messages(item) for item in messages]
    if not isinstance(messages, Message):
        return messages
    parts = [literal(part) if isinstance(part, str) else part for part in messages.parts]
    written: dict[str, object] = {
        "role": messages.role,
        "content": parts or literal(messages.content),
    }
    if messages.tool_calls:
        calls = messages.tool_calls
        written["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": literal(call.arguments)}
            for call in calls
        ]
    if messages.tool_call_id is not None:
        written["tool_call_id"] = messages.tool_call_id
    return written


def literal(text: str) -> str:
    """`text` as a template that renders exactly `text`, whatever braces it contains.

    `flow.model("m", f"{literal(source)}: what does {name} do?")`; in a file, write
    `{% raw %}...{% endraw %}`.
    """
    if not any(mark in text for mark in ("{{", "{%", "{#")):
        return text
    return f"{{{{ {text!r} }}}}"
