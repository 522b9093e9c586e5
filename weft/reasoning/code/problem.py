"""A programming problem with its public tests, and the program in a model's output."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.core.errors import BuildError
from weft.reasoning.question import Question

TESTS: Final = "tests.json"
"""The name of the document with the question's public tests."""
_MOST_TESTS: Final = 200
_MOST_CHARS: Final = 1_000_000
_FUNCTION: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?", re.ASCII)
_HINT: Final = (
    f'{TESTS} is {{"tests": [{{"input": "1 2", "expected": "3"}}]}}, or with a function '
    '{"function": "add", "tests": [{"input": [1, 2], "expected": 3}]}'
)


@dataclass(frozen=True, slots=True)
class CodeExample:
    """An input and its expected output; None: unknown.

    For a program both are text; for a function JSON, a list of arguments and the result.
    """

    given: str
    expected: str | None = None


@dataclass(frozen=True, slots=True)
class CodeProblem:
    """A problem statement with its public `tests`.

    `function`: the name of the function to write (`name`, or `Class.method`); empty: a program that
    reads standard input and prints.
    """

    statement: str
    tests: tuple[CodeExample, ...] = ()
    function: str = ""

    def shown(self, given: str) -> str:
        """An input in readable form: a call of the function, or the text."""
        return f"{self.function}({given[1:-1]})" if self.function else given


def problem_of(question: Question) -> CodeProblem:
    """The problem in `question`; the document `tests.json` holds its tests, if there is one.

    Other documents belong to the statement. Raises: `BuildError` for malformed tests.
    """
    parts = [question.text]
    tests: tuple[CodeExample, ...] = ()
    function = ""
    for document in question.documents:
        if document.name == TESTS:
            function, tests = _read(document.text)
        else:
            parts.append(f"{document.name}:\n{document.text}")
    return CodeProblem("\n\n".join(parts), tests, function)


def example(given: object, expected: object, *, called: bool) -> CodeExample | None:
    """An example of plain data, `called` for a function; None when the data does not fit."""
    if called:
        if not isinstance(given, list):
            return None
        try:
            return CodeExample(json.dumps(given), None if expected is None else _result(expected))
        except RecursionError:  # as deep as it could just be read
            return None
    if not isinstance(given, str) or not isinstance(expected, str | None):
        return None
    return CodeExample(given, expected)


def _result(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _read(text: str) -> tuple[str, tuple[CodeExample, ...]]:
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


def _examples(listed: Sequence[Any], *, called: bool) -> Sequence[CodeExample]:
    found = []
    for number, test in enumerate(listed, 1):
        if not isinstance(test, dict) or not {"input", "expected"} <= test.keys():
            raise BuildError(f"{TESTS}: test {number} lacks input or expected", hint=_HINT)
        read = _expecting(test["input"], test["expected"], called=called)
        if read is None:
            raise BuildError(f"{TESTS}: test {number} does not fit the problem", hint=_HINT)
        found.append(read)
    return found


def _expecting(given: object, expected: object, *, called: bool) -> CodeExample | None:
    """Like `example`, but None is an expected result."""
    if called and expected is None and isinstance(given, list):
        return CodeExample(json.dumps(given), "null")
    return example(given, expected, called=called)


_FENCE: Final = re.compile(r"^[ \t]*+(`{3,}+|~{3,}+)[ \t]*+([\w+.-]*+)[^\n]*+\n", re.MULTILINE)
_PYTHON: Final = frozenset({"python", "py", "python3", "py3"})
_BEGINS: Final = re.compile(r"^(?:def |class |import |from \w[\w.]* import |@)", re.MULTILINE)
_MOST_PROGRAM_CHARS: Final = 65_536


def program_in(text: str) -> str | None:
    """The program in `text`: the last block marked as Python, else the last unmarked block.

    An unclosed block extends to the end of the text. Without blocks: from the first line that
    begins like a definition or an import. None when there is none, or one longer than 64 Ki
    characters.
    """
    blocks = _blocks(text)
    marked = [code for language, code in blocks if language in _PYTHON]
    found = marked or [code for language, code in blocks if not language]
    if found:
        program = found[-1]
    else:
        begins = None if blocks else _BEGINS.search(text)
        program = text[begins.start() :] if begins else ""
    program = program.strip("\n")
    return program + "\n" if program.strip() and len(program) < _MOST_PROGRAM_CHARS else None


def digest(program: str) -> str:
    """A short hash of a program."""
    return hashlib.sha256(program.encode("utf-8", "replace")).hexdigest()[:12]


def _blocks(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    place = 0
    while opening := _FENCE.search(text, place):
        closing = re.compile(rf"^[ \t]*{re.escape(opening[1])}[ \t]*$", re.MULTILINE)
        end = closing.search(text, opening.end())
        code = text[opening.end() : end.start() if end else len(text)]
        found.append((opening[2].lower(), code))
        if end is None:
            break
        place = end.end()
    return found
