"""Sends a traffic's requests to a server when they are due, and times the answers."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import httpx2

from evals.plan_serve.model_files import VOCAB
from evals.plan_serve.server import ServerFailed
from weft.serving.plan.plans import percentile
from weft.serving.plan.traffic import Traffic, TrafficRequest

_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Answer:
    """Times in seconds since the first request was due."""

    due_s: float
    first_s: float
    last_s: float
    tokens: int

    @property
    def tpot_s(self) -> float:
        """Mean time of the tokens after the first."""
        return (self.last_s - self.first_s) / max(1, self.tokens - 1)


@dataclass(frozen=True, slots=True)
class Measured:
    """The same figures as a simulated `Outcome` has."""

    tokens_s: float
    latency_mean_s: float
    ttft_p50_s: float
    tpot_p50_s: float

    @classmethod
    def of(cls, answers: Sequence[Answer]) -> Measured:
        """From the answers of one round."""
        begin = min(answer.due_s for answer in answers)
        span = max(answer.last_s for answer in answers) - begin
        return cls(
            sum(answer.tokens for answer in answers) / span,
            fmean(answer.last_s - answer.due_s for answer in answers),
            percentile([answer.first_s - answer.due_s for answer in answers], 0.5),
            percentile([answer.tpot_s for answer in answers if answer.tokens > 1], 0.5),
        )


async def send(url: str, traffic: Traffic, seed: int) -> list[Answer]:
    """One round: every request with a random prompt of its length, greedy, of exact length.

    Raises: `ServerFailed` when an answer is refused or has another length than was asked for.
    """
    source = random.Random(seed)
    limits = httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(base_url=url, timeout=_TIMEOUT_S, limits=limits) as client:
        begin = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_ask(client, request, _prompt(source, request), begin))
                for request in traffic.requests
            ]
        return [task.result() for task in tasks]


def _prompt(source: random.Random, request: TrafficRequest) -> list[int]:
    return [source.randrange(3, VOCAB) for _ in range(request.prompt_tokens)]


async def _ask(
    client: httpx2.AsyncClient, request: TrafficRequest, prompt: list[int], begin: float
) -> Answer:
    await asyncio.sleep(max(0.0, begin + request.arrival_s - time.perf_counter()))
    body = {
        "model": "model",
        "prompt": prompt,
        "max_tokens": request.output_tokens,
        "temperature": 0.0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    first = last = 0.0
    usage = ""
    async with client.stream("POST", "/v1/completions", json=body) as response:
        if response.status_code != 200:
            raise ServerFailed((await response.aread()).decode("utf-8", "replace")[:500])
        async for line in response.aiter_lines():
            if not line.startswith("data: {"):
                continue
            if '"usage":{' in line:
                usage = line
            else:
                last = time.perf_counter() - begin
                first = first or last
    if f'"completion_tokens":{request.output_tokens}' not in usage:
        raise ServerFailed(f"asked for {request.output_tokens} tokens and got {usage[:200]!r}")
    return Answer(request.arrival_s, first, last, request.output_tokens)
