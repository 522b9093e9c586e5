"""Inputs and tests that a model makes up. What does not fit the problem is dropped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from weft.reasoning.code.problem import Example, Problem, example
from weft.reasoning.code.prompts import (
    INPUTS_SCHEMA,
    TESTS_SCHEMA,
    Messages,
    inputs_messages,
    tests_messages,
)
from weft.reasoning.reading import object_with
from weft.reasoning.thread.asking import Asking

_MOST_CHARS: Final = 20_000


async def made_inputs(thread: Asking, problem: Problem, number: int) -> Sequence[str]:
    """At most `number` different inputs that `thread` asks the model for."""
    return (await asked_inputs(thread, "inputs", problem, inputs_messages(problem, number)))[
        :number
    ]


async def asked_inputs(
    thread: Asking, name: str, problem: Problem, messages: Messages
) -> Sequence[str]:
    """The inputs in the model's answer to `messages`."""
    said = await thread.ask(name, messages, schema=INPUTS_SCHEMA)
    listed = _listed("inputs", said.text)
    return [each.given for each in _fitting(problem, ((given, None) for given in listed))]


async def made_tests(thread: Asking, problem: Problem, number: int) -> Sequence[Example]:
    """At most `number` tests with different inputs that `thread` asks the model for."""
    said = await thread.ask("tests", tests_messages(problem, number), schema=TESTS_SCHEMA)
    tests = [test for test in _listed("tests", said.text) if isinstance(test, dict)]
    pairs = ((test.get("input"), test.get("expected")) for test in tests)
    return [each for each in _fitting(problem, pairs) if each.expected is not None][:number]


def _listed(name: str, text: str) -> list[object]:
    found = (object_with((name,), text) or {}).get(name)
    return found if isinstance(found, list) else []


def _fitting(problem: Problem, pairs: Iterable[tuple[object, object]]) -> Sequence[Example]:
    """Examples of the problem's kind, of a size that is worth a run, with different inputs."""
    found: dict[str, Example] = {}
    for given, expected in pairs:
        read = example(given, expected, called=bool(problem.function))
        if read is not None and len(read.given) <= _MOST_CHARS:
            found.setdefault(read.given, read)
    return tuple(found.values())
