"""Structural defects of a document in words: the most telling one of many."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from pydantic import BaseModel, ValidationError

from weft.core.errors import BuildError
from weft.core.suggestion import closest
from weft.workflow.document.spec.declarations import (
    EmbeddingUse,
    IsolationSpec,
    McpUse,
    ModelSpec,
    OpenApiUse,
    ToolUse,
)
from weft.workflow.document.spec.document import WorkflowDocument
from weft.workflow.document.spec.evaluation import DataSpec, EvaluationSpec, MetricSpec
from weft.workflow.document.spec.model_settings import (
    AgentSpec,
    AmongSpec,
    NodeThinkSpec,
    PriceSpec,
    WeightsSpec,
)
from weft.workflow.document.spec.nodes import KIND_NAMES, KINDS, Block, tag
from weft.workflow.document.spec.optimise import (
    ChoiceSpec,
    DemonstrationKnob,
    NodeKnobs,
    OptimiseSpec,
    ProposerSpec,
)
from weft.workflow.document.spec.settings import (
    SCHEDULE_FORMS,
    BreakerSpec,
    BudgetSpec,
    CacheSpec,
    GrowSpec,
    RetrySpec,
    RunSpec,
    ScheduleSpec,
)
from weft.workflow.document.spec.state import StateField

Path = tuple[str | int, ...]

_TAGS = frozenset((*(tag(name) for name in (*KIND_NAMES, "block", "node")), *SCHEDULE_FORMS))
_EXPECTED = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_PARTS: Mapping[str, type[BaseModel]] = {
    "run": RunSpec,
    "budget": BudgetSpec,
    "retry": RetrySpec,
    "breaker": BreakerSpec,
    "cache": CacheSpec,
    "isolate": IsolationSpec,
    "mcp": McpUse,
    "openapi": OpenApiUse,
    "search": EmbeddingUse,
    "weights": WeightsSpec,
    "price": PriceSpec,
    "think": NodeThinkSpec,
    "agent": AgentSpec,
    "grow": GrowSpec,
}
_SECTIONS: Mapping[str, type[BaseModel]] = {
    "models": ModelSpec,
    "tools": ToolUse,
    "state": StateField,
}
_EVALUATION: Mapping[Path, type[BaseModel]] = {("data",): DataSpec, ("metrics",): MetricSpec}
_SEE = "`weft schema` tells what goes where"
_REMEDIES = {
    "api_key": "keys do not belong in files: name an environment variable with `api_key_env`",
    "env": "values do not belong in files: name environment variables with `env_from`",
    "headers": "values do not belong in files: name environment variables with `headers_from`",
}


@dataclass(frozen=True, slots=True)
class Defect:
    """A defect. `at_key`: the key itself is wrong, not its value."""

    path: Path
    message: str
    hint: str | None = None
    at_key: bool = False


def first_defect(error: ValidationError, raw: object, prefix: Path = ()) -> Defect:
    """The most telling defect: unknown keys before wrong values, before missing keys.

    `raw` is the whole document; `prefix` is the path of the part that was validated.
    """
    return all_defects(error, raw, prefix)[0]


def all_defects(error: ValidationError, raw: object, prefix: Path = ()) -> list[Defect]:
    """As `first_defect`, with the others; one for each mistake."""
    entries = error.errors(include_url=False)
    found = [_defect({**entry, "loc": (*prefix, *entry["loc"])}, raw) for entry in entries]
    defects: list[Defect] = []
    for rank, defect in sorted(found, key=itemgetter(0)):
        if not any(_is_same(defect, other, missing=rank == _MISSING) for other in defects):
            defects.append(defect)
    return defects


_MISSING = 3


def _is_same(defect: Defect, other: Defect, *, missing: bool) -> bool:
    """Whether both tell of one mistake: `other` is inside or around, or is the misspelt key."""
    ends = min(len(defect.path), len(other.path))
    if defect.path[:ends] == other.path[:ends]:
        return True
    owner = defect.path[:-1] if missing else None
    hinted = missing and f"`{defect.path[-1]}`" in (other.hint or "")
    return hinted and other.path[: len(owner or ())] == owner


def choice_hint(word: str, choices: Sequence[str]) -> str | None:
    """A hint with the nearest of `choices`, or a list of all when none is near."""
    if near := closest(word, choices):
        return f"did you mean `{near}`?"
    return f"there are: {', '.join(choices)}" if choices and len(choices) <= 40 else None


def _defect(entry: Any, raw: object) -> tuple[int, Defect]:
    kind, context = entry["type"], entry.get("ctx", {})
    tags = tuple(part for part in entry["loc"] if part in _TAGS)
    path: Path = tuple(part for part in entry["loc"] if part not in _TAGS)
    at_key = bool(path) and path[-1] == "[key]"
    path = path[:-1] if at_key else path
    if kind == "extra_forbidden":
        return 0, _unknown_key(path, tags, raw)
    if kind == "union_tag_not_found":
        return 1, _no_kind(path, raw)
    if kind == "missing":
        return 3, _missing(path, raw)
    if kind in _EXPECTED:
        actual = _kind_of(entry["input"])
        return 2, Defect(
            path, f"{_what(path)} must be {_EXPECTED[kind]}, not {actual}", _usage(kind, path)
        )
    if kind == "schema":
        inner = tuple(context.get("where", ()))
        return 2, Defect((*path, *inner), f"{_what(path)}: {entry['msg']}", "see json-schema.org")
    if kind == "shorthand":
        path = (*path, *context.get("where", ()))
        return 2, Defect(path, entry["msg"], choice_hint(context["given_text"], context["choices"]))
    if kind == "origin":
        inner = tuple(context.get("where", ()))
        return 2, Defect((*path, *inner), entry["msg"], context["hint"], True)
    return 2, Defect(path, _message(kind, entry, path), _remedy(kind, context, entry), at_key)


def _message(kind: str, entry: Any, path: Path) -> str:
    if kind in ("name", "quantity"):
        return str(entry["msg"]) if kind == "name" else f"{_what(path)}: {entry['msg']}"
    context = entry.get("ctx", {})
    if kind == "string_pattern_mismatch":
        return f"{_what(path)} is not a name: use letters, digits, _ and, inside, - and ."
    if kind == "too_short":
        return f"{_what(path)} is empty"
    if kind == "literal_error":
        return f"{_what(path)} must be {context['expected']}"
    message = str(entry["msg"]).removeprefix("Input should be ").removeprefix("String should ")
    return f"{_what(path)} should be {message}" if message != entry["msg"] else message


def _remedy(kind: str, context: Mapping[str, Any], entry: Any) -> str | None:
    if kind == "literal_error" and isinstance(entry["input"], str):
        choices = [
            word.strip("'") for word in context["expected"].replace(" or ", ", ").split(", ")
        ]
        return choice_hint(entry["input"], choices)
    remedies = {
        "name": "rename it",
        "model": "behind an endpoint: {use: openai, model: NAME, base_url: URL}",
        "too_short": "give at least one",
        "quantity": "write a number with its unit, such as 30s",
    }
    return remedies.get(kind, _SEE)


def _unknown_key(path: Path, tags: Sequence[str], raw: object) -> Defect:
    key = str(path[-1])
    known = _known_keys(path[:-1], tags, raw)
    if key in KIND_NAMES and tags:
        kinds = f"{tags[-1].strip('<>')} node"
        hint = f"a node has one kind: this one is a {kinds}; put `{key}` in a node of its own"
        return Defect(path, f"`{key}` does not belong in a {kinds}", hint, at_key=True)
    remedy = _REMEDIES.get(key) or choice_hint(key, known)
    return Defect(path, f"unknown key `{key}`", remedy, at_key=True)


def _known_keys(path: Path, tags: Sequence[str], raw: object) -> list[str]:
    """The keys that the part at `path` may have."""
    if not path:
        return _keys(WorkflowDocument)
    if path[0] == "schedule":
        return _keys(ScheduleSpec)
    if path[0] == "evaluation":
        return _keys(_EVALUATION.get(path[1:2], EvaluationSpec))
    if path[0] == "optimise" and not tags:
        return _keys(_part_of_optimise(path[1:]))
    owner = path[-1]
    inside = _at(raw, path)
    if isinstance(inside, Mapping) and (path[0] == "nodes" or tags):
        named = path[-2:-1] == ("nodes",)  # a node may have the name of a part
        if owner in _PARTS and not named and not any(kind in inside for kind in KIND_NAMES):
            return _keys(_PARTS[str(owner)])
        if "nodes" in inside and tags and tags[-1] == tag("block"):
            return _keys(Block)
        kind = next((kind for kind in KINDS if kind.kind in inside), None)
        return _keys(kind) if kind is not None else []
    if path[-2:-1] == ("among",):
        return _keys(AmongSpec)
    declared = len(path) == 2 and path[0] in _SECTIONS  # as a tool may, such as `search`
    if owner in _PARTS and not declared:
        return _keys(_PARTS[str(owner)])
    return _keys(_SECTIONS.get(str(path[0]), WorkflowDocument))


def _part_of_optimise(path: Path) -> type[BaseModel]:
    match path:
        case ("knobs", _):
            return NodeKnobs
        case ("knobs", _, "demonstrations"):
            return DemonstrationKnob
        case ("knobs", _, "choices", _):
            return ChoiceSpec
        case ("proposer",):
            return ProposerSpec
    return OptimiseSpec


def _keys(part: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in part.model_fields.items()]


def _no_kind(path: Path, raw: object) -> Defect:
    inside = _at(raw, path)
    kinds = ", ".join(KIND_NAMES)
    if not isinstance(inside, Mapping):
        return Defect(
            path,
            f"a node must be a mapping, not {_kind_of(inside)}",
            f"write its kind and what it does, such as {{tool: name}}; kinds: {kinds}",
        )
    for key in inside:
        if near := closest(key, KIND_NAMES):
            return Defect((*path, key), f"unknown key `{key}`", f"did you mean `{near}`?", True)
    return Defect(
        path, f"{_what(path)} does not say what it does", f"give it one of: {kinds}", True
    )


def _missing(path: Path, raw: object) -> Defect:
    owner, key = path[:-1], path[-1]
    where = _what(owner) if owner else "the workflow"
    inside = _at(raw, owner)
    given = [str(name) for name in inside] if isinstance(inside, Mapping) else []
    near = closest(key, given, cutoff=0.7)
    hint = f"is `{near}` meant to be `{key}`?" if near else f"add `{key}:`"
    return Defect(owner, f"{where} has no `{key}`", hint, at_key=True)


def _at(raw: object, path: Path) -> object:
    for part in path:
        if isinstance(raw, Mapping) and part in raw:
            raw = raw[part]
            continue
        if not isinstance(raw, Sequence) or not isinstance(part, int) or part >= len(raw):
            return None
        raw = raw[part]
    return raw


def _what(path: Path) -> str:
    named = {"nodes": "node", "inputs": "input", "models": "model", "tools": "tool"}
    if len(path) >= 2 and path[-2] in named:
        return f"{named[str(path[-2])]} `{path[-1]}`"
    return f"`{path[-1]}`" if path else "the workflow"


def _usage(kind: str, path: Path) -> str:
    if not path:
        return "it begins with `name:`"
    usages = {
        "string_type": "quote it to make it a text",
        "list_type": "write [a, b], or one item a line with `- `",
        "bool_type": "write it without quotes",
        "int_type": "write digits, without quotes",
        "float_type": "write digits, without quotes",
    }
    return usages.get(kind, _SEE)


def _kind_of(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case str():
            return f"the text {value[:30]!r}"
        case int() | float():
            return f"the number {value}"
        case Mapping():
            return "a mapping"
        case _:
            return "a list"


def check_keys(options: Mapping[str, Any], allowed: Collection[str], what: str = "option") -> None:
    """Raises: `BuildError` when `options` has a key that is not in `allowed`."""
    for key in options:
        if key not in allowed:
            raise BuildError(f"there is no {what} {key!r}", hint=choice_hint(key, sorted(allowed)))


def check_choice(options: Mapping[str, Any], key: str, choices: Sequence[str]) -> None:
    """Raises: `BuildError` when `options` has another value of `key` than None or a choice."""
    value = options.get(key)
    if value is not None and value not in choices:
        raise BuildError(
            f"the option `{key}` is one of {', '.join(choices)}, not {value!r:.60}",
            hint=choice_hint(str(value), choices),
        )
