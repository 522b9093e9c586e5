"""A scripted programmer and a machine for its programs, both without a model or a process."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence

from weft.core.errors import SandboxError
from weft.core.ports import ModelRequest
from weft.reasoning.code.sandbox.outcome import SandboxResult
from weft.reasoning.question import Document, Question
from weft.testing import FakeModel

Add = Callable[[int, int], object]
MEANINGS: Mapping[str, Add] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "first": lambda a, b: a,
    "divide": lambda a, b: a / b,
}


def written(meaning: str) -> str:
    """What a model answers that writes the program `meaning`."""
    return f"Here it is:\n```python\n{meaning}\n```"


class Machine:
    """Implements `Runner`: a program is one of the words in `MEANINGS`."""

    def __init__(self, refusal: SandboxError | None = None) -> None:
        self.runs: list[tuple[str, str]] = []
        self._refusal = refusal

    async def run(
        self, source: str, stdin: str = "", files: Mapping[str, str | bytes] | None = None
    ) -> SandboxResult:
        if self._refusal is not None:
            raise self._refusal
        if not source:
            return SandboxResult("finished", "", "", "", 0)
        word = str((files or {}).get("solution.py", source)).strip()
        self.runs.append((word, stdin))
        given = json.loads(stdin) if files else [int(part) for part in stdin.split()]
        try:
            result = MEANINGS[word](*given)
        except Exception as error:
            return SandboxResult("failed", f"{type(error).__name__}: {error}", "", "Traceback", 1)
        return SandboxResult("finished", "", f"{result}\n", "", 0)


class Programmer:
    """A model that writes `drafts` in turn, mends as told, and judges by arithmetic."""

    def __init__(
        self,
        drafts: Sequence[str],
        *,
        inputs: Sequence[object] = (),
        separating: Sequence[object] = (),
        tests: Sequence[object] = (),
        mended: str = "",
    ) -> None:
        self.model = FakeModel(self._answer)
        self._drafts = iter([*drafts, *[drafts[-1]] * 99])
        self._replies = {
            "write {number} valid": json.dumps({"inputs": inputs}),
            "Two programs were written": json.dumps({"inputs": separating}),
            "whose results you have worked out": json.dumps({"tests": tests}),
            "study a programming problem": "1. It adds.\n2. It is small.\n3. Signs matter.",
            "You plan the solution": "Add the numbers.",
            "A colleague's plan": "Add them, with care.",
            "pseudo-code": "return the sum",
        }
        self._mended = mended

    def _answer(self, request: ModelRequest) -> str:
        system, asked = request.messages[0].content, request.messages[-1].content
        if "went wrong" in asked:
            return self._mended
        if "for which they print different" in system:
            return self._judged(asked)
        if "write 8 valid" in system:
            return self._replies["write {number} valid"]
        for words, reply in self._replies.items():
            if words in system:
                return reply
        return next(self._drafts)

    def _judged(self, asked: str) -> str:
        titles = ("Input", "Result of A", "Result of B")
        pattern = r"\n\n".join(rf"{title}:\n`+\n(.*?)\n`+" for title in titles)
        cases = re.findall(pattern, asked)
        assert 1 <= len(cases) <= 3
        ahead = 0
        for given, *results in cases:
            right = str(sum(int(number) for number in re.findall(r"-?\d+", given)))
            ahead += (results[0] == right) - (results[1] == right)
        return f"I computed.\nVerdict: {'A' if ahead > 0 else 'B' if ahead < 0 else 'neither'}"


def problem(*tests: tuple[object, object], function: str = "add") -> Question:
    listed = [{"input": given, "expected": expected} for given, expected in tests]
    held = {"tests": listed, **({"function": function} if function else {})}
    return Question("Add two numbers.", documents=(Document("tests.json", json.dumps(held)),))
