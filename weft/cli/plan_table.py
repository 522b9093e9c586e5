"""The plans of a deployment as a table and as one JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from weft.cli.text import amount, clean
from weft.serving.plan import DeploymentPlan, Ranking, RankLayout, Rejected
from weft.serving.plan.deployment import Deployment

_GIB = 1 << 30


def print_plans(console: Console, deployment: Deployment, most_rows: int) -> None:
    """Print the assumptions, the ranked plans, the rejected ones with reasons, and commands."""
    ranking = deployment.ranking
    for line in _headline(ranking):
        console.print(clean(line), soft_wrap=not console.is_terminal)
    if ranking.plans:
        console.print()
        console.print(_table(ranking.plans[:most_rows]))
        if (hidden := len(ranking.plans) - most_rows) > 0:
            console.print(f"… and {hidden} more (--rows shows them)")
    if ranking.rejected:
        console.print("\nrejected", style="bold")
        for line in _rejected(ranking.rejected):
            console.print(f"  {line}", soft_wrap=not console.is_terminal)
    console.print()
    for line in _advice(deployment):
        console.print(clean(line), soft_wrap=True)


def _headline(ranking: Ranking) -> Iterator[str]:
    model, limits, device = ranking.model, ranking.limits, ranking.device
    active = ""
    if model.experts is not None:
        active = f", {model.active_parameters / 1e9:.1f} B of them for each token"
    yield f"{model.name}: {model.parameters / 1e9:.2f} B parameters{active}"
    yield (
        f"{ranking.count} x {device.title}, at most {limits.max_seqs:,} sequences and"
        f" {limits.max_batched_tokens:,} tokens in a pass"
    )
    simulated = len(ranking.traffic.requests)
    part = f" (the first {simulated} of {ranking.offered:,})" if simulated < ranking.offered else ""
    yield f"{ranking.traffic.title}{part}: {ranking.traffic.tokens_s:,.0f} output tokens/s"


def _table(plans: Sequence[DeploymentPlan]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("plan", "format"):
        table.add_column(name, no_wrap=True)
    for name in (
        "GPUs", "weights\nGiB/rank", "KV\ntokens", "TTFT ms\np50 / p95", "TPOT ms\np50 / p95",
        "tokens/s\nat most", "a GPU",
    ):  # fmt: skip
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict")
    for plan in plans:
        out = plan.outcome
        table.add_row(
            str(plan.layout),
            plan.quantization,
            str(plan.layout.ranks),
            f"{plan.memory.weight_bytes / _GIB:.1f}",
            f"{plan.kv_tokens:,}",
            f"{out.ttft_p50_s * 1e3:,.0f} / {out.ttft_p95_s * 1e3:,.0f}",
            f"{out.tpot_p50_s * 1e3:.1f} / {out.tpot_p95_s * 1e3:.1f}",
            f"{plan.capacity_tokens_s:,.0f}",
            f"{plan.capacity_per_device:,.0f}",
            "keeps up" if plan.breach is None else plan.breach,
            style="" if plan.breach is None else "dim",
        )
    return table


def _rejected(rejected: Sequence[Rejected]) -> Iterator[str]:
    """One line for all layouts that are rejected for the same reason."""
    layouts_by_reason: dict[tuple[str, str], list[RankLayout]] = {}
    for one in rejected:
        layouts_by_reason.setdefault((one.quantization, one.reason), []).append(one.layout)
    for (name, reason), layouts in layouts_by_reason.items():
        first = str(layouts[0])
        more = f" and {amount(len(layouts) - 1, 'more cut')}" if len(layouts) > 1 else ""
        yield f"{name:<5} {first}{more}: {reason}"


def _advice(deployment: Deployment) -> Iterator[str]:
    best = deployment.ranking.best_of_each_format()
    if not best:
        yield "No plan works: give it more or larger GPUs, or a smaller number format."
    for plan in best:
        note = deployment.note(plan)
        breach = f" ({plan.breach})" if plan.breach else ""
        yield f"best in {plan.quantization}{f', {note}' if note else ''}{breach}:"
        yield f"  {deployment.command(plan)}"


def document(deployment: Deployment) -> dict[str, object]:
    """The deployment as plain values. Times in seconds, sizes in bytes."""
    ranking = deployment.ranking
    return {
        "model": ranking.model.name,
        "parameters": ranking.model.parameters,
        "active_parameters": ranking.model.active_parameters,
        "device": {
            "name": ranking.device.name,
            "count": ranking.count,
            "source": ranking.device.source,
        },
        "goal": ranking.goal,
        "limits": asdict(ranking.limits),
        "traffic": {
            "title": ranking.traffic.title,
            "requests": ranking.offered,
            "simulated": len(ranking.traffic.requests),
            "slo": asdict(ranking.traffic.slo),
        },
        "plans": [_plan(deployment, plan) for plan in ranking.plans],
        "rejected": [asdict(one) for one in ranking.rejected],
    }


def _plan(deployment: Deployment, plan: DeploymentPlan) -> dict[str, object]:
    return {
        "layout": asdict(plan.layout),
        "quantization": plan.quantization,
        "devices": plan.layout.ranks,
        "memory": asdict(plan.memory),
        "kv_tokens": plan.kv_tokens,
        "outcome": asdict(plan.outcome),
        "capacity_tokens_s": plan.capacity_tokens_s,
        "breach": plan.breach,
        "note": deployment.note(plan),
        "command": deployment.command(plan),
    }
