"""All deployments of a model on some devices: rejected with a reason, or simulated and ranked.

A plan also has the command that starts it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import fmean
from typing import Literal

from weft.core.errors import SpecError
from weft.serving.plan.architecture import QUANTIZATIONS, Architecture, Quantization
from weft.serving.plan.capacity import capacity_tokens_s
from weft.serving.plan.hardware import Device, EngineLimits, default_limits
from weft.serving.plan.latency import StepTime
from weft.serving.plan.layout import RankLayout, RankMemory, rank_memory
from weft.serving.plan.simulation import SimulatedReplica, serve
from weft.serving.plan.traffic import Slo, Traffic


def percentile(samples: Sequence[float], share: float) -> float:
    """The nearest-rank percentile: the smallest sample not exceeded by `share` of all; or 0."""
    if not samples:
        return 0.0
    return sorted(samples)[max(0, ceil(share * len(samples)) - 1)]


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Latencies in seconds; `tokens_s` is output tokens per second of the simulated time.

    TTFT is the time to the first token, TPOT the mean time of a request's further tokens.
    `kv_peak` is the largest used part of a KV cache.
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
    def of(cls, replicas: Sequence[SimulatedReplica]) -> SimulationResult:
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
        """The broken target in words; None if all are kept."""
        for name, value, most in (
            ("TTFT", self.ttft_p95_s, slo.ttft_s),
            ("TPOT", self.tpot_p95_s, slo.tpot_s),
        ):
            if most is not None and value > most:
                return f"{name} p95 {value * 1e3:,.1f} ms > {most * 1e3:,g} ms"
        return None


Goal = Literal["throughput", "latency", "cost"]
_GIB = 1 << 30
_SIMULATED_REQUESTS = 400


@dataclass(frozen=True, slots=True)
class DeploymentPlan:
    """A working deployment. `breach` says why it does not keep up with the traffic, if so.

    `capacity_tokens_s` is the throughput of all its devices under saturation, within the target
    time per token.
    """

    layout: RankLayout
    quantization: str
    memory: RankMemory
    outcome: SimulationResult
    capacity_tokens_s: float
    breach: str | None

    @property
    def kv_tokens(self) -> int:
        """The capacity of the KV caches of all replicas, in tokens."""
        return self.memory.kv_tokens * self.layout.dp

    @property
    def capacity_per_device(self) -> float:
        """Output tokens per second and device."""
        return self.capacity_tokens_s / self.layout.ranks


@dataclass(frozen=True, slots=True)
class Rejected:
    """A deployment that cannot work."""

    layout: RankLayout
    quantization: str
    reason: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """All plans, best first, and all rejected ones. `traffic` is what was simulated."""

    model: Architecture
    device: Device
    count: int
    goal: Goal
    limits: EngineLimits
    traffic: Traffic
    offered: int
    plans: tuple[DeploymentPlan, ...]
    rejected: tuple[Rejected, ...]

    def best_of_each_format(self) -> tuple[DeploymentPlan, ...]:
        """The best plan of each number format; that of the stored weights comes first."""
        best: dict[str, DeploymentPlan] = {}
        for plan in self.plans:
            best.setdefault(plan.quantization, plan)
        stored = formats(self.model)[0].name
        return tuple(sorted(best.values(), key=lambda plan: plan.quantization != stored))


def formats(model: Architecture) -> tuple[Quantization, ...]:
    """The number formats `model` can be served in; that of its weights comes first.

    vLLM serves float32 weights as bfloat16 by default. Quantized weights keep their format.
    """
    if model.checkpoint in ("fp8", "int4"):
        return (QUANTIZATIONS[model.checkpoint],)
    return tuple(QUANTIZATIONS[name] for name in ("bf16", "fp8", "int4"))


def chosen_formats(model: Architecture, names: Sequence[str]) -> tuple[Quantization, ...]:
    """The named formats of `model`; all if none is named.

    Raises: `SpecError` for a name that is not among them.
    """
    possible = {scheme.name: scheme for scheme in formats(model)}
    for name in names:
        if name not in possible:
            raise SpecError(
                f"{model.name} cannot be served in {name!r:.40}", hint=f"in {', '.join(possible)}"
            )
    return tuple(scheme for name, scheme in possible.items() if not names or name in names)


def layouts(model: Architecture, device: Device, count: int) -> Iterator[RankLayout]:
    """All cuts over at most `count` devices, tensor parallelism within one machine."""
    powers = [1 << n for n in range(count.bit_length()) if 1 << n <= count]
    for tp in sorted({*powers, *(n for n in range(1, count + 1) if model.heads % n == 0)}):
        if tp > min(count, device.per_node):
            continue
        for pp in sorted({n for n in (*powers, count // tp) if tp * n <= count}):
            most = count // (tp * pp)
            for dp in sorted({n for n in (*powers, most) if n <= most}):
                yield RankLayout(tp, pp, dp)
                if model.experts is not None and tp * dp > 1:
                    yield RankLayout(tp, pp, dp, spread=True)


def rank(
    model: Architecture,
    device: Device,
    count: int,
    traffic: Traffic,
    *,
    goal: Goal = "throughput",
    limits: EngineLimits | None = None,
    quantizations: Sequence[str] = (),
) -> Ranking:
    """Every deployment of `model` on at most `count` devices, best first.

    Plans that keep the targets of `traffic` come before those that do not. Among them the goal
    decides: `throughput` the most tokens per second under saturation, `latency` the shortest mean
    time of a request, `cost` the fewest devices and then the most tokens per second. Only the first
    400 requests are simulated.
    Raises: `SpecError` for a number format the model does not come in.
    """
    limits = limits or default_limits(device)
    simulated = traffic.first(_SIMULATED_REQUESTS)
    plans: list[DeploymentPlan] = []
    rejected: list[Rejected] = []
    longest = traffic.longest_tokens
    for scheme in chosen_formats(model, quantizations):
        for layout in layouts(model, device, count):
            reason = _refused(model, layout, scheme, device, longest)
            if reason is None:
                memory = rank_memory(model, layout, scheme, device, limits)
                reason = _too_small(memory, longest + 2 * limits.block_tokens)
            if reason is not None:
                rejected.append(Rejected(layout, scheme.name, reason))
                continue
            plans.append(_plan(model, layout, scheme, device, limits, memory, simulated))
    plans.sort(key=lambda plan: (plan.breach is not None, *_sort_key(plan, goal)))
    return Ranking(
        model, device, count, goal, limits, simulated, len(traffic.requests),
        tuple(plans), tuple(rejected),
    )  # fmt: skip


def _sort_key(plan: DeploymentPlan, goal: Goal) -> tuple[float, ...]:
    match goal:
        case "throughput":
            return (-plan.capacity_tokens_s, plan.outcome.latency_mean_s)
        case "latency":
            return (plan.outcome.latency_mean_s, plan.layout.ranks)
        case "cost":
            return (plan.layout.ranks, -plan.capacity_tokens_s)


def _refused(
    model: Architecture,
    layout: RankLayout,
    scheme: Quantization,
    device: Device,
    longest_tokens: int,
) -> str | None:
    """Why the deployment is impossible, whatever the memory of the device; None if it is not."""
    if scheme.compute not in device.flops:
        return f"the {device.title} has no {scheme.compute} arithmetic"
    if longest_tokens > model.context_tokens:
        return (
            f"a request of {longest_tokens:,} tokens is longer than"
            f" the {model.context_tokens:,} of the model's context"
        )
    return layout.objection(model, scheme)


def _too_small(memory: RankMemory, longest_tokens: int) -> str | None:
    """What does not fit into the device's memory; None if all does."""
    weights, room = memory.weight_bytes / _GIB, memory.budget_bytes / _GIB
    besides = (memory.needed_bytes - memory.weight_bytes) / _GIB
    if weights >= room:
        return f"{weights:.1f} GiB of weights a rank do not fit {room:.1f} GiB"
    if weights + besides >= room:
        return (
            f"{weights:.1f} GiB of weights a rank and {besides:.1f} GiB for activations and"
            f" libraries leave nothing of {room:.1f} GiB"
        )
    if memory.kv_tokens < longest_tokens:
        return (
            f"the KV cache holds {memory.kv_tokens:,} tokens, one request needs {longest_tokens:,}"
        )
    return None


