"""Makes a plan of calls that a run made one after the other, by the flow of their data.

After DTA-Llama (divide, then aggregate): calls that need nothing of one another form one level.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.core.values import Effect
from weft.planner.plan import Plan, PlanStep, Ref, Value
from weft.planner.regroup.provenance import Provenance
from weft.planner.text.writer import path_text, write_ref, write_value


@dataclass(frozen=True, slots=True)
class ToolCallRecord:
    """A call that succeeded, with plain JSON data. `effect`: that of its tool."""

    tool: str
    arguments: Mapping[str, Any]
    result: Any
    effect: Effect = "unknown"


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """A value whose origin is not sure, at `place` in the arguments of a step.

    The plan refers to the first of `sources` where `referred`; else the value stays as it was. The
    step waits for all of them: an edge too many costs time, one too few may cost the truth.
    """

    step: int
    place: str
    value: Any
    sources: tuple[Ref, ...]
    referred: bool

    def __str__(self) -> str:
        shown = ", ".join(map(write_ref, self.sources[:5]))
        how = "refers to the first" if self.referred else "stays as it was"
        return f"step {self.step}, {self.place} = {write_value(self.value)}: may be {shown}; {how}"


@dataclass(frozen=True, slots=True)
class RegroupedPlan:
    """The plan, the steps that each one waits for, and where the data did not tell.

    `needs` holds more than the plan's own references where a value is only a part of a result, or
    too common, and where an effect keeps its place.
    """

    question: str
    calls: tuple[ToolCallRecord, ...]
    plan: Plan
    needs: Mapping[int, frozenset[int]]
    ambiguities: tuple[Ambiguity, ...]

    @property
    def levels(self) -> list[list[int]]:
        """Step numbers in levels: each step right after the last level that it waits for."""
        level: dict[int, int] = {}
        for number, needed in self.needs.items():
            level[number] = 1 + max((level[other] for other in needed), default=-1)
        found: list[list[int]] = [[] for _ in range(1 + max(level.values(), default=-1))]
        for number, at in level.items():
            found[at].append(number)
        return found


def regroup(question: str, calls: Sequence[ToolCallRecord]) -> RegroupedPlan:
    """The plan of `calls`, which were made in this order for `question`.

    A call waits for an earlier one if a value in its arguments, or a part of it, first appeared in
    that result and not in the question. Calls whose effect is `once` keep their order.
    """
    maker = _Regrouping(question)
    for number, call in enumerate(calls, 1):
        maker.add(number, call)
    return RegroupedPlan(
        question, tuple(calls), Plan(tuple(maker.steps)), maker.needs, tuple(maker.ambiguities)
    )


class _Regrouping:
    def __init__(self, question: str) -> None:
        self.steps: list[PlanStep] = []
        self.needs: dict[int, frozenset[int]] = {}
        self.ambiguities: list[Ambiguity] = []
        self._seen = Provenance(question)
        self._last_effect: int | None = None
        self._waits: set[int] = set()

    def add(self, number: int, call: ToolCallRecord) -> None:
        """Add one call."""
        self._waits = set()
        arguments = {
            name: self._value(number, value, (name,)) for name, value in call.arguments.items()
        }
        if call.effect == "once":
            self._waits |= {self._last_effect} if self._last_effect is not None else set()
            self._last_effect = number
        self.steps.append(PlanStep(number, call.tool, arguments))
        self.needs[number] = frozenset(self._waits)
        self._seen.add_arguments(call.arguments)
        self._seen.add_result(number, call.result)

    def _value(self, number: int, value: Any, path: tuple[str | int, ...]) -> Value:
        origin = self._seen.origin(value)
        if origin is None or not origin.sources:
            return self._inner(number, value, path)
        first = origin.sources[0]
        self._waits |= {ref.source for ref in origin.sources if isinstance(ref.source, int)}
        sure = origin.certainty == "sure"
        if not sure or len(origin.sources) > 1:
            place = str(path[0]) + path_text(path[1:])
            self.ambiguities.append(Ambiguity(number, place, value, origin.sources, sure))
        return first if sure else _plain(value)

    def _inner(self, number: int, value: Any, path: tuple[str | int, ...]) -> Value:
        if isinstance(value, Mapping):
            return {key: self._value(number, each, (*path, key)) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return tuple(self._value(number, each, (*path, i)) for i, each in enumerate(value))
        return value


def _plain(value: Any) -> Value:
    """JSON data in the form of plans: lists as tuples."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value


def training_turns(regrouped: RegroupedPlan) -> Iterator[dict[str, Any]]:
    """One turn for each level: the messages before it, and the calls that it makes together."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": regrouped.question}]
    for turn, level in enumerate(regrouped.levels, 1):
        made = [(number, regrouped.calls[number - 1]) for number in level]
        calls = [
            {"id": f"call_{number}", "name": call.tool, "arguments": dict(call.arguments)}
            for number, call in made
        ]
        yield {"turn": turn, "messages": list(messages), "calls": calls}
        messages.append({"role": "assistant", "content": "", "tool_calls": calls})
        messages += [
            {"role": "tool", "tool_call_id": f"call_{number}", "content": call.result}
            for number, call in made
        ]
