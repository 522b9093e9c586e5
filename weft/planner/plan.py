"""A plan as values: numbered calls that refer to one another. As text:

# both prices can be looked up at once
1. price(item="tea")
2. price(item="coffee")
3. total(amounts=[$1.amount, $2.amount])
4. describe(text=$item.title, place=$index) for each $3.lines
5. warn(text="too dear: over $3") if $3.sum > 10
6. join($3, $4)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

Here = Literal["item", "index"]
"""In a step that is repeated for each item of a list: the item, and its index from 0."""

Operator = Literal["", "not", "==", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Ref:
    """`$3.prices[0]`: the result of step 3, or its part at `path`; `$item.name` likewise.

    `path` holds property names and list indexes.
    """

    source: int | Here
    path: tuple[str | int, ...] = ()


Value = Any
"""An argument: a JSON value (lists as tuples), which may contain a `Ref` anywhere."""


@dataclass(frozen=True, slots=True)
class StepCondition:
    """When a step runs: `ref` compared with a JSON literal, or (`""`, `not`) alone.

    Alone, null, false, 0 and empty values count as false.
    """

    ref: Ref
    operator: Operator = ""
    literal: Any = None


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One call. Its result is what the tool returns; of a map, the list of these.

    `over`: the list whose items the call is repeated for; arguments may use `$item` and `$index`.
    `when`: if it is false, the step and the steps that refer to it are skipped. `thought`: the text
    before it; `line`: its line in the text, from 1. `after`: the numbers of steps that have to
    succeed before it, although it does not refer to them; each once, ascending.
    """

    number: int
    tool: str
    arguments: Mapping[str, Value] = field(default_factory=dict)
    over: Ref | None = None
    when: StepCondition | None = None
    thought: str = ""
    line: int = field(default=1, compare=False)
    after: tuple[int, ...] = ()

    @property
    def refs(self) -> tuple[Ref, ...]:
        """All references in it, in the order of the text."""
        found = [*refs_in(dict(self.arguments))]
        found += [self.over] if self.over is not None else []
        found += [self.when.ref] if self.when is not None else []
        return tuple(found)

    @property
    def sources(self) -> tuple[int, ...]:
        """The numbers of the steps it refers to, each once, ascending."""
        return tuple(sorted({ref.source for ref in self.refs if isinstance(ref.source, int)}))

    @property
    def needs(self) -> tuple[int, ...]:
        """The numbers of the steps that it refers to or waits for, each once, ascending."""
        return tuple(sorted({*self.sources, *self.after}))


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in the order written, and the `results` that `join` names: the answer.

    No `results` means those of all steps. `thought` is the text before the join.
    """

    steps: tuple[PlanStep, ...] = ()
    results: tuple[Ref, ...] = ()
    thought: str = ""


def refs_in(value: Value) -> Iterator[Ref]:
    """The references inside `value`, in order."""
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from refs_in(inner)
    elif isinstance(value, (tuple, list)):
        for inner in value:
            yield from refs_in(inner)


__all__ = ["Here", "Operator", "Plan", "PlanStep", "Ref", "StepCondition", "Value", "refs_in"]


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """Bounds of one plan; a larger one is refused.

    `steps` of a plan; characters of a plan (`text`) and of a step or thought (`step`), as text;
    `depth` of nested lists and objects, and of the path of a reference.

    Raises: `ValueError` where one is not positive.
    """

    steps: int = 64
    text: int = 200_000
    step: int = 20_000
    depth: int = 16

    def __post_init__(self) -> None:
        if min(self.steps, self.text, self.step, self.depth) < 1:
            raise ValueError("every limit of a plan is at least 1")


LIMITS: Final = PlanLimits()
"""The default limits."""


def renumber_step(step: PlanStep, numbers: Mapping[int, int]) -> PlanStep:
    """`step` with its number and references replaced by `numbers`; others stay."""
    arguments = {name: _value(value, numbers) for name, value in step.arguments.items()}
    when = step.when
    return replace(
        step,
        number=numbers.get(step.number, step.number),
        arguments=arguments,
        over=None if step.over is None else renumber_ref(step.over, numbers),
        when=None if when is None else replace(when, ref=renumber_ref(when.ref, numbers)),
        after=tuple(sorted({numbers.get(number, number) for number in step.after})),
    )


def renumber_ref(ref: Ref, numbers: Mapping[int, int]) -> Ref:
    """`ref` with its step number replaced by `numbers`."""
    source = ref.source
    return replace(ref, source=numbers.get(source, source)) if isinstance(source, int) else ref


def _value(value: Value, numbers: Mapping[int, int]) -> Value:
    if isinstance(value, Ref):
        return renumber_ref(value, numbers)
    if isinstance(value, Mapping):
        return {name: _value(item, numbers) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(_value(item, numbers) for item in value)
    return value
