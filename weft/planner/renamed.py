"""Steps whose references carry other numbers. Knows no reason for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from weft.planner.plan import Ref, Step, Value


def renamed(step: Step, numbers: Mapping[int, int]) -> Step:
    """`step`, and all it refers to, with the numbers that `numbers` gives; others stay."""
    arguments = {name: _value(value, numbers) for name, value in step.arguments.items()}
    when = step.when
    return replace(
        step,
        number=numbers.get(step.number, step.number),
        arguments=arguments,
        over=None if step.over is None else renamed_ref(step.over, numbers),
        when=None if when is None else replace(when, ref=renamed_ref(when.ref, numbers)),
    )


def renamed_ref(ref: Ref, numbers: Mapping[int, int]) -> Ref:
    """`ref` to the step by the number that `numbers` gives it."""
    source = ref.source
    return replace(ref, source=numbers.get(source, source)) if isinstance(source, int) else ref


def _value(value: Value, numbers: Mapping[int, int]) -> Value:
    if isinstance(value, Ref):
        return renamed_ref(value, numbers)
    if isinstance(value, Mapping):
        return {name: _value(item, numbers) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(_value(item, numbers) for item in value)
    return value
