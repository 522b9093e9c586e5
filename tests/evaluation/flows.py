"""Workflows and data for the tests of evaluations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.testing import FakeModel, Reply

QA = """\
name: qa
inputs: {question: string, style: {type: string, default: plain}}
models: {small: {use: openai, model: none, base_url: "http://127.0.0.1:9/v1"}}
nodes: {answer: {model: small, prompt: "{{ style }}: {{ question }}", retry: 1}}
outputs: {answer: "{{ answer }}"}
"""
SUMS = """\
name: sums
inputs: {a: integer, b: integer}
nodes: {total: {call: "./functions.py:add", with: {a: "{{ a }}", b: "{{ b }}"}}}
outputs: {total: "{{ total }}"}
"""
FUNCTIONS = """\
import os
import weft

def add(a: int, b: int) -> int:
    if os.environ.get("WEFT_TEST_BROKEN") and a == 3:
        raise ValueError("three")
    with open("calls.txt", "a") as file:
        file.write(f"{a}\\n")
    return a + b - (a in map(int, os.environ.get("WEFT_TEST_WRONG", "").split()))

def halved(case: weft.Case, outputs):
    right = outputs["total"] == int(case.expected)
    return weft.Score(1.0 if right else 0.5, feedback=f"case {case.id}", parts={"right": right})

def speed(case, outputs, trace):
    return len(trace["nodes"])

def broken(case, outputs):
    raise RuntimeError("no such scale")
"""


def rows(count: int) -> list[dict[str, Any]]:
    """Questions with their answers."""
    return [{"question": f"q{n}", "expected": f"a{n}"} for n in range(count)]


def answering(wrong: Sequence[int] = (), fails: Sequence[int] = ()) -> FakeModel:
    """A model that answers `rows`, but for the questions of these numbers."""

    def script(request: Any) -> Reply | str:
        number = int(re.findall(r"q(\d+)", request.messages[-1].content)[-1])
        if number in fails:
            return Reply(error=weft_error())
        return "something else" if number in wrong else f"a{number}"

    return FakeModel(script)


def weft_error() -> Exception:
    """An error of a model that no retry mends."""
    from weft.errors import ModelRequestError

    return ModelRequestError("refused")


def sums_folder(folder: Path, count: int = 6) -> Path:
    """A folder with the workflow `sums.yaml`, its functions and `sums.csv`."""
    (folder / "sums.yaml").write_text(SUMS, encoding="utf-8")
    (folder / "functions.py").write_text(FUNCTIONS, encoding="utf-8")
    lines = ["a,b,expected", *(f"{n},2,{n + 2}" for n in range(1, count + 1))]
    (folder / "sums.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


Metric = Callable[[Mapping[str, Any], Mapping[str, Any]], object]
