"""The section `live`: who is right how often, how sure that is, and what it costs.

Every contender answers the same questions under two rules: so many generated tokens in all, or so
long a critical path. Shares have Wilson's interval; differences are to self-consistency under the
same rule, question by question. A contender that cannot run says why in a row of its own.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median
from typing import TYPE_CHECKING, Final

from evals.engine.rows import Lookup, Row
from evals.intervals import paired_difference, share_interval
from evals.planning.effort import Effort, Skipped
from evals.reasoning.equal_budget import Contender, Result, compete
from evals.reasoning.live.terms import TASKS, LiveTerms
from evals.reasoning.models.evaluation import contenders
from evals.reasoning.models.tasks import Task
from weft.core.errors import WeftError
from weft.core.ports import ModelClient
from weft.reasoning.options import ThinkOptions
from weft.reasoning.strategies import STRATEGIES
from weft.workflow.runtime.models.factory import Models

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REFERENCE: Final = "majority"
"""Self-consistency: what everybody is compared with."""
_FEW: Final = 10
"""Of fewer questions the interval of a difference, which is normal, says nothing."""
_OTHERS: Final = {
    "map-reduce": "it reads documents, and these questions have none",
    "mirage": "it reads a knowledge graph, and these questions have none",
    "sstar": "it writes programs: see the section code",
    "plansearch": "it writes programs: see the section code",
}
_COVERED: Final = frozenset({"direct", "sample", "best-of", "backtrack", *_OTHERS})


def everybody(task: Task) -> list[Contender]:
    """All samplers, selectors and protocols that can answer a question of `task`."""
    read = {"answer": task.read}
    samplers = [
        Contender("saturating", "sample", {**read, "sampler": "saturating"}),
        Contender("deepconf", "sample", {**read, "sampler": "deepconf"}),
        Contender("probe", "sample", {**read, "sampler": "probe", "every": 32, "warmup": 2}),
    ]
    found = [*contenders(task), *samplers]
    known = {contender.strategy for contender in found} | _COVERED
    return found + [Contender(name, name) for name in STRATEGIES if name not in known]


async def run(effort: Effort, live: LiveTerms | None = None) -> list[Row]:
    """Every contender on every task. Raises: `Skipped` without a model, or without data."""
    terms = live or LiveTerms()
    if not terms.model:
        raise Skipped("name a model: --model local:NAME, vllm:NAME, or NAME with --base-url URL")
    try:
        async with Models() as models:
            return await rows_of(models.of(terms.declared), terms, effort)
    except WeftError as error:
        raise Skipped(f"{terms.model}: {error}") from error


async def rows_of(
    model: ModelClient,
    terms: LiveTerms,
    effort: Effort,
    tasks: Mapping[str, Callable[[int], Task]] = TASKS,
) -> list[Row]:
    """The rows of one model. Raises: `WeftError` where it cannot be asked at all."""
    await model.capabilities()
    rows = [Row(terms.label, name, f"skipped: {why}", None, "") for name, why in _OTHERS.items()]
    for name in terms.tasks:
        try:
            task = tasks[name](effort.of(min(2, terms.items), terms.items))
        except Skipped as reason:
            rows.append(Row(f"{name}_{terms.label}", "", f"skipped: {reason}", None, ""))
            continue
        for rule in ("equal_tokens", "equal_latency"):
            rows += await _compared(model, task, rule, terms)
    return rows


async def _compared(model: ModelClient, task: Task, rule: str, terms: LiveTerms) -> list[Row]:
    case = f"{task.name}_{rule}_{terms.label}"
    rows: list[Row] = []
    right: dict[str, list[bool]] = {}
    for contender in everybody(task):
        options: ThinkOptions = getattr(terms.terms, rule)(contender)
        found: list[Result] = []
        try:
            found = await answers(model, contender, task, options, terms.at_once)
        except* WeftError as errors:
            why = f"skipped: {errors.exceptions[0]}"
            rows.append(Row(case, contender.system, why, None, ""))
        if not found:
            continue
        right[contender.system] = [one.right for one in found]
        rows += _rows(case, contender.system, found, terms.prices)
        print(f"{case}: {contender.system} is through", file=sys.stderr, flush=True)
    return rows + _differences(case, right)


async def answers(
    model: ModelClient, contender: Contender, task: Task, options: ThinkOptions, at_once: int
) -> list[Result]:
    """The results of all items, in their order, `at_once` at a time. Raises: `WeftError`."""
    free = asyncio.Semaphore(at_once)

    async def one(number: int) -> Result:
        async with free:
            items = task.items[number : number + 1]
            (found,) = [result async for result in compete(model, contender, items, options)]
            return found

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(number)) for number in range(len(task.items))]
    return [task.result() for task in tasks]


def _rows(
    case: str, system: str, results: Sequence[Result], prices: tuple[float, float] | None
) -> list[Row]:
    low, high = share_interval([result.right for result in results])
    thoughts = [result.thought for result in results if result.thought is not None]
    written = sum(thought.counts.total_tokens for thought in thoughts)
    read = sum(thought.counts.prompt_tokens for thought in thoughts)
    count, ended, hits = len(results), len(thoughts), sum(result.right for result in results)
    figures: list[tuple[str, float, str]] = [
        ("items", count, "items"),
        ("accuracy", hits / count, "share"),
        ("accuracy_low", low, "share"),
        ("accuracy_high", high, "share"),
        ("any_right", fmean(result.any_right for result in results), "share"),
        ("answered", ended / count, "share"),
        ("wall_s", median(result.wall_s for result in results), "s"),
        ("wall_total_s", sum(result.wall_s for result in results), "s"),
    ]
    if ended:  # what came to no answer has no counts
        figures.append(("exact", fmean(t.fidelity == "exact" for t in thoughts), "share"))
        for metric in _COUNTS:
            mean = fmean(getattr(thought.counts, metric) for thought in thoughts)
            figures.append((metric, mean, "calls" if metric == "requests" else "tokens"))
    if ended == count and hits:
        figures.append(("tokens_per_right_answer", written / hits, "tokens"))
    if ended and prices is not None:
        figures.append(("cost", (read * prices[0] + written * prices[1]) / 1e6 / ended, "money"))
    rows = [Row(case, system, *figure) for figure in figures]
    whys = [result.why for result in results if result.thought is None]
    return rows + [Row(case, system, f"failed: {why[:160]}", None, "") for why in sorted({*whys})]


def _differences(case: str, right: dict[str, list[bool]]) -> list[Row]:
    rows: list[Row] = []
    for system, mine in right.items():
        if system == REFERENCE or len(mine) < _FEW or REFERENCE not in right:
            continue
        names = ("gain", "gain_low", "gain_high")
        values = paired_difference(mine, right[REFERENCE])
        rows += [Row(case, system, n, v, "share") for n, v in zip(names, values, strict=True)]
    return rows


_COUNTS: Final = (
    "total_tokens",
    "critical_path_tokens",
    "prompt_tokens",
    "cancelled_tokens",
    "requests",
)
_COLUMNS: Final = (
    ("right", "accuracy", ".2f"),
    ("low", "accuracy_low", ".2f"),
    ("high", "accuracy_high", ".2f"),
    ("gain", "gain", "+.2f"),
    ("low", "gain_low", "+.2f"),
    ("high", "gain_high", "+.2f"),
    ("answered", "answered", ".2f"),
    ("exact", "exact", ".2f"),
    ("tokens", "total_tokens", ",.0f"),
    ("path", "critical_path_tokens", ",.0f"),
    ("prompt", "prompt_tokens", ",.0f"),
    ("calls", "requests", ".1f"),
    ("wall s", "wall_s", ".2f"),
    ("money", "cost", ".5f"),
)


def table(rows: Sequence[Row]) -> str:
    """One block for each case, one line for each contender; then who could not run, and why."""
    figures = Lookup(rows)
    lines: list[str] = []
    for case in dict.fromkeys(row.case for row in rows if row.metric == "accuracy"):
        lines.append(f"{case:44}" + "".join(f"{name:>9}" for name, _, _ in _COLUMNS))
        for system in dict.fromkeys(row.system for row in rows if row.case == case):
            values = ((figures(case, system, metric), spec) for _, metric, spec in _COLUMNS)
            cells = "".join(f"{'-' if v is None else format(v, spec):>9}" for v, spec in values)
            lines.append(f"  {system:42}{cells}")
        lines.append("")
    lines += [f"{row.case} {row.system}: {row.metric}" for row in rows if row.value is None]
    return "\n".join(lines).rstrip()


def panel(axes: Axes, figures: Lookup) -> None:
    """Accuracy over tokens of a question at equal tokens, of all tasks."""
    for (case, system), share in figures.of("accuracy").items():
        tokens = figures(case, system, "total_tokens")
        if "_equal_tokens_" in case and tokens is not None:
            axes.scatter(tokens, share, color="#0b6e4f" if system == REFERENCE else "#5b7db1")
            axes.annotate(system, (tokens, share), (5, 5), textcoords="offset points", fontsize=6)
    axes.set_xlabel("generated tokens a question")
    axes.set_ylabel("accuracy")
    axes.set_title("an equal budget of tokens")
