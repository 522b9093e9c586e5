"""Items of call data as turns that train a planner: messages as `weft ask` sends them, and answers.

An item is a document of `weft generate-calls`: query, tools, calls, ask. A call may refer to others
before it (`"$1.price"`), and be made `for_each` item of one. With `results`, one for each call, and
a `reply`, it trains the answer from these results as well.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from weft.agents.agent import Observation
from weft.agents.chat.observations import format_observations
from weft.core.errors import InputError, PlanError
from weft.core.events import Outcome
from weft.core.values import Message, ToolSpec
from weft.planner.compact import compact_messages, compact_plan, conclusion_messages
from weft.planner.plan import PlanStep, Ref
from weft.planner.text.reader import read

MOST_BYTES: Final = 1 << 30
_REF: Final = re.compile(r"\$([1-9][0-9]{0,2})((?:\.[A-Za-z_][A-Za-z0-9_]*|\[[0-9]{1,4}\])*)")
_HERE: Final = re.compile(r"\$(item|index)((?:\.[A-Za-z_][A-Za-z0-9_]*|\[[0-9]{1,4}\])*)")
_STEP: Final = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[([0-9]+)\]")
_LARGEST_RESULTS: Final = 8_000
_HINT: Final = "make items with `weft generate-calls`"


@dataclass(frozen=True, slots=True)
class PlannerTurn:
    """`answer` is what the model shall write to `messages`.

    `calls`: how many calls it has, 0 in a turn that concludes. `called` and `offered` are names of
    tools; where none is called, `called` has all that are offered.
    """

    messages: tuple[Message, ...]
    answer: str
    calls: int
    called: frozenset[str]
    offered: frozenset[str]


def read_turns(path: Path) -> list[PlannerTurn]:
    """The turns of a file of items, one a line.

    Raises: `InputError` with the line of what is no item, or whose calls do not fit its tools.
    """
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise InputError(f"{path} has {size:,} bytes; at most {MOST_BYTES:,} are read")
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeError) as error:
        raise InputError(f"{path} cannot be read: {error}", hint=_HINT) from error
    turns: list[PlannerTurn] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                turns += turns_of(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}, line {number}: no JSON: {error}", hint=_HINT) from None
            except InputError as error:
                message = f"{path}, line {number}: {error.message}"
                raise InputError(message, hint=error.hint or _HINT) from None
    if not turns:
        raise InputError(f"{path} has no items", hint=_HINT)
    return turns


def turns_of(item: object) -> Iterator[PlannerTurn]:
    """The turn that plans, and the one that concludes where the item has results.

    Raises: `InputError` for what is no item, or an item whose plan its tools do not allow.
    """
    fields = _mapping(item, "an item")
    query = _text(fields, "query")
    tools = [_tool(each) for each in _listed(fields, "tools")]
    schemas = {tool.name: tool.parameters.get("properties", {}) for tool in tools}
    steps = [
        _step(number, each, schemas) for number, each in enumerate(_listed(fields, "calls"), 1)
    ]
    missing = [name for name in _listed(fields, "ask") if isinstance(name, str)]
    if steps and missing:
        raise InputError("an item has either calls or parameters to ask for")
    try:
        answer = compact_plan(steps, missing)
        read(answer, tools)
    except PlanError as error:
        raise InputError(f"its calls are no plan for its tools: {error}", hint=error.hint) from None
    offered = frozenset(tool.name for tool in tools)
    called = frozenset(step.tool for step in steps) or offered
    yield PlannerTurn(compact_messages(query, tools), answer, len(steps), called, offered)
    if "results" in fields:
        lines = format_observations(list(_observed(steps, fields)), _LARGEST_RESULTS)
        reply = _text(fields, "reply")
        yield PlannerTurn(conclusion_messages(query, lines), reply, 0, called, offered)


def split_turns(
    turns: Sequence[PlannerTurn], share: float, seed: int
) -> tuple[list[PlannerTurn], list[PlannerTurn]]:
    """Turns to train on, which never name a tool of the test, and turns that call only such tools.

    `share` (0 to 1) of all names are for the test; the spelling of a name does not matter.
    """
    names = {name for turn in turns for name in turn.offered}
    test = {name for name in names if _drawn(name, seed) < share}
    train = [turn for turn in turns if not turn.offered & test]
    return train, [turn for turn in turns if turn.called and turn.called <= test]


def _drawn(name: str, seed: int) -> float:
    """A number from 0 to 1 by the letters and digits of a name."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    digest = hashlib.sha256(f"{seed} {plain}".encode()).digest()
    return int.from_bytes(digest[:6]) / 2**48


