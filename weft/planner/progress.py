"""The state between two rounds of planning: steps that are done, failed, or blocked.

Results without a declared schema get one inferred from the value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from weft.core.errors import Failure
from weft.core.events import Outcome, jsonable
from weft.core.schema import array_of
from weft.core.values import JsonSchema, ToolSpec
from weft.planner.plan import PlanStep


def short_json(value: Any, characters: int = 600) -> str:
    """`value` as JSON in one line of about `characters` at most, without its middle."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=jsonable)
    except (TypeError, ValueError, RecursionError):
        return f"a {type(value).__name__} that JSON cannot hold"
    if len(text) <= characters:
        return text
    head = characters * 3 // 4
    tail = characters - head
    return f"{text[:head]} ...({len(text) - characters} characters left out)... {text[-tail:]}"


_DEPTH: Final = 6
_PARTS: Final = 200
_ITEMS: Final = 20
_MEMBERS: Final = 40
_KINDS: Final = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))


def infer_schema(value: Any) -> JsonSchema:
    """A JSON Schema that `value` fits: kinds, members and items.

    Objects with very many members, long lists and deep parts are described less exactly, so that
    no schema has more than about 200 parts.
    """
    schema = _schema(value, 0)
    for depth in range(1, _DEPTH + 1):
        deeper = _schema(value, depth)
        if _parts(deeper) > _PARTS:
            break
        schema = deeper
    return schema


def _parts(schema: object) -> int:
    if isinstance(schema, Mapping):
        return 1 + sum(map(_parts, schema.values()))
    return sum(map(_parts, schema)) if isinstance(schema, list) else 0


def _schema(value: Any, depth: int) -> JsonSchema:
    if value is None:
        return {"type": "null"}
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return {"type": name}
    if isinstance(value, Mapping):
        return _object(value, depth)
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return _array(value, depth)
    return {}


def _object(value: Mapping[str, Any], depth: int) -> JsonSchema:
    if depth == 0 or len(value) > _MEMBERS or not all(isinstance(name, str) for name in value):
        return {"type": "object"}
    members = {name: _schema(item, depth - 1) for name, item in value.items()}
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


def _array(value: Sequence[Any], depth: int) -> JsonSchema:
    if depth == 0 or len(value) > _ITEMS:
        return {"type": "array"}
    items: list[JsonSchema] = []
    for item in value:
        found = _schema(item, depth - 1)
        if found not in items:
            items.append(found)
    bound = {"type": "array", "minItems": len(value), "maxItems": len(value)}
    if not items:
        return bound
    return {**bound, "items": items[0] if len(items) == 1 else {"anyOf": items}}


@dataclass(frozen=True, slots=True)
class FinishedStep:
    """A step that succeeded: its value, and the schema for references to its parts."""

    step: PlanStep
    value: Any
    schema: JsonSchema | None

    @property
    def shown(self) -> str:
        return short_json(self.value)


@dataclass(frozen=True, slots=True)
class FailedStep:
    """A step whose call failed, with the failure."""

    step: PlanStep
    failure: Failure


@dataclass(frozen=True, slots=True)
class BlockedStep:
    """A step that never began: it needs, directly or not, the failed steps `by`."""

    step: PlanStep
    by: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlanProgress:
    """The state of a plan between two rounds, in the order of the steps.

    `left_out`: steps with a false condition, and their dependents. `thought`: what is missing,
    in the words of the component that requested another round. `next_number`: the next free one.
    `made`: the calls that a person changed before they were made, as text by the step's number.
    """

    done: tuple[FinishedStep, ...] = ()
    failed: tuple[FailedStep, ...] = ()
    blocked: tuple[BlockedStep, ...] = ()
    left_out: tuple[PlanStep, ...] = ()
    thought: str = ""
    next_number: int = 1
    made: Mapping[int, str] = field(default_factory=dict)

    @property
    def known(self) -> Mapping[int, JsonSchema | None]:
        """The result schemas of the steps that may be referred to, by number."""
        return {done.step.number: done.schema for done in self.done}


def progress_of(
    steps: Sequence[PlanStep],
    outcomes: Mapping[int, Outcome],
    specs: Sequence[ToolSpec],
    thought: str = "",
    *,
    since: int = 0,
    made: Mapping[int, str] | None = None,
) -> PlanProgress:
    """The progress of `steps`, all of which have ended with `outcomes`, by number.

    Steps before `since` that were blocked or left out are dropped. `made`: see `PlanProgress`.
    """
    done: list[FinishedStep] = []
    failed: dict[int, FailedStep] = {}
    blocked: dict[int, BlockedStep] = {}
    left_out: list[PlanStep] = []
    for step in steps:
        outcome = outcomes[step.number]
        if outcome.ok:
            schema = promised_schema(step, specs) or infer_schema(outcome.value)
            done.append(FinishedStep(step, outcome.value, schema))
        elif outcome.failure is None:
            left_out.append(step)
        elif by := _blocking(step, failed, blocked):
            blocked[step.number] = BlockedStep(step, by)
        else:
            failed[step.number] = FailedStep(step, outcome.failure)
    return PlanProgress(
        tuple(done),
        tuple(failed.values()),
        tuple(found for number, found in blocked.items() if number >= since),
        tuple(step for step in left_out if step.number >= since),
        thought,
        max((step.number for step in steps), default=0) + 1,
        made or {},
    )


def promised_schema(step: PlanStep, specs: Sequence[ToolSpec]) -> JsonSchema | None:
    """The result schema that the tool of `step` declares, of a map an array."""
    result = next((spec.result for spec in specs if spec.name == step.tool), None)
    if result is None or step.over is None:
        return result
    return array_of(result)


def _blocking(
    step: PlanStep, failed: Mapping[int, FailedStep], blocked: Mapping[int, BlockedStep]
) -> tuple[int, ...]:
    """The failed steps that `step` needs, directly or through others."""
    found: set[int] = set()
    for number in step.needs:
        if number in failed:
            found.add(number)
        elif number in blocked:
            found.update(blocked[number].by)
    return tuple(sorted(found))
