"""Scores, and the built-in metrics as functions `(case, outputs, options)`.

A metric returns a bool, a number or a `Score`. What it raises leaves the case unscored.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from weft.agents.tools import tool
from weft.core.errors import TypeMismatch
from weft.reasoning.code.bench import ProgramBench, passes
from weft.reasoning.code.problem import CodeProblem, example, program_in
from weft.reasoning.code.sandbox.sandbox import CodeSandbox
from weft.validation import violation

_NUMBER: Final = re.compile(r"[-+]?(?:\d[\d,]*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Score:
    """What a metric says of one answer: a value, in words, and in parts.

    `feedback` is for people and for optimisers; `parts` are further scores by name.
    """

    value: float
    feedback: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)


def score_from(value: object) -> Score:
    """A metric's result as a `Score`. Raises: `TypeMismatch` for what is none."""
    if isinstance(value, Score):
        value = {"value": value.value, "feedback": value.feedback, "parts": value.parts}
    if not isinstance(value, Mapping):
        return Score(_number(value))
    if "value" not in value:
        raise TypeMismatch(f"a metric returned {value!r:.80}", hint="return weft.Score(0.5)")
    parts = {str(name): _number(part) for name, part in (value.get("parts") or {}).items()}
    return Score(_number(value["value"]), str(value.get("feedback") or ""), parts)


def _number(value: object) -> float:
    if isinstance(value, bool | int | float) and math.isfinite(value):
        return float(value)
    hint = "return a bool, a number or weft.Score(0.5, feedback=...)"
    raise TypeMismatch(f"a metric returned {value!r:.80}", hint=hint)


def answer_in(outputs: Any, options: Mapping[str, Any], expected: Any = None) -> Any:
    """The output that a metric reads: the one named, else the only one, else all by name.

    All, too, where `expected` is a mapping of the same outputs.
    """
    name = options.get("output")
    if name is not None:
        if name not in outputs:
            hint = f"there are: {', '.join(outputs)}"
            raise TypeMismatch(f"there is no output `{name}`", hint=hint)
        return outputs[name]
    same = isinstance(expected, Mapping) and expected.keys() == outputs.keys()
    return outputs if same or len(outputs) != 1 else next(iter(outputs.values()))


@tool
async def exact(case: Mapping[str, Any], outputs: Any, options: Mapping[str, Any]) -> Score:
    """1 where the answer equals what is expected; texts without the blanks around them.

    A text and a number are equal where they are written alike: CSV has only texts.
    """
    expected = _expected(case)
    answer = answer_in(outputs, options, expected)
    right = _same(answer, expected)
    return Score(float(right), "" if right else f"expected {expected!r:.200}, got {answer!r:.200}")


def _same(answer: Any, expected: Any) -> bool:
    if isinstance(answer, Mapping) and isinstance(expected, Mapping):
        return answer.keys() == expected.keys() and all(
            _same(answer[key], expected[key]) for key in answer
        )
    if isinstance(answer, list | tuple) and isinstance(expected, list | tuple):
        return len(answer) == len(expected) and all(map(_same, answer, expected))
    if isinstance(answer, str) or isinstance(expected, str):
        return _text(answer) == _text(expected)
    return isinstance(answer, bool) == isinstance(expected, bool) and bool(answer == expected)


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else json.dumps(value, default=str)


@tool
async def numeric(case: Mapping[str, Any], outputs: Any, options: Mapping[str, Any]) -> Score:
    """1 where the last number in the answer is within the tolerance of the expected one."""
    expected = _last_number(_expected(case))
    if expected is None:
        raise TypeMismatch(f"no number is expected but {case['expected']!r:.80}")
    answer = answer_in(outputs, options)
    found = _last_number(answer)
    if found is None:
        return Score(0.0, f"there is no number in {answer!r:.200}")
    right = abs(found - expected) <= (options.get("tolerance") or 0.0) + 1e-12 * abs(expected)
    return Score(float(right), "" if right else f"expected {expected:g}, got {found:g}")


def _last_number(value: Any) -> float | None:
    if isinstance(value, bool | int | float):
        return float(value)
    found = _NUMBER.findall(value) if isinstance(value, str) else []
    return float(found[-1].replace(",", "")) if found else None


@tool
async def f1(case: Mapping[str, Any], outputs: Any, options: Mapping[str, Any]) -> Score:
    """The F1 of the answer's words against the expected ones (Rajpurkar et al., 1606.05250).

    Several expected texts in a list: the best of them.
    """
    expected = _expected(case)
    several = expected if isinstance(expected, list) and expected else [expected]
    answer = _words(answer_in(outputs, options))
    best = max((_f1(answer, _words(each)) for each in several), key=lambda each: each[0])
    return Score(best[0], "", {"precision": best[1], "recall": best[2]})


def _words(value: Any) -> Counter[str]:
    return Counter(_WORD.findall(f"{value}".lower()))


def _f1(answer: Counter[str], expected: Counter[str]) -> tuple[float, float, float]:
    if not answer or not expected:
        both = float(answer == expected)
        return both, both, both
    common = (answer & expected).total()
    precision, recall = common / answer.total(), common / expected.total()
    f1 = 2 * precision * recall / (precision + recall) if common else 0.0
    return f1, precision, recall


@tool
async def schema(case: Mapping[str, Any], outputs: Any, options: Mapping[str, Any]) -> Score:
    """1 where the answer fits the JSON Schema of the metric, or the case's `expected` one."""
    wanted = options.get("schema") or _expected(case)
    if not isinstance(wanted, Mapping):
        hint = "schema: {type: object, ...}, in the metric or as what a case expects"
        raise TypeMismatch("the metric `schema` has no JSON Schema", hint=hint)
    why = violation(answer_in(outputs, options), dict(wanted))
    return Score(float(why is None), why or "")


@tool
async def code(case: Mapping[str, Any], outputs: Any, options: Mapping[str, Any]) -> Score:
    """The share of the expected tests that the program in the answer passes, in the sandbox.

    Expected is a list of tests, `{input, expected}`, or `{function, tests}`. Raises: `SandboxError`
    where programs cannot be run here.
    """
    expected = _expected(case)
    wanted = expected if isinstance(expected, Mapping) else {"tests": expected}
    function, tests = str(wanted.get("function") or ""), wanted.get("tests")
    examples = [_example(test, function) for test in tests] if isinstance(tests, list) else []
    if not examples:
        hint = 'such as [{"input": "1 2", "expected": "3"}], or {"function": "add", "tests": ...}'
        raise TypeMismatch("no tests are expected", hint=hint)
    program = program_in(f"{answer_in(outputs, options)}")
    if program is None:
        return Score(0.0, "there is no program in the answer")
    bench = ProgramBench(CodeSandbox(), CodeProblem("", tuple(examples), function))
    passed = [passes(await bench.output(program, each.given), each.expected) for each in examples]
    share = sum(passed) / len(passed)
    failures = await bench.failures(program) if share < 1 else []
    return Score(share, failures[0] if failures else "", {"tests": float(len(passed))})


def _example(test: Any, function: str) -> Any:
    given = test if isinstance(test, Mapping) else {}
    made = example(given.get("input"), given.get("expected"), called=bool(function))
    if made is None:
        hint = "input and expected are texts; with `function` a list of arguments and the result"
        raise TypeMismatch(f"{test!r:.80} is no test", hint=hint)
    return made


def _expected(case: Mapping[str, Any]) -> Any:
    if case["expected"] is None:
        hint = "map it: `expected` under `data`, or name its column so"
        raise TypeMismatch(f"case {case['id']} says nothing of what is expected", hint=hint)
    return case["expected"]
