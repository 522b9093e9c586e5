"""Static checks of a plan: its form, tools, types, references and size.

Errors are shown to the model that wrote the plan, or to a person. A value that may fit a parameter
is accepted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from weft.core.errors import PlanError
from weft.core.schema import array_of, at, mismatch, references
from weft.core.values import JsonSchema, ToolSpec
from weft.planner.plan import LIMITS, Plan, PlanLimits, PlanStep, Ref, StepCondition, Value, refs_in
from weft.planner.scope import LIST, PlanDefect, PlanScope, name_hint
from weft.planner.signature import parameter_of, parameters_of, required_by, signature, type_text
from weft.planner.text.writer import parameter_name, write_ref, write_step

SchemaOf = Callable[[Ref], JsonSchema | None]
"""The schema of a reference's value; None where it is unknown."""


def misfit(value: Value, target: JsonSchema | None, schema_of: SchemaOf) -> str | None:
    """The reason why `value` can never fit `target`, in words, or None when it may."""
    if target is None:
        return None
    whole = mismatch(_as_schema(value, schema_of), target)
    return whole or _inside(value, target, schema_of)


def _as_schema(value: Value, schema_of: SchemaOf) -> JsonSchema:
    """The schema of `value` alone, with the known schemas of its references."""
    match value:
        case Ref():
            schema = schema_of(value)
            return {} if schema is None else schema
        case Mapping():
            members = {name: _part(item, schema_of) for name, item in value.items()}
            shape = {
                "type": "object",
                "properties": members,
                "required": list(members),
                "additionalProperties": False,
            }
            return shape if _refers(value) else {**shape, "const": _plain(value)}
        case list() | tuple():
            shape = {
                "type": "array",
                "prefixItems": [_part(item, schema_of) for item in value],
                "minItems": len(value),
                "maxItems": len(value),
            }
            return shape if _refers(value) else {**shape, "const": _plain(value)}
        case _:
            return {"const": value}


def _part(value: Value, schema_of: SchemaOf) -> JsonSchema:
    """The schema of a part of a value.

    Empty for a schema with its own `$ref`s, which only resolve from its root; `_inside` checks it.
    """
    schema = _as_schema(value, schema_of)
    return {} if isinstance(value, Ref) and any(references(schema)) else schema


def _inside(value: Value, target: JsonSchema | None, schema_of: SchemaOf) -> str | None:
    """The reason why a reference inside the list or object `value` can never fit `target`."""
    parts: Iterable[tuple[str | int, Value]] = ()
    if isinstance(value, Mapping):
        parts = value.items()
    elif isinstance(value, (list, tuple)):
        parts = enumerate(value)
    for step, part in parts:
        if not _refers(part):
            continue
        place = f"[{step!r}]" if isinstance(step, str) else f"[{step}]"
        try:
            inner = at(target, [step])
        except LookupError as error:
            return f"{place}: {error}"
        if why := misfit(part, inner, schema_of):
            return f"{place}: {why}"
    return None


def _refers(value: Value) -> bool:
    return next(refs_in(value), None) is not None


def _plain(value: Value) -> Any:
    """`value` with lists for tuples, as in schemas."""
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


__all__ = ["Places", "PlanLimits", "check", "check_results", "check_step"]

Places = Mapping[str, tuple[int, int]]
"""Line and column of the parts of a step: "tool", "for", "if", "after", arguments as "=name"."""

_ORDERED: Final[JsonSchema] = {"type": ["number", "string"]}
_QUOTED_REF: Final = re.compile(r"\s*\$\{?(?:[0-9]+|item|index)\b\S*\s*")


def check(
    plan: Plan,
    tools: Sequence[ToolSpec],
    known: Mapping[int, JsonSchema | None] | None = None,
    limits: PlanLimits = LIMITS,
) -> Mapping[int, JsonSchema | None]:
    """Check a plan; returns the result schemas of its steps by number, None where undeclared.

    `known` are those of earlier rounds, which the plan may refer to.

    Raises: `PlanError` at the first defect.
    """
    schemas = dict(known or {})
    last = max(schemas, default=0)
    for count, step in enumerate(plan.steps):
        check_form(step, last, count, limits)
        schemas[step.number] = check_step(step, tools, schemas)
        last = step.number
    check_results(plan.results, schemas)
    return {step.number: schemas[step.number] for step in plan.steps}


def check_form(
    step: PlanStep, last: int, count: int, limits: PlanLimits, places: Places | None = None
) -> None:
    """Check number and size of a step after `count` others, the last with number `last`.

    Raises: `PlanError`.
    """
    with _place(step, "tool", places):
        if count == limits.steps:
            raise PlanDefect(
                f"more than {limits.steps} steps", "use `for each`, or answer with join"
            )
        if step.number <= last:
            raise PlanDefect(f"the number {step.number} follows {last}", f"go on with {last + 1}")
        if _depth(step) > limits.depth or any(len(ref.path) > limits.depth for ref in step.refs):
            raise PlanDefect(f"lists, objects or paths nest deeper than {limits.depth} levels")
        if len(write_step(step)) > limits.step:
            raise PlanDefect(f"the step has more than {limits.step:,} characters")


def check_step(
    step: PlanStep,
    tools: Iterable[ToolSpec],
    known: Mapping[int, JsonSchema | None],
    places: Places | None = None,
) -> JsonSchema | None:
    """Check a step; returns its result schema, of a map an array, or None where undeclared.

    `known` are the result schemas of earlier steps. `places` are the positions of its parts in the
    text, for errors.

    Raises: `PlanError` for a wrong tool, parameter, type or reference.
    """
    return _StepCheck(step, tool_of(step, tools, places), known, places).result()


