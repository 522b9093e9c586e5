"""An evaluation as one HTML page with tables and plots; it has no script and asks for nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from weft.cli.html import html_page, html_table, html_text
from weft.cli.text import duration, json_text, money, plain
from weft.evaluation.compare import EvaluationComparison
from weft.evaluation.result import CaseResult, EvaluationResult
from weft.evaluation.statistics import Interval

_BINS: Final = 24
_MOST: Final = 5_000
_CHARS: Final = 400


def evaluation_page(
    result: EvaluationResult,
    comparison: EvaluationComparison | None = None,
    baseline: EvaluationResult | None = None,
) -> str:
    """The HTML text of the page; with a comparison, every case shows its change."""
    title = f"{result.flow}: {result.main} {_score(result.score)}"
    return html_page(title, _parts(result, comparison, baseline))


def _parts(
    result: EvaluationResult,
    comparison: EvaluationComparison | None,
    baseline: EvaluationResult | None,
) -> Iterator[str]:
    data = result.data
    yield f"<h1>{html_text(result.flow)}</h1>"
    yield (
        f"<p>{html_text(data.get('name', ''))}: {data.get('cases', 0):,} cases x "
        f"{result.replicates} replicates, digest {html_text(data.get('digest', ''))}, "
        f"run {html_text(result.run)}</p>"
    )
    rows = [
        (name, _score(s.interval.mean), _bounds(s.interval), f"{s.cases:,}", f"{s.unscored:,}")
        for name, s in ((name, result.summary(name)) for name in result.metrics)
    ]
    yield html_table(("metric", "#score", "#95 %", "#cases", "#unscored"), rows)
    usage = result.case_usage
    counts = [f"{count:,} {what}" for what, count in result.counts().items() if count]
    spent = [f"{usage.tokens:,} tokens", money(usage.money), duration(result.wall_s)]
    yield f"<p>{html_text(', '.join(counts))}; {html_text(', '.join(spent))}</p>"
    if comparison is not None:
        yield from _comparison(comparison)
    before = None if baseline is None else list(baseline.means(result.main).values())
    yield _plot(f"{result.main} of cases", list(result.means().values()), before)
    walls = None if baseline is None else list(baseline.walls.values())
    yield _plot("seconds of a case", list(result.walls.values()), walls)
    yield from _cases(result, comparison)


def _comparison(found: EvaluationComparison) -> Iterator[str]:
    yield f"<h2>Against {html_text(found.a)}</h2>"
    rows = [
        (
            each.metric,
            _score(each.a),
            _score(each.b),
            f"{each.difference.mean:+.4f}",
            _bounds(each.difference),
            f"{each.p:.2g}",
            each.verdict,
            each.test,
            f"{len(each.lost):,}",
            f"{len(each.won):,}",
        )
        for each in found.metrics
    ]
    head = ("metric", "#before", "#after", "#change", "#95 %", "#p", "", "test", "#lost", "#won")
    yield html_table(head, rows)
    for name, change in (("p50", found.p50_s), ("p95", found.p95_s)):
        if change is not None:
            spread = f"{change.low:+.3f} to {change.high:+.3f}"
            yield f"<p>{name} of a case: {change.mean:+.3f} s ({spread})</p>"
    for note in found.notes:
        yield f"<p>{html_text(note)}</p>"


def _cases(result: EvaluationResult, comparison: EvaluationComparison | None) -> Iterator[str]:
    """The cases: those that lost against the baseline first, then the lowest scores."""
    lost = {} if comparison is None else comparison.main.lost
    won = {} if comparison is None else comparison.main.won

    def order(case: CaseResult) -> tuple[float, float]:
        score = case.scores.get(result.main)
        return lost.get(case.case, 0.0), math.inf if score is None else score.value

    yield "<h2>Cases</h2>"
    shown = sorted(result.cases, key=order)[:_MOST]
    rows = [
        (
            case.case if result.replicates == 1 else f"{case.case} [{case.replicate}]",
            case.status,
            *(_of(case, name) for name in result.metrics),
            "lost" if case.case in lost else "won" if case.case in won else "",
            f"{case.wall_s:.3f}",
            f"{case.usage.tokens:,}",
            _shortened(json_text(plain(case.outputs))),
            _shortened(_said(case, result.main)),
        )
        for case in shown
    ]
    metrics = [f"#{name}" for name in result.metrics]
    yield html_table(
        ("case", "status", *metrics, "", "#s", "#tokens", "~outputs", "~feedback"), rows
    )
    if len(result.cases) > _MOST:
        left = len(result.cases) - _MOST
        yield f"<p>{left:,} more: weft eval show {html_text(result.run)} --json</p>"


def _of(case: CaseResult, metric: str) -> str:
    score = case.scores.get(metric)
    return "" if score is None else f"{score.value:.4g}"


def _said(case: CaseResult, main: str) -> str:
    score = case.scores.get(main)
    said = "" if score is None else score.feedback
    return case.reason or said or "; ".join(case.unscored.values())


def _plot(title: str, values: Sequence[float], before: Sequence[float] | None = None) -> str:
    """A histogram as SVG; the baseline's grey beside it."""
    if not values:
        return ""
    every = [*values, *(before or ())]
    low, high = min(every), max(every)
    span = (high - low) or 1.0

    def counted(of: Iterable[float]) -> list[int]:
        counts = [0] * _BINS
        for value in of:
            counts[min(int((value - low) / span * _BINS), _BINS - 1)] += 1
        return counts

    own, other = counted(values), counted(before or ())
    most = max(*own, *other)
    bars = "".join(
        f'<rect class="{kind}" x="{40 + place * 24 + shift}" y="{130 - 110 * count / most:.1f}" '
        f'width="10" height="{110 * count / most:.1f}"><title>{count}</title></rect>'
        for kind, shift, counts in (("b", 0, other), ("a", 11, own))
        for place, count in enumerate(counts)
        if count
    )
    right = 40 + 24 * _BINS
    return (
        f'<figure><svg viewBox="0 0 {right + 20} 160" width="{right + 20}" role="img">'
        f'<text x="40" y="12">{html_text(title)}</text>{bars}'
        f'<line x1="40" y1="130" x2="{right}" y2="130"/>'
        f'<text x="40" y="146">{low:.4g}</text>'
        f'<text x="{right}" y="146" text-anchor="end">{high:.4g}</text>'
        f'<text x="34" y="28" text-anchor="end">{most:,}</text></svg></figure>'
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _CHARS else text[: _CHARS - 1] + "…"


def _score(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "none"


def _bounds(interval: Interval) -> str:
    return f"{interval.low:.4f} to {interval.high:.4f}" if math.isfinite(interval.low) else ""
