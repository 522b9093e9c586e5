"""Reasoning strategies of a document: options, settings, input documents and checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from weft.core.errors import BuildError, CycleError, InputError, ToolError, UnknownReference
from weft.core.values import JsonSchema
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Document
from weft.reasoning.strategies import STRATEGIES, check_options
from weft.workflow.document.source import KeyPath
from weft.workflow.document.spec.defects import choice_hint
from weft.workflow.document.spec.model_settings import ThinkSpec
from weft.workflow.document.spec.nodes import ModelNode
from weft.workflow.document.unit import Unit, file_beside
from weft.workflow.runtime.models.composed import thinker
from weft.workflow.runtime.tools.functions import Function, build_error, function_in, function_of


def settings_in(unit: Unit, strategy: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of `unit` with functions and files resolved in its folder.

    Raises: `BuildError`.
    """
    return _resolved(
        strategy,
        settings,
        lambda text: function_of(unit, text),
        lambda text: str(file_beside(unit, text)),
    )


def settings_here(strategy: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings from a command line; paths are relative to the working directory.

    Raises: `BuildError`.
    """
    return _resolved(strategy, settings, lambda text: function_in(Path.cwd(), text), str)


def functions_in(strategy: str, settings: Mapping[str, Any]) -> list[str]:
    """The references to functions among the settings."""
    entry = STRATEGIES.get(strategy)
    functions = () if entry is None else entry.functions
    return [
        value
        for name, value in settings.items()
        if name in functions and isinstance(value, str) and ":" in value
    ]


def _resolved(
    strategy: str,
    settings: Mapping[str, Any],
    function: Callable[[str], Function],
    file: Callable[[str], str],
) -> dict[str, Any]:
    entry = STRATEGIES.get(strategy)
    if entry is None:
        return dict(settings)
    resolved: dict[str, Any] = {}
    for name, value in settings.items():
        if name in entry.functions and isinstance(value, str) and ":" in value:
            try:
                resolved[name] = function(value)
            except ToolError as error:
                raise build_error(error) from error
        else:
            is_file = name in entry.files and isinstance(value, str)
            resolved[name] = file(value) if is_file else value
    return resolved


_ELSEWHERE = frozenset(("strategy", "documents"))


def options_of(
    unit: Unit, spec: ThinkSpec, *, seed: int = 0, tokens_left: int | None = None
) -> ThinkOptions:
    """The options of `spec`. `seed` is the default; the budget is at most `tokens_left`.

    Raises: `BuildError` when a function or a file of the settings is missing.
    """
    given: dict[str, Any] = {
        name: value
        for name in type(spec).model_fields
        if name not in _ELSEWHERE and (value := getattr(spec, name)) is not None
    }
    given["settings"] = settings_in(unit, spec.strategy, spec.settings)
    options = ThinkOptions(**{"seed": seed, **given})
    if tokens_left is None:
        return options
    return replace(options, budget=max(1, min(options.cap, tokens_left)))


def check_thinking(strategy: str, options: ThinkOptions) -> None:
    """Raises: `BuildError` for an unknown strategy, or settings that it does not have."""
    try:
        check_options(strategy, options)
    except ValueError as error:
        raise BuildError(f"{strategy}: {error}") from error


def thinks_already(model: str) -> CycleError:
    """The error for `model`, a thinking model, as the base of another one."""
    hint = "name the model that it thinks with"
    return CycleError(f"the model `{model}` thinks already", hint=hint)


def check_typed(strategy: str, schema: JsonSchema | None) -> None:
    """Raises: `BuildError` when there is a schema, and answers of `strategy` fit none."""
    entry = STRATEGIES.get(strategy)
    if schema is not None and entry is not None and not entry.typed:
        hint = "leave the schema out, or have another node make it of the answer"
        raise BuildError(f"answers of {strategy} have a form of their own: no schema", hint=hint)


def check_strategy(unit: Unit, spec: ThinkSpec, path: KeyPath) -> None:
    """Check the strategy at `path` and its settings. Raises: `BuildError`, with the position."""
    if spec.strategy not in STRATEGIES:
        hint = choice_hint(spec.strategy, list(STRATEGIES))
        unknown = UnknownReference(f"there is no strategy `{spec.strategy}`", hint=hint)
        unit.fail(unknown, (*path, "strategy"))
    try:
        check_thinking(spec.strategy, options_of(unit, spec))
    except BuildError as error:
        setting = _named(spec, error)
        place = ("strategy",) if setting is None else ("settings", setting)
        unit.fail(error, (*path, *place))


def check_think(unit: Unit, step: ModelNode, path: KeyPath) -> None:
    """Check `think` of the node at `path`, and that its model is not a thinking model.

    Raises: `BuildError`.
    """
    other = thinker(unit, step.model)
    if step.think is not None and other is not None:
        unit.fail(thinks_already(other), (*path, "think"), at_key=True)
    think = step.think or unit.document.models[step.model].think
    if think is not None:
        try:
            check_typed(think.strategy, step.output_schema)
        except BuildError as untyped:
            unit.fail(untyped, (*path, "schema"), at_key=True)
    if step.think is not None:
        check_strategy(unit, step.think, (*path, "think"))


def _named(spec: ThinkSpec, error: BuildError) -> str | None:
    """The setting that an error is about: the message quotes its name or its value."""
    for key, value in spec.settings.items():
        if repr(key) in error.message or (isinstance(value, str) and value in error.message):
            return key
    return None


_MOST_BYTES = 64 * 2**20
_HINT = "a list of texts or of {name, text}, or a mapping of names to texts"


def documents_of(value: Any) -> tuple[Document, ...]:
    """The documents in a value: a text, a list of texts or of {name, text}, or texts by name.

    Unnamed documents are called d1, d2, ... Raises: `InputError` for other values.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        return (Document("d1", value),)
    if isinstance(value, Mapping) and not _is_document(value):
        return tuple(_document({"name": name, "text": text}, "") for name, text in value.items())
    items = [value] if isinstance(value, Mapping) else value
    if not isinstance(items, (list, tuple)):
        raise InputError(f"documents cannot be made of {value!r:.60}", hint=_HINT)
    return tuple(_document(item, f"d{number}") for number, item in enumerate(items, 1))


def read_documents(paths: Sequence[Path]) -> tuple[Document, ...]:
    """The documents in text files, named after the files; by path where file names are equal.

    Raises: `InputError`.
    """
    names = [path.name for path in paths]
    return tuple(
        Document(path.name if names.count(path.name) == 1 else str(path), _read(path))
        for path in paths
    )


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            hint = f"a document has at most {_MOST_BYTES // 2**20} MiB"
            raise InputError(f"{path} is too large", hint=hint)
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None


def _is_document(value: Mapping[str, Any]) -> bool:
    return "text" in value and set(value) <= {"name", "text"}


def _document(item: Any, name: str) -> Document:
    if isinstance(item, str):
        return Document(name, item)
    if isinstance(item, Mapping) and isinstance(item.get("text"), str):
        return Document(str(item.get("name", name)), item["text"])
    raise InputError(f"a document is a text, not {item!r:.60}", hint=_HINT)
