"""The report of a study, and of what one would be over, in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Final

from rich.console import Console
from rich.text import Text

from weft.cli.console import table
from weft.cli.text import amount, clean, duration, money, one_line
from weft.optimisation.preview import StudyPreview
from weft.optimisation.result import CaseChange, FrontMember, ObjectiveFigure, StudyResult
from weft.optimisation.space import Knob

_STYLES: Final = {"improved": "bold green", "not_shown": "yellow", "no_headroom": "yellow"}
_WIDTH: Final = 100
_MOST: Final = 8
_LONGEST: Final = 400
"""Characters of a prompt among the values of a knob."""


def sentence(result: StudyResult) -> str:
    """What the study found, in one sentence."""
    verdict = result.verdict
    if not result.improved:
        seen = verdict.detectable
        what = f"; the smallest visible difference is {seen:.2g}" if seen is not None else ""
        return f"{verdict.kind}: {verdict.why}{what}"
    parts = []
    for figure in result.best.figures:
        before = result.baseline.figure(figure.name)
        if figure.value is None or before is None or before.value is None:
            continue
        if figure.objective == "cost" and not before.value and not figure.value:
            continue
        was, now = number(before.name, before.value), number(figure.name, figure.value)
        parts.append(f"{figure.name} {was} -> {now}")
    p = "" if verdict.p is None else f", p {verdict.p:.2g}"
    return f"improved: {'; '.join(parts)}{p} on {amount(verdict.cases, 'held-out case')}"


def number(name: str, value: float) -> str:
    """A figure as it is shown."""
    if name.endswith("_s"):
        return duration(value)
    if name == "tokens":
        return f"{value:,.0f}"
    return money(value) if name == "cost_usd" else f"{value:.3f}"


def change(figure: ObjectiveFigure) -> str:
    """The change of a figure against the baseline, with its interval."""
    if not figure.change and not figure.low and not figure.high:
        return ""
    digits = ",.1f" if figure.name == "tokens" else ".3f"
    shown = [format(each, f"+{digits}") for each in (figure.change, figure.low, figure.high)]
    return f"{shown[0]} ({shown[1]} to {shown[2]})"


def print_study(console: Console, result: StudyResult) -> None:
    """Print the sentence, the front, the edits, the cases, and what it took."""
    kind = result.verdict.kind
    console.print(Text(clean(sentence(result)), _STYLES.get(kind, "default")), soft_wrap=True)
    recorded = f"run {clean(result.run)}" if result.run else "not recorded"
    sizes = ", ".join(f"{count:,} {name}" for name, count in result.splits.items() if count)
    head = f"{clean(result.flow)}  {clean(str(result.data.get('name', '')))}: {sizes}; {recorded}"
    console.print(Text(head, "dim"), soft_wrap=True)
    _print_front(console, result)
    for number_, member in enumerate(result.front, 1):
        _print_edits(console, member, number_, is_best=member.digest == result.best.digest)
    for line in _cases(result):
        console.print(line, soft_wrap=True)
    for line in _spent(result):
        console.print(line, soft_wrap=True)
    for leak in result.leaks[:_MOST]:
        what = f"leak      {leak.place}: {leak.what}, of {leak.case} ({leak.split})"
        console.print(Text(clean(what), "red"), soft_wrap=True)


def _print_front(console: Console, result: StudyResult) -> None:
    names = [figure.name for figure in result.baseline.figures]
    shown = table("", *(f">{name}" for name in names), ">change of the goal", "figures from")
    for member in result.members():
        figures = {figure.name: figure for figure in member.figures}
        values = [
            ""
            if name not in figures or (value := figures[name].value) is None
            else number(name, value)
            for name in names
        ]
        goal = member.figure(result.improve)
        is_best = result.improved and member.digest == result.best.digest
        shown.add_row(
            f"{clean(member.name)}{' *' if is_best else ''}",
            *values,
            "" if goal is None else change(goal),
            "" if goal is None else f"{goal.source}, {amount(goal.cases, 'case')}",
        )
    console.print(shown)


def _print_edits(console: Console, member: FrontMember, place: int, *, is_best: bool) -> None:
    for edit in member.edits:
        worth = "" if edit.contribution is None else f"{edit.contribution:+.3f}  "
        line = Text(f"{place}{'*' if is_best else ' '}  ", "bold" if is_best else "default")
        line.append(f"{worth}{one_line(edit.label, _WIDTH)}", "default")
        if edit.why:
            line.append(f"  {one_line(edit.why, _WIDTH)}", "dim")
        console.print(line, soft_wrap=True)


def _cases(result: StudyResult) -> Iterator[str]:
    for word, cases in (("won", result.won), ("lost", result.lost)):
        if cases:
            yield f"{word:<10}{amount(len(cases), 'case')}: {_named(cases)}"


def _named(cases: Sequence[CaseChange]) -> str:
    names = ", ".join(one_line(each.case, 30) for each in cases[:_MOST])
    return names if len(cases) <= _MOST else f"{names} and {len(cases) - _MOST:,} more"


def _spent(result: StudyResult) -> Iterator[str]:
    total = result.spent
    parts = [f"{name} {spend.calls:,}" for name, spend in result.spend.items() if spend.calls]
    all_of = [amount(total.calls, "model call"), amount(total.tokens, "token")]
    if total.money:
        all_of.append(money(total.money))
    saved = f"; {result.calls_saved:,} more came from the table" if result.calls_saved else ""
    by = f" ({', '.join(parts)})" if parts else ""
    yield f"spent     {', '.join(all_of)} in {duration(result.wall_s)}{by}{saved}"
    looks = result.verdict.looks
    if looks > 1:
        yield f"held-out  look {looks} at these cases: each one makes a chance finding likelier"
    dropped = [each for each in result.proposers if each.candidates or each.dropped]
    for each in dropped:
        yield (
            f"proposer  {clean(each.name)}: {amount(each.candidates, 'candidate')}, "
            f"{each.dropped:,} dropped, {amount(each.calls, 'call')}"
        )


def print_preview(console: Console, found: StudyPreview) -> None:
    """Print knobs with their options, splits, the smallest visible difference, and the budget."""
    source = "declared" if found.declared else "found in the workflow"
    if found.space.knobs:
        _print_knobs(console, found.space.knobs, source)
    else:
        console.print(f"knobs       none {source}")
    for node, what in found.space.open:
        console.print(f"open        {clean(node)}.{what}: for proposers", soft_wrap=True)
    cases = ", ".join(f"{count:,} {name}" for name, count in found.splits.items())
    console.print(f"cases       {cases}, x {amount(found.replicates, 'replicate')}")
    if found.detectable is None:
        console.print(f"visible     nothing: {found.shortage}", soft_wrap=True)
    else:
        console.print(
            f"visible     a difference of about {found.detectable:.2f} in {found.metrics[0]}, "
            "where answers of three cases in ten differ"
        )
    console.print(f"budget      {_budget(found)}")


def _print_knobs(console: Console, knobs: Sequence[Knob], source: str) -> None:
    """One line for each value: the one that the workflow has now, then those to try."""
    shown = table(f"knobs, {source}", "", "~value")
    for knob in knobs:
        for number, option in enumerate(knob.options):
            name, what = ("", "try") if number else (clean(knob.name), "now")
            shown.add_row(name, what, _value(knob.kind, option.value))
    console.print(shown)
    counts = " x ".join(f"{len(knob.options):,}" for knob in knobs)
    total = prod(len(knob.options) for knob in knobs)
    of = f"{counts} = {total:,}" if len(knobs) > 1 else f"{total:,}"
    console.print(f"workflows   {of}: the one that is there, and {total - 1:,} others")


def _value(kind: str, value: object) -> str:
    """A value of a knob on its own lines; line breaks are shown as such."""
    if kind == "optional":
        return "with the node" if value else "without the node"
    if value is None:
        return "not set"
    if isinstance(value, (list, tuple)):
        return clean(", ".join(map(str, value)))
    return one_line(str(value).strip().replace("\n", " ⏎ "), _LONGEST)


def _budget(found: StudyPreview) -> str:
    units = {"calls": "model calls", "tokens": "tokens", "money": "usd", "seconds": "s"}
    return ", ".join(f"{value:,} {units[name]}" for name, value in found.budget.items())
