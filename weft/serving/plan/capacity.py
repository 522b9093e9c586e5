"""The most output tokens per second of a replica under saturation. Models no queue.

Steady state: as many sequences decode as slots, KV cache, token budget and the promised time per
token allow, and each iteration computes as many prompt tokens as finished requests make room for.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.serving.plan.latency import ForwardBatch
from weft.serving.plan.simulation import Durations
from weft.serving.plan.traffic import Traffic, TrafficRequest


def capacity_tokens_s(
    traffic: Traffic,
    durations: Durations,
    *,
    kv_tokens: int,
    block_tokens: int,
    slots: int,
    budget: int,
) -> float:
    """Output tokens per second for requests like those of `traffic`, all waiting at once."""
    requests = traffic.requests
    outputs = sum(request.output_tokens for request in requests)
    cached = _cached_prefixes(requests)
    fresh = sum(r.prompt_tokens for r in requests) - sum(cached)
    pairs = sum(
        _triangle(r.prompt_tokens) - _triangle(known)
        for r, known in zip(requests, cached, strict=True)
    )
    # Long answers stay longer, so their contexts weigh more.
    context = sum(r.output_tokens * (r.prompt_tokens + r.output_tokens / 2) for r in requests)
    mean_context = context / outputs
    shared = sum(n * r.output_tokens for n, r in zip(cached, requests, strict=True)) / outputs
    own = mean_context - shared

    def step_s(running: float) -> float:
        batch = ForwardBatch(
            prefill_tokens=running * fresh / outputs,
            prefill_pairs=running * pairs / outputs,
            decodes=running,
            decode_context=running * mean_context,
            sampled=running,
        )
        return durations.seconds(batch)

    most = min(slots, kv_tokens / (own + block_tokens), budget / (1 + fresh / outputs))
    running = _most_within(step_s, max(1.0, most), traffic.slo.tpot_s)
    return running / step_s(running)


def _most_within(step_s: Callable[[float], float], most: float, limit_s: float | None) -> float:
    """The largest batch up to `most` whose iterations keep `limit_s`, by bisection; at least 1."""
    if limit_s is None or step_s(most) <= limit_s:
        return most
    low, high = 1.0, most
    while high - low > 0.01 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if step_s(middle) <= limit_s else (low, middle)
    return low


def _cached_prefixes(requests: tuple[TrafficRequest, ...]) -> list[int]:
    """The cached prefix tokens of each request: those that an earlier one has computed."""
    seen: set[tuple[str, int]] = set()
    cached = []
    for request in requests:
        key = (request.prefix or "", request.prefix_tokens)
        cached.append(request.prefix_tokens if key in seen else 0)
        seen.add(key)
    return cached


def _triangle(tokens: int) -> int:
    return tokens * (tokens + 1) // 2