def _tool(given: object) -> ToolSpec:
    fields = _mapping(given, "a tool")
    parameters = _mapping(fields.get("parameters", {}), "the parameters of a tool")
    described = fields.get("description", "")
    result = fields.get("result")
    if not isinstance(described, str):
        raise InputError("the description of a tool is a text")
    schema = None if result is None else _mapping(result, "the result of a tool")
    return ToolSpec(_text(fields, "name"), described, parameters, schema)


def _step(number: int, given: object, schemas: Mapping[str, Any]) -> PlanStep:
    fields = _mapping(given, "a call")
    over = None
    if "for_each" in fields:
        over = _value(_text(fields, "for_each"), number)
        if not isinstance(over, Ref):
            raise InputError(f"for_each is {fields['for_each']!r}: a reference such as $1 is due")
    arguments = _mapping(fields.get("arguments", {}), "the arguments of a call")
    tool = _text(fields, "name")
    values = {
        name: _value(_as_declared(value, schemas.get(tool, {}), name), number)
        for name, value in arguments.items()
    }
    return PlanStep(number, tool, values, over)


def _as_declared(value: Any, schemas: Any, name: str) -> Any:
    """`value`, with a decimal point in each number of a list of numbers, whole ones too."""
    schema = schemas.get(name) if isinstance(schemas, Mapping) else None
    items = schema.get("items") if isinstance(schema, Mapping) else None
    if not isinstance(value, list) or items != {"type": "number"}:
        return value
    return [float(one) if type(one) is int else one for one in value]


def _value(value: Any, number: int) -> Any:
    """`value` with the references in it to calls before `number`."""
    if isinstance(value, str):
        here = _HERE.fullmatch(value)
        if here is not None:
            return Ref("item" if here[1] == "item" else "index", _path(here[2]))
        found = _REF.fullmatch(value)
        earlier = found is not None and int(found[1]) < number
        return Ref(int(found[1]), _path(found[2])) if found and earlier else value
    if isinstance(value, Mapping):
        return {str(name): _value(inner, number) for name, inner in value.items()}
    if isinstance(value, list):
        return tuple(_value(inner, number) for inner in value)
    return value


def _path(text: str) -> tuple[str | int, ...]:
    return tuple(name or int(index) for name, index in _STEP.findall(text))


def _observed(steps: Sequence[PlanStep], fields: Mapping[str, Any]) -> Iterator[Observation]:
    """The calls as a run observes them: of a map one for each item, references replaced."""
    results = _listed(fields, "results")
    if len(results) != len(steps):
        raise InputError(f"{len(results)} results for {len(steps)} calls")
    for step, result in zip(steps, results, strict=True):
        items = [None] if step.over is None else _resolved(step.over, results)
        parts = [result] if step.over is None else result
        if not isinstance(items, list) or not isinstance(parts, list) or len(items) != len(parts):
            raise InputError(
                f"call {step.number} is made for each of a list, and has other results"
            )
        for item, part in zip(items, parts, strict=True):
            arguments = {
                name: _resolved(value, results, item) for name, value in step.arguments.items()
            }
            outcome = Outcome("succeeded", part)
            yield Observation(step.number, step.tool, arguments, outcome)


def _resolved(value: Any, results: Sequence[Any], item: Any = None) -> Any:
    if isinstance(value, Ref):
        found = results[value.source - 1] if isinstance(value.source, int) else item
        try:
            for step in value.path:
                found = found[step]
        except (LookupError, TypeError):
            raise InputError(f"the results have no {value.path!r} of call {value.source}") from None
        return found
    if isinstance(value, Mapping):
        return {name: _resolved(inner, results, item) for name, inner in value.items()}
    if isinstance(value, tuple):
        return [_resolved(inner, results, item) for inner in value]
    return value


def _mapping(given: object, what: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InputError(f"{what} is an object, not {given!r:.60}")
    return given


def _listed(fields: Mapping[str, Any], name: str) -> list[Any]:
    found = fields.get(name, [])
    if not isinstance(found, list):
        raise InputError(f"{name} is a list, not {found!r:.60}")
    return found


def _text(fields: Mapping[str, Any], name: str) -> str:
    found = fields.get(name)
    if not isinstance(found, str) or not found.strip():
        raise InputError(f"{name} is a text, not {found!r:.60}")
    return found
