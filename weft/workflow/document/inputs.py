"""The inputs of a run: checks against their declarations, and conversion from text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from weft.core.content import MEDIA, Media
from weft.core.errors import InputError
from weft.core.values import JsonSchema
from weft.validation import violation, violation_async
from weft.workflow.document import WorkflowDocument
from weft.workflow.document.python_types import first_error, input_names, plain
from weft.workflow.document.spec.declarations import InputSpec
from weft.workflow.document.spec.defects import choice_hint
from weft.workflow.document.spec.schemas import MEDIA_TYPES


class CheckedInputs(dict[str, Any]):
    """Inputs that fit `document`, with defaults filled in."""

    def __init__(self, document: WorkflowDocument, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.document = document


def plain_inputs(given: Any, kind: Any = None) -> Mapping[str, Any]:
    """Inputs by name, with plain data in place of instances; `given` may be one of all inputs.

    `kind`: the type of all inputs, whose validators decide too. Raises: `InputError` for what it
    refuses, and for what is neither a mapping nor a model nor a dataclass.
    """
    if isinstance(given, CheckedInputs):
        return given
    data = plain(given)
    if not isinstance(data, Mapping):
        hint = "give them by name: flow.run(topic=...)"
        raise InputError(f"inputs are a mapping, not {given!r:.80}", hint=hint)
    if kind is not None and issubclass(kind, BaseModel) and data.keys() <= input_names(kind):
        try:
            kind.model_validate(data)
        except ValidationError as error:
            raise InputError(f"the inputs are no {kind.__name__}: {first_error(error)}") from error
    return data


def check_inputs(document: WorkflowDocument, given: Mapping[str, Any]) -> dict[str, Any]:
    """`given` with defaults, in declared order. May block for a large value.

    Raises: `InputError`, with every input that is missing, unknown or of the wrong type.
    """
    if isinstance(given, CheckedInputs) and given.document is document:
        return dict(given)
    reasons = {name: violation(given[name], root) for name, root in _declared(document, given)}
    return _complete(document, given, reasons)


async def check_inputs_async(document: WorkflowDocument, given: Mapping[str, Any]) -> CheckedInputs:
    """As `check_inputs`, without blocking the event loop."""
    reasons = {
        name: await violation_async(given[name], root) for name, root in _declared(document, given)
    }
    return CheckedInputs(document, _complete(document, given, reasons))


def _declared(document: WorkflowDocument, given: Mapping[str, Any]) -> list[tuple[str, JsonSchema]]:
    return [(name, spec.root) for name, spec in document.inputs.items() if name in given]


def _complete(
    document: WorkflowDocument, given: Mapping[str, Any], reasons: Mapping[str, str | None]
) -> dict[str, Any]:
    problems, hint = [], None
    for name in given:
        if name not in document.inputs:
            hint = hint or choice_hint(name, list(document.inputs)) or "it takes no inputs"
            problems.append(f"there is no input `{name}`")
    values: dict[str, Any] = {}
    for name, declared in document.inputs.items():
        if name in given:
            values[name] = given[name]
            if reasons[name] is not None:
                problems.append(f"`{name}`: {reasons[name]}")
        elif declared.required:
            problems.append(f"`{name}` is missing")
            hint = hint or f"give {name}=...; on the command line as -i {name}=..."
        else:
            values[name] = declared.default
    if problems:
        raise InputError("; ".join(problems), hint=hint)
    return values


def coerce_inputs(document: WorkflowDocument, given: Mapping[str, str]) -> dict[str, Any]:
    """Texts, as from a command line, converted to the types that the inputs declare.

    Inputs of type string keep their texts; all others are read as JSON. Undeclared names pass, for
    `check_inputs` to refuse.

    Raises: `InputError` with all unreadable texts.
    """
    values: dict[str, Any] = {}
    problems = []
    for name, text in given.items():
        declared = document.inputs.get(name)
        try:
            values[name] = text if declared is None else _read(declared, text)
        except ValueError:
            problems.append(f"`{name}`: {text[:40]!r} is not {_wanted(declared)}")
    if problems:
        raise InputError("; ".join(problems), hint='write lists and mappings as JSON: ["a", "b"]')
    return values


def _read(declared: InputSpec, text: str) -> Any:
    media = _media(declared)
    if media is not None:
        return media.from_file(text)
    kinds = _types(declared)
    if kinds == ["string"]:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        if not kinds or "string" in kinds:
            return text
        raise ValueError(text) from None
    return text if "string" in kinds and violation(value, declared.root) else value


def _media(declared: InputSpec) -> type[Media] | None:
    """The class of media that the input takes, if it does; a command line names a file."""
    found = (
        MEDIA[name]
        for name, schema in MEDIA_TYPES.items()
        if schema.items() <= declared.root.items()
    )
    return next(found, None)


def _types(declared: InputSpec) -> list[str]:
    kinds = declared.root.get("type")
    if isinstance(kinds, list):
        return [str(kind) for kind in kinds]
    return [kinds] if isinstance(kinds, str) else []


def _wanted(declared: InputSpec | None) -> str:
    kinds = _types(declared) if declared is not None else []
    articles = {"integer": "an integer", "array": "a list", "object": "a mapping"}
    return " or ".join(articles.get(kind, f"a {kind}") for kind in kinds) or "JSON"
