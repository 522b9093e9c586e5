"""A programming problem: what is asked, and the examples that everybody may see. Values only."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.core.errors import BuildError
from weft.reasoning.question import Question

TESTS: Final = "tests.json"
"""The name of the document that holds a question's public tests."""
_MOST_TESTS: Final = 200
_MOST_CHARS: Final = 1_000_000
_FUNCTION: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?", re.ASCII)
_HINT: Final = (
    f'{TESTS} is {{"tests": [{{"input": "1 2", "expected": "3"}}]}}, or with a function '
    '{"function": "add", "tests": [{"input": [1, 2], "expected": 3}]}'
)


@dataclass(frozen=True, slots=True)
class Example:
    """An input, and what comes of it; None: nobody knows.

    Text that the program reads and prints; for a function JSON, a list of arguments and the result.
    """

    given: str
    expected: str | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """`statement` in words, `tests` that everybody may see.

    `function`: the name of what is called (`name`, or `Class.method`); empty: a program that reads
    its standard input and prints.
    """

    statement: str
    tests: tuple[Example, ...] = ()
    function: str = ""

    def shown(self, given: str) -> str:
        """An input as people write it: a call of the function, or the text as it is."""
        return f"{self.function}({given[1:-1]})" if self.function else given


def problem_of(question: Question) -> Problem:
    """The problem in `question`; its tests are in the document `tests.json`, if there is one.

    Other documents belong to the statement. Raises: `BuildError` for tests that are none.
    """
    parts = [question.text]
    tests: tuple[Example, ...] = ()
    function = ""
    for document in question.documents:
        if document.name == TESTS:
            function, tests = _read(document.text)
        else:
            parts.append(f"{document.name}:\n{document.text}")
    return Problem("\n\n".join(parts), tests, function)


def example(given: object, expected: object, *, called: bool) -> Example | None:
    """An example of plain data, `called` for a function; None when it cannot be one."""
    if called:
        if not isinstance(given, list):
            return None
        try:
            return Example(json.dumps(given), None if expected is None else _result(expected))
        except RecursionError:  # as deep as it could just be read
            return None
    if not isinstance(given, str) or not isinstance(expected, str | None):
        return None
    return Example(given, expected)


def _result(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _read(text: str) -> tuple[str, tuple[Example, ...]]:
    try:
        plain = json.loads(text) if len(text) <= _MOST_CHARS else None
    except (ValueError, RecursionError) as error:
        raise BuildError(f"{TESTS} is no JSON: {error}", hint=_HINT) from error
    if not isinstance(plain, dict):
        raise BuildError(f"{TESTS} is no object of at most {_MOST_CHARS:,} characters", hint=_HINT)
    function, listed = plain.get("function", ""), plain.get("tests", [])
    if not isinstance(function, str) or (function and not _FUNCTION.fullmatch(function)):
        raise BuildError(f"{TESTS}: {function!r} is no name of a function", hint=_HINT)
    if not isinstance(listed, list) or len(listed) > _MOST_TESTS:
        raise BuildError(f"{TESTS}: tests is no list of at most {_MOST_TESTS}", hint=_HINT)
    return function, tuple(_examples(listed, called=bool(function)))


def _examples(listed: Sequence[Any], *, called: bool) -> Sequence[Example]:
    found = []
    for number, test in enumerate(listed, 1):
        if not isinstance(test, dict) or not {"input", "expected"} <= test.keys():
            raise BuildError(f"{TESTS}: test {number} lacks input or expected", hint=_HINT)
        read = _expecting(test["input"], test["expected"], called=called)
        if read is None:
            raise BuildError(f"{TESTS}: test {number} does not fit the problem", hint=_HINT)
        found.append(read)
    return found


def _expecting(given: object, expected: object, *, called: bool) -> Example | None:
    """Like `example`; here None is a result that is expected."""
    if called and expected is None and isinstance(given, list):
        return Example(json.dumps(given), "null")
    return example(given, expected, called=called)
