"""Every way to deploy a model on some devices: rejected with a reason, or simulated and ranked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from weft.core.errors import SpecError
from weft.serving.plan.architecture import Architecture
from weft.serving.plan.batching import Replica
from weft.serving.plan.capacity import capacity_tokens_s
from weft.serving.plan.hardware import Device
from weft.serving.plan.latency import StepTime
from weft.serving.plan.layout import Layout
from weft.serving.plan.limits import Limits, default_limits
from weft.serving.plan.memory import RankMemory, rank_memory
from weft.serving.plan.outcome import Outcome
from weft.serving.plan.quantization import QUANTIZATIONS, Quantization
from weft.serving.plan.replicas import serve
from weft.serving.plan.traffic import Traffic

Goal = Literal["throughput", "latency", "cost"]
_GIB = 1 << 30
_SIMULATED_REQUESTS = 400


@dataclass(frozen=True, slots=True)
class Plan:
    """A deployment that works. `breach` says why it does not keep up with the traffic, if so.

    `capacity_tokens_s` is what all its devices give together when requests always wait, as far as
    the promised time per token allows.
    """

    layout: Layout
    quantization: str
    memory: RankMemory
    outcome: Outcome
    capacity_tokens_s: float
    breach: str | None

    @property
    def kv_tokens(self) -> int:
        """Tokens that fit the KV caches of all replicas."""
        return self.memory.kv_tokens * self.layout.dp

    @property
    def capacity_per_device(self) -> float:
        """Output tokens per second and device."""
        return self.capacity_tokens_s / self.layout.ranks


@dataclass(frozen=True, slots=True)
class Rejected:
    """A deployment that cannot work."""

    layout: Layout
    quantization: str
    reason: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """All plans, best first, and all that was rejected. `traffic` is what was simulated."""

    model: Architecture
    device: Device
    count: int
    goal: Goal
    limits: Limits
    traffic: Traffic
    offered: int
    plans: tuple[Plan, ...]
    rejected: tuple[Rejected, ...]

    def best_of_each_format(self) -> tuple[Plan, ...]:
        """The best plan of each number format, the one the weights are stored in first."""
        best: dict[str, Plan] = {}
        for plan in self.plans:
            best.setdefault(plan.quantization, plan)
        stored = formats(self.model)[0].name
        return tuple(sorted(best.values(), key=lambda plan: plan.quantization != stored))


def formats(model: Architecture) -> tuple[Quantization, ...]:
    """The number formats `model` can be served in; first the one its weights come in.

    vLLM serves float32 weights as bfloat16 unless told otherwise. Weights that are stored in fewer
    bits stay as they are.
    """
    if model.checkpoint in ("fp8", "int4"):
        return (QUANTIZATIONS[model.checkpoint],)
    return tuple(QUANTIZATIONS[name] for name in ("bf16", "fp8", "int4"))


def chosen_formats(model: Architecture, names: Sequence[str]) -> tuple[Quantization, ...]:
    """Of the formats of `model`, the named ones; all if none is named.

    Raises: `SpecError` for a name that is not among them.
    """
    possible = {scheme.name: scheme for scheme in formats(model)}
    for name in names:
        if name not in possible:
            raise SpecError(
                f"{model.name} cannot be served in {name!r:.40}", hint=f"in {', '.join(possible)}"
            )
    return tuple(scheme for name, scheme in possible.items() if not names or name in names)


def layouts(model: Architecture, device: Device, count: int) -> Iterator[Layout]:
    """All cuts over at most `count` devices, tensor parallelism within one machine."""
    powers = [1 << n for n in range(count.bit_length()) if 1 << n <= count]
    for tp in sorted({*powers, *(n for n in range(1, count + 1) if model.heads % n == 0)}):
        if tp > min(count, device.per_node):
            continue
        for pp in sorted({n for n in (*powers, count // tp) if tp * n <= count}):
            most = count // (tp * pp)
            for dp in sorted({n for n in (*powers, most) if n <= most}):
                yield Layout(tp, pp, dp)
                if model.experts is not None and tp * dp > 1:
                    yield Layout(tp, pp, dp, spread=True)


def rank(
    model: Architecture,
    device: Device,
    count: int,
    traffic: Traffic,
    *,
    goal: Goal = "throughput",
    limits: Limits | None = None,
    quantizations: Sequence[str] = (),
) -> Ranking:
    """Every deployment of `model` on at most `count` devices, best first.

    Plans that keep the promises of `traffic` come before those that do not. Among them the goal
    decides: `throughput` the most tokens per second at full load, `latency` the shortest mean time
    of a request under the traffic, `cost` the fewest devices and then the most tokens per second.
    Of much traffic only the first 400 requests are simulated.
    Raises: `SpecError` for a number format the model does not come in.
    """
    limits = limits or default_limits(device)
    simulated = traffic.first(_SIMULATED_REQUESTS)
    plans: list[Plan] = []
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
    plans.sort(key=lambda plan: (plan.breach is not None, *_worth(plan, goal)))
    return Ranking(
        model, device, count, goal, limits, simulated, len(traffic.requests),
        tuple(plans), tuple(rejected),
    )  # fmt: skip


def _worth(plan: Plan, goal: Goal) -> tuple[float, ...]:
    match goal:
        case "throughput":
            return (-plan.capacity_tokens_s, plan.outcome.latency_mean_s)
        case "latency":
            return (plan.outcome.latency_mean_s, plan.layout.ranks)
        case "cost":
            return (plan.layout.ranks, -plan.capacity_tokens_s)


def _refused(
    model: Architecture,
    layout: Layout,
    scheme: Quantization,
    device: Device,
    longest_tokens: int,
) -> str | None:
    """Why this cannot be, whatever the size of the device's memory; None if it can."""
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
    layout: Layout,
    scheme: Quantization,
    device: Device,
    limits: Limits,
    memory: RankMemory,
    traffic: Traffic,
) -> Plan:
    durations = StepTime(model, layout, scheme, device)
    # each of the micro-batches that fill a pipeline has a token budget of its own
    budget = limits.max_batched_tokens * layout.pp
    kv, block, slots = memory.kv_tokens, limits.block_tokens, limits.max_seqs
    replicas = [
        Replica(durations, kv_tokens=kv, block_tokens=block, slots=slots, budget=budget)
        for _ in range(layout.dp)
    ]
    serve(traffic, replicas)
    outcome = Outcome.of(replicas)
    capacity = layout.dp * capacity_tokens_s(
        traffic, durations, kv_tokens=kv, block_tokens=block, slots=slots, budget=budget
    )
    breach = outcome.breach(traffic.slo)
    if capacity < traffic.tokens_s:
        breach = "overloaded"
    return Plan(layout, scheme.name, memory, outcome, capacity, breach)
