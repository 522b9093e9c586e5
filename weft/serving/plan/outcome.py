"""What became of simulated requests, in figures. Knows no engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from statistics import fmean

from weft.serving.plan.batching import Replica
from weft.serving.plan.traffic import Slo


def percentile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that so many of all do not exceed (nearest rank); 0 without samples."""
    if not samples:
        return 0.0
    return sorted(samples)[max(0, ceil(share * len(samples)) - 1)]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Latencies in seconds; `tokens_s` is output tokens per second of the simulated time.

    TTFT is the time to the first token, TPOT the mean time of a request's further tokens.
    `kv_peak` is the largest part of a KV cache that was in use.
    """

    requests: int
    ttft_p50_s: float
    ttft_p95_s: float
    tpot_p50_s: float
    tpot_p95_s: float
    latency_mean_s: float
    latency_p95_s: float
    tokens_s: float
    kv_peak: float
    preemptions: int

    @classmethod
    def of(cls, replicas: Sequence[Replica]) -> Outcome:
        """The outcome of replicas that have finished at least one request."""
        jobs = [job for replica in replicas for job in replica.done]
        ttft = [job.ttft_s for job in jobs]
        tpot = [job.tpot_s for job in jobs if job.tpot_s is not None]
        latency = [job.latency_s for job in jobs]
        start = min(job.request.arrival_s for job in jobs)
        span = max(job.finished_s for job in jobs) - start
        return cls(
            requests=len(jobs),
            ttft_p50_s=percentile(ttft, 0.5),
            ttft_p95_s=percentile(ttft, 0.95),
            tpot_p50_s=percentile(tpot, 0.5),
            tpot_p95_s=percentile(tpot, 0.95),
            latency_mean_s=fmean(latency),
            latency_p95_s=percentile(latency, 0.95),
            tokens_s=sum(job.produced_tokens for job in jobs) / span,
            kv_peak=max(r.cache.peak_tokens / r.cache.capacity_tokens for r in replicas),
            preemptions=sum(replica.preemptions for replica in replicas),
        )

    def breach(self, slo: Slo) -> str | None:
        """Which promise is broken, in words; None if all are kept."""
        for name, value, most in (
            ("TTFT", self.ttft_p95_s, slo.ttft_s),
            ("TPOT", self.tpot_p95_s, slo.tpot_s),
        ):
            if most is not None and value > most:
                return f"{name} p95 {value * 1e3:,.1f} ms > {most * 1e3:,g} ms"
        return None
