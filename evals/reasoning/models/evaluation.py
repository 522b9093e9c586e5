"""The section `models`: every contender on every task, at equal tokens and at equal latency."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Final

from evals.engine.rows import Lookup, Row
from evals.planning.effort import Effort, Skipped
from evals.planning.quality.models import MODELS, Served, opened
from evals.reasoning.equal_budget import Contender, Result, Terms, compete
from evals.reasoning.models.tasks import Task, countdown, gsm8k
from weft.core.errors import ModelError, ServeError
from weft.core.ports import ModelClient
from weft.reasoning.sampling.prompts import INSTRUCTION
from weft.reasoning.strategies import STRATEGIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BASELINE: Final = "best_of_n"
"""Direct samples, one of which is chosen: always in the table."""

_PROTOCOLS: Final = ("parathinker", "threadweaver", "a2r")
_IN_A_HURRY: Final = {"direct", BASELINE, "majority", "cancel_decided", "backtrack", "parathinker"}


def contenders(task: Task) -> list[Contender]:
    """Who competes on `task`. The verified ones may ask the verifier; without one, who they ask."""
    read = {"answer": task.read}
    verified: list[Contender] = []
    scorer: dict[str, Any] = {}
    if task.verify is not None:
        scorer = {"scorer": task.score}
        ends = {"stable": 0, "verify": task.verify}
        verified = [Contender("backtrack_verified", "backtrack", {**read, **ends})]
    whole = {**read, "cancel_decided": False}
    plain = [
        Contender("direct", "direct", {**read, "instruction": INSTRUCTION}),
        Contender(BASELINE, "best-of", {**read, **scorer}),
        *verified,
        Contender("majority", "sample", whole),
        Contender("cancel_decided", "sample", read),
        Contender("asc_waves", "sample", {**read, "sampler": "asc", "wave": 4}),
        Contender("esc", "sample", {**read, "sampler": "esc", "wave": 4}),
        Contender("short3", "sample", {**read, "sampler": "short"}),
        Contender("confidence", "sample", {**read, "selector": "confidence", "window": 64}),
        Contender("synthesis", "sample", {**read, "selector": "synthesis"}),
        Contender("backtrack", "backtrack", {**read, "stable": 0}),
    ]
    return plain + [Contender(name, name) for name in _PROTOCOLS if name in STRATEGIES]


async def run(effort: Effort) -> list[Row]:
    """Every model that is here, in a hurry the first, and not every contender.

    Raises: `Skipped` when the data or every model is missing.
    """
    terms = Terms(sample_tokens=effort.of(64, 96), width=effort.of(4, 8))
    rows: list[Row] = []
    reasons: list[str] = []
    for served in MODELS:
        tasks = _tasks(served, effort)
        try:
            async with opened(served) as model:
                for task in tasks:
                    rows += await _task(model, served, task, terms, effort)
            if effort.quick:
                return rows
        except (ModelError, ServeError) as error:
            reasons.append(f"{served.name}: {error}")
            rows.append(Row("models", served.name, f"skipped: {error}", None, ""))
    if len(reasons) == len(MODELS):
        raise Skipped("; ".join(reasons))
    return rows


def _tasks(served: Served, effort: Effort) -> list[Task]:
    count = effort.of(2, 12 if served.name == "vllm" else 4)
    return [countdown(count), gsm8k(count)]


async def _task(
    model: ModelClient, served: Served, task: Task, terms: Terms, effort: Effort
) -> list[Row]:
    rows: list[Row] = []
    for contender in contenders(task):
        if effort.quick and contender.system not in _IN_A_HURRY:
            continue
        rows += await measured(model, served, task, contender, terms)
        said = f"{served.name}, {task.name}: {contender.system} is through"
        print(said, file=sys.stderr, flush=True)
    return rows


async def measured(
    model: ModelClient, served: Served, task: Task, contender: Contender, terms: Terms
) -> list[Row]:
    """One contender, at equal tokens and at equal latency."""
    both = {
        "equal_tokens": terms.equal_tokens(contender),
        "equal_latency": terms.equal_latency(contender),
    }
    rows: list[Row] = []
    for cost, options in both.items():
        found = [result async for result in compete(model, contender, task.items, options)]
        rows += _rows(f"{task.name}_{cost}_{served.name}", contender.system, found)
    return rows


def _rows(case: str, system: str, results: Sequence[Result]) -> list[Row]:
    thoughts = [result.thought for result in results if result.thought is not None]
    answered = sum(thought.key is not None for thought in thoughts)
    rows = [
        Row(case, system, "accuracy", fmean(r.right for r in results), "share"),
        Row(case, system, "any_right", fmean(r.any_right for r in results), "share"),
        Row(case, system, "answered", answered / len(results), "share"),
        Row(case, system, "wall_s", median(r.wall_s for r in results), "s"),
        Row(case, system, "items", len(results), "items"),
    ]
    for metric in ("total_tokens", "critical_path_tokens", "cancelled_tokens", "requests"):
        value = fmean(getattr(t.counts, metric) for t in thoughts) if thoughts else None
        rows.append(Row(case, system, metric, value, "calls" if metric == "requests" else "tokens"))
    return rows


_COLUMNS: Final = (
    ("accuracy", "accuracy", ".2f"),
    ("any right", "any_right", ".2f"),
    ("answered", "answered", ".2f"),
    ("total", "total_tokens", ",.0f"),
    ("path", "critical_path_tokens", ",.0f"),
    ("cancelled", "cancelled_tokens", ",.0f"),
    ("calls", "requests", ".1f"),
    ("wall s", "wall_s", ".2f"),
    ("items", "items", ".0f"),
)


def table(rows: Sequence[Row]) -> str:
    """One block for each case, one line for each contender."""
    figures = Lookup(rows)
    lines: list[str] = []
    for case in dict.fromkeys(row.case for row in rows):
        lines.append(f"{case:34}" + "".join(f"{name:>11}" for name, _, _ in _COLUMNS))
        systems = dict.fromkeys(row.system for row in rows if row.case == case)
        for system in systems:
            values = ((figures(case, system, metric), spec) for _, metric, spec in _COLUMNS)
            cells = "".join(f"{'-' if v is None else format(v, spec):>11}" for v, spec in values)
            lines.append(f"  {system:32}{cells}")
        lines.append("")
    return "\n".join(lines).rstrip()


def panel(axes: Axes, figures: Lookup) -> None:
    """Accuracy over total tokens on Countdown, from vLLM."""
    case = "countdown3_equal_tokens_vllm"
    for contender in contenders(Task("countdown3", (), lambda _, __: None)):
        system = contender.system
        tokens, accuracy = figures(case, system, "total_tokens"), figures(case, system, "accuracy")
        if tokens is not None and accuracy is not None:
            axes.scatter(tokens, accuracy, color="#0b6e4f" if system == BASELINE else "#5b7db1")
            axes.annotate(
                system, (tokens, accuracy), (5, 5), textcoords="offset points", fontsize=7
            )
    axes.set_xlabel("generated tokens a question")
    axes.set_ylabel("accuracy")
    axes.set_title("Countdown-3, equal budget of tokens")