def check_results(
    results: Iterable[Ref], known: Mapping[int, JsonSchema | None], line: int = 1
) -> None:
    """Check the references of a join.

    Raises: `PlanError` for one that does not exist.
    """
    scope = PlanScope(known)
    for ref in results:
        try:
            scope.outside(ref, "join")
        except PlanDefect as wrong:
            raise PlanError(wrong.message, line=line, hint=wrong.hint) from None


def tool_of(step: PlanStep, tools: Iterable[ToolSpec], places: Places | None = None) -> ToolSpec:
    """The tool that a step calls. Raises: `PlanError` when there is no such tool."""
    named = {tool.name: tool for tool in tools}
    with _place(step, "tool", places):
        if step.tool not in named:
            raise PlanDefect(
                f"there is no tool {step.tool!r}",
                name_hint(step.tool, named),
            )
    return named[step.tool]


class _StepCheck:
    """The check of one step against its tool and the results it may refer to."""

    def __init__(
        self,
        step: PlanStep,
        tool: ToolSpec,
        known: Mapping[int, JsonSchema | None],
        places: Places | None,
    ) -> None:
        self._step = step
        self._tool = tool
        self._scope = PlanScope(known, step.number)
        self._places = places

    def result(self) -> JsonSchema | None:
        step = self._step
        if step.over is not None:
            with _place(step, "for", self._places):
                self._scope.enter(step.over)
        if step.when is not None:
            with _place(step, "if", self._places):
                self._condition(step.when)
        for number in step.after:
            with _place(step, "after", self._places):
                self._scope.outside(Ref(number), "after")
        for name, value in step.arguments.items():
            with _place(step, f"={name}", self._places):
                self._argument(name, value)
        with _place(step, "tool", self._places):
            for name in required_by(self._tool):
                if name not in step.arguments:
                    raise PlanDefect(f"the argument {name} is missing", signature(self._tool))
        return self._tool.result if step.over is None else array_of(self._tool.result)

    def _condition(self, condition: StepCondition) -> None:
        schema = self._scope.outside(condition.ref, "if")
        literal: JsonSchema = {"const": condition.literal}
        match condition.operator:
            case "<" | "<=" | ">" | ">=":
                why = mismatch(literal, _ORDERED) or mismatch(schema, _ORDERED)
                why = why or mismatch(_same_kind(condition.literal), schema)
            case "==" if condition.literal is not None:
                why = misfit(condition.literal, schema, self._scope.schema)
            case _:
                why = None
        if why:
            hint = "compare with what it can be, or leave the condition out"
            raise PlanDefect(f"if {write_ref(condition.ref)}: {why}", hint)

    def _argument(self, name: str, value: Value) -> None:
        try:
            target = parameter_of(self._tool, name)
        except LookupError as error:
            raise PlanDefect(
                str(error.args[0]),
                name_hint(name, parameters_of(self._tool)),
            ) from None
        for ref in refs_in(value):
            self._scope.schema(ref)
        if why := misfit(value, target, self._scope.schema):
            raise PlanDefect(f"{name}: {why}", self._remedy(name, value, target))

    def _remedy(self, name: str, value: Value, target: JsonSchema | None) -> str:
        """A hint for `value`, which does not fit."""
        wanted = f"{name} is {type_text(target)}"
        if isinstance(value, str) and _fits_unquoted(value, target):
            return f"{wanted}; write it without quotes: {parameter_name(name)}={value.strip()}"
        if value is None and name not in required_by(self._tool):
            return f"{wanted}; leave {name} out instead"
        if isinstance(value, Ref):
            if parts := self._scope.parts_that_fit(value, target):
                return f"{wanted}; did you mean {' or '.join(parts[:3])}?"
            if not mismatch(self._scope.schema(value), LIST) and self._step.over is None:
                each = f"for each {write_ref(value)}"
                return f"{wanted}; for every item of a list write `{each}` and use $item"
        return wanted


def _fits_unquoted(text: str, target: JsonSchema | None) -> bool:
    """Whether a quoted text is a reference, or a value that fits without quotes."""
    if _QUOTED_REF.fullmatch(text):
        return True
    try:
        return mismatch({"const": json.loads(text)}, target) is None
    except (ValueError, RecursionError):
        return False


def _same_kind(literal: Value) -> JsonSchema:
    """The schema of values that can be ordered with a literal."""
    return {"type": "string" if isinstance(literal, str) else "number"}


def _depth(step: PlanStep) -> int:
    """The nesting depth of lists and objects in a step."""
    level: list[Value] = [*step.arguments.values()]
    if step.when is not None:
        level.append(step.when.literal)
    nested = -1
    while level:
        nested += 1
        level = [inner for value in level for inner in _parts(value)]
    return nested


def _parts(value: Value) -> Iterable[Value]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, (list, tuple)) else ()


@contextmanager
def _place(step: PlanStep, part: str, places: Places | None) -> Iterator[None]:
    """Turns a `PlanDefect` into a `PlanError` with the position of a part of a step."""
    try:
        yield
    except PlanDefect as wrong:
        line, column = (places or {}).get(part, (step.line, 1))
        raise PlanError(
            wrong.message, line=line, column=column, step=step.number, hint=wrong.hint
        ) from None
