"""Twenty questions for the tools of `examples/ask`, asked as `weft ask` asks them.

    python -m evals.ask_examples [--model local:NAME] [--quick] [--json FILE]

A question is right where the answer has every fact that is due, in digits or words; of two things
that are compared, the one that wins has to come first. The answers do not depend on a judge.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Final

import weft
from evals.engine.rows import Row
from evals.results import environment, write_results
from weft.core.errors import WeftError
from weft.workflow.runtime.models.factory import DEFAULT_PLANNER

TOOLS: Final = Path(__file__).parent.parent / "examples" / "ask" / "tools.py"
_QUICK: Final = 5
_REFUSES: Final = ("no tool", "cannot", "not available", "don't know", "unknown")


@dataclass(frozen=True, slots=True)
class Question:
    """`due`: what the answer must have; `first`: which of these words must come before the others.

    `refuses`: no tool fits, and the answer says so.
    """

    text: str
    due: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    refuses: bool = False

    def right(self, answer: str, calls: int) -> bool:
        """Whether `answer`, given after so many calls, is right."""
        plain = re.sub(r"(?<=\d),(?=\d{3})", "", answer)
        if self.refuses:
            return calls == 0 and any(word in plain.lower() for word in _REFUSES)
        places = [plain.find(word) for word in self.first]
        leads = not places or (places[0] >= 0 and all(p < 0 or places[0] < p for p in places[1:]))
        return leads and all(re.search(rf"(?<![\d.]){re.escape(d)}(?!\d)", plain) for d in self.due)


QUESTIONS: Final = (
    Question("How many people live in Paris?", ("2103000",)),
    Question("Which country is Lyon in?", ("France",)),
    Question("How large is the area of Rome in square kilometres?", ("1285",)),
    Question("How many people live in Milan and in Berlin?", ("1371000", "3782000")),
    Question("Which has more people, Paris or Rome?", (), ("Rome", "Paris")),
    Question("Which cities of Italy are in the table?", ("Rome", "Milan")),
    Question("Name the cities of France.", ("Paris", "Lyon")),
    Question("What is the total number of people in Paris and Lyon?", ("2623000",)),
    Question("How many people live in Rome and Milan together?", ("4120000",)),
    Question("What is the total area of Paris and Lyon?", ("153.3",)),
    Question("What is the largest population of Paris, Rome and Berlin?", ("3782000",)),
    Question("In which country is Berlin?", ("Germany",)),
    Question("What are the areas of Milan and Lyon?", ("181.8", "47.9")),
    Question("How many cities of Italy are there?", ("2",)),
    Question("How many people live in each city of France?", ("2103000", "520000")),
    Question("Which city has the larger area, Berlin or Rome?", (), ("Rome", "Berlin")),
    Question("What is the larger one of the areas of Rome and Berlin?", ("1285",)),
    Question("What is the weather in Paris?", refuses=True),
    Question("What is the sum of 3, 4 and 5.5?", ("12.5",)),
    Question("Which is the largest of 7, 19 and 4?", ("19",)),
)


async def rows_of(model: str, questions: tuple[Question, ...]) -> list[Row]:
    """Right answers, calls and seconds of one model, which each question loads anew, as the command
    does.
    """
    right: list[bool] = []
    calls: list[float] = []
    seconds: list[float] = []
    for question in questions:
        began = time.monotonic()
        try:
            answer = await weft.ask(question.text, tools=[str(TOOLS)], model=model)
            text, made = str(answer.value), len(answer.calls)
        except WeftError as error:
            text, made = f"({type(error).__name__}: {error})", 0
        seconds.append(time.monotonic() - began)
        calls.append(float(made))
        right.append(question.right(text, made))
        mark = "right" if right[-1] else "wrong"
        print(f"{mark}  {question.text}  {text[:120]!r}", file=sys.stderr, flush=True)
    label = model.partition(":")[2] or model
    return [
        Row("ask_examples", label, "right", sum(right), "answers"),
        Row("ask_examples", label, "questions", len(questions), "questions"),
        Row("ask_examples", label, "calls", fmean(calls), "calls a question"),
        Row("ask_examples", label, "longest", max(seconds), "s"),
        Row("ask_examples", label, "mean_time", fmean(seconds), "s"),
    ]


def main() -> None:
    """Ask; print the rows; write what was asked for."""
    parser = argparse.ArgumentParser(prog="evals.ask_examples")
    parser.add_argument("--model", default=DEFAULT_PLANNER, metavar="A,B")
    parser.add_argument("--quick", action="store_true", help="five questions")
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    questions = QUESTIONS[:: len(QUESTIONS) // _QUICK] if asked.quick else QUESTIONS
    rows: list[Row] = []
    for model in asked.model.split(","):
        rows += asyncio.run(rows_of(model, questions))
    for row in rows:
        print(f"{row.system:<28} {row.metric:<12} {row.value:>10.2f} {row.unit}")
    if asked.json:
        write_results(asked.json, rows, environment())


if __name__ == "__main__":
    main()
