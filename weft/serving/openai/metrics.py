"""What a vLLM server counts, read from its metrics page; does no I/O.

The page is Prometheus text: `name{label="value",...} number [timestamp]`, one sample a line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

_SAMPLE = re.compile(
    r'^vllm:(\w+?)(?:_total)?(?:\{(?:[^"}\n]|"(?:[^"\\\n]|\\.)*")*\})?[ \t]+(\S+)', re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class ServerMetrics:
    """One reading, over all engines of the server.

    running, waiting        requests now in a batch, and before it
    kv_usage                part of the KV cache in use, 0 to 1; the mean over engines
    prefix_queries, _hits   prompt tokens looked up in the prefix cache, and found there
    prompt_tokens           tokens of all prompts so far, the cached ones included
    generation_tokens       tokens written so far
    preemptions             requests thrown out of a batch for want of memory
    spec_drafts             how often a draft was verified; `spec_draft_tokens` were in the drafts,
                            of which `spec_accepted_tokens` were kept; all 0 without speculation
    """

    running: int
    waiting: int
    kv_usage: float
    prefix_queries: int
    prefix_hits: int
    prompt_tokens: int
    generation_tokens: int
    preemptions: int
    spec_drafts: int = 0
    spec_draft_tokens: int = 0
    spec_accepted_tokens: int = 0

    @property
    def prefix_hit_rate(self) -> float:
        """Hits per query, 0 before the first."""
        return self.prefix_hits / self.prefix_queries if self.prefix_queries else 0.0


def parse(page: bytes) -> ServerMetrics | None:
    """The reading on `page`, or None when it is no vLLM server's. Skips lines without sense."""
    found: dict[str, list[float]] = {}
    for name, value in _samples(page.decode("utf-8", "replace")):
        found.setdefault(name, []).append(value)
    if "num_requests_running" not in found:
        return None

    def total(name: str) -> int:
        return round(sum(found.get(name, ())))

    usage = found.get("kv_cache_usage_perc", [0.0])
    return ServerMetrics(
        running=total("num_requests_running"),
        waiting=total("num_requests_waiting"),
        kv_usage=sum(usage) / len(usage),
        prefix_queries=total("prefix_cache_queries"),
        prefix_hits=total("prefix_cache_hits"),
        prompt_tokens=total("prompt_tokens"),
        generation_tokens=total("generation_tokens"),
        preemptions=total("num_preemptions"),
        spec_drafts=total("spec_decode_num_drafts"),
        spec_draft_tokens=total("spec_decode_num_draft_tokens"),
        spec_accepted_tokens=total("spec_decode_num_accepted_tokens"),
    )


def _samples(page: str) -> Iterator[tuple[str, float]]:
    for match in _SAMPLE.finditer(page):
        try:
            value = float(match[2])
        except ValueError:
            continue
        if math.isfinite(value):
            yield match[1], value
