"""The case `single_calls`: the same chats with transformers and, all at once, with vLLM."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from evals.engine.rows import Row
from evals.serving.failure import EvaluationError
from evals.serving.programs import Call
from evals.serving.replay import request
from evals.serving.server import Server
from evals.serving.systems.catalogue import client
from evals.serving.traffic import Traffic
from weft.core.ports import complete

CASE = "single_calls"
CALLS = 16
_LIMIT_S = 300.0


def chats(traffic: Traffic) -> list[Call]:
    """The chats of one seed."""
    programs = traffic.trace(1_000, 4 * CALLS, 1.0)
    return [program.calls[0] for program in programs if program.kind == "chat"][:CALLS]


def with_transformers(model: Path, dtype: str, calls: Sequence[Call]) -> Mapping[str, float]:
    """Seconds by system, measured in a process of its own. Raises: `EvaluationError`."""
    asked = {
        "model": str(model),
        "dtype": dtype,
        "calls": [(call.ids({}), call.max_tokens) for call in calls],
    }
    ended = subprocess.run(
        [sys.executable, "-m", "evals.serving.systems.on_transformers"],
        check=False,
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
    )
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or ["no message"])[-1]
        raise EvaluationError(f"transformers ended with code {ended.returncode}: {last}")
    found = json.loads(ended.stdout)
    return {f"transformers_{name}": float(value) for name, value in found.items()}


async def with_vllm(server: Server, calls: Sequence[Call]) -> Mapping[str, float]:
    """Seconds for all calls at once, after one to warm up."""
    model = client(server)
    try:
        await complete(model, request(calls[0], (1, 2, 3)))
        await server.clean()
        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for call in calls:
                group.create_task(complete(model, request(call, call.ids({}))))
        return {"vllm_at_once": time.perf_counter() - started}
    finally:
        await model.aclose()


def rows(calls: Sequence[Call], seconds: Mapping[str, float]) -> list[Row]:
    """Seconds and tokens a second of each system."""
    tokens = sum(call.max_tokens for call in calls)
    return [
        row
        for system, taken in seconds.items()
        for row in (
            Row(CASE, system, "seconds", taken, "s"),
            Row(CASE, system, "tokens_per_s", tokens / taken, "tokens/s"),
        )
    ]
