"""A study as one HTML page with plots; it has no script and asks for nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from weft.cli.html import html_page, html_table, html_text
from weft.cli.studies.report import change, number, sentence
from weft.cli.text import duration, money
from weft.optimisation.result import CaseChange, FrontMember, ObjectiveFigure, StudyResult

_WIDTH: Final = 620
_HEIGHT: Final = 260
_EDGE: Final = 50
_MOST: Final = 1_000


def study_page(result: StudyResult) -> str:
    """The HTML text of the page."""
    return html_page(f"{result.flow}: {result.verdict.kind}", _parts(result))


def _parts(result: StudyResult) -> Iterator[str]:
    yield f"<h1>{html_text(result.flow)}</h1><p>{html_text(sentence(result))}</p>"
    sizes = ", ".join(f"{count:,} {name}" for name, count in result.splits.items() if count)
    data = f"{result.data.get('name', '')}: {sizes} cases x {result.replicates}; run {result.run}"
    yield f"<p>{html_text(data)}; looks at the held-out cases: {result.verdict.looks}</p>"
    yield "<h2>Front</h2>"
    yield _front(result)
    others = [each.name for each in result.baseline.figures if each.objective != result.improve]
    for name in others:
        yield _scatter(result, name)
    for member in result.front:
        yield from _member(member)
    yield from _cases(result)
    yield from _spent(result)


def _front(result: StudyResult) -> str:
    names = [figure.name for figure in result.baseline.figures]
    rows = []
    for member in result.members():
        cells = [member.name + (" (best)" if member.digest == result.best.digest else "")]
        for name in names:
            figure = member.figure(name)
            known = figure is not None and figure.value is not None
            cells += [
                number(name, figure.value) if known else "",  # type: ignore[union-attr,arg-type]
                "" if figure is None else change(figure),
            ]
        goal = member.figure(result.improve)
        rows.append([*cells, "" if goal is None else f"{goal.source}, {goal.cases:,} cases"])
    head = [each for name in names for each in (f"#{name}", "#change (95 %)")]
    return html_table(("", *head, "from"), rows)


def _scatter(result: StudyResult, other: str) -> str:
    """The goal over another figure, with the intervals of the changes; predicted points hollow."""
    points = [
        (member, goal, figure)
        for member in result.members()
        if (goal := member.figure(result.improve)) is not None
        and (figure := member.figure(other)) is not None
        and goal.value is not None
        and figure.value is not None
    ]
    xs = [edge for _, _, figure in points for edge in _ends(figure)]
    ys = [edge for _, goal, _ in points for edge in _ends(goal)]
    if len(points) < 2 or max(xs) == min(xs):
        return ""
    left, low = min(xs), min(ys)
    wide, high = max(xs) - left, (max(ys) - low) or 1.0

    def x(value: float) -> float:
        return _EDGE + (value - left) / wide * (_WIDTH - 2 * _EDGE)

    def y(value: float) -> float:
        return _HEIGHT - _EDGE - (value - low) / high * (_HEIGHT - 2 * _EDGE)

    marks = []
    for member, goal, figure in points:
        assert goal.value is not None, "filtered above"
        assert figure.value is not None, "filtered above"
        at, up = x(figure.value), y(goal.value)
        (x1, x2), (y1, y2) = _ends(figure), _ends(goal)
        fill = "none" if goal.source == "predicted" else "#3b7dd8"
        title = f"{member.name}: {result.improve} {goal.value:.4g}, {other} {figure.value:.4g}"
        marks.append(
            f'<line x1="{x(x1):.1f}" y1="{up:.1f}" x2="{x(x2):.1f}" y2="{up:.1f}"/>'
            f'<line x1="{at:.1f}" y1="{y(y1):.1f}" x2="{at:.1f}" y2="{y(y2):.1f}"/>'
            f'<circle cx="{at:.1f}" cy="{up:.1f}" r="5" fill="{fill}" stroke="#3b7dd8">'
            f"<title>{html_text(title)}</title></circle>"
            f'<text x="{at + 8:.1f}" y="{up - 6:.1f}">{html_text(member.name)}</text>'
        )
    foot = _HEIGHT - _EDGE
    return (
        f'<figure><svg viewBox="0 0 {_WIDTH + _EDGE} {_HEIGHT}" width="{_WIDTH + _EDGE}" '
        f'role="img">'
        f'<line x1="{_EDGE}" y1="{foot}" x2="{_WIDTH - _EDGE}" y2="{foot}"/>'
        f'<line x1="{_EDGE}" y1="{_EDGE}" x2="{_EDGE}" y2="{foot}"/>{"".join(marks)}'
        f'<text x="{_WIDTH - _EDGE}" y="{foot + 30}" text-anchor="end">{html_text(other)}</text>'
        f'<text x="{_EDGE}" y="{foot + 15}">{left:.4g}</text>'
        f'<text x="{_WIDTH - _EDGE}" y="{foot + 15}" text-anchor="end">{left + wide:.4g}</text>'
        f'<text x="4" y="{_EDGE - 12}">{html_text(result.improve)}</text>'
        f'<text x="4" y="{_EDGE + 4}">{low + high:.4g}</text>'
        f'<text x="4" y="{foot}">{low:.4g}</text></svg></figure>'
    )


def _ends(figure: ObjectiveFigure) -> tuple[float, float]:
    """The value, moved by as much as the interval of its change reaches to either side."""
    value = figure.value or 0.0
    return max(0.0, value + figure.low - figure.change), value + figure.high - figure.change


def _member(member: FrontMember) -> Iterator[str]:
    if not member.edits:
        return
    yield f"<h2>{html_text(member.name)}</h2>"
    rows = [
        (
            "" if edit.contribution is None else f"{edit.contribution:+.3f}",
            edit.knob,
            edit.label,
            edit.why,
        )
        for edit in member.edits
    ]
    yield html_table(("#contributes", "knob", "~edit", "~why"), rows)
    yield f"<pre>{html_text(member.diff)}</pre>"


def _cases(result: StudyResult) -> Iterator[str]:
    changes: Sequence[tuple[str, CaseChange]] = [
        *(("lost", each) for each in result.lost),
        *(("won", each) for each in result.won),
    ]
    if not changes:
        return
    yield "<h2>Cases that changed</h2>"
    rows = [
        (each.case, word, f"{each.before:.3g}", f"{each.after:.3g}")
        for word, each in changes[:_MOST]
    ]
    yield html_table(("case", "", "#before", "#after"), rows)


def _spent(result: StudyResult) -> Iterator[str]:
    yield "<h2>What it took</h2>"
    rows = [
        (name, f"{spend.calls:,}", f"{spend.tokens:,}", money(spend.money))
        for name, spend in result.spend.items()
    ]
    yield html_table(("", "#model calls", "#tokens", "#cost"), rows)
    yield f"<p>{duration(result.wall_s)}; {result.calls_saved:,} calls came from the table</p>"
    for leak in result.leaks:
        what = f"leak in {leak.place}: {leak.what}, of {leak.case} ({leak.split})"
        yield f'<p class="failed">{html_text(what)}</p>'
