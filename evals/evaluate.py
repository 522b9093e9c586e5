"""What an evaluation costs for each result, beside a bare asyncio loop; and what kills leave of it.

    python -m evals.evaluate [--quick] [--cases N] [--only overhead,kills] [--json FILE]

`overhead`: `asyncio` calls the same fake model behind a semaphore and compares the answer; it keeps
no record, no budget and no seeds. `asyncio_recorded` also writes and flushes a line for each
result. `weft` is `weft.evaluate` at its defaults with a journal, `weft_unrecorded` without one. The
model answers at once (`cases_10000x3`), or after 100 ms (`cases_10000x3_100ms`), 64 at a time.

`kills`: an evaluation whose process is killed, and resumed by `weft resume`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import weft
from evals.results import environment, title, write_results
from evals.sectioned import arguments
from weft.core.ports import ModelRequest, complete
from weft.core.values import Message
from weft.evaluation.evaluate import read_result
from weft.testing import FakeModel, Reply

SECTIONS: Final = ("overhead", "kills")
SLOTS: Final = 64
REPLICATES: Final = 3
FLOW: Final = """\
name: qa
inputs: {question: string}
models: {small: {use: openai, model: none, base_url: "http://127.0.0.1:9/v1"}}
nodes: {answer: {model: small, prompt: "{{ question }}"}}
outputs: {answer: "{{ answer }}"}
"""
SUMS: Final = """\
name: sums
inputs: {a: integer}
nodes: {total: {call: "./functions.py:twice", with: {a: "{{ a }}"}}}
outputs: {total: "{{ total }}"}
"""
FUNCTIONS: Final = """\
import os, signal
_left = int(os.environ["WEFT_EVAL_CALLS"])

async def twice(a: int) -> int:
    global _left
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    with open("calls.txt", "a") as file:
        file.write(f"{a}\\n")
    return 2 * a
