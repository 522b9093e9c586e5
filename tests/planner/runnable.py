"""Plans that can be run: tools that compute, a strategy for plans over them, and what they come to.

`evaluate` is the oracle: plain Python, one step after the other, without engine or schedule.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from weft.core.errors import ToolRaised
from weft.core.values import ToolSpec
from weft.planner.plan import Condition, Plan, Ref, Step

_INTEGER = {"type": "integer"}
_NUMBERS = {"type": "array", "items": _INTEGER}


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


SPECS = (
    ToolSpec(
        "add",
        "Adds two numbers.",
        _object(a=_INTEGER, b=_INTEGER),
        _object(sum=_INTEGER, parts=_NUMBERS, even={"type": "boolean"}),
    ),
    ToolSpec("spread", "Lists numbers.", _object(n=_INTEGER), _NUMBERS),
    ToolSpec(
        "label",
        "Names a value.",
        _object(text={"type": "string"}, of={}),
        _object(text={"type": "string"}, of={}),
    ),
)


def compute(tool: str, arguments: Mapping[str, Any]) -> Any:
    """What a tool returns."""
    if tool == "add":
        a, b = arguments["a"], arguments["b"]
        return {"sum": a + b, "parts": [a, b], "even": (a + b) % 2 == 0}
    if tool == "spread":
        return list(range(abs(arguments["n"]) % 4))
    return {"text": arguments["text"].upper(), "of": arguments["of"]}


def call_key(tool: str, arguments: Mapping[str, Any]) -> str:
    """One text for each call: equal calls have equal ones."""
    return json.dumps([tool, arguments], sort_keys=True)


class ComputingTools:
    """A `ToolRunner` over `compute`: each call takes a while, some raise a given number of times.

    `failing`: how often the call with this key raises before it succeeds. `calls` lists the keys in
    the order the calls began, `running` counts those under way, `most` how many there ever were.
    """

    def __init__(self, seed: int = 0, failing: Mapping[str, int] | None = None) -> None:
        self._seed = seed
        self._failing = dict(failing or {})
        self.calls: list[str] = []
        self.running = 0
        self.most = 0

    def specs(self) -> tuple[ToolSpec, ...]:
        return SPECS

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        key = call_key(name, arguments)
        self.calls.append(key)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(random.Random(f"{self._seed} {key}").choice((0, 0.1, 0.3, 0.7, 2)))
            if self._failing.get(key, 0) > 0:
                self._failing[key] -= 1
                raise ToolRaised(f"{name} is out of order")
            return compute(name, arguments)
        finally:
            self.running -= 1


@dataclass
class Evaluation:
    """What a plan comes to: a value for each step that has one, else why not."""

    values: dict[int, Any] = field(default_factory=dict)
    left_out: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    blocked: set[int] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)


def evaluate(
    plan: Plan, broken: Sequence[str] = (), before: Mapping[int, Any] | None = None
) -> Evaluation:
    """What `plan` comes to when the calls in `broken` fail; `before`: results of earlier rounds."""
    found = Evaluation(values=dict(before or {}))
    for step in plan.steps:
        needs = set(step.needs)
        if needs & (found.failed | found.blocked):
            found.blocked.add(step.number)
        elif needs & found.left_out:
            found.left_out.add(step.number)
        else:
            _evaluate(step, found, broken)
    return found


def _evaluate(step: Step, found: Evaluation, broken: Sequence[str]) -> None:
    here: dict[Any, Any] = dict(found.values)
    asks_items = step.when is not None and isinstance(step.when.ref.source, str)
    if step.when is not None and not asks_items and not _true(step.when, here):
        found.left_out.add(step.number)
        return
    rounds = [here]
    if step.over is not None:
        items = enumerate(_value(step.over, here))
        rounds = [{**here, "item": item, "index": index} for index, item in items]
    results, ok = [], True
    for names in rounds:
        if asks_items and step.when is not None and not _true(step.when, names):
            continue
        arguments = _value(dict(step.arguments), names)
        key = call_key(step.tool, arguments)
        found.calls.append(key)
        ok = ok and key not in broken
        results.append(compute(step.tool, arguments))
    if not ok:
        found.failed.add(step.number)
    else:
        found.values[step.number] = results if step.over is not None else results[0]


def _value(value: Any, names: Mapping[Any, Any]) -> Any:
    if isinstance(value, Ref):
        found = names[value.source]
        for part in value.path:
            found = found[part]
        return found
    if isinstance(value, dict):
        return {name: _value(item, names) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_value(item, names) for item in value]
    return value


def _true(condition: Condition, names: Mapping[Any, Any]) -> bool:
    value = _value(condition.ref, names)
    match condition.operator:
        case "":
            return bool(value)
        case "not":
            return not value
        case "==":
            return bool(value == condition.literal)
        case _:
            return bool(value > condition.literal)


# -- a strategy ---------------------------------------------------------------------------------

_WORDS = st.sampled_from(["tea", "$3", 'a "quote"', "{{ x }}", "è ✓", "two\nlines", ""])
_SMALL = st.integers(-5, 9)


@st.composite
def plans(draw: st.DrawFn, *, most: int = 8, conditions: bool = True) -> Plan:
    """A plan over `SPECS` that the checker accepts: references fit, and always have a value.

    Only the lists of `spread` may be empty, so nothing refers to their items by index.
    """
    steps: list[Step] = []
    sources = _Sources()
    for number in range(1, draw(st.integers(1, most)) + 1):
        step = draw(_step(number, sources, conditions))
        steps.append(step)
        sources.add(step)
    numbers = [step.number for step in steps]
    named = draw(st.lists(st.sampled_from(numbers), unique=True, max_size=3))
    return Plan(tuple(steps), tuple(Ref(number) for number in named))


class _Sources:
    """What may be referred to by now; each list with where an integer is in its items."""

    def __init__(self) -> None:
        self.integers: list[Ref] = []
        self.lists: list[tuple[Ref, Ref]] = []
        self.anything: list[Ref] = []

    def add(self, step: Step) -> None:
        whole = Ref(step.number)
        self.anything.append(whole)
        if step.tool == "add" and step.over is not None:
            self.lists.append((whole, Ref("item", ("sum",))))
        elif step.tool == "add":
            self.integers += [Ref(step.number, ("sum",)), Ref(step.number, ("parts", 0))]
            self.lists.append((Ref(step.number, ("parts",)), Ref("item")))
        elif step.tool == "spread" and step.over is None:
            self.lists.append((whole, Ref("item")))


@st.composite
def _step(draw: st.DrawFn, number: int, sources: _Sources, conditions: bool) -> Step:
    integers = list(sources.integers)
    over = None
    if sources.lists and draw(st.booleans()):
        over, item = draw(st.sampled_from(sources.lists))
        integers += [item, Ref("index")]
    integer: st.SearchStrategy[Any] = _SMALL
    if integers:
        integer = st.one_of(_SMALL, st.sampled_from(integers))
    arguments: dict[str, Any]
    tool = draw(st.sampled_from(["add", "add", "spread", "label"]))
    if tool == "add":
        arguments = {"a": draw(integer), "b": draw(integer)}
    elif tool == "spread":
        arguments = {"n": draw(integer)}
    else:
        of = st.sampled_from(sources.anything) if sources.anything else _SMALL
        arguments = {"text": draw(_WORDS), "of": draw(st.tuples(of, _SMALL))}
    when = draw(_conditions(integers)) if conditions and integers and draw(st.booleans()) else None
    return Step(number, tool, arguments, over, when)


@st.composite
def _conditions(draw: st.DrawFn, refs: list[Ref]) -> Condition:
    operator = draw(st.sampled_from(["", "not", "==", ">"]))
    literal = None if operator in ("", "not") else draw(_SMALL)
    return Condition(draw(st.sampled_from(refs)), operator, literal)
