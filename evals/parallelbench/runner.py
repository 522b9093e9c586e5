"""Runs the tasks on any model of this process: the share of right answers, and tokens a pass.

`right` is the share of answers that the published rule accepts, with its 95 % interval; `partly`
names what of the rule was left out. `tokens_per_forward` are kept tokens for each pass of a
diffusion model, or of a speculative decoder.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evals.engine.rows import Row
from evals.intervals import share_interval
from evals.parallelbench.tasks import TASKS, Question, Task
from evals.results import environment, title, write_results
from weft.core.errors import WeftError
from weft.core.ports import ModelClient, ModelRequest, Sampling, complete
from weft.core.values import AUTOREGRESSIVE, Completion, DecodeSpec, Message
from weft.decoding.decoders import parse_decode
from weft.serving.local import LocalModel, LocalOptions

PUBLISHED_COUNT: Final = 100
"""Questions of a task."""
_TOKENS: Final = 64
_SEED: Final = 42


@dataclass(frozen=True, slots=True)
class Run:
    """What is asked: `count` questions of each task, of one model by one decoder."""

    tasks: Sequence[Task]
    count: int = PUBLISHED_COUNT
    decode: DecodeSpec = AUTOREGRESSIVE
    max_tokens: int = _TOKENS
    seed: int = _SEED

    def rows(self, model: ModelClient, system: str) -> list[Row]:
        """All rows of all tasks."""
        return asyncio.run(self._rows(model, system))

    async def _rows(self, model: ModelClient, system: str) -> list[Row]:
        found: list[Row] = []
        for task in self.tasks:
            print(f"parallelbench: {task.name}", file=sys.stderr, flush=True)
            if task.missing:
                found.append(Row(task.name, system, f"skipped: {task.missing}", None, ""))
                continue
            questions = task.questions(self.count, self.seed)
            async with asyncio.TaskGroup() as group:
                asked = [
                    group.create_task(self._answer(model, one.text, at))
                    for at, one in enumerate(questions)
                ]
            found += scored(task, system, questions, [each.result() for each in asked])
        return found

    async def _answer(self, model: ModelClient, text: str, at: int) -> Completion:
        sampling = Sampling(max_tokens=self.max_tokens, temperature=0.0, seed=self.seed + at)
        request = ModelRequest(
            messages=(Message("user", text),), sampling=sampling, decode=self.decode
        )
        return await complete(model, request)


def scored(
    task: Task, system: str, questions: Sequence[Question], answers: Sequence[Completion]
) -> Iterator[Row]:
    """The rows of one task."""
    right = [one.right(answer.text) for one, answer in zip(questions, answers, strict=True)]
    low, high = share_interval(right)
    metric = "right_without_grammar" if task.partly else "right"
    yield Row(task.name, system, metric, sum(right) / len(right), "share")
    yield Row(task.name, system, f"{metric}_low", low, "share")
    yield Row(task.name, system, f"{metric}_high", high, "share")
    yield Row(task.name, system, "answers", len(right), "answers")
    denoised = [one.denoised for one in answers if one.denoised is not None]
    passes = sum(one.forwards for one in denoised)
    if passes:
        rate = sum(one.kept for one in denoised) / passes
        yield Row(task.name, system, "tokens_per_forward", rate, "tokens")
        yield Row(task.name, system, "forwards", passes / len(denoised), "an answer")


def table(rows: Sequence[Row]) -> str:
    """One line a task."""
    lines = [f"{'task':<36} {'right':>7} {'interval':>15} {'tokens/pass':>12}"]
    for name in dict.fromkeys(row.case for row in rows):
        mine = {row.metric: row.value for row in rows if row.case == name}
        metric = "right" if "right" in mine else "right_without_grammar"
        if metric not in mine:
            lines.append(f"{name:<36} {next(iter(mine))}")
            continue
        low, high = mine[f"{metric}_low"] or 0.0, mine[f"{metric}_high"] or 0.0
        rate = mine.get("tokens_per_forward")
        shown = "" if rate is None else f"{rate:.2f}"
        mark = "*" if metric != "right" else ""
        lines.append(
            f"{name:<36} {mine[metric]:>7.1%} {f'{low:.1%} - {high:.1%}':>15} {shown:>12}{mark}"
        )
    return "\n".join([*lines, "* all words are there; grammar is not judged"])


def main() -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m evals.parallelbench", description="ParallelBench's tasks on a local model."
    )
    parser.add_argument("--model", required=True, metavar="NAME", help="a name, or a folder")
    parser.add_argument(
        "--decode", metavar="D", help="such as threshold:0.9; default: the model's own"
    )
    parser.add_argument("--tasks", metavar="A,B", help=f"only these of: {', '.join(TASKS)}")
    parser.add_argument("--count", type=int, default=PUBLISHED_COUNT, help="questions of a task")
    parser.add_argument("--max-tokens", type=int, default=_TOKENS, metavar="N")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there")
    asked = parser.parse_args()
    names = asked.tasks.split(",") if asked.tasks else list(TASKS)
    unknown = [name for name in names if name not in TASKS]
    if unknown or asked.count < 1:
        parser.error(f"no task {unknown[0]!r}" if unknown else "--count is 1 or more")
    try:
        decode = parse_decode(asked.decode) if asked.decode else AUTOREGRESSIVE
        model = LocalModel(asked.model, LocalOptions(device=asked.device))
        tasks = [TASKS[name] for name in names]
        run = Run(tasks, asked.count, decode, asked.max_tokens)
        rows = run.rows(model, f"{model.model}, {asked.decode or 'its own decoder'}")
    except WeftError as error:
        parser.error(str(error))
    about = environment(seed=str(_SEED))
    print(f"\n{title(about)}\n\n{table(rows)}")
    if asked.json:
        write_results(asked.json, rows, about)
