"""vLLM's main knobs one at a time against its defaults, and how many requests it bears at once.

Every setting is a server of its own under the same short burst of plain traffic.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from evals.engine.rows import Row
from evals.serving.failure import EvaluationError
from evals.serving.programs import Call, Program
from evals.serving.prose import Prose, prose_of
from evals.serving.replay import play, request
from evals.serving.rows import figures
from evals.serving.server import Server, serving
from evals.serving.systems.catalogue import MAIN, client
from evals.serving.traffic import Traffic
from weft.core.ports import complete

CASE = "knobs"
CONCURRENCY = "concurrency"
SETTINGS: Mapping[str, Sequence[str]] = {
    "default": (),
    "max-num-seqs=16": ("--max-num-seqs", "16"),
    "max-num-seqs=32": ("--max-num-seqs", "32"),
    "max-num-seqs=256": ("--max-num-seqs", "256"),
    "max-num-batched-tokens=256": ("--max-num-batched-tokens", "256"),
    "max-num-batched-tokens=512": ("--max-num-batched-tokens", "512"),
    "max-num-batched-tokens=8192": ("--max-num-batched-tokens", "8192"),
    "block-size=32": ("--block-size", "32"),
    "block-size=64": ("--block-size", "64"),
    "block-size=256": ("--block-size", "256"),
    "no chunked prefill": ("--no-enable-chunked-prefill", "--max-num-batched-tokens", "4096"),
}
_PROGRAMS = 24
_REPEATS = 3
_AT_ONCE = (1, 2, 4, 8, 16, 32, 64)
_ANSWER = 48


async def sweep(model: Path, dtype: str) -> list[Row]:
    """All settings; a server that does not start under one makes a row that says so."""
    prose = prose_of(model)
    programs = Traffic(prose).trace(3_000, _PROGRAMS, 0.0)
    rows: list[Row] = []
    for name, arguments in SETTINGS.items():
        print(f"vLLM with {name}", file=sys.stderr, flush=True)
        try:
            with serving(model, arguments, dtype=dtype) as server:
                if not arguments:
                    rows += await concurrency(server, prose)
                rows += await _one(name, server, programs)
        except EvaluationError as error:
            last = str(error).strip().splitlines()[-1]
            rows.append(Row(CASE, name, f"skipped: {last[:120]}", None, ""))
    return [*rows, *_best(rows)]


async def _one(name: str, server: Server, programs: Sequence[Program]) -> list[Row]:
    plain = MAIN["plain"]
    found = [figures(await play(programs, plain(server), server)) for _ in range(_REPEATS)]
    shown = ("makespan_s", "mean_program_latency_s", "tokens_per_s", "prefix_hit_rate")
    return [
        Row(CASE, name, metric, median(one[metric][0] for one in found), found[0][metric][1])
        for metric in shown
    ]


def _best(rows: Sequence[Row]) -> list[Row]:
    """The setting with the least mean latency, as a share of the default's."""
    metric = "mean_program_latency_s"
    means = {row.system: row.value for row in rows if row.metric == metric and row.value}
    if "default" not in means:
        return []
    best = min(means, key=lambda name: means[name])
    ratio = means[best] / means["default"]
    return [Row(CASE, f"best: {best}", f"{metric}_ratio", ratio, "x default")]


async def concurrency(server: Server, prose: Prose) -> list[Row]:
    """Tokens a second by the number of requests at once, with short prompts."""
    model = client(server)
    prompt = prose.write(random.Random("concurrency"), 96)
    rows = []
    try:
        for together in (1, *_AT_ONCE):  # the first one warms up
            started = time.perf_counter()
            async with asyncio.TaskGroup() as group:
                for place in range(together):
                    ids = (*prompt, place + 100)
                    asked = request(Call("probe", (ids,), _ANSWER), ids)
                    group.create_task(complete(model, asked))
            speed = together * _ANSWER / (time.perf_counter() - started)
            rows.append(Row(CONCURRENCY, f"{together} at once", "tokens_per_s", speed, "tokens/s"))
    finally:
        await model.aclose()
    return rows[1:]
