"""Plans that can be run: tools that compute, a strategy for plans over them, and what they come to.

`evaluate` is the oracle: plain Python, one step after the other, without engine or schedule.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from weft.core.errors import ToolRaised
from weft.core.values import ToolSpec
from weft.planner.plan import Operator, Plan, PlanStep, Ref, StepCondition

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


def _evaluate(step: PlanStep, found: Evaluation, broken: Sequence[str]) -> None:
    here: dict[Any, Any] = dict(found.values)
    if step.when is not None and not _true(step.when, here):
        found.left_out.add(step.number)
        return
    rounds = [here]
    if step.over is not None:
        items = enumerate(_value(step.over, here))
        rounds = [{**here, "item": item, "index": index} for index, item in items]
    results, ok = [], True
    for names in rounds:
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


def _true(condition: StepCondition, names: Mapping[Any, Any]) -> bool:
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


# -- plans that can be run ----------------------------------------------------------------------

_WORDS = ("tea", "$3", 'a "quote"', "{{ x }}", "è ✓", "two\nlines", "")


def plans(
    *, most: int = 8, conditions: bool = True, ordered: bool = False
) -> st.SearchStrategy[Plan]:
    """Plans over `SPECS`: see `random_plan`. `ordered`: steps also wait for others with `after`."""
    chance = st.randoms(use_true_random=False)
    made = st.builds(random_plan, chance, st.integers(1, most), st.just(conditions))
    return st.builds(_ordered, made, chance) if ordered else made


def _ordered(plan: Plan, chance: random.Random) -> Plan:
    """`plan`, in which some steps wait for others that they do not refer to."""
    steps = []
    for step in plan.steps:
        others = [each.number for each in steps if each.number not in step.sources]
        waits = chance.sample(others, min(len(others), chance.choice((0, 0, 1, 2))))
        steps.append(replace(step, after=tuple(sorted(waits))))
    return replace(plan, steps=tuple(steps))


def random_plan(chance: random.Random, steps: int = 8, conditions: bool = True) -> Plan:
    """A plan that the checker accepts, in which every reference has a value.

    Lists may be empty, so nothing refers to their items by index. No two steps are equal: an agent
    refuses that.
    """
    sources = _Sources()
    for number in range(1, steps + 1):
        step = _step(number, sources, chance, conditions)
        while any(replace(step, number=one.number) == one for one in sources.steps):
            step = _step(number, sources, chance, conditions)
        sources.add(step)
    named = chance.sample(range(1, steps + 1), chance.randint(0, min(3, steps)))
    return Plan(tuple(sources.steps), tuple(Ref(number) for number in named))


class _Sources:
    """What may be referred to by now; each list with where an integer is in its items."""

    def __init__(self) -> None:
        self.steps: list[PlanStep] = []
        self.integers: list[Ref] = []
        self.lists: list[tuple[Ref, Ref]] = []

    def add(self, step: PlanStep) -> None:
        self.steps.append(step)
        whole = Ref(step.number)
        if step.tool == "add" and step.over is not None:
            self.lists.append((whole, Ref("item", ("sum",))))
        elif step.tool == "add":
            self.integers += [Ref(step.number, ("sum",)), Ref(step.number, ("parts", 0))]
            self.lists.append((Ref(step.number, ("parts",)), Ref("item")))
        elif step.tool == "spread" and step.over is None:
            self.lists.append((whole, Ref("item")))


def _step(number: int, sources: _Sources, chance: random.Random, conditions: bool) -> PlanStep:
    integers = list(sources.integers)
    over = when = None
    if conditions and integers and chance.random() < 0.3:
        operator: Operator = chance.choice(("", "not", "==", ">"))
        literal = None if operator in ("", "not") else _small(chance)
        when = StepCondition(chance.choice(integers), operator, literal)
    if sources.lists and chance.random() < 0.4:
        over, item = chance.choice(sources.lists)
        integers += [item, Ref("index")]

    def integer() -> Any:
        return chance.choice(integers) if integers and chance.random() < 0.7 else _small(chance)

    tool = chance.choice(("add", "add", "spread", "label"))
    if tool == "add":
        return PlanStep(number, tool, {"a": integer(), "b": integer()}, over, when)
    if tool == "spread":
        return PlanStep(number, tool, {"n": integer()}, over, when)
    before = [Ref(step.number) for step in sources.steps]
    of = (chance.choice(before) if before else _small(chance), integer())
    return PlanStep(number, tool, {"text": chance.choice(_WORDS), "of": of}, over, when)


def _small(chance: random.Random) -> int:
    return chance.randint(-5, 9)