def _plan(
    model: Architecture,
    layout: RankLayout,
    scheme: Quantization,
    device: Device,
    limits: EngineLimits,
    memory: RankMemory,
    traffic: Traffic,
) -> DeploymentPlan:
    durations = StepTime(model, layout, scheme, device)
    # Each of the micro-batches that fill a pipeline has its own token budget.
    budget = limits.max_batched_tokens * layout.pp
    kv, block, slots = memory.kv_tokens, limits.block_tokens, limits.max_seqs
    replicas = [
        SimulatedReplica(durations, kv_tokens=kv, block_tokens=block, slots=slots, budget=budget)
        for _ in range(layout.dp)
    ]
    serve(traffic, replicas)
    outcome = SimulationResult.of(replicas)
    capacity = layout.dp * capacity_tokens_s(
        traffic, durations, kv_tokens=kv, block_tokens=block, slots=slots, budget=budget
    )
    breach = outcome.breach(traffic.slo)
    if capacity < traffic.tokens_s:
        breach = "overloaded"
    return DeploymentPlan(layout, scheme.name, memory, outcome, capacity, breach)


def command(
    model: str, shape: Architecture, plan: DeploymentPlan, limits: EngineLimits, per_node: int
) -> str:
    """The shell command. `model` is the name under which a server finds the weights.

    Replicas are separate servers; only spread experts need the data-parallel ranks of one server.
    Weights in another format than their own are quantized at load time where vLLM can do that;
    otherwise `model` must be replaced by a checkpoint in that format (`note`).
    """
    layout, scheme = plan.layout, QUANTIZATIONS[plan.quantization]
    inside = layout.dp if layout.spread else 1
    words = ["weft", "serve", model]
    for option, value in (
        ("--tp", layout.tp),
        ("--pp", layout.pp),
        ("--dp", inside),
        ("--replicas", layout.dp // inside),
    ):
        if value > 1:
            words += [option, str(value)]
    nodes = -(-layout.tp * layout.pp * inside // per_node)
    if nodes > 1:
        words += ["--nodes", str(nodes)]
    if scheme != formats(shape)[0] and scheme.argument is not None:
        words += ["--quantization", scheme.argument]
    words += ["--max-seqs", str(limits.max_seqs)]
    words += ["--", "--max-num-batched-tokens", str(limits.max_batched_tokens)]
    if layout.spread:
        words.append("--enable-expert-parallel")
    return shlex.join(words)


def note(shape: Architecture, plan: DeploymentPlan) -> str | None:
    """What to know before running the command; None if it serves the weights unchanged."""
    scheme = QUANTIZATIONS[plan.quantization]
    if scheme == formats(shape)[0]:
        return None
    if scheme.argument is not None:
        return "weights are rounded while they load: answers change"
    return "name an AWQ or GPTQ checkpoint of the model instead: answers change"
