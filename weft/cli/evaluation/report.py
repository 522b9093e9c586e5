"""The report of an evaluation and of a comparison, in the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from weft.cli.console import table
from weft.cli.text import amount, clean, duration, money, one_line
from weft.evaluation.compare import EvaluationComparison
from weft.evaluation.result import CaseResult, EvaluationResult
from weft.evaluation.statistics import Interval

_BARS: Final = "▁▂▃▄▅▆▇█"
_BINS: Final = 20
_MOST: Final = 10
_WIDTH: Final = 160
_VERDICTS: Final = {"better": "green", "worse": "bold red", "not shown": "yellow"}


def print_evaluation(console: Console, result: EvaluationResult) -> None:
    """Print scores with intervals, times, cost, and what failed or was not scored."""
    cases = amount(int(result.data.get("cases", 0)), "case")
    head = Text(clean(result.flow), "bold")
    head.append(f"  {clean(str(result.data.get('name', '')))}, {cases}", "default")
    recorded = f"run {clean(result.run)}" if result.run else "not recorded"
    head.append(f" x {amount(result.replicates, 'replicate')}, {recorded}", "dim")
    console.print(head, soft_wrap=True)
    shown = table("metric", ">score", ">95 %", ">cases", ">unscored", "from lowest to highest")
    for name in result.metrics:
        summary = result.summary(name)
        values = list(result.means(name).values())
        shown.add_row(
            clean(name),
            _score(summary.interval.mean),
            _bounds(summary.interval),
            f"{summary.cases:,}",
            f"{summary.unscored:,}",
            histogram(values),
        )
    console.print(shown)
    counts = ", ".join(f"{count:,} {what}" for what, count in result.counts().items() if count)
    console.print(f"results   {counts}", soft_wrap=True)
    for line in _spent(result):
        console.print(line, soft_wrap=True)
    _print_unscored(console, result)
    _print_cases(console, result, "failed", "red")
    _print_cases(console, result, "unscored", "yellow")


def histogram(values: Sequence[float]) -> str:
    """How often values occur, in equal steps from the lowest to the highest, as bars."""
    if not values:
        return ""
    low, high = min(values), max(values)
    counts = [0] * (_BINS if high > low else 1)
    for value in values:
        place = int((value - low) / (high - low) * len(counts)) if high > low else 0
        counts[min(place, len(counts) - 1)] += 1
    most = max(counts)
    return "".join(
        _BARS[math.ceil(count / most * len(_BARS)) - 1] if count else " " for count in counts
    )


def _spent(result: EvaluationResult) -> Iterator[str]:
    walls = list(result.walls.values())
    if walls:
        spread = f"p50 {duration(result.wall(0.5))}, p95 {duration(result.wall(0.95))}"
        yield f"a case    {spread}  {histogram(walls)}"
    usage = result.case_usage
    parts = [duration(result.wall_s), amount(usage.tokens, "token")]
    if usage.money:
        parts.append(money(usage.money))
    judged = result.usage.tokens - usage.tokens
    if judged > 0:
        parts.append(f"metrics {amount(judged, 'token')}")
    yield f"in all    {', '.join(parts)}"


def _print_cases(console: Console, result: EvaluationResult, status: str, style: str) -> None:
    """Cases of one status: those with one reason on one line."""
    found: dict[str, list[CaseResult]] = {}
    for case in result.cases:
        if case.status == status:
            found.setdefault(case.reason, []).append(case)
    shown = list(found.items())[:_MOST]
    for reason, (first, *others) in shown:
        named = _named(first, result.replicates)
        if others:
            named = f"{named.rstrip()} and {len(others):,} more  "
        line = Text(f"{status} ", style).append(named, "default")
        console.print(line.append(one_line(reason, _WIDTH), "dim"), soft_wrap=True)
    hidden = sum(map(len, found.values())) - sum(len(cases) for _, cases in shown)
    if hidden:
        console.print(f"… and {hidden:,} more {status}; --json has them all")


def _print_unscored(console: Console, result: EvaluationResult) -> None:
    """Why metrics have no score of results that have one of another metric, the first reason."""
    shown = {case.reason for case in result.cases if case.status == "unscored"}
    for name in result.metrics:
        count, why = result.summary(name).unscored, result.first_unscored(name)
        if count and why not in shown:
            line = Text("unscored ", "yellow").append(
                f"{clean(name)} of {count:,}, the first  ", "default"
            )
            console.print(line.append(one_line(why, _WIDTH), "dim"), soft_wrap=True)


def _named(case: CaseResult, replicates: int) -> str:
    which = f"[{case.replicate}]" if replicates > 1 else ""
    return f"{one_line(case.case, 60)}{which}  "


def print_comparison(console: Console, found: EvaluationComparison) -> None:
    """Print the candidate beside the baseline: paired tests, times, cost, and what changed."""
    console.print(Text(f"{clean(found.a)} -> {clean(found.b)}", "bold"), soft_wrap=True)
    shown = table("metric", ">before", ">after", ">change", ">95 %", ">p", "", "test", ">cases")
    for each in found.metrics:
        shown.add_row(
            clean(each.metric),
            _score(each.a),
            _score(each.b),
            f"{each.difference.mean:+.4f}",
            _bounds(each.difference),
            f"{each.p:.2g}",
            Text(each.verdict, _VERDICTS[each.verdict]),
            each.test,
            f"{each.cases:,}",
        )
    console.print(shown)
    for line in _changes(found):
        console.print(line, soft_wrap=True)
    for note in found.notes:
        console.print(f"note: {clean(note)}", style="yellow", soft_wrap=True)
    _print_moved(console, "lost", found.main.lost, "red")
    _print_moved(console, "won", found.main.won, "green")


def _changes(found: EvaluationComparison) -> Iterator[str]:
    for name, change in (("p50", found.p50_s), ("p95", found.p95_s)):
        if change is not None:
            signs = (_seconds(change.mean), _seconds(change.low), _seconds(change.high))
            yield "{} of a case  {} ({} to {})".format(name, *signs)
    tokens = found.tokens
    yield f"tokens of a case  {tokens.mean:+,.1f} ({tokens.low:+,.1f} to {tokens.high:+,.1f})"
    if found.cost_usd.mean:
        yield f"cost of a case  {found.cost_usd.mean:+.6f} US dollars"


def _print_moved(console: Console, what: str, cases: Mapping[str, float], style: str) -> None:
    if not cases:
        return
    shown = [f"{one_line(case, 40)} {by:+.2g}" for case, by in list(cases.items())[:_MOST]]
    more = f", … {len(cases) - _MOST:,} more" if len(cases) > _MOST else ""
    line = Text(f"{what} {len(cases):,}  ", style).append(", ".join(shown) + more, "default")
    console.print(line, soft_wrap=True)


def _seconds(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{duration(abs(value))}"


def _score(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "none"


def _bounds(interval: Interval) -> str:
    if not math.isfinite(interval.low):
        return ""
    return f"{interval.low:.4f} to {interval.high:.4f}"
