"""What models write as programs, and what programs print: read with patience, never run here."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from tests.reasoning.code.sandbox_support import needs_protection
from weft.reasoning.code.bench import ProgramBench, ProgramOutput, canonical, passes
from weft.reasoning.code.problem import CodeExample, CodeProblem, digest, program_in
from weft.reasoning.code.sandbox.request import SandboxLimits
from weft.reasoning.code.sandbox.sandbox import CodeSandbox
from weft.reasoning.code.separation import read_verdict


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("```python\nx = 1\n```", "x = 1\n"),
        ("First:\n```python\nx = 1\n```\nbetter:\n```py\nx = 2\n```\nDone.", "x = 2\n"),
        ("```python\nx = 1\n```\nIt prints\n```\n1\n```", "x = 1\n"),
        ("```\nx = 1\n```\n```text\n1\n```", "x = 1\n"),
        ("```python\nx = 1\nfor y in", "x = 1\nfor y in\n"),
        ("````python\ns = '''\n```\n'''\n````", "s = '''\n```\n'''\n"),
        ("~~~python\nx = 1\n~~~", "x = 1\n"),
        ("Sure!\ndef f():\n    return 1", "def f():\n    return 1\n"),
        ("from the start, it is 42", None),
        ("from math import pi\nprint(pi)", "from math import pi\nprint(pi)\n"),
        ("The answer is 42.", None),
        ("```python\n```", None),
        ("```json\n{}\n```", None),
        ("", None),
        ("```python\n" + "x" * 70_000 + "\n```", None),
    ],
)
def test_the_program_in_an_answer(text: str, program: str | None) -> None:
    assert program_in(text) == program


@examples(200)
@given(st.lists(st.sampled_from(["```", "```python\n", "~~~\n", "x", "\n", "def f", " ", "é"])))
def test_any_answer_holds_a_program_or_none(pieces: list[str]) -> None:
    found = program_in("".join(pieces))
    assert found is None or (found.strip() and found.endswith("\n"))


def test_backticks_without_end_are_read_in_time() -> None:
    assert program_in("```a\n" * 20_000) is None
    assert program_in("`" * 100_000) is None


def test_equal_programs_have_equal_digests() -> None:
    assert digest("x") == digest("x") != digest("y")
    assert digest("\ud800")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1 2\n\n", "1   2 "),
        ("0.30000000000000004", "0.3"),
        ("1e5", "100000.0"),
        ("[0.1, 2.0]", "[0.10, 2.]"),
        ("-.5", "-0.5"),
        ("a\r\nb", "a\nb"),
    ],
)
def test_equal_answers_are_equal_texts(one: str, other: str) -> None:
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("1", "2"), ("1\n2", "1 2"), ("0.1", "0.2"), ("12345678", "12345679"), ("v1.2.3", "v1.20.3")],
)
def test_different_answers_stay_different(one: str, other: str) -> None:
    assert canonical(one) != canonical(other)


@examples(200)
@given(st.text())
def test_the_canonical_form_is_its_own(text: str) -> None:
    assert canonical(canonical(text)) == canonical(text)


def test_what_passes() -> None:
    assert passes(ProgramOutput("5"), "5.0\n")
    assert not passes(ProgramOutput("5"), "5.1\n")
    assert passes(ProgramOutput(canonical("5.0")), "5")
    assert passes(ProgramOutput("5"), None)
    assert not passes(ProgramOutput("", ok=False, why="it crashed"), "")
    assert ProgramOutput("", ok=False, why="it crashed").shown() == "(no output: it crashed)"
    assert ProgramOutput("x" * 500).shown().endswith("x...")
    assert ProgramOutput("").shown() == "(empty)"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("It is 5.\nVerdict: A", 1.0),
        ("**Verdict:** B", -1.0),
        ("Verdict: A\nno, Verdict: B", -1.0),
        ("verdict: Neither", 0.0),
        ("Verdict: Apples", 0.0),
        ("", 0.0),
    ],
)
def test_verdicts(text: str, verdict: float) -> None:
    assert read_verdict(text) == verdict


@needs_protection
def test_functions_are_called_in_a_sandbox() -> None:
    async def main() -> list[ProgramOutput]:
        bench = ProgramBench(
            CodeSandbox(SandboxLimits(wall_s=20)), CodeProblem("", (), "Answer.of")
        )
        source = """
class Answer:
    def of(self, pairs, scale):
        print("noise")
        return {"b": tuple(scale * a for a, _ in pairs), "a": None}
"""
        others = ["def Answer(): pass", "import os\nos._exit(0)", "raise SystemExit", "print(1"]
        return [await bench.output(program, "[[[1, 2]], 0.1]") for program in (source, *others)]

    right, *wrong = asyncio.run(main())
    assert right == ProgramOutput('{"a": null, "b": [0.1]}')
    assert passes(right, CodeExample("", '{"a": null, "b": [0.1]}').expected)
    assert not any(passes(output, "1") for output in wrong)
    assert "AttributeError" in wrong[0].why
    assert "SyntaxError" in wrong[3].why