"""


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """One figure."""

    case: str
    system: str
    metric: str
    value: float
    unit: str = ""


def main() -> None:
    """Measure, print, and write the rows."""
    asked = arguments("evaluate", __doc__ or "", SECTIONS, _more)
    about = environment()
    print(title(about))
    rows: list[EvaluationRow] = []
    sections = {"overhead": (measured, 500), "kills": (kills, 100)}
    for name in asked.only:
        section, few = sections[name]
        for row in section(few if asked.quick else asked.cases):
            print(f"{row.case:24} {row.system:18} {row.metric:18} {row.value:12,.4g} {row.unit}")
            rows.append(row)
    if asked.json is not None:
        write_results(asked.json, rows, about)


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", type=int, default=10_000, help="cases of the data set")


def measured(count: int) -> Iterator[EvaluationRow]:
    """Wall and processor milliseconds of each result, for so many cases."""
    rows = [{"question": f"q{n}", "expected": f"q{n}"} for n in range(count)]
    for answer_s, suffix in ((0.0, ""), (0.1, "_100ms")):
        case = f"cases_{count}x{REPLICATES}{suffix}"
        for system in ("asyncio", "asyncio_recorded", "weft_unrecorded", "weft"):
            with tempfile.TemporaryDirectory() as folder:
                record = Path(folder) if system in ("asyncio_recorded", "weft") else None
                yield from _timed(case, system, rows, answer_s, record)


def _timed(
    case: str, system: str, rows: list[dict[str, str]], answer_s: float, record: Path | None
) -> Iterator[EvaluationRow]:
    wall, processor = time.perf_counter(), time.process_time()
    if system.startswith("weft"):
        score = _weft(rows, answer_s, None if record is None else str(record / "runs.sqlite"))
    else:
        score = asyncio.run(
            _bare(rows, answer_s, None if record is None else record / "results.jsonl")
        )
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    assert score == 1.0, (case, system, score)
    results = len(rows) * REPLICATES
    yield EvaluationRow(case, system, "ms_per_case", wall * 1000 / results, "ms")
    yield EvaluationRow(case, system, "cpu_ms_per_case", processor * 1000 / results, "ms")


def _model(answer_s: float) -> FakeModel:
    return FakeModel(lambda request: Reply(request.messages[-1].content, first_token_s=answer_s))


async def _bare(rows: list[dict[str, str]], answer_s: float, record: Path | None) -> float:
    """The mean score of a loop without weft."""
    model, slots, scores = _model(answer_s), asyncio.Semaphore(SLOTS), []
    file = None if record is None else record.open("w", encoding="utf-8")

    async def one(row: dict[str, str], replicate: int) -> None:
        async with slots:
            began = time.perf_counter()
            answer = await complete(model, ModelRequest((Message("user", row["question"]),)))
            score = float(answer.text == row["expected"])
            scores.append(score)
            if file is not None:
                wall = time.perf_counter() - began
                line = [row["question"], replicate, answer.text, score, wall, answer.usage.tokens]
                file.write(json.dumps(line) + "\n")
                file.flush()

    async with asyncio.TaskGroup() as tasks:
        for row in rows:
            for replicate in range(REPLICATES):
                tasks.create_task(one(row, replicate))
    if file is not None:
        file.close()
    return sum(scores) / len(scores)


def _weft(rows: list[dict[str, str]], answer_s: float, journal: str | None) -> float:
    settings: dict[str, Any] = {"durability": "none"} if journal is None else {"journal": journal}
    models = {"small": _model(answer_s)}
    found = weft.evaluate_sync(
        weft.loads(FLOW), rows, "exact", replicates=REPLICATES, models=models, **settings
    )
    assert found.finished
    return found.score


def kills(count: int) -> Iterator[EvaluationRow]:
    """Results, results that are missing, and cases that ran again though they had finished."""
    deaths = 3 if count < 1_000 else 20
    with tempfile.TemporaryDirectory() as name:
        folder, draw = Path(name), random.Random(1)
        (folder / "sums.yaml").write_text(SUMS, encoding="utf-8")
        (folder / "functions.py").write_text(FUNCTIONS, encoding="utf-8")
        lines = [json.dumps({"a": n, "expected": 2 * n}) for n in range(count)]
        (folder / "cases.jsonl").write_text("\n".join(lines), encoding="utf-8")
        (folder / "calls.txt").touch()
        words = ["eval", "sums.yaml", "--data", "cases.jsonl", "--metric", "exact"]
        words += ["--replicates", f"{REPLICATES}", "--run-id", "killed"]
        twice: set[str] = set()
        finished: dict[str, int] = {}
        for _ in range(deaths):
            calls = draw.randint(2, max(3, count * REPLICATES // (deaths + 1)))
            ended = _command(folder, words, calls)
            assert ended == -signal.SIGKILL, ended
            words, counts = ["resume", "killed"], _called(folder)
            twice |= {case for case, then in finished.items() if counts[case] != then}
            finished |= {case: counts[case] for case in _finished(folder)}
        assert _command(folder, words, 0) == 0
        counts = _called(folder)
        twice |= {case for case, then in finished.items() if counts[case] != then}
        result = read_result("killed", journal=f"{folder}/runs.sqlite")
    case = f"killed_{deaths}_times_{count}x{REPLICATES}"
    found = {
        "results": result.counts()["scored"],
        "lost": count * REPLICATES - result.counts()["scored"],
        "finished_and_run_again": len(twice),
        "calls_made_again": counts.total() - count * REPLICATES,
    }
    for metric, value in found.items():
        yield EvaluationRow(case, "weft", metric, value)


def _command(folder: Path, words: Iterable[str], calls: int) -> int:
    """The exit status of a command of weft, which is killed in its call number `calls`."""
    journal = str(folder / "runs.sqlite")
    env = {**os.environ, "WEFT_JOURNAL": journal, "WEFT_EVAL_CALLS": f"{calls}"}
    command = [sys.executable, "-m", "weft", *words]
    return subprocess.run(command, check=False, cwd=folder, env=env, capture_output=True).returncode


def _called(folder: Path) -> Counter[str]:
    return Counter((folder / "calls.txt").read_text(encoding="utf-8").split())


def _finished(folder: Path) -> list[str]:
    """The cases all of whose replicates are recorded as scored, by their input."""
    result = read_result("killed", journal=f"{folder}/runs.sqlite")
    ended = Counter(case.case for case in result.cases if case.status == "scored")
    return [f"{int(case) - 1}" for case, n in ended.items() if n == REPLICATES]


if __name__ == "__main__":
    main()
