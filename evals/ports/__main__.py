"""`python -m evals.ports [--quick] [--json FILE] [--plot FILE]`.

Twelve jobs as programs of weft, LangGraph, pydantic-graph and pydantic-ai with one scripted model:
lines of code, model calls, wall time; every program must return the same result.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import IO, Final

from evals.engine.peers import PeersUnavailable, environment, interpreter
from evals.engine.rows import Row
from evals.ports.jobs import JOBS
from evals.ports.lines import code_lines
from evals.results import environment as results_environment
from evals.results import write_results

SYSTEMS: Final = ("weft", "langgraph", "pydantic")
FOLDER: Final = Path(__file__).parent


def program(system: str, job: str) -> Path:
    """The file of a job's program."""
    return FOLDER / f"{system}_programs" / f"{job}.py"


def evaluate(rounds: int) -> list[Row]:
    """The rows of all programs that are there. Raises: `RuntimeError` for a wrong result."""
    rows: list[Row] = []
    for job in JOBS:
        systems = [system for system in SYSTEMS if program(system, job).exists()]
        lines = {system: code_lines(program(system, job)) for system in systems}
        rows += [Row(job, system, "code_lines", count, "lines") for system, count in lines.items()]
        rows += _timing_rows(job, systems, rounds)
        print(job, lines, file=sys.stderr, flush=True)
    for system in SYSTEMS[1:]:
        shared = [job for job in JOBS if program(system, job).exists()]
        for each in ("weft", system):
            total = sum(code_lines(program(each, job)) for job in shared)
            rows.append(Row(f"all_of_{system}", each, "code_lines", total, "lines"))
    return rows


def _timing_rows(job: str, systems: Sequence[str], rounds: int) -> list[Row]:
    """Interleaved: each round runs every system once, in turn; the first round is not counted."""
    found: dict[str, list[dict[str, float]]] = {system: [] for system in systems}
    with ExitStack() as stack:
        workers = {system: stack.enter_context(_worker(system, job)) for system in systems}
        for round_ in range(rounds + 1):
            for system, worker in workers.items():
                answer = _run_once(worker)
                if answer["result"] != JOBS[job].result:
                    raise RuntimeError(f"{system} {job}: {answer['result']}")
                if round_:
                    found[system].append(answer)
    rows = []
    for system, runs in found.items():
        rows.append(Row(job, system, "model_calls", runs[0]["calls"], "calls"))
        times = [run["ms"] for run in runs]
        rows.append(Row(job, system, "median_ms", round(median(times), 3), "ms"))
        if system != "weft":
            pairs = zip(found["weft"], runs, strict=True)
            ratio = median(own["ms"] / other["ms"] for own, other in pairs)
            rows.append(Row(job, "weft", f"ratio_to_{system}", round(ratio, 3), "x"))
    return rows


@contextmanager
def _worker(system: str, job: str) -> Iterator[tuple[IO[str], IO[str]]]:
    """A process that runs the program once for each line it reads."""
    python = interpreter("weft" if system == "weft" else "peers")
    command = [python, "-m", "evals.ports.worker", system, job]
    with tempfile.TemporaryDirectory() as home:
        variables = {**environment(Path(home)), "PYTHONHASHSEED": "0"}
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if os.environ.get("CI") else None,
            text=True,
            env=variables,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            yield process.stdin, process.stdout
            process.stdin.close()


def _run_once(worker: tuple[IO[str], IO[str]]) -> dict[str, float]:
    written, read = worker
    written.write("run\n")
    written.flush()
    line = read.readline()
    if not line:
        raise RuntimeError("the program ended")
    answer: dict[str, float] = json.loads(line)
    return answer


def table(rows: Sequence[Row]) -> str:
    """One line a row."""
    return "\n".join(
        f"{row.case:16}{row.system:12}{row.metric:24}{row.value:>10} {row.unit}" for row in rows
    )


def main() -> None:
    """Evaluate; print the table; write what was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m evals.ports",
        description="Twelve jobs beside LangGraph, pydantic-graph and pydantic-ai.",
    )
    parser.add_argument("--quick", action="store_true", help="3 rounds instead of 15")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw lines and times there")
    arguments = parser.parse_args()
    try:
        rows = evaluate(3 if arguments.quick else 15)
    except PeersUnavailable as missing:
        raise SystemExit(str(missing)) from missing
    print(table(rows))
    if arguments.json:
        write_results(arguments.json, rows, results_environment())
    if arguments.plot:
        from evals.ports.plot import draw

        draw(rows, arguments.plot)


if __name__ == "__main__":
    main()
